"""Dangers by name against brute force, and what is refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo import (
    AnyOf,
    Category,
    ContextSet,
    Integer,
    Log,
    MeanShift,
    Mixture,
    Scenarios,
    Space,
    Spread,
    Weights,
)
from botorch_drbo.adversaries import Adversary, Danger, FittedRound
from botorch_drbo.ambiguity import FiniteFamily
from botorch_drbo.codec import decode, encode
from botorch_drbo.problem import History, SearchSpace
from tests.models import known_model

SPACE = Space(
    {"x": (0, 1)},
    {
        "temp": (-10, 40),
        "weather": Category(["sun", "rain", "storm"]),
        "people": Integer(0, 30),
        "price": Log(1, 100),
    },
)
SEEN = {
    "temp": [10.0, 14.0, 20.0, 12.0],
    "weather": ["sun", "sun", "rain", "sun"],
    "people": [4, 8, 6, 10],
    "price": [10.0, 20.0, 5.0, 10.0],
}


def state(space: SearchSpace, seen: Tensor) -> FittedRound:
    Z = torch.rand(4, 1 + space.d_c, dtype=torch.double)
    none = Z[:0, :1]
    return FittedRound(
        model=known_model(Z, Z[:, :1], lengthscale=1.0, noise=1e-2),
        history=History(X=none, C=seen[:0], Y=none, contexts=seen),
        space=space,
        seed=0,
    )


def of_seen() -> FittedRound:
    return state(SPACE.search_space, SPACE.context_set(SEEN).points)


def least(danger: Danger, score, round_: FittedRound) -> tuple[float, dict[str, float]]:
    """The worst case by the set, and each expectation by hand."""
    problem = danger.worst_case_problem(round_)
    contexts = problem.contexts
    ball = problem.ball(contexts.points)
    found = ball.worst_case(score(contexts.points), contexts.weights).value.item()
    each = {
        world.name: (world.contexts.weights @ score(world.contexts.points)).item()
        for world in danger.worlds(round_)
    }
    return found, each


def wavy(points: Tensor) -> Tensor:
    factors = torch.arange(1, points.shape[-1] + 1).to(points)
    return (points * factors / 7.0).sin().sum(-1) + 0.1 * points[:, 0]


@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 7), d=st.integers(1, 3),
    size=st.floats(0.1, 3.0),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_a_shift_of_the_mean_is_the_least_of_its_moved_samples(
    seed: int, n: int, d: int, size: float
) -> None:
    """By a loop over columns, the diagonal and both signs, clipped at the bounds."""
    draw = torch.Generator().manual_seed(seed)
    seen = torch.rand(n + 1, d, dtype=torch.double, generator=draw)
    box = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    danger = MeanShift(size, clip=1.0)
    found, _ = least(danger, wavy, state(SearchSpace(box[:, :1], box), seen))
    sd = seen.std(0, unbiased=False)
    steps = [sd * torch.eye(d, dtype=torch.double)[j] for j in range(d)]
    if d > 1:
        steps.append(sd / math.sqrt(d))
    by_hand = [wavy(seen).mean().item()]
    for step in steps:
        for sign in (1, -1):
            moved = (seen + sign * size * step).clamp(0, 1)
            by_hand.append(wavy(moved).mean().item())
    assert found == pytest.approx(min(by_hand), abs=1e-12)


def test_units_names_and_one_side() -> None:
    found, each = least(MeanShift({"temp": (-3, 0)}), wavy, of_seen())
    points = SPACE.context_set(SEEN).points
    moved = points - torch.tensor([3.0, 0.0, 0.0, 0.0]).double()
    assert list(each) == ["as seen", "temp 3 lower"]
    assert each["temp 3 lower"] == pytest.approx(wavy(moved).mean().item())
    assert found == pytest.approx(min(each.values()))
    for ends in ((-3, 2), (2, -3)):
        _, each = least(MeanShift({"temp": ends}), wavy, of_seen())
        assert list(each) == ["as seen", "temp 2 higher", "temp 3 lower"]
    _, each = least(MeanShift({"price": 2.0}), wavy, of_seen())
    assert list(each) == ["as seen", "price 2 times", "price 0.5 times"]
    _, each = least(MeanShift({"temp": 2, "people": 1}), wavy, of_seen())
    assert list(each)[-2:] == [
        "temp and people together higher",
        "temp and people together lower",
    ]
    # The deviation of 10, 14, 20 and 12 is the root of 14, of 4, 8, 6 and 10 that of 5.
    _, each = least(MeanShift(1.0, clip=1.0), wavy, of_seen())
    assert "temp 1 deviation higher (3.74)" in each
    assert "people 1 deviation lower (2.24)" in each


@pytest.mark.parametrize("lower", [-40.0, -15.0, 10.0])
def test_where_zero_is_in_the_box_does_not_matter(lower: float) -> None:
    """A shift that ends on a bound, up to rounding, is within it."""
    box = torch.tensor([[lower], [lower + 30.0]]).double()
    seen = lower + torch.tensor([[0.3 - 1e-12], [29.7 + 1e-12]], dtype=torch.double)
    space = SearchSpace(box, box)
    worlds = MeanShift({"c1": 0.3}).worlds(state(space, seen))
    assert [world.name for world in worlds] == [
        "as seen",
        "c1 0.3 higher",
        "c1 0.3 lower",
    ]
    with pytest.raises(InputDataError, match="moves 50% of cases"):
        MeanShift({"c1": 0.3 + 1e-6}).worlds(state(space, seen))


def test_whole_numbers_stay_whole_and_categories_stay() -> None:
    for world in MeanShift(0.7).worlds(of_seen()):
        assert torch.equal(
            world.contexts.points[:, 2].round(), world.contexts.points[:, 2]
        )
        assert torch.equal(
            world.contexts.points[:, 1], SPACE.context_set(SEEN).points[:, 1]
        )


def test_levels_get_their_shares_and_the_rest_keeps_its_own() -> None:
    (_, rainy) = Weights({"weather": {"rain": 0.6}}).worlds(of_seen())
    weather, weights = rainy.contexts.points[:, 1], rainy.contexts.weights
    assert weights[weather == 1].sum().item() == pytest.approx(0.6)
    assert weights[weather == 0].tolist() == pytest.approx([0.4 / 3] * 3)
    (_, stormy) = Weights({"weather": {"storm": 0.3}}).worlds(of_seen())
    weather, weights = stormy.contexts.points[:, 1], stormy.contexts.weights
    assert weights[weather == 2].tolist() == pytest.approx([0.3 / 4] * 4)
    assert weights[weather == 1].sum().item() == pytest.approx(0.7 / 4)
    assert stormy.name == "weather: storm in 30% of cases"
    everywhere = Weights({"weather": {"sun": 0.2, "rain": 0.3, "storm": 0.5}})
    (_, all_given) = everywhere.worlds(of_seen())
    shares = [
        all_given.contexts.weights[all_given.contexts.points[:, 1] == k].sum().item()
        for k in range(3)
    ]
    assert shares == pytest.approx([0.2, 0.3, 0.5])


def test_a_share_from_elsewhere() -> None:
    score = wavy
    found, each = least(
        Mixture(0.1, {"weather": "storm", "temp": -5}), score, of_seen()
    )
    points = SPACE.context_set(SEEN).points
    away = points.clone()
    away[:, 1], away[:, 0] = 2.0, -5.0
    by_hand = 0.9 * score(points).mean() + 0.1 * score(away).mean()
    assert each["10% of cases from weather storm, temp -5"] == pytest.approx(
        by_hand.item()
    )
    assert found == pytest.approx(min(by_hand.item(), score(points).mean().item()))
    (_, anywhere) = Mixture(1.0).worlds(of_seen())
    held = anywhere.contexts.weights > 0
    weather = anywhere.contexts.points[held, 1]
    for k in range(3):  # each level as often as the others
        share = anywhere.contexts.weights[held][weather == k].sum().item()
        assert share == pytest.approx(1 / 3, abs=0.02)


def test_further_apart_has_the_same_mean_and_a_larger_deviation() -> None:
    seen = torch.tensor([[3.0], [5.0], [6.0]]).double()
    box = torch.tensor([[0.0], [10.0]]).double()
    (_, wide) = Spread(1.5).worlds(state(SearchSpace(box, box), seen))
    assert wide.contexts.mean.item() == pytest.approx(14 / 3)
    reference = ContextSet(seen)
    assert wide.contexts.std.item() == pytest.approx(1.5 * reference.std.item())


def test_scenarios_and_their_union() -> None:
    forecast = SPACE.context_set({k: v[:1] for k, v in SEEN.items()})
    danger = AnyOf(
        Scenarios({"cold": {"temp": -8}, "tomorrow": forecast}), MeanShift({"temp": 1})
    )
    found, each = least(danger, wavy, of_seen())
    assert list(each) == [
        "as seen",
        "cold",
        "tomorrow",
        "temp 1 higher",
        "temp 1 lower",
    ]
    assert each["tomorrow"] == pytest.approx(wavy(forecast.points).item())
    assert found == pytest.approx(min(each.values()))


def test_what_is_known_does_not_move() -> None:
    space = SPACE.search_space
    known = torch.tensor([12.0, math.nan, math.nan, math.nan]).double()
    now = replace(space, known_context=known)
    seen = now.with_known(SPACE.context_set(SEEN).points)
    for danger in (
        MeanShift(1.0),
        Mixture(0.5),
        Spread(1.2),
        Scenarios([{"people": 3}]),
    ):
        for world in danger.worlds(state(now, seen)):
            assert (world.contexts.points[:, 0] == 12.0).all(), danger


def test_where_all_that_could_move_is_known_nothing_is_feared() -> None:
    """As in a table of decisions by the context that is feared."""
    known = torch.tensor([12.0, math.nan, math.nan, math.nan]).double()
    now = replace(SPACE.search_space, known_context=known)
    seen = now.with_known(SPACE.context_set(SEEN).points)
    worlds = MeanShift({"temp": 3}).worlds(state(now, seen))
    assert [world.name for world in worlds] == ["as seen"]
    found, _ = least(MeanShift({"temp": 3}), wavy, state(now, seen))
    assert found == pytest.approx(wavy(seen).mean().item())
    # Every number is known: what is left is a category.
    known = torch.tensor([12.0, math.nan, 6.0, math.log(10.0)]).double()
    now = replace(SPACE.search_space, known_context=known)
    seen = now.with_known(SPACE.context_set(SEEN).points)
    for danger in (MeanShift(1.0), Spread(1.2)):
        assert [w.name for w in danger.worlds(state(now, seen))] == ["as seen"], danger


def test_relabelled_categories_give_the_same_worst_case() -> None:
    other = Space(
        dict(SPACE.decisions),
        {**SPACE.contexts, "weather": Category(["storm", "sun", "rain"])},
    )
    danger = AnyOf(
        Weights({"weather": {"rain": 0.5}}), Mixture(0.3, {"weather": "storm"})
    )

    def named(space: Space):
        levels = list(space.contexts["weather"].choices)
        value = {"sun": 3.0, "rain": 1.0, "storm": -2.0}

        def score(points: Tensor) -> Tensor:
            bonus = [value[levels[int(k)]] for k in points[:, 1]]
            return points[:, 0] / 10 + torch.tensor(bonus).double()

        return least(
            danger, score, state(space.search_space, space.context_set(SEEN).points)
        )

    (first, _), (second, _) = named(SPACE), named(other)
    assert first == pytest.approx(second)


def test_it_is_stored() -> None:
    danger = AnyOf(
        MeanShift({"temp": (-3, 0)}, clip=0.5),
        Weights({"weather": {"rain": 0.6}}),
        Mixture(0.1, {"weather": "storm"}),
        Scenarios({"cold": SPACE.context_set(SEEN)}),
    )
    again = decode(json.loads(json.dumps(encode(danger))), Adversary)
    names = [[w.name for w in one.worlds(of_seen())] for one in (danger, again)]
    assert names[0] == names[1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MeanShift(0.0), "positive"),
        (lambda: MeanShift({}), "temp"),
        (lambda: MeanShift({"temp": "warm"}), "number"),
        (lambda: MeanShift({"temp": (3,)}), "two ends"),  # pyright: ignore[reportArgumentType]
        (lambda: MeanShift(1.0, clip=2.0), "share"),
        (lambda: Spread(-1.0), "positive"),
        (lambda: Mixture(0.0), "above 0"),
        (lambda: Mixture(0.1, "storm"), "ContextSet"),
        (lambda: Weights({"weather": {"rain": 1.2}}), "between 0 and 1"),
        (lambda: Weights({"weather": {"rain": 0.7, "sun": 0.7}}), "add up to 1.4"),
        (lambda: Weights({"weather": 0.7}), "shares by level"),
        (lambda: Weights({"a": {"b": 0.1}, "c": {"d": 0.1}}), "one column"),
        (lambda: Scenarios([]), "at least one"),
        (lambda: Scenarios([3]), "ContextSet"),
        (lambda: AnyOf(), "empty"),
        (lambda: AnyOf("rain"), "dangers"),
    ],
)
def test_bad_dangers_are_refused_when_made(make, words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        make()


@pytest.mark.parametrize(
    ("danger", "words"),
    [
        (MeanShift({"tempp": 3}), "Did you mean `temp`"),
        (MeanShift({"weather": 3}), "category"),
        (MeanShift({"price": -2}), "positive factor"),
        (MeanShift({"temp": 300}), "beyond the bounds"),
        (Mixture(0.1, {"weather": "snow"}), "no level of `weather`"),
        (Mixture(0.1, {"temp": 300}), "context_bounds"),
        (Mixture(0.1, {"people": 2.5}), "takes the values"),
        (Weights({"weather": {"snow": 0.5}}), "no level"),
        (Weights({"temp": {3: 0.5}}), "no levels"),
        (Weights({"weather": {"sun": 0.2, "rain": 0.2, "storm": 0.2}}), "not to 1"),
        (Weights({"people": {4: 0.25, 8: 0.25, 6: 0.25, 10: 0.1}}), "leave"),
        (Scenarios([{"wether": "sun"}]), "Did you mean `weather`"),
    ],
)
def test_bad_dangers_are_refused_in_the_words_of_the_space(danger, words) -> None:
    with pytest.raises(InputDataError, match=words):
        danger.check_space(SPACE.search_space)
        danger.worst_case_problem(of_seen())


def test_a_shift_says_the_share_that_it_would_cut() -> None:
    with pytest.raises(InputDataError, match=r"moves 25% of cases.*`clip=0\.25`"):
        MeanShift({"temp": 22}).worst_case_problem(of_seen())
    MeanShift({"temp": 22}, clip=0.25).worst_case_problem(of_seen())


def test_contexts_that_are_all_categories_cannot_be_spread() -> None:
    space = Space({"x": (0, 1)}, {"w": Category(["a", "b"])})
    seen = space.context_set({"w": ["a", "b"]}).points
    for danger in (Spread(2.0), MeanShift(1.0)):
        with pytest.raises(InputDataError, match="Take Weights"):
            danger.worst_case_problem(state(space.search_space, seen))


def test_shares_of_a_level_that_is_known_change_nothing() -> None:
    known = torch.tensor([math.nan, 0.0, math.nan, math.nan]).double()
    now = replace(SPACE.search_space, known_context=known)
    seen = now.with_known(SPACE.context_set(SEEN).points)
    danger = AnyOf(Weights({"weather": {"rain": 0.6}}), MeanShift({"temp": 1}))
    names = [world.name for world in danger.worlds(state(now, seen))]
    assert names == ["as seen", "temp 1 higher", "temp 1 lower"]
    # A value of another day's list is a value all the same.
    known = torch.tensor([math.nan, math.nan, 4.0, math.nan]).double()
    now = replace(SPACE.search_space, known_context=known)
    seen = now.with_known(SPACE.context_set(SEEN).points)
    for world in Mixture(0.5, {"people": 9}).worlds(state(now, seen)):
        assert (world.contexts.points[:, 2] == 4.0).all()


def test_a_family_on_few_contexts_is_nearly_the_same() -> None:
    draw = torch.Generator().manual_seed(0)
    points = torch.rand(900, 2, generator=draw).double()
    rows = torch.rand(3, 900, generator=draw).double()
    rows[1, 300:], rows[2, :300] = 0.0, 0.0
    family = FiniteFamily(rows / rows.sum(-1, keepdim=True))
    few, thin = family.thinned(points, 600)
    assert len(few) <= 600 and thin.distributions.shape == (3, len(few))
    full = family.expectations(wavy(points))
    torch.testing.assert_close(thin.expectations(wavy(few)), full, rtol=0.0, atol=0.03)
    same, unchanged = family.thinned(points, 900)
    assert same is points and unchanged is family


@pytest.mark.parametrize("num", [3, 25])  # of 25 the mean is not the number itself
@pytest.mark.parametrize("danger", [MeanShift(1.0), Spread(2.0)])
def test_contexts_that_do_not_vary_yet_move_by_no_deviation(danger, num: int) -> None:
    same = SPACE.context_set(SEEN).points[:1].repeat(num, 1) + 0.1
    with pytest.warns(InputDataWarning, match="moves nothing yet"):
        worlds = danger.worlds(state(SPACE.search_space, same))
    assert [world.name for world in worlds] == ["as seen"]
    assert len(MeanShift({"temp": 1}).worlds(state(SPACE.search_space, same))) == 3


def test_a_shift_by_nothing_is_not_blamed_on_the_contexts() -> None:
    with pytest.warns(InputDataWarning, match="moves nothing: all its sizes are 0"):
        assert len(MeanShift({"temp": 0}).worlds(of_seen())) == 1
