"""A plate: rows of one batch, taken from a list that is ranked once."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from torch import Tensor

from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.problem import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.search.candidates import SEPARATION, Plate, gaps
from tests.models import UNIT

SPACE = SearchSpace(UNIT.repeat(1, 2), UNIT)


class Repelled(AcquisitionFunction):
    """Hills, lower near what is pending: further pending rows never raise it."""

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)
        self.pending, self.rows = UNIT.repeat(1, 2)[:0], 0

    def forward(self, X: Tensor) -> Tensor:
        x = X.squeeze(-2)
        self.rows += len(x)
        near = torch.exp(-20.0 * torch.cdist(x, self.pending).square())
        return (7.0 * x).sin().sum(-1) - near.sum(-1)


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_a_search_of_the_whole_list(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.rand(600, 2, generator=generator, dtype=torch.double)
    acqf, none = Repelled(), rows[:0]
    plate = Plate(acqf, rows[:5], rows[5:])
    acqf.rows = 0
    for _ in range(20):
        everything = acqf(rows.unsqueeze(-2))
        acqf.rows -= len(rows)
        apart = gaps(SPACE, rows, acqf.pending, none) > SEPARATION
        best = rows[everything.masked_fill(~apart, -torch.inf).argmax()]
        found = plate.best(acqf, acqf.pending, none, SPACE)
        assert found is not None
        assert found[0].equal(best)
        acqf.pending = torch.cat([acqf.pending, found])
    assert acqf.rows < 20 * 600 / 3  # and most of the list was not looked at again


def test_a_list_that_is_taken_has_no_row() -> None:
    rows = torch.full((1, 2), 0.5, dtype=torch.double)
    plate = Plate(Repelled(), rows, rows)
    assert plate.best(Repelled(), rows, rows[:0], SPACE) is None


@pytest.mark.parametrize("method", ["exact", "product", "generic"])
def test_hallucinated_moments_are_those_of_the_conditioned_model(method: str) -> None:
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(12, 2, generator=generator, dtype=torch.double)
    P = torch.rand(3, 2, generator=generator, dtype=torch.double)
    model = SingleTaskGP(
        Z,
        (3.0 * Z).sin().sum(-1, keepdim=True),
        torch.full((12, 1), 0.01, dtype=torch.double),
        input_transform=Normalize(2, bounds=UNIT.repeat(1, 2)),
        outcome_transform=None,
    ).eval()
    observed = marginal_posterior(model, [1], method=method)  # pyright: ignore[reportArgumentType]
    means = model.posterior(P).mean.detach()
    oracle = model.condition_on_observations(
        model.transform_inputs(P), means, noise=torch.full_like(means, 0.01)
    )
    X, contexts = Z[:4, :1], Z[:5, 1:]
    for pending in (P, P[:1]):
        conditioned = observed.hallucinating(pending)
        mean, variance = conditioned(X, contexts)
        assert mean.allclose(observed(X, contexts)[0])
        if pending is P:
            joint = observed.join(X, contexts).flatten(0, 1)
            expected = oracle.posterior(joint)
            assert mean.flatten().allclose(expected.mean.flatten(), atol=1e-6)
            found = variance.flatten()
            assert found.allclose(expected.variance.flatten(), atol=1e-6)
    # and what was observed is as before
    again = marginal_posterior(model, [1], method=method)  # pyright: ignore[reportArgumentType]
    assert observed(X, contexts)[1].equal(again(X, contexts)[1])


@pytest.mark.parametrize("name", ["wdrbo_exact", "erbo", "wdrbo"])
def test_rows_of_a_plate_stay_apart(name: str) -> None:
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(8, 1, generator=generator, dtype=torch.double)
    C = torch.rand(8, 1, generator=generator, dtype=torch.double)
    history = History(X=X, C=C, Y=(5.0 * X + C).sin(), contexts=C)
    space = SearchSpace(UNIT, UNIT)
    recipe = make_recipe(name, surrogate="botorch", raw_samples=64, num_restarts=2)
    rows = recipe.propose(history, space, q=24, seed=0)
    distance = torch.cdist(rows, rows, p=torch.inf)
    distance.fill_diagonal_(1.0)
    assert distance.min() > SEPARATION - 1e-9
