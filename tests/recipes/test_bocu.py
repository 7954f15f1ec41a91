"""TS-BOCU and its rivals against their definitions."""

from __future__ import annotations

import json
from functools import partial

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    NoAmbiguity,
    TotalVariation,
)
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import recipe_from_dict
from botorch_drbo.schedules import InverseSquareRoot
from botorch_drbo.surrogate import FixedHyperparameters
from tests.models import UNIT
from tests.products import product, robust_set

SPACE = SearchSpace(UNIT, UNIT)
POINTS = torch.linspace(0.0, 1.0, 5, dtype=torch.double).unsqueeze(-1)
WEIGHTS = torch.tensor([0.1, 0.2, 0.4, 0.2, 0.1], dtype=torch.double)
REFERENCE = ContextSet(POINTS, WEIGHTS)
PRIOR = FixedHyperparameters(lengthscale=0.3, noise_variance=0.01)
LIST = torch.linspace(0.0, 1.0, 25, dtype=torch.double).unsqueeze(-1)
GENERAL = {"reference": REFERENCE, "hyperparameters": PRIOR}


def kernel_ball(radius: float) -> MaximumMeanDiscrepancy:
    matrix = torch.exp(-torch.cdist(POINTS, POINTS).square() / 0.08)
    return MaximumMeanDiscrepancy(radius, matrix)


SETS = {"tv": TotalVariation(0.3), "mmd": kernel_ball(0.2)}


def history(t: int = 6) -> History:
    generator = torch.Generator().manual_seed(2)
    X = torch.rand(t, 1, generator=generator, dtype=torch.double)
    C = torch.rand(t, 1, generator=generator, dtype=torch.double)
    return History(X=X, C=C, Y=(6 * X).sin() * C - X, contexts=C)


def model(t: int = 6) -> SingleTaskGP:
    data = history(t)
    inputs = torch.cat([data.X, data.C], -1)
    return PRIOR.model(inputs, data.Y, SPACE.joint_bounds, 2)


def bounds(deviations: float) -> tuple[Tensor, Tensor]:
    """Lower and upper confidence bounds, ``25 x 5``, by BoTorch."""
    pairs = torch.cat([LIST.repeat_interleave(5, 0), POINTS.repeat(25, 1)], -1)
    posterior = model().posterior(pairs)
    width = deviations * posterior.variance.sqrt()
    lower, upper = posterior.mean - width, posterior.mean + width
    return lower.detach().reshape(25, 5), upper.detach().reshape(25, 5)


def values(recipe, *, exploit: bool = False) -> Tensor:
    options: dict = {"seed": 0}
    if exploit:
        acqf = recipe.exploiting(recipe.state_of(model(), history(), SPACE, **options))
    else:
        acqf = recipe.exploring(
            recipe.state_of(model(), history(), SPACE, **options), None
        )
    return acqf(LIST.unsqueeze(-2)).detach()


def v(scores: Tensor, ambiguity: AmbiguitySet, radius: float) -> Tensor:
    return ambiguity.with_radius(radius).worst_case(scores, WEIGHTS).value


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 2.0)])
def test_ucb_bocu_1_with_its_finite_step(kind: str, a: float, b: float) -> None:
    ball, h = SETS[kind], 1e-3
    recipe = product(
        "ucb_bocu_1",
        ambiguity_set=ball,
        value_weight=a,
        sensitivity_weight=b,
        **GENERAL,
    )
    lower, upper = bounds(2.0**0.5)
    size = ball.radius.item()
    expected = a * v(upper, ball, size)
    expected += b * (v(upper, ball, size + h) - v(lower, ball, size)) / h
    torch.testing.assert_close(values(recipe), expected, rtol=1e-6, atol=1e-5)
    lower, upper = bounds(0.0)
    expected = a * v(upper, ball, size)
    expected += b * (v(upper, ball, size + h) - v(upper, ball, size)) / h
    found = values(recipe, exploit=True)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


def test_ucb_bocu_1_bounds_the_quotient_of_what_lies_between() -> None:
    ball, h = SETS["tv"], 1e-3
    recipe = product(
        "ucb_bocu_1",
        ambiguity_set=ball,
        value_weight=0.0,
        sensitivity_weight=1.0,
        **GENERAL,
    )
    lower, upper = bounds(2.0**0.5)
    inside = lower + torch.rand_like(lower) * (upper - lower)
    quotient = (v(inside, ball, 0.3 + h) - v(inside, ball, 0.3)) / h
    assert (quotient <= values(recipe) + 1e-9).all()


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (0.0, 1.0), (0.5, 2.0)])
def test_ucb_bocu_2_is_the_objective_of_the_upper_bound(
    kind: str, a: float, b: float
) -> None:
    ball = SETS[kind]
    recipe = product(
        "ucb_bocu_2",
        ambiguity_set=ball,
        value_weight=a,
        sensitivity_weight=b,
        **GENERAL,
    )
    _, upper = bounds(2.0**0.5)
    expected = a * v(upper, ball, ball.radius.item())
    expected += b * ball.sensitivity(upper, WEIGHTS)
    torch.testing.assert_close(values(recipe), expected, rtol=1e-6, atol=1e-7)


def test_ucb_so_and_ucb_ro() -> None:
    _, upper = bounds(2.0**0.5)
    torch.testing.assert_close(values(product("ucb_so", **GENERAL)), upper @ WEIGHTS)
    torch.testing.assert_close(values(product("ucb_ro", **GENERAL)), upper.amin(-1))
    for recipe, kind in (
        (product("ucb_so", **GENERAL), NoAmbiguity),
        (product("ucb_ro"), FullSimplex),
    ):
        assert isinstance(robust_set(recipe, model(), history(), SPACE, 0)[1], kind)


def test_beta_is_the_users() -> None:
    _, upper = bounds(3.0)
    recipe = product("ucb_so", beta=9.0, **GENERAL)
    torch.testing.assert_close(values(recipe), upper @ WEIGHTS)


def test_options_and_pending_decisions_reach_the_acquisition_function() -> None:
    def built(recipe):
        fitted, data = model(), history()
        return recipe.exploring(recipe.state_of(fitted, data, SPACE, 0), LIST[:2])

    assert built(product("ts_bocu", num_features=7, **GENERAL)).num_features == 7
    assert built(product("ucb_bocu_1", step=0.25, **GENERAL)).step == 0.25
    for recipe in (
        partial(product, "ucb_bocu_1"),
        partial(product, "ucb_bocu_2"),
        partial(product, "ucb_so"),
        partial(product, "ucb_ro"),
    ):
        assert torch.equal(built(recipe(**GENERAL)).X_pending, LIST[:2])


@pytest.mark.parametrize("kind", SETS)
def test_recommendation_is_best_for_the_objective_of_the_mean(kind: str) -> None:
    mean, _ = bounds(0.0)
    ball = SETS[kind]
    recipe = product("ts_bocu", ambiguity_set=ball, sensitivity_weight=0.3, **GENERAL)
    g = v(mean, ball, ball.radius.item()) + 0.3 * ball.sensitivity(mean, WEIGHTS)
    best = recipe.recommend(history(), SPACE, candidates=LIST)
    assert torch.equal(best.x, LIST[g.argmax()])
    assert best.objective == pytest.approx(g.max().item())
    if kind == "tv":  # its mass may go to any context; a matrix knows its own only
        dense = torch.linspace(0.0, 1.0, 1001, dtype=torch.double).unsqueeze(-1)
        pairs = torch.cat([best.x.expand(1001, 1), dense], -1)
        lowest = model().posterior(pairs).mean.min()
        ball = TotalVariation(0.3, floor=lowest)
    worst = v(mean, ball, ball.radius.item())[g.argmax()]
    assert best.worst_case_value == pytest.approx(worst.item(), rel=1e-4)


def test_each_decision_follows_a_path_of_its_own() -> None:
    recipe = product("ts_bocu", num_features=64, **GENERAL)
    pending = LIST[:1]
    paths = [
        recipe.exploring(recipe.state_of(model(), history(), SPACE, s), p)(
            LIST.unsqueeze(-2)
        ).detach()
        for p, s in ((None, 0), (pending, 0), (LIST[:2], 0), (None, 1))
    ]
    for i in range(4):
        for j in range(i):
            assert (paths[i] - paths[j]).abs().max() > 0.01
    found = recipe.propose(history(), SPACE, q=2, candidates=LIST, seed=0)
    assert torch.equal(found[0], LIST[paths[0].argmax()])
    first = (found[0] == LIST).squeeze(-1)
    assert torch.equal(found[1], LIST[paths[1].masked_fill(first, -9e9).argmax()])


def test_decisions_are_drawn_with_the_probability_of_being_best() -> None:
    """Thompson sampling's law, against draws from the joint posterior by BoTorch."""
    rows = LIST[::6]  # five decisions
    data = history(2)
    pairs = torch.cat([rows.repeat_interleave(5, 0), POINTS.repeat(5, 1)], -1)
    draws = model(2).posterior(pairs).rsample(torch.Size([4000]))
    exact = v(draws.detach().reshape(4000, 5, 5), SETS["tv"], 0.3).argmax(-1)
    expected = exact.bincount(minlength=5) / 4000
    recipe = product("ts_bocu", ambiguity_set=SETS["tv"], num_features=128, **GENERAL)
    chosen = torch.zeros(5)
    num, fitted = 300, model(2)
    for seed in range(num):
        acqf = recipe.exploring(recipe.state_of(fitted, data, SPACE, seed), None)
        x = rows[acqf(rows.unsqueeze(-2)).argmax()]
        chosen += (rows == x).squeeze(-1)
    error = (expected * (1 - expected) / num).sqrt()
    assert ((chosen / num - expected).abs() <= 4 * error + 4 / 4000**0.5 / 2).all()


@pytest.mark.parametrize(
    "recipe",
    [
        partial(product, "ts_bocu"),
        partial(product, "ucb_bocu_1"),
        partial(product, "ucb_bocu_2"),
    ],
)
def test_pieces_survive_json_and_follow_the_schedule(recipe) -> None:
    made = recipe(
        ambiguity_set=kernel_ball(0.7),
        radius=InverseSquareRoot(0.6),
        value_weight=2,
        sensitivity_weight=0.5,
        **GENERAL,
    )
    again = recipe_from_dict(json.loads(json.dumps(made.to_dict())))
    assert again.to_dict() == made.to_dict()
    contexts, ball = robust_set(again, model(), history(), SPACE, 0)  # pyright: ignore
    assert ball.radius.item() == pytest.approx(0.6 / 6**0.5)
    assert torch.equal(contexts.points, POINTS)
    assert torch.equal(values(again), values(made))


@pytest.mark.parametrize(
    "recipe",
    [
        partial(product, "ts_bocu"),
        partial(product, "ucb_bocu_1"),
        partial(product, "ucb_bocu_2"),
    ],
)
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ambiguity_set": "tv"}, "ambiguity_set"),
        ({"radius": -1.0}, "negative"),
        ({"value_weight": -1.0}, "value_weight"),
        ({"sensitivity_weight": float("nan")}, "sensitivity_weight"),
        ({"value_weight": 0.0}, "both zero"),
        (
            {"ambiguity_set": KullbackLeibler(0.0), "sensitivity_weight": 1.0},
            "no finite sensitivity",
        ),
        (
            {
                "ambiguity_set": KullbackLeibler(0.5),
                "radius": 0.0,
                "sensitivity_weight": 1.0,
            },
            "no finite sensitivity",
        ),
    ],
)
def test_bad_pieces(recipe, options: dict, text: str) -> None:
    with pytest.raises(InputDataError, match=text):
        recipe(**options)


@pytest.mark.parametrize(
    "recipe",
    [
        partial(product, "ts_bocu"),
        partial(product, "ucb_bocu_1"),
        partial(product, "ucb_bocu_2"),
    ],
)
def test_a_schedule_that_ends_where_the_sensitivity_is_infinite(recipe) -> None:
    """The radius is known at the proposal only: minus infinity is best nowhere."""
    made = recipe(
        ambiguity_set=KullbackLeibler(0.1),
        radius=InverseSquareRoot(0.0),
        sensitivity_weight=1.0,
        **GENERAL,
    )
    with pytest.raises(InputDataError, match="no finite sensitivity"):
        made.propose(history(), SPACE, candidates=LIST)


def test_bad_options() -> None:
    with pytest.raises(InputDataError, match="num_features"):
        product("ts_bocu", num_features=0)
    with pytest.raises(InputDataError, match="step"):
        product("ucb_bocu_1", step=0.0)
    with pytest.raises(InputDataError, match="`ts_bocu` has no option beta"):
        product("ts_bocu", beta=1.0)
