"""What every registered algorithm promises. A new one is tested by being registered."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import (
    RECIPES,
    Recipe,
    make_recipe,
    recipe_from_dict,
)
from botorch_drbo.recommendation import Recommendation

SMALL = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 8}

pytestmark = pytest.mark.filterwarnings(
    # BoTorch recommends float64; that float32 works is part of the contract.
    "ignore:The model inputs are of type torch.float32"
)


# What a recipe has to be told about the problems here, or what would take long.
NEEDED = {
    "regret_balancing": {"reward_range": (-1e3, 1e3)},
    "drbo_mmd_minimax": {"num_contexts": 64},
}


def small(name: str, **options: object) -> Recipe:
    return make_recipe(name, **SMALL, **NEEDED.get(name, {}), **options)


def problem(
    *, t: int = 8, d_x: int = 2, d_c: int = 1, dtype: torch.dtype = torch.double
) -> tuple[History, SearchSpace]:
    """A bowl whose best decision depends on the context; boxes are not unit cubes."""
    bounds = torch.stack([torch.full((d_x,), -1.0), torch.full((d_x,), 3.0)]).to(dtype)
    context_bounds = torch.stack([torch.full((d_c,), 10.0), torch.full((d_c,), 12.0)])
    space = SearchSpace(bounds, context_bounds.to(dtype))
    generator = torch.Generator().manual_seed(t + 10 * d_c)
    X = -1.0 + 4.0 * torch.rand(t, d_x, generator=generator, dtype=torch.double)
    C = 10.0 + 2.0 * torch.rand(t, d_c, generator=generator, dtype=torch.double)
    Y = -(X - 1.0).square().sum(-1, keepdim=True) - (C - 11.0).sum(-1, keepdim=True)
    X, C, Y = X.to(dtype), C.to(dtype), Y.to(dtype)
    return History(X=X, C=C, Y=Y, contexts=C), space


def check_proposal(x: Tensor, q: int, space: SearchSpace) -> None:
    assert x.shape == (q, space.d_x)
    assert x.dtype == space.bounds.dtype
    assert not x.requires_grad
    assert (x >= space.bounds[0]).all() and (x <= space.bounds[1]).all()


def check_recommendation(best: Recommendation, space: SearchSpace) -> None:
    check_proposal(best.x.unsqueeze(0), 1, space)
    n = best.context_set.num_points
    assert best.worst_case_weights.shape == (n,)
    assert best.worst_case_weights.min() >= 0
    assert best.worst_case_weights.sum().item() == pytest.approx(1.0, abs=1e-5)
    assert best.worst_case_value <= best.expected_value + 1e-5
    assert all(
        np.isfinite(value)
        for value in (best.objective, best.expected_value, best.worst_case_value)
    )
    assert best.context_set.points.dtype == space.bounds.dtype


@pytest.fixture(params=sorted(RECIPES))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize(
    "kind",
    [
        {"d_c": 2},
        {"d_x": 1},
        {"dtype": torch.float32},
        {"t": 1, "d_c": 2, "dtype": torch.float32},
    ],
    ids=str,
)
def test_proposals_and_recommendations_are_well_formed(name: str, kind: dict) -> None:
    history, space = problem(**kind)
    algorithm = small(name)
    check_proposal(algorithm.propose(history, space), 1, space)
    check_recommendation(algorithm.recommend(history, space), space)


def test_seed_decides_everything_and_nothing_leaks(name: str) -> None:
    history, space = problem()
    algorithm = small(name)
    torch_state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1]
    first = algorithm.propose(history, space, q=2, seed=3)
    torch.random.manual_seed(99)
    assert torch.equal(first, algorithm.propose(history, space, q=2, seed=3))
    torch.random.set_rng_state(torch_state)
    check_proposal(first, 2, space)
    best = algorithm.recommend(history, space, seed=3)
    check_recommendation(best, space)
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)
    again = algorithm.recommend(history, space, seed=3)
    assert torch.equal(best.x, again.x)
    assert best.worst_case_value == again.worst_case_value


def test_q_and_pending_decisions_are_all_different(name: str) -> None:
    history, space = problem()
    algorithm = small(name)
    alone = algorithm.propose(history, space, seed=1)
    # The very decision that it would take is on its way already, and one beside.
    pending = torch.cat([alone, history.X[:1]])
    x = algorithm.propose(history, space, q=3, X_pending=pending, seed=1)
    check_proposal(x, 3, space)
    gaps = torch.cdist(torch.cat([x, pending]) / 4.0, torch.cat([x, pending]) / 4.0)
    gaps.fill_diagonal_(1.0)
    assert gaps.min() > 9e-3
    empty = algorithm.propose(history, space, X_pending=history.X[:0], seed=1)
    assert torch.equal(empty, alone)


@pytest.mark.parametrize(
    "name", [key for key, kind in RECIPES.items() if not kind.may_repeat]
)
def test_an_optimum_in_a_corner_is_not_asked_twice(name: str) -> None:
    # Steep and nearly certain: knowing that a decision is pending hardly moves the
    # maximum of the acquisition function, which sits in the corner of the box.
    _, space = problem(d_x=1)
    X = torch.linspace(-1.0, 3.0, 12, dtype=torch.double).unsqueeze(-1)
    C = torch.linspace(10.0, 12.0, 12, dtype=torch.double).unsqueeze(-1).flip(0)
    history = History(X=X, C=C, Y=100.0 * X, contexts=C)
    x = small(name).propose(history, space, q=4)
    gaps = torch.cdist(x / 4.0, x / 4.0).fill_diagonal_(1.0)
    assert gaps.min() > 9e-3


@pytest.mark.parametrize(
    "name", sorted({*RECIPES} - {"random", "phased_gp_us"})
)  # what is drawn, or is to be repeated, may lie anywhere
def test_decisions_in_parallel_are_no_replicates(name: str) -> None:
    # Smooth, seen 40 times and nearly certain: there is hardly a bonus left.
    history, space = problem(t=40, d_x=1)
    x = small(name).propose(history, space, q=4, seed=2)
    check_proposal(x, 4, space)
    gaps = torch.cdist(x / 4.0, x / 4.0).fill_diagonal_(1.0)
    assert gaps.min() > 9e-3  # of a side


# The grids of DRBO-MMD are the only ones that depend on the number of columns.
@pytest.mark.parametrize(
    ("name", "d_c"),
    [(name, 2) for name in sorted(RECIPES)]
    + [(name, 1) for name in sorted(RECIPES) if name.startswith("drbo_mmd")],
)
def test_reference_is_used(name: str, d_c: int) -> None:
    history, space = problem(d_c=d_c)
    reference = ContextSet(10.5 + torch.rand(5, d_c), torch.arange(1.0, 6.0))  # float32
    algorithm = small(name, reference=reference)
    check_proposal(algorithm.propose(history, space), 1, space)
    best = algorithm.recommend(history, space)
    if name == "stable_opt":  # it keeps the mean and the standard deviation only
        spread = (best.context_set.points - reference.mean).abs()
        assert (spread <= reference.std * (1 + 1e-6)).all()
        return
    carried = best.context_set.weights > 0  # beside it, some have contexts without mass
    points = best.context_set.points[carried]
    weights = best.context_set.weights[carried].float()
    if "drbo_mmd" in name:  # each atom at its nearest point of a grid
        num = algorithm.options["num_contexts"]
        half = d_c**0.5 / (math.ceil(num ** (1 / d_c)) - 1)
        away = torch.cdist(reference.points.double(), points)
        assert (away.amin(-1) <= half * (1 + 1e-6)).all()
        assert weights.sum() == pytest.approx(1.0)
        return
    assert torch.equal(points, reference.points.double())
    assert torch.allclose(weights, reference.weights)


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        (ContextSet(torch.rand(4, 2)), BotorchTensorDimensionError),
        (ContextSet(torch.rand(4, 1)), InputDataError),  # outside [10, 12]
    ],
)
def test_reference_that_does_not_fit(
    name: str, reference: ContextSet, error: type[Exception]
) -> None:
    history, space = problem()
    with pytest.raises(error, match="context_bounds"):
        small(name, reference=reference).recommend(history, space)


def test_contexts_without_outcome_count(name: str) -> None:
    history, space = problem()
    late = torch.tensor([[11.9], [11.95], [11.99]], dtype=torch.double)
    more = History(
        X=history.X,
        C=history.C,
        Y=history.Y,
        contexts=torch.cat([history.contexts, late]),
    )
    before = small(name).recommend(history, space).context_set
    after = small(name).recommend(more, space).context_set
    assert after.mean.item() > before.mean.item()


def test_constant_outcomes_and_repeated_trials(name: str) -> None:
    history, space = problem()
    same = torch.ones(6, 1, dtype=torch.double)
    X, C = history.X[:1].repeat(6, 1), history.C[:1].repeat(6, 1)
    x = small(name).propose(History(X=X, C=C, Y=same, contexts=C), space)
    check_proposal(x, 1, space)


def test_survives_json(name: str) -> None:
    history, space = problem()
    algorithm = small(name, reference=ContextSet(10.0 + torch.rand(3, 1).double()))
    stored = json.loads(json.dumps(algorithm.to_dict(), allow_nan=False))
    again = recipe_from_dict(stored)
    assert type(again) is type(algorithm)
    assert again.to_dict() == algorithm.to_dict()
    assert torch.equal(algorithm.propose(history, space), again.propose(history, space))


def test_no_data(name: str) -> None:
    history, space = problem()
    nothing = History(
        X=history.X[:0], C=history.C[:0], Y=history.Y[:0], contexts=history.C[:0]
    )
    algorithm = small(name)
    if algorithm.needs_data:
        with pytest.raises(InputDataError, match="num_initial"):
            algorithm.propose(nothing, space)
    else:
        check_proposal(algorithm.propose(nothing, space), 1, space)
    with pytest.raises(InputDataError, match="no outcome"):
        algorithm.recommend(nothing, space)


@pytest.mark.parametrize("q", [0, -1, 1.0, True, "1"])
def test_bad_q(name: str, q: object) -> None:
    history, space = problem()
    with pytest.raises(InputDataError, match="`q`"):
        small(name).propose(history, space, q=q)  # pyright: ignore[reportArgumentType]


def test_history_of_another_space(name: str) -> None:
    history, _ = problem(d_c=1)
    _, space = problem(d_c=2)
    with pytest.raises(BotorchTensorDimensionError, match="context columns"):
        small(name).propose(history, space)


@pytest.mark.parametrize(
    "options",
    [
        {"num_restarts": 0},
        {"raw_samples": 2.5},
        {"num_restarts": 20, "raw_samples": 10},
        {"reference": torch.rand(3, 1)},
    ],
    ids=str,
)
def test_bad_options(name: str, options: dict) -> None:
    with pytest.raises(InputDataError, match=next(iter(options))):
        make_recipe(name, **options)
