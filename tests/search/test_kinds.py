"""Recipes where variables are integers or categories, or decisions are constrained."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.ambiguity import KullbackLeibler, TotalVariation
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.problem.feasible import all_decisions, feasible, sample
from botorch_drbo.recipes import RECIPES, make_recipe
from botorch_drbo.recipes.base import _TAKE_CATEGORIES
from botorch_drbo.recommendation.worst_case import worst_case
from botorch_drbo.search.candidates import check_candidates, score
from botorch_drbo.surrogate import FixedHyperparameters
from botorch_drbo.surrogate.base import model_inputs

PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-3, outputscale=1.0)
BUDGET = {"num_restarts": 4, "raw_samples": 64, "hyperparameters": PRIOR}


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.double)


# A number, an integer, a category of three; a category of three and an integer.
MIXED = SearchSpace(
    rows([0.0, 0.0, 0.0], [1.0, 4.0, 2.0]),
    rows([0.0, 0.0], [2.0, 5.0]),
    discrete={1: (0.0, 1.0, 2.0, 3.0, 4.0)},
    categories={2: 3},
    context_categories={0: 3},
    context_discrete={1: (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)},
)
LINEAR = ((torch.tensor([0, 1]), torch.tensor([-1.0, -0.5]).double(), -1.25),)


def ring(X: Tensor) -> Tensor:
    return 0.6 - (X[..., 0] - 0.5).square() - 0.05 * X[..., 1].square()


SPACES = {
    "kinds": MIXED,
    "linear": replace(MIXED, inequality_constraints=LINEAR),
    "function": replace(MIXED, nonlinear_inequality_constraints=(ring,)),
    "only linear": SearchSpace(
        rows([0.0, 0.0], [1.0, 1.0]),
        MIXED.context_bounds,
        context_categories={0: 3},
        inequality_constraints=((torch.tensor([0, 1]), -torch.ones(2).double(), -0.7),),
    ),
    "two values": SearchSpace(
        rows([0.0, 1.0, 0.0], [1.0, 5.0, 2.0]),
        MIXED.context_bounds,
        discrete={1: (1.0, 5.0)},
        categories={2: 3},
    ),
    "finite": SearchSpace(
        rows([0.0, 0.0], [4.0, 2.0]),
        MIXED.context_bounds,
        discrete={0: (0.0, 1.0, 4.0)},
        categories={1: 3},
    ),
}


def history_of(space: SearchSpace, t: int = 12) -> History:
    X = sample(space, t, seed=3)
    generator = torch.Generator().manual_seed(0)
    C = torch.rand(t, space.d_c, generator=generator, dtype=torch.double)
    C = space.snap_contexts(space.context_bounds[1] * C)
    Y = torch.sin(3 * X.sum(-1, keepdim=True)) + 0.3 * torch.cos(
        C.sum(-1, keepdim=True)
    )
    return History(X=X, C=C, Y=Y, contexts=C)


@pytest.mark.parametrize("name", list(SPACES))
def test_decisions_are_of_their_kinds_and_inside_the_constraints(name: str) -> None:
    space = SPACES[name]
    recipe, history = make_recipe("erbo", **BUDGET), history_of(space)
    X = recipe.propose(history, space, q=2, seed=1)
    assert X.shape == (2, space.d_x) and not torch.equal(X[0], X[1])
    best = recipe.recommend(history, space, seed=1).x.unsqueeze(0)
    for found in (X, best):
        assert torch.equal(space.snap(found), found)
        assert feasible(space, found).all()
    assert torch.equal(X, recipe.propose(history, space, q=2, seed=1))


@pytest.mark.parametrize(
    "name", ["kinds", "linear", "function", "only linear", "two values"]
)
def test_the_recommendation_is_the_best_of_a_fine_grid(name: str) -> None:
    space, seed = SPACES[name], 1
    recipe, history = make_recipe("erbo", **BUDGET), history_of(SPACES[name])
    found = recipe.recommend(history, space, seed=seed)
    model = recipe.fitted(history, space, uses_contexts=True)  # pyright: ignore
    acqf = recipe.exploiting(recipe.state_of(model, history, space, seed))  # pyright: ignore
    brute = sample(space, 512, seed=9)
    assert found.objective >= score(acqf, brute).max().item() - 1e-6


def test_a_short_list_of_decisions_is_enumerated() -> None:
    found = all_decisions(SPACES["finite"])
    assert found is not None
    assert sorted(found.tolist()) == [
        [a, b] for a in (0.0, 1.0, 4.0) for b in (0, 1, 2)
    ]
    assert all_decisions(MIXED) is None


def test_candidates_have_to_be_of_their_kinds_and_feasible() -> None:
    space = SPACES["linear"]
    with pytest.raises(InputDataError, match="column 1, which takes the values 0, 1"):
        check_candidates(rows([0.5, 1.5, 0.0]), space)
    with pytest.raises(InputDataError, match="violate the constraints: rows"):
        check_candidates(rows([0.1, 1.0, 0.0], [0.9, 4.0, 0.0]), space)


def test_a_category_has_no_order_for_the_model() -> None:
    bounds = rows([0.0, 0.0], [1.0, 2.0])
    Z = rows([0.5, 0.0], [0.5, 1.0], [0.5, 2.0])
    model = SingleTaskGP(
        Z,
        rows([0.0], [1.0], [2.0]),
        input_transform=model_inputs(bounds, {1: 3}),
        outcome_transform=None,
    ).eval()
    covariance = model.covar_module(model.transform_inputs(Z)).to_dense()
    apart = covariance[~torch.eye(3, dtype=torch.bool)]
    torch.testing.assert_close(apart, apart[:1].expand(6))


def permuted(space: SearchSpace, history: History) -> History:
    """The same history where the categories of the first context have other indices."""
    order = rows([2.0, 0.0, 1.0]).flatten()

    def moved(C: Tensor) -> Tensor:
        return torch.cat([order[C[:, :1].long()], C[:, 1:]], dim=-1)

    return replace(history, C=moved(history.C), contexts=moved(history.contexts))


@pytest.mark.parametrize("name", ["dro", "wdrbo_exact", "ucb_ro", "ts_bocu"])
def test_other_indices_of_categories_change_no_value(name: str) -> None:
    space, history = SPACES["only linear"], history_of(SPACES["only linear"])
    recipe, listed = make_recipe(name, **BUDGET), sample(space, 16, seed=5)
    values = [
        recipe.recommend(data, space, candidates=listed).worst_case_value
        for data in (history, permuted(space, history))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-3)


WEATHER = SearchSpace(rows([0.0], [1.0]), rows([0.0], [3.0]), context_categories={0: 4})


def test_wasserstein_with_a_zero_one_cost_is_total_variation() -> None:
    # Moving a mass of r a distance of one costs r, and is 2r of total variation.
    seen = ContextSet(rows([0.0], [1.0], [2.0]), torch.tensor([0.5, 0.3, 0.2]).double())
    recipe = make_recipe("wdrbo_exact", reference=seen, radius=0.2, **BUDGET)
    X, C = sample(WEATHER, 8, 0), rows(*([float(i % 4)] for i in range(8)))
    history = History(X=X, C=C, Y=X + C.sin(), contexts=C)
    problem = recipe.worst_case_problem(recipe.state_of(None, history, WEATHER, 0))  # pyright: ignore
    scores = torch.tensor([3.0, 2.0, 1.5, -1.0]).double()  # the last was never seen

    def score_of(contexts: Tensor) -> Tensor:
        return scores[contexts[:, 0].long()] + 0.0 * contexts[:, 0]

    found, robust = worst_case(problem, score_of, seed=0)
    expected = 0.3 * 3.0 + 0.3 * 2.0 + 0.2 * 1.5 + 0.2 * -1.0
    assert robust.value.item() == pytest.approx(expected)
    ball = WorstCaseProblem.of(seen, TotalVariation(0.4), WEATHER)
    assert worst_case(ball, score_of, seed=0)[1].value.item() == pytest.approx(expected)
    assert set(found.points.flatten().tolist()) <= {0.0, 1.0, 2.0, 3.0}
    # Kullback and Leibler allow no category without reference weight.
    no_unseen = WorstCaseProblem.of(seen, KullbackLeibler(5.0), WEATHER)
    assert worst_case(no_unseen, score_of, seed=0)[1].value.item() > 1.4


def test_the_worst_case_looks_at_integers_only() -> None:
    box = rows([0.0, 0.0], [5.0, 1.0])
    whole = {0: tuple(map(float, range(6)))}
    space = SearchSpace(rows([0.0], [1.0]), box, context_discrete=whole)
    seen = ContextSet(rows([0.0, 0.0]))
    problem = WorstCaseProblem.of(seen, TotalVariation(1.0), space)

    def valley(contexts: Tensor) -> Tensor:  # lowest at 2.4, 0.3
        return (contexts[:, 0] - 2.4).square() + (contexts[:, 1] - 0.3).square()

    found, robust = worst_case(problem, valley, seed=0)
    assert torch.equal(found.points[:, 0], found.points[:, 0].round())
    nearest = 0.5 * (2.4**2 + 0.3**2) + 0.5 * 0.4**2  # at 2, 0.3
    assert robust.value.item() == pytest.approx(nearest, abs=1e-3)


@pytest.mark.parametrize("name", ["stable_opt", "drbo_kde", "drbo_mmd", "wdrbo"])
def test_integer_contexts_stay_integers_in_the_worst_case(name: str) -> None:
    space = SearchSpace(
        rows([0.0], [1.0]),
        rows([0.0], [7.0]),
        context_discrete={0: tuple(map(float, range(8)))},
    )
    history = history_of(space, 6)
    contexts = make_recipe(name, **BUDGET).recommend(history, space).context_set
    assert torch.equal(contexts.points, contexts.points.round())


def test_recipes_that_need_order_refuse_categories_and_name_the_others() -> None:
    history = history_of(WEATHER, 5)
    takes = []
    for name, recipe in RECIPES.items():
        if recipe.needs_box:
            continue
        if recipe.context_order is None:
            takes.append(name)
            continue
        with pytest.raises(UnsupportedError, match="wdrbo_exact") as caught:
            make_recipe(name).propose(history, WEATHER)
        assert name in str(caught.value)
    assert sorted(takes) == sorted(_TAKE_CATEGORIES)
    refuse = {"wdrbo", "ec_wdrbo", "sbo_kde", "drbo_kde", "ts_drbo_kde", "ei_drbo_kde"}
    refuse |= {"drbo_mmd", "drbo_mmd_minimax", "ts_drbo_mmd", "stable_opt"}
    assert refuse.isdisjoint(takes)


@pytest.mark.parametrize("name", ["phased_gp_us", "regret_balancing"])
def test_recipes_on_boxes_refuse_other_decisions(name: str) -> None:
    options = {"reward_range": (-2.0, 2.0)} if name == "regret_balancing" else {}
    with pytest.raises(UnsupportedError, match="fill a box"):
        make_recipe(name, **options).check_space(MIXED)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"discrete": {1: (0.0, 2.0)}}, "from its lower bound"),
        ({"discrete": {1: (0.0, 4.0, 2.0)}}, "must increase"),
        ({"categories": {1: 5}}, "discrete and categories"),
        ({"context_categories": {7: 2}}, "no column 7"),
    ],
)
def test_kinds_have_to_fit_the_bounds(changes: dict, words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        replace(MIXED, **changes)


def test_a_reference_has_to_be_of_the_kinds() -> None:
    between = ContextSet(rows([0.5, 1.0]))
    recipe = make_recipe("erbo", reference=between, **BUDGET)
    with pytest.raises(
        InputDataError, match=r"`reference` has 0\.5 in row 0, column 0"
    ):
        recipe.propose(history_of(MIXED), MIXED)


def test_a_search_over_categories_asks_for_no_inputs_of_the_model() -> None:
    """BoTorch would take them for decisions, or warn that an ensemble has none."""
    bounds = rows([0.0, 0.0], [1.0, 5.0])
    space = SearchSpace(bounds, MIXED.context_bounds, categories={1: 6})
    with warnings.catch_warnings():
        warnings.simplefilter("error", BotorchWarning)
        options = {**BUDGET, "hyperparameters": None, "surrogate": "ensemble"}
        X = make_recipe("erbo", **options).propose(history_of(space), space)
    assert feasible(space, X).all()
