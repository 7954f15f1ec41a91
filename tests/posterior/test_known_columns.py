"""A model that is constant in known columns, in every view."""

from __future__ import annotations

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize

from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.wrapped import with_known_columns
from tests.models import uniform


@pytest.mark.parametrize("columns", [[2], [3], [2, 3]])
@pytest.mark.parametrize("method", ["product", "exact", "generic"])
def test_moments_are_those_at_the_known_values(columns: list, method: str) -> None:
    Z = 5.0 * uniform(12, 4)
    Y = Z[:, :1].sin() + Z[:, 1:2] * Z[:, 2:3] - Z[:, 3:]
    model = SingleTaskGP(Z, Y, input_transform=Normalize(4)).eval()
    values = torch.tensor([1.3, 2.2], dtype=torch.double)[: len(columns)]
    known = with_known_columns(model, columns, values)
    X, C = 5.0 * uniform(3, 2, seed=1), 5.0 * uniform(300, 2, seed=2)
    pairs = torch.cat(
        [X.unsqueeze(1).expand(-1, 300, -1), C.expand(3, -1, -1)], dim=-1
    ).clone()
    pairs[..., columns] = values
    expected = model.posterior(pairs.flatten(0, 1).unsqueeze(-2))
    here = marginal_posterior(known, [2, 3], method=method).over(C).at(X)
    mean, variance = here.moments()
    assert torch.allclose(mean.flatten(), expected.mean.flatten(), atol=1e-8)
    assert torch.allclose(variance.flatten(), expected.variance.flatten(), atol=1e-7)
    of_known = [column - 2 for column in columns]
    slopes = here.slopes(slice(None))
    assert (slopes.mean_slope[..., of_known] == 0).all()
    # The model that was given is as it was.
    assert type(model.input_transform) is Normalize
