"""The context's side of a kernel: with the decision's side it is the kernel again."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import Kernel, LinearKernel, MaternKernel, RBFKernel, ScaleKernel

from botorch_drbo.kernels.context_kernel import ContextKernel, context_components
from tests.models import set_hyperparameters

COLUMNS = [2, 0]  # of four: decisions are columns 1 and 3
SMOOTH = {
    "rbf": lambda: RBFKernel(ard_num_dims=4),
    "twice": lambda: ScaleKernel(RBFKernel(ard_num_dims=4) * RBFKernel()),
    "sum": lambda: (
        ScaleKernel(RBFKernel(ard_num_dims=4))
        + ScaleKernel(RBFKernel(active_dims=[0]))
        + ScaleKernel(RBFKernel(active_dims=[1, 3]))  # does not see the context
    ),
}
ROUGH = {
    "matern in the context": lambda: (
        MaternKernel(nu=2.5, active_dims=[0, 2]) * RBFKernel(active_dims=[1])
    ),
    "matern in one column": lambda: (
        RBFKernel() * MaternKernel(nu=0.5, active_dims=[2]) + RBFKernel()
    ),
}


def prepare(make) -> tuple[Kernel, ContextKernel, torch.Tensor]:
    kernel = make()
    set_hyperparameters(kernel)
    components = context_components(kernel, 4, COLUMNS)
    assert components is not None
    generator = torch.Generator().manual_seed(0)
    points, contexts = torch.rand(2, 6, 2, generator=generator, dtype=torch.double)
    return kernel, ContextKernel(components, points), contexts


@pytest.mark.parametrize("name", [*SMOOTH, *ROUGH])
def test_for_equal_decisions_the_rows_add_up_to_the_kernel(name: str) -> None:
    kernel, side, contexts = prepare({**SMOOTH, **ROUGH}[name])
    left, right = torch.full((2, 6, 4), 0.3, dtype=torch.double)
    left[:, COLUMNS], right[:, COLUMNS] = contexts, side.points
    with torch.no_grad():
        expected = kernel(left, right).to_dense() / side.variance
    rows = side(contexts)
    assert rows.shape == (6, side.num_columns)
    # Summands that do not see the context add the same everywhere.
    found = rows.unflatten(-1, (-1, 6)).sum(-2)
    offset = expected - found
    torch.testing.assert_close(offset, offset[:1, :1].expand_as(offset))
    assert (rows <= 1.0).all() and offset.min() > -1e-9


@pytest.mark.parametrize("name", SMOOTH)
def test_rows_and_slopes_are_autograds(name: str) -> None:
    _, side, contexts = prepare(SMOOTH[name])
    rows, slopes = side.rows_and_slopes(contexts)
    torch.testing.assert_close(rows, side(contexts))
    jacobian = torch.autograd.functional.jacobian(lambda c: side(c).sum(0), contexts)
    torch.testing.assert_close(slopes, jacobian.movedim((0, 1, 2), (2, 1, 0)))


def test_smooth_is_what_has_only_rbf_in_the_context() -> None:
    assert all(prepare(make)[1].smooth for make in SMOOTH.values())
    assert not any(prepare(make)[1].smooth for make in ROUGH.values())
    decisions_only = MaternKernel(nu=0.5, active_dims=[1]) * RBFKernel(active_dims=[2])
    assert prepare(lambda: decisions_only)[1].smooth


def test_no_summand_sees_the_context() -> None:
    _, side, contexts = prepare(lambda: ScaleKernel(RBFKernel(active_dims=[1, 3])))
    assert side.num_columns == 0
    rows, slopes = side.rows_and_slopes(contexts)
    assert side(contexts).shape == rows.shape == (6, 0)
    assert slopes.shape == (2, 6, 0)


def test_small_distances_keep_their_digits() -> None:
    """Squared by differences: far from zero a sum of squares would lose them all."""
    components = context_components(RBFKernel(), 1, [0])
    assert components is not None
    weight = components[0].factors[0].weights.item()
    side = ContextKernel(components, torch.tensor([[1e6]], dtype=torch.double))
    gap = 2.0**-10
    for row in (side, lambda c: side.rows_and_slopes(c)[0]):
        found = row(torch.tensor([[1e6 + gap]], dtype=torch.double))
        expected = -0.5 * (weight * gap) ** 2
        torch.testing.assert_close(found.log().item(), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    "kernel",
    [
        MaternKernel(),
        RBFKernel() * MaternKernel(active_dims=[0, 1]),
        RBFKernel() + MaternKernel(active_dims=[3, 2]),
        LinearKernel(),
    ],
)
def test_kernels_that_do_not_factorise(kernel: Kernel) -> None:
    assert context_components(kernel, 4, COLUMNS) is None
