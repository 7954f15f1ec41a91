"""Slices of the expected outcome, against the model's own joint posterior."""

from __future__ import annotations

import pytest
import torch
from botorch.models import SingleTaskGP
from scipy.stats import norm

from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem import SearchSpace
from botorch_drbo.recommendation.importance import slice_through
from botorch_drbo.space import LinearConstraint, Space
from tests.models import uniform

WEIGHTS = torch.tensor([0.5, 0.3, 0.2], dtype=torch.double)
CONTEXTS = ContextSet(torch.tensor([[0.1], [0.4], [0.9]]).double(), WEIGHTS)


def box(d: int) -> torch.Tensor:
    return torch.tensor([[0.0], [1.0]], dtype=torch.double).repeat(1, d)


def model() -> SingleTaskGP:
    Z = uniform(8, 3)
    return SingleTaskGP(Z, (Z[:, :1] - Z[:, 1:2] * Z[:, 2:])).eval()


@pytest.mark.parametrize("widening", [1.0, 1.7])
def test_each_value_is_the_expectation_under_the_joint_posterior(
    widening: float,
) -> None:
    gp, x = model(), torch.tensor([0.35, 0.6], dtype=torch.double)
    space = SearchSpace(box(2), box(1))
    found = slice_through(gp, space, x, CONTEXTS, 1, widening=widening, level=0.8)
    assert found.values[found.index] == x[1] and len(found.values) == 26
    for i in (0, 7, found.index, 25):
        rows = torch.tensor(
            [[0.35, found.values[i].item(), c] for c in (0.1, 0.4, 0.9)]
        ).double()
        with torch.no_grad():
            joint = gp.posterior(rows).distribution
        mean = (WEIGHTS @ joint.mean).item()
        sd = widening * (WEIGHTS @ joint.covariance_matrix @ WEIGHTS).sqrt().item()
        assert found.mean[i].item() == pytest.approx(mean, rel=1e-6)
        low, high = norm.interval(0.8, mean, sd)
        assert found.lower[i].item() == pytest.approx(low, rel=1e-6)
        assert found.upper[i].item() == pytest.approx(high, rel=1e-6)
    mirrored = found.mirrored()
    assert torch.equal(mirrored.mean, -found.mean)
    assert torch.equal(mirrored.lower, -found.upper)


def test_values_are_those_that_the_variable_may_take() -> None:
    bounds = torch.tensor([[0.0, 10.0], [2.0, 1000.0]], dtype=torch.double)
    space = SearchSpace(
        bounds, box(1), discrete={1: range(10, 1001)}, categories={0: 3}
    )
    x = torch.tensor([1.0, 37.0], dtype=torch.double)
    category = slice_through(model(), space, x, CONTEXTS, 0)
    assert category.values.tolist() == [0.0, 1.0, 2.0] and category.index == 1
    whole = slice_through(model(), space, x, CONTEXTS, 1).values
    assert torch.equal(whole, whole.round()) and 37.0 in whole
    assert whole[0] == 10 and whole[-1] == 1000 and (whole.diff() > 0).all()


def test_what_a_constraint_forbids_is_marked() -> None:
    most = (torch.tensor([0, 1]), torch.tensor([-1.0, -1.0]).double(), -1.0)
    space = SearchSpace(box(2), box(1), inequality_constraints=(most,))  # a + b <= 1
    x = torch.tensor([0.25, 0.5], dtype=torch.double)
    found = slice_through(model(), space, x, CONTEXTS, 0)
    assert torch.equal(found.allowed, found.values <= 0.5)


@pytest.mark.parametrize(
    ("value", "a", "b"),
    [
        (0.3, 0.2, 0.5),  # itself
        (0.5, 0.2 - 0.2 / 1.36, 0.5 - 0.2 * 0.36 / 1.36),  # by the squares of the sides
        (0.75, 0.0, 0.25),  # as far as the first bound, and then the other one
    ],
)
def test_the_parts_of_a_mixture_make_room(value: float, a: float, b: float) -> None:
    one = LinearConstraint({"a": 1.0, "b": 1.0, "d": 1.0}, upper=1.0, lower=1.0)
    parts = {"a": (0.0, 1.0), "b": (0.0, 0.6), "d": (0.0, 1.0)}
    space = Space(parts, {"t": (0.0, 1.0)}, constraints=[one]).search_space
    Z = uniform(8, 4)
    gp = SingleTaskGP(Z, Z[:, :1] - Z[:, 1:2] * Z[:, 3:]).eval()
    x = torch.tensor([0.2, 0.5, 0.3], dtype=torch.double)
    found = slice_through(gp, space, x, CONTEXTS, 2)
    assert found.allowed.all() and found.values[found.index] == 0.3
    i = int((found.values - value).abs().argmin())
    moved = torch.tensor([a, b, value], dtype=torch.double)
    expected = slice_through(gp, SearchSpace(space.bounds, box(1)), moved, CONTEXTS, 2)
    torch.testing.assert_close(found.mean[i], expected.mean[expected.index])
