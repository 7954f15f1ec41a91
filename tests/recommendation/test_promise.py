"""What a recipe maximises is what it promises: one adversary, the same contexts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import ChiSquared, KullbackLeibler, TotalVariation
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import Recipe, make_recipe
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recommendation import best_decision
from botorch_drbo.surrogate import FixedHyperparameters
from tests.products import robust_set

PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-3)
RADIUS = 0.4
SEEDS = range(3)
SLOW = pytest.mark.slow


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.double)


def recipe(name: str, **options: object) -> ModelBasedRecipe:
    budget = {"num_restarts": 4, "raw_samples": 64, "hyperparameters": PRIOR}
    made: Recipe = make_recipe(name, **{**budget, **options})
    assert isinstance(made, ModelBasedRecipe)
    return made


def problem(d_c: int, seed: int) -> tuple[History, SearchSpace]:
    """What is best in the contexts seen, in the middle, is bad at the ends of the box.

    The model knows the ends: contexts were chosen in a laboratory.
    """
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(24, 1 + 2 * d_c, generator=generator, dtype=torch.double)
    X, C, seen = unit[:, :1], unit[:, 1 : 1 + d_c], 0.4 + 0.2 * unit[:12, 1 + d_c :]
    steep = 12.0 * X * (C - 0.5).square().mean(-1, keepdim=True)
    box = rows([0.0], [1.0])
    space = SearchSpace(box, box.expand(2, d_c).contiguous())
    return History(X=X, C=C, Y=X - steep, contexts=seen), space


def least_expectation(scores: Tensor, num_seen: int, lowest: Tensor) -> Tensor:
    """Total variation by hand: mass ``RADIUS / 2`` goes from the highest to the lowest.

    Scores ``m x n`` whose first ``num_seen`` have equal weights, ``lowest`` ``m``.
    """
    falling = scores[:, :num_seen].sort(descending=True).values
    weights = torch.full((num_seen,), 1.0 / num_seen, dtype=torch.double)
    gone = (RADIUS / 2 - weights.cumsum(0) + weights).clamp(0.0).minimum(weights)
    return ((weights - gone) * falling).sum(-1) + RADIUS / 2 * lowest


ON_THEIR_OWN_LIST = [
    ("dro", {"radius": RADIUS}),
    ("dro", {"ambiguity_set": ChiSquared(0.5)}),
    ("ts_bocu", {"radius": RADIUS, "contexts_complete": False}),
    ("ucb_bocu_2", {"radius": RADIUS, "contexts_complete": False}),
    ("wdrbo_exact", {"radius": 0.2}),
    ("ts_wdrbo", {"radius": 0.2}),
    ("ei_wdrbo", {"radius": 0.2}),
    ("drbo_mmd", {"radius": 0.3, "num_contexts": 125}),
    ("drbo_kde", {"radius": 0.3, "num_contexts": 64, "num_outside": 64}),
]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=SLOW) for n in (1, 2))])
@pytest.mark.parametrize("d_c", [1, 3])
@pytest.mark.parametrize(("name", "options"), ON_THEIR_OWN_LIST, ids=str)
def test_no_decision_told_is_better_at_the_radius_itself(
    name: str, options: dict[str, object], d_c: int, seed: int
) -> None:
    best = recipe(name, **options).recommend(*problem(d_c, seed), seed=seed)
    assert best.stability is not None
    assert best.stability.until != best.stability.radius
    assert best.objective == pytest.approx(best.worst_case_value, abs=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_recommendation_has_the_best_worst_case_of_a_fine_grid(seed: int) -> None:
    history, space = problem(1, seed)
    dro = recipe("dro", radius=RADIUS)
    best = dro.recommend(history, space, seed=seed)
    side = torch.linspace(0.0, 1.0, 101, dtype=torch.double)
    contexts = torch.cat([history.contexts, side.unsqueeze(-1)])
    X = torch.cat([side, best.x])
    inputs = torch.stack(
        [X.unsqueeze(-1).expand(-1, len(contexts)), contexts.T.expand(len(X), -1)], -1
    )
    with torch.no_grad():
        scores = dro.fitted_model(history, space).posterior(inputs).mean.squeeze(-1)
    worst = least_expectation(scores, 12, scores.amin(-1))
    assert worst[-1] >= worst[:-1].max() - 1e-3
    assert best.worst_case_value == pytest.approx(worst[-1].item(), abs=1e-3)


@pytest.mark.parametrize("give_up", [None, 0.2])
def test_later_rounds_begin_at_the_last_maxima(
    monkeypatch: pytest.MonkeyPatch, give_up: float | None
) -> None:
    """And end no lower than rounds that begin anew."""
    dro = recipe("wdrbo_exact", radius=0.2, give_up=give_up)
    data, found, near = problem(3, 1), [], []
    best_by = best_decision.best_by
    for anew in (False, True):

        def counted(*given: Any, anew: bool = anew) -> best_decision.Best:
            near.append(given[6] if len(given) > 6 else None)
            return best_by(*given[:6]) if anew else best_by(*given)

        monkeypatch.setattr(best_decision, "best_by", counted)
        found.append(dro.recommend(*data, seed=0).worst_case_value)
        assert sum(rows is not None for rows in near) > 0
        assert all(rows is None or rows.shape[1] == 1 for rows in near)
        near.clear()
    assert found[0] >= found[1] - 1e-5


def test_the_search_of_dro_sees_the_whole_box() -> None:
    history, space = problem(1, 0)
    dro = recipe("dro", radius=RADIUS, beta=0.0)
    model = dro.fitted_model(history, space)
    acqf = dro.exploring(dro.state_of(model, history, space, 0), None)
    side = torch.linspace(0.0, 1.0, 101, dtype=torch.double)
    X = side[::10]
    contexts = torch.cat([history.contexts, side.unsqueeze(-1)])
    inputs = torch.stack(
        [X.unsqueeze(-1).expand(-1, len(contexts)), contexts.T.expand(len(X), -1)], -1
    )
    with torch.no_grad():
        scores = model.posterior(inputs).mean.squeeze(-1)
        found = acqf(X.reshape(-1, 1, 1))
    expected = least_expectation(scores, 12, scores.amin(-1))
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=0.0)


@pytest.mark.parametrize("name", ["dro", "ts_bocu", "ucb_bocu_1", "ucb_bocu_2"])
def test_contexts_that_are_complete_are_all_there_are(name: str) -> None:
    history, space = problem(1, 1)
    options = {"contexts_complete": True} if name == "dro" else {}
    one = recipe(name, radius=RADIUS, **options)
    best = one.recommend(history, space)
    assert best.worst_case_box is None
    assert torch.equal(best.context_set.points, history.contexts)
    inputs = torch.cat([best.x.expand(12, -1), history.contexts], dim=-1)
    with torch.no_grad():
        scores = one.fitted_model(history, space).posterior(inputs).mean.T
    expected = least_expectation(scores, 12, scores.amin(-1)).item()
    assert best.worst_case_value == pytest.approx(expected, abs=1e-6)
    assert best.objective == pytest.approx(expected, abs=1e-6)
    profile = one.profiled(
        FittedState(history, space),
        best.x,
        other=None,
        target=None,
        radii=torch.tensor([RADIUS]).double(),
        ambiguity_set=TotalVariation(RADIUS),
    )
    assert profile.values.item() == pytest.approx(expected, abs=1e-6)


def test_dro_with_complete_contexts_searches_as_ever() -> None:
    history, space = problem(1, 1)
    one = recipe("dro", radius=RADIUS, contexts_complete=True)
    model = one.fitted_model(history, space)
    contexts, _ = robust_set(one, model, history, space, 0)
    assert torch.equal(contexts.points, history.contexts)


# A number to decide on; the weather is one of four, and the last was never seen.
WEATHER = SearchSpace(rows([0.0], [1.0]), rows([0.0], [3.0]), context_categories={0: 4})
BY_WEATHER = History(
    X=rows(*([0.1 * i] for i in range(9))),
    C=rows(*([float(i % 3)] for i in range(9))),
    Y=rows(*([0.3 * i - 0.5 * (i % 3)] for i in range(9))),
    contexts=rows(*([float(i % 3)] for i in range(9))),
)


@pytest.mark.parametrize(
    "name", ["dro", "ts_bocu", "ucb_bocu_1", "ucb_bocu_2", "ucb_ro"]
)
def test_categories_that_the_space_lists_are_all_there_are(name: str) -> None:
    options = {} if name == "ucb_ro" else {"radius": RADIUS}
    one = recipe(name, **options)
    best = one.recommend(BY_WEATHER, WEATHER)
    model = one.fitted_model(BY_WEATHER, WEATHER)
    searched, _ = robust_set(one, model, BY_WEATHER, WEATHER, 0)
    for contexts in (searched, best.context_set):
        assert contexts.num_points == 10  # the fourth kind once, with weight zero
        assert contexts.points[-1].item() == 3.0 and contexts.weights[-1] == 0.0
    assert best.worst_case_box is None
    kinds = rows([0.0], [1.0], [2.0], [3.0])
    inputs = torch.cat([best.x.expand(4, -1), kinds], dim=-1)
    with torch.no_grad():
        f = model.posterior(inputs).mean.T  # 1 x 4
    expected = f.amin()
    if name != "ucb_ro":
        seen = f[:, BY_WEATHER.contexts.long().flatten()]
        expected = least_expectation(seen, 9, f.amin(-1))
    assert best.worst_case_value == pytest.approx(expected.item(), abs=1e-6)
    assert best.objective == pytest.approx(best.worst_case_value, abs=1e-6)


def test_a_set_that_keeps_to_its_support_gets_no_other_categories() -> None:
    dro = recipe("dro", ambiguity_set=KullbackLeibler(0.3))
    best = dro.recommend(BY_WEATHER, WEATHER)
    assert torch.equal(best.context_set.points, BY_WEATHER.contexts)


def test_known_columns_and_listed_ones_together_are_a_list() -> None:
    space = SearchSpace(
        rows([0.0], [1.0]),
        rows([0.0, 0.0], [2.0, 5.0]),
        known_context=torch.tensor([torch.nan, 1.5]).double(),
        context_categories={0: 3},
    )
    listed = space.listed_contexts
    assert listed is not None
    assert listed.tolist() == [[0.0, 1.5], [1.0, 1.5], [2.0, 1.5]]
    unknown = SearchSpace(space.bounds, space.context_bounds, context_categories={0: 3})
    assert unknown.listed_contexts is None
    many = {j: tuple(map(float, range(70))) for j in (0, 1)}
    wide = rows([0.0, 0.0], [69.0, 69.0])
    assert (
        SearchSpace(space.bounds, wide, context_discrete=many).listed_contexts is None
    )


def test_contexts_complete_is_yes_or_no() -> None:
    with pytest.raises(
        InputDataError, match=r"contexts_complete.*True or False.*'yes'"
    ):
        make_recipe("dro", contexts_complete="yes")


def test_a_forecast_can_be_all_there_is() -> None:
    history, space = problem(1, 2)
    forecast = ContextSet(rows([0.2], [0.9]), torch.tensor([0.7, 0.3]).double())
    one = recipe("dro", reference=forecast, radius=RADIUS, contexts_complete=True)
    best = one.recommend(history, space)
    assert torch.equal(best.context_set.points, forecast.points)
