"""A limit on the price, dangers and regrets against brute force on random problems."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_drbo import (
    AnyOf,
    Category,
    Integer,
    LinearConstraint,
    MeanShift,
    Mixture,
    NamedOptimizer,
    RobustOptimizer,
    Space,
)
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.posterior.mixture import GaussianMixture, joint_moments
from botorch_drbo.problem import SearchSpace
from botorch_drbo.problem.feasible import sample
from botorch_drbo.recommendation.price import _around
from botorch_drbo.recommendation.price_curve import PriceCurve, no_worse
from botorch_drbo.surrogate import FixedHyperparameters

PRIOR = FixedHyperparameters(lengthscale=0.3, noise_variance=1e-4)
OPTIONS = {"hyperparameters": PRIOR, "num_restarts": 4, "raw_samples": 256}
DANGER = AnyOf(MeanShift(1.0, clip=1.0), Mixture(0.2))
KINDS = {
    "box": ({"a": (-2.0, 3.0), "b": (10.0, 20.0)}, ()),
    "mixed": (
        {"a": (0.0, 1.0), "n": Integer(0, 6), "k": Category(["u", "v", "w"])},
        (),
    ),
    "limited": (
        {"a": (0.0, 1.0), "b": (0.0, 1.0)},
        (LinearConstraint({"a": 1, "b": 1}, upper=1.2),),
    ),
    "mixture": (
        {"a": (0.0, 1.0), "b": (0.0, 1.0)},
        (LinearConstraint({"a": 1, "b": 1}, lower=1.0, upper=1.0),),
    ),
}


def told(kind: str, seed: int, **options) -> NamedOptimizer:
    """A run with twelve outcomes of a random function."""
    decisions, constraints = KINDS[kind]
    contexts = {"c": (0.0, 10.0), "w": Category(["sun", "rain"])}
    space = Space(decisions, contexts, constraints=constraints, outcome="profit")
    opt = NamedOptimizer("erbo", space, seed=seed, **{**OPTIONS, **options})
    draw = torch.Generator().manual_seed(seed)
    X = sample(space.search_space, 12, seed)
    C = torch.rand(12, 2, generator=draw, dtype=torch.double)
    C = torch.stack([3 + 4 * C[:, 0], C[:, 1].round()], -1)
    opt.tensors.tell(X, C, 5 + 20 * torch.rand(12, generator=draw, dtype=torch.double))
    return opt


def boxes(opt: NamedOptimizer) -> tuple[Tensor, Tensor]:
    space = opt.named_space.search_space
    return space.bounds, space.context_bounds


class Judge:
    """Expectations by ``model.posterior`` alone, and by nothing of ours."""

    def __init__(self, opt: NamedOptimizer, danger=DANGER) -> None:
        self.space = opt.named_space.search_space
        self.model = opt.model
        history = opt.tensors.history
        from botorch_drbo.adversaries import FittedRound

        state = FittedRound(model=self.model, history=history, space=self.space, seed=0)
        self.worlds = danger.worlds(state)

    def expectations(self, X: Tensor) -> Tensor:
        """``m x K``, the reference first."""
        found = []
        for world in self.worlds:
            points, weights = world.contexts.points, world.contexts.weights
            Z = torch.cat(
                [
                    X.unsqueeze(1).expand(-1, len(points), -1),
                    points.expand(len(X), -1, -1),
                ],
                dim=-1,
            )
            mean = joint_moments(self.model, Z.flatten(0, 1))[0]
            found.append(mean.reshape(len(X), -1) @ weights)
        return torch.stack(found, -1)


def dense(opt: NamedOptimizer) -> Tensor:
    return sample(opt.named_space.search_space, 3000, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(16))
def test_nothing_within_the_price_has_a_better_worst_case(kind: str, seed: int) -> None:
    """On a dense sample, and the price is kept."""
    opt = told(kind, seed)
    judge, X = Judge(opt), dense(opt)
    each = judge.expectations(X)
    share = (0.02, 0.1, 0.3)[seed % 3]
    best = opt.tensors.recommend(against=DANGER, give_up=share)
    mine = judge.expectations(best.x.unsqueeze(0))[0]
    assert best.expected_value == pytest.approx(mine[0].item(), abs=1e-8)
    assert best.worst_case_value == pytest.approx(mine.min().item(), abs=1e-8)
    price = best.price
    assert price is not None
    assert each[:, 0].max() <= price.best_expected + 1e-4 * price.gain
    assert price.paid <= share * price.gain * (1 + 1e-9) + 1e-6 * price.gain
    floor = price.best_expected - share * price.gain
    allowed = each[:, 0] >= floor
    spread = (each.max() - each.min()).item()
    if allowed.any():
        assert each[allowed].amin(-1).max() <= mine.min() + 2e-3 * spread
    # What there is to gain, on another sample of the space.
    assert price.gain == pytest.approx(
        price.best_expected - each[:, 0].mean().item(), rel=0.2
    )
    there = judge.expectations(price.best.unsqueeze(0))[0]
    assert price.bought == pytest.approx((mine.min() - there.min()).item(), abs=1e-8)
    assert price.bought >= -1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_the_regret_is_the_largest_lack_to_the_best_of_each_world(kind: str) -> None:
    opt = told(kind, 7)
    judge, X = Judge(opt), dense(opt)
    each = judge.expectations(X)
    best = opt.tensors.recommend(against=DANGER, criterion="regret")
    mine = judge.expectations(best.x.unsqueeze(0))[0]
    spread = (each.max() - each.min()).item()
    regrets = (each.amax(0) - each).amax(-1)
    own = max(world.regret for world in best.worlds)
    assert own == pytest.approx((each.amax(0) - mine).max().item(), abs=5e-3 * spread)
    assert regrets.min() >= own - 5e-3 * spread
    names = [world.name for world in best.worlds]
    assert sorted(names) == sorted(world.name for world in judge.worlds)


def test_no_price_is_the_best_expectation_and_all_of_it_the_worst_case() -> None:
    opt = told("box", 3)
    plain = opt.tensors.recommend()
    nothing = opt.tensors.recommend(against=DANGER, give_up=0.0)
    assert nothing.expected_value == pytest.approx(plain.expected_value, rel=1e-6)
    assert "nothing given up" in str(nothing)
    free = opt.tensors.recommend(against=DANGER)
    amount = opt.tensors.recommend(against=DANGER, give_up={"profit": 1e6})
    assert amount.worst_case_value == pytest.approx(free.worst_case_value, rel=1e-5)


def test_the_more_is_given_up_the_better_the_worst_case() -> None:
    opt = told("limited", 5)
    found = [
        opt.tensors.recommend(against=WassersteinBall(radius="sd"), give_up=share)
        for share in (0.0, 0.05, 0.2, 0.6)
    ]
    worst = [one.worst_case_value for one in found]
    gain = found[0].price.gain
    assert all(b >= a - 1e-3 * gain for a, b in pairwise(worst))
    paid = [one.price.paid for one in found]
    assert paid[0] == pytest.approx(0.0, abs=1e-6 * gain)


def test_what_is_within_a_small_limit_is_looked_for_on_all_sides_of_the_best() -> None:
    """Near it too: each of six boxes has half the side of the one before."""
    box = torch.tensor([[-2.0, 10.0], [3.0, 20.0]]).double()
    best = torch.tensor([[0.0, 16.0]]).double()
    near = _around(best, SearchSpace(box, box), seed=0)
    away = (near - best) / (box[1] - box[0])
    for halvings in range(1, 7):
        within = (away.abs() <= 0.5**halvings).all(-1)
        assert within.double().mean() >= (7 - halvings) / 6 - 0.01
        for side in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            there = (away[within] * torch.tensor(side) >= 0.0).all(-1)
            assert there.double().mean().item() == pytest.approx(0.25, abs=0.06)


def test_a_list_is_judged_one_by_one() -> None:
    opt = told("box", 2)
    judge = Judge(opt)
    X = sample(judge.space, 40, 9)
    each = judge.expectations(X)
    found = opt.tensors.recommend(X, against=DANGER, give_up=0.25)
    gain = each[:, 0].max() - each[:, 0].mean()
    allowed = each[:, 0] >= each[:, 0].max() - 0.25 * gain
    by_hand = torch.where(allowed, each.amin(-1), -torch.inf).argmax()
    assert torch.equal(found.x, X[by_hand])


@pytest.mark.parametrize("scale", [1e-6, 1e9])
def test_units_and_signs_do_not_matter(scale: float) -> None:
    """Minus the outcome in another unit is the same problem."""
    opt = told("box", 4)
    twin = RobustOptimizer(
        "erbo", *boxes(opt), seed=4,
        maximize=False, num_restarts=4, raw_samples=256,
    )  # fmt: skip
    other = RobustOptimizer(
        "erbo", *boxes(opt), seed=4,
        num_restarts=4, raw_samples=256,
    )  # fmt: skip
    history = opt.tensors.history
    other.tell(history.X, history.C, history.Y)
    twin.tell(history.X, history.C, -scale * history.Y)
    danger = MeanShift({"c1": 1.0})
    one = other.recommend(against=danger, give_up=0.1)
    two = twin.recommend(against=danger, give_up=0.1)
    side = history.X.amax(0) - history.X.amin(0)
    assert ((one.x - two.x).abs() <= 1e-3 * side).all()
    assert two.price.paid == pytest.approx(scale * one.price.paid, rel=1e-2, abs=1e-3)
    assert two.worst_case_value == pytest.approx(
        -scale * one.worst_case_value, rel=1e-4
    )
    assert [w.name for w in two.worlds] == [w.name for w in one.worlds]


def test_it_is_an_option_of_the_run_and_is_kept_in_its_journal(tmp_path) -> None:
    opt = told(
        "mixed", 6, against=MeanShift({"c": (-2, 0)}), give_up=0.1,
        journal=tmp_path / "run.jsonl",
    )  # fmt: skip
    first = opt.recommend()
    opt.close()
    second = NamedOptimizer.resume(tmp_path / "run.jsonl").recommend()
    pd.testing.assert_frame_equal(first.x, second.x)
    assert first.worst_case_value == second.worst_case_value
    assert first.worlds[0].name in ("as seen", "c 2 lower")
    assert "c 2 lower" in str(first) and "price" in str(first)


def test_an_outcome_constraint_holds_too() -> None:
    opt = told("box", 8)
    history = opt.tensors.history
    twin = RobustOptimizer(
        "erbo", *boxes(opt), feasibility=0.8,
        num_restarts=2, raw_samples=128, hyperparameters=PRIOR,
    )  # fmt: skip
    low = history.X[:, :1] - history.X[:, :1].median()
    twin.tell(history.X, history.C, history.Y, constraints=low)
    found = twin.recommend(against=MeanShift({"c1": 1.0}), give_up=0.2)
    assert found.feasible and found.price.paid <= found.price.limit + 1e-6


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"give_up": -0.1}, InputDataError, "not negative|between 0 and 1"),
        ({"give_up": 20}, InputDataError, "'profit': 20"),
        ({"give_up": {"profit": -3}}, InputDataError, "not negative"),
        ({"give_up": {"yield": 3}}, InputDataError, "the outcome is\\s+`profit`"),
        ({"give_up": 0.1}, InputDataError, "against=MeanShift"),
        ({"criterion": "regret"}, InputDataError, "names: say which"),
        ({"criterion": "hope"}, InputDataError, "one of"),
        (
            {"criterion": "regret", "against": TotalVariation(0.2)},
            InputDataError,
            "few distributions",
        ),
        ({"against": "rain"}, InputDataError, "must be a danger"),
        ({"against": MeanShift({"wind": 3})}, InputDataError, "not a context"),
        ({"against": MeanShift(1.0), "radius": 0.1}, UnsupportedError, "no radius"),
    ],
)
def test_bad_input(options, kind, words: str) -> None:
    opt = told("box", 1)
    radius = {"radius": options.pop("radius")} if "radius" in options else {}
    options = {"against": DANGER, **options} if "yield" in str(options) else options
    with pytest.raises(kind, match=words):
        opt.recommend(**options, **radius)


def test_a_method_without_contexts_refuses_them() -> None:
    opt = told("box", 1)
    plain = NamedOptimizer("gp_ucb", opt.named_space, **OPTIONS)
    plain.tell(opt.history.iloc[:, :2], opt.history.iloc[:, 2:4], opt.history["profit"])
    for given in ({"give_up": 0.1}, {"against": MeanShift(1.0)}):
        with pytest.raises(UnsupportedError, match="no use to `gp_ucb`"):
            plain.recommend(**given)


def test_a_robust_recipe_gives_up_no_more_against_its_own_set() -> None:
    opt = told("box", 9)
    history = opt.tensors.history
    for name in ("wdrbo_exact", "wdrbo", "dro", "drbo_mmd_minimax"):
        twin = RobustOptimizer(name, *boxes(opt), seed=1, **OPTIONS)
        twin.tell(history.X, history.C, history.Y)
        within = twin.recommend(give_up=0.05)
        assert within.price.paid <= 0.05 * within.price.gain * (1 + 1e-5), name
        assert within.price.bought >= -1e-9, name


def test_a_curve_rises_and_says_where_it_bends() -> None:
    """As `recommend` decides, and no price buys less than a lower one."""
    opt = told("box", 11)
    curve = opt.price_curve(against=DANGER)
    assert curve.decisions.columns.tolist() == ["a", "b"] and len(curve.decisions) == 7
    assert curve.paid[0] == 0.0 and (curve.paid.diff() >= 0.0).all()
    assert (curve.worst_cases.diff() >= 0.0).all()
    within = opt.recommend(against=DANGER, give_up=0.1)
    place = curve.limits.index(0.1)
    spread = (curve.worst_cases.max() - curve.worst_cases.min()).item()
    assert curve.worst_cases[place].item() == pytest.approx(
        within.worst_case_value, abs=1e-3 * max(spread, 1e-9) + 1e-9
    )
    judge = Judge(opt)
    X = torch.tensor(curve.decisions.to_numpy(), dtype=torch.double)
    each = judge.expectations(X)
    torch.testing.assert_close(each[:, 0], curve.expected, rtol=0.0, atol=1e-7)
    torch.testing.assert_close(each.amin(-1), curve.worst_cases, rtol=0.0, atol=1e-7)
    price, bought = (
        curve.paid / curve.paid[-1],
        curve.worst_cases - curve.worst_cases[0],
    )
    if curve.knee is not None:
        assert curve.knee == int((bought / bought[-1] - price).argmax())
        assert "the knee" in str(curve)


def test_what_is_cheap_is_taken_at_every_higher_price_and_nothing_dearer() -> None:
    """The search without a limit found the dear one; that of a tenth did not."""
    worst = torch.tensor([0.0, 1.0, 0.9, 2.0, 2.0], dtype=torch.double)
    paid = torch.tensor([0.0, 0.5, 0.7, 1.9, 0.8], dtype=torch.double)
    allowed = torch.tensor([0.0, 0.6, 0.7, 2.0, torch.inf], dtype=torch.double)
    assert no_worse(worst, paid, allowed).tolist() == [0, 1, 1, 3, 3]
    generator = torch.Generator().manual_seed(0)
    for _ in range(100):
        worst, paid = torch.rand(2, 7, generator=generator, dtype=torch.double)
        allowed = torch.rand(7, generator=generator, dtype=torch.double).sort().values
        paid = paid * allowed  # each keeps its own limit
        order = no_worse(worst, paid, allowed)
        for i, chosen in enumerate(order.tolist()):
            assert paid[chosen] <= allowed[i]
            assert worst[chosen] == worst[paid <= allowed[i]].max()
        assert (paid[order].diff() >= 0.0).all()  # as the attribute promises
        assert (worst[order].diff() >= 0.0).all()


@pytest.mark.parametrize(
    ("paid", "worst", "gain", "knee"),
    [
        # Above the line from (0, 0) to (1, 1) by 0, 1/2, 3/8 and 0.
        ([0.0, 1.0, 2.0, 4.0], [5.0, 8.0, 8.5, 9.0], 4.0, 1),
        ([0.0, 1.0, 2.0, 4.0], [5.0, 2.0, 1.5, 1.0], 4.0, 1),  # of a cost
        ([0.0, 1.0, 2.0, 4.0], [5.0, 5.5, 8.0, 9.0], 4.0, 2),
        ([0.0, 0.0, 1e-9, 1e-7], [5.0, 8.0, 8.5, 9.0], 4.0, None),  # free
        ([0.0, 1.0, 2.0, 4.0], [5.0, 5.0, 5.0, 5.0], 4.0, None),
        # Nothing to gain, but for the rounding of what is paid.
        ([0.0, 0.0, 1e-17, 1e-16], [5.0, 5.0, 5.0, 5.0], 0.0, None),
    ],
)
def test_the_knee_is_furthest_above_the_straight_line(
    paid: list[float], worst: list[float], gain: float, knee: int | None
) -> None:
    worst_cases = torch.tensor(worst).double()
    curve = PriceCurve(
        limits=(0.0, 0.1, 0.2, torch.inf),
        paid=torch.tensor(paid).double(),
        expected=9.0 - torch.tensor(paid).double(),
        worst_cases=worst_cases,
        beliefs=GaussianMixture(worst_cases[None], torch.ones(1, 4).double()),
        decisions=torch.zeros(4, 1),
        gain=gain,
        outcome="profit",
        level=0.9,
    )
    assert curve.knee == knee
    assert ("the knee" in str(curve)) is (knee is not None)


def test_a_curve_of_costs_is_the_mirror_of_that_of_gains() -> None:
    opt = told("box", 12)
    history = opt.tensors.history
    runs = []
    for sign in (1, -1):
        twin = RobustOptimizer(
            "erbo", *boxes(opt), seed=3, maximize=sign > 0, **OPTIONS
        )
        twin.tell(history.X, history.C, sign * history.Y)
        runs.append(twin.price_curve(against=MeanShift({"c1": 1.0})))
    torch.testing.assert_close(runs[0].paid, runs[1].paid)
    torch.testing.assert_close(runs[0].worst_cases, -runs[1].worst_cases)
    assert runs[0].knee == runs[1].knee


def test_a_curve_needs_a_danger() -> None:
    with pytest.raises(InputDataError, match="against=MeanShift"):
        told("box", 1).price_curve()


def test_intervals_of_very_many_contexts() -> None:
    """Seven distributions of 250 contexts are more than a joint posterior takes."""
    box = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    opt = RobustOptimizer("erbo", box, box, **OPTIONS)
    draw = torch.Generator().manual_seed(0)
    X, C = torch.rand(2, 250, 2, generator=draw).double()
    C = 0.3 + 0.4 * C
    opt.tell(X, C, -(X.sum(-1) - C.sum(-1)).square())
    best = opt.recommend(against=MeanShift(0.5), give_up=0.1)
    low, high = best.worst_case_interval
    assert len(best.context_set.points) > 1024
    # The mean of minima is no higher than the minimum of means.
    assert low < best.worst_case_value <= high + 0.1 * (high - low)


def test_a_misspelt_word_is_no_option() -> None:
    opt = told("box", 1)
    for wrong in ("giveup", "num_restarts"):
        with pytest.raises(TypeError, match=wrong):
            opt.recommend(**{wrong: 0.1})


def test_decisions_that_break_a_measured_limit_are_nothing_to_gain_from() -> None:
    """Their mean may be above the best that is allowed: nothing could be given up."""
    x = torch.linspace(0, 1, 12).double()
    c = (7 * x).remainder(1.0)
    days = pd.DataFrame({"x": x, "c": c, "load": x, "y": 10 * x - 2 * c * x})
    opt = NamedOptimizer.from_dataframe(
        days,
        decisions={"x": (0, 1)},
        contexts={"c": (0, 1)},
        outcome="y",
        outcome_constraints={"load": (None, 0.4)},
        surrogate="botorch",
        num_restarts=2,
        raw_samples=64,
    )
    price = opt.recommend(against=MeanShift(1.0, clip=1.0), give_up=0.1).price
    assert price is not None
    # The best allowed is near 10 * .4 less 2 * .5 * .4, the mean of these half of it.
    assert price.gain == pytest.approx(1.8, abs=0.4)


def test_what_is_hardly_bought_is_called_nothing() -> None:
    found = told("box", 1).recommend(against=DANGER, give_up=0.2).price
    assert found is not None and found.bought > 1e-3 * found.gain
    assert not found.purchase.startswith("nothing")
    for little in (-1e-4, 0.0, 1e-4):
        less = replace(found, bought=little * found.gain)
        assert less.purchase == "nothing in the worst case"
