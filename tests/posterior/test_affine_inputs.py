"""Input transforms as a shift and a scale, against the transforms themselves."""

from __future__ import annotations

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputStandardize,
    Log10,
    Normalize,
    Warp,
)

from botorch_drbo.posterior.skeleton import column_sources
from botorch_drbo.posterior.training import affine_inputs

Z = torch.rand(14, 3, dtype=torch.double) * torch.tensor([2.0, 30.0, 0.5]) + 1e4


def chain() -> ChainedInputTransform:
    return ChainedInputTransform(a=InputStandardize(3), b=Normalize(3))


@pytest.mark.parametrize("make", [lambda: None, lambda: Normalize(3), chain])
def test_same_as_the_transform(make) -> None:
    model = SingleTaskGP(Z, Z[:, :1], input_transform=make()).eval()
    affine = affine_inputs(model)
    assert affine is not None
    expected = model.transform_inputs(Z)
    torch.testing.assert_close(affine(Z), expected, rtol=0, atol=1e-11)
    part = affine.of([2, 0])(Z[:, [2, 0]])
    torch.testing.assert_close(part, expected[:, [2, 0]], rtol=0, atol=1e-11)
    then = affine.then(torch.ones(3).double(), torch.tensor([1.0, 2.0, 3.0]).double())
    scaled = (expected - 1) * torch.tensor([1.0, 2.0, 3.0]).double()
    torch.testing.assert_close(then(Z), scaled, rtol=0, atol=1e-11)


@pytest.mark.parametrize("transform", [Warp(3, indices=[0]), Log10([0])])
def test_what_bends_is_not_affine_but_columnwise(transform) -> None:
    U = torch.rand(9, 3, dtype=torch.double)
    model = SingleTaskGP(U, U[:, :1], input_transform=transform).eval()
    assert affine_inputs(model) is None
    for known in (transform, ChainedInputTransform(a=Normalize(3), b=transform)):
        assert column_sources(known, 3) == [0, 1, 2]


def test_unknown_transforms_are_neither() -> None:
    class Mixing(Normalize):
        pass

    U = torch.rand(9, 3, dtype=torch.double)
    model = SingleTaskGP(U, U[:, :1], input_transform=Mixing(3)).eval()
    assert affine_inputs(model) is None
    for unknown in (Mixing(3), ChainedInputTransform(a=Normalize(3), b=Mixing(3))):
        assert column_sources(unknown, 3) is None
