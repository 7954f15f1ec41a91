"""What a check says of a model, against models that were not told a row."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP, SingleTaskVariationalGP
from botorch.models.model import Model
from botorch.models.transforms import Log, Normalize
from scipy.stats import norm
from torch import Tensor

from botorch_drbo import (
    Category,
    ContextSet,
    NamedOptimizer,
    RobustOptimizer,
    Space,
)
from botorch_drbo.recommendation import ModelCheck
from botorch_drbo.recommendation.promise import shown
from botorch_drbo.report.answer import grade
from botorch_drbo.surrogate import FixedHyperparameters
from botorch_drbo.surrogate.cross_validation import overconfidence
from tests.models import UNIT, ensemble, uniform

BUDGET = {"num_restarts": 1, "raw_samples": 16, "max_iterations": 10}
PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=0.01, outputscale=2.0)
X, C = uniform(14, 1, seed=1), uniform(14, 1, seed=2)
Y = 3.0 * (4 * X).sin() * (1.0 - C) + 0.1 * (uniform(14, 1, seed=3) - 0.5)


def told(num: int = 14, **options: Any) -> RobustOptimizer:
    opt = RobustOptimizer("erbo", UNIT, UNIT, **{"hyperparameters": PRIOR} | options)
    opt.tell(X[:num], C[:num], Y[:num], closes_pending=False)
    return opt


def without(row: int, num: int = 14) -> tuple[float, float]:
    """Mean and deviation of a row's outcome from a run that was not told it.

    Its hyper-parameters are known, so that both runs have the same model.
    """
    opt = RobustOptimizer("erbo", UNIT, UNIT, hyperparameters=PRIOR)
    others = torch.arange(num) != row
    opt.tell(X[:num][others], C[:num][others], Y[:num][others], closes_pending=False)
    mean, variance = opt.predict(X[row], C[row])
    return mean.item(), math.sqrt(variance.item() + PRIOR.noise_variance)


def test_it_is_what_runs_that_were_not_told_a_row_say() -> None:
    check = told().check()
    for row in range(14):
        mean, deviation = without(row)
        assert check.predicted[row].item() == pytest.approx(mean, abs=1e-6)
        low, high = norm.interval(0.95, mean, deviation)
        assert check.lower[row].item() == pytest.approx(low, abs=1e-6)
        assert check.upper[row].item() == pytest.approx(high, abs=1e-6)
        z = (Y[row].item() - mean) / deviation
        assert check.standardised[row].item() == pytest.approx(z, abs=1e-5)
    missed = [Y[row].item() - without(row)[0] for row in range(14)]
    total = [
        (Y[row] - Y[torch.arange(14) != row].mean()).item() ** 2 for row in range(14)
    ]
    share = 1.0 - sum(e**2 for e in missed) / sum(total)
    assert check.explained == pytest.approx(share, abs=1e-6)
    outside = (check.standardised.abs() > 1.959964).sum().item()
    assert check.num_outside == outside
    assert check.coverage == pytest.approx(1.0 - outside / 14)
    order = check.standardised.abs().sort(descending=True).indices[:3]
    assert check.worst == tuple(order.tolist())


@pytest.mark.parametrize("wrong", [1e6, -1e6])
def test_a_row_that_dwarfs_all_others_is_named_and_stretches_no_interval(
    wrong: float,
) -> None:
    """One residual of ten thousand deviations stretched them ten thousand times."""
    outcomes = 300.0 + Y
    outcomes[5] = wrong
    opt = RobustOptimizer("wdrbo_exact", UNIT, UNIT, surrogate="matern", **BUDGET)
    opt.tell(X, C, outcomes, closes_pending=False)
    best, check = opt.recommend(), opt.check()
    low, high = best.expected_interval
    assert high - low < 2e6
    assert check.dwarfing == 5
    assert "trial 5 dwarfs all others" in str(best)
    low, high = (shown(f(Y).item() + 300.0) for f in (torch.min, torch.max))
    assert f"trial 5 ({wrong:.0f}) dwarfs all others ({low} to {high})" in str(check)
    assert "without trial 5" in str(check)
    rest = torch.arange(14) != 5
    assert check.refitted and check.standardised[5].abs() > 100.0
    assert check.widening == overconfidence(check.standardised[rest])
    assert check.mirrored().dwarfing == 5
    opt.withdraw(5)
    assert opt.check().dwarfing is None


def test_what_dwarfs_is_ten_ranges_away_and_of_ten_outcomes() -> None:
    def dwarfing(outcomes: Tensor) -> int | None:
        opt = RobustOptimizer("erbo", UNIT, UNIT, hyperparameters=PRIOR)
        t = len(outcomes)
        opt.tell(X[:t], C[:t], outcomes.unsqueeze(-1), closes_pending=False)
        return opt.check().dwarfing

    nine = torch.linspace(0.0, 1.0, 9).double()
    for far, found in ((11.1, 9), (10.9, None), (-10.1, 9), (-9.9, None)):
        assert dwarfing(torch.cat([nine, nine.new_tensor([far])])) == found
    assert dwarfing(torch.cat([nine[:8], nine.new_tensor([1e6])])) is None
    # One success among failures is no mistake.
    assert dwarfing(torch.tensor([0.0] * 11 + [1.0]).double()) is None


def test_a_row_that_is_wrong_is_found_by_the_number_of_its_trial() -> None:
    opt = RobustOptimizer("erbo", UNIT, UNIT, hyperparameters=PRIOR)
    x = opt.ask(2)
    opt.tell(x[:1], C[:1], failed=True)  # trial 0 has no outcome, trial 1 is pending
    wrong = Y.clone()
    wrong[5] += 20.0
    opt.tell(X, C, wrong, closes_pending=False)
    check = opt.check()
    assert check.trials == tuple(range(2, 16))
    assert check.worst[0] == 7
    assert "worst rows          trial 7: " in str(check)
    assert opt.recommend().model_check.worst == check.worst
    opt.withdraw(7)
    assert 7 not in opt.check().trials


def test_outcomes_that_are_minimised_keep_their_sign() -> None:
    up, down = told().check(), told(maximize=False)
    check = down.check()
    assert torch.allclose(check.outcomes, Y.flatten())
    mean, deviation = without(3)
    assert check.predicted[3].item() == pytest.approx(mean, abs=1e-6)
    low, high = norm.interval(0.95, mean, deviation)
    assert check.lower[3].item() == pytest.approx(low, abs=1e-6)
    assert check.upper[3].item() == pytest.approx(high, abs=1e-6)
    assert check.explained == pytest.approx(up.explained)
    assert torch.allclose(check.standardised, up.standardised, atol=1e-6)
    found = down.recommend().model_check
    assert found is not None and torch.allclose(found.outcomes, Y.flatten())


def test_a_logarithm_comes_back_in_units() -> None:
    def make(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
        transform = Normalize(2, bounds=bounds)
        return SingleTaskGP(X, Y, input_transform=transform, outcome_transform=Log())

    opt = RobustOptimizer("erbo", UNIT, UNIT, model=make)
    opt.tell(X, C, Y.exp(), closes_pending=False)
    check = opt.check()
    assert torch.allclose(check.outcomes, Y.exp().flatten())
    assert (check.lower > 0).all() and (check.lower < check.upper).all()


def test_an_ensemble_is_checked_as_a_mixture() -> None:
    def make(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
        return ensemble(X, Y)

    check = told(hyperparameters=None, model=make).check()
    assert check.lower.shape == (14,)
    assert (check.lower < check.predicted).all()
    inside = check.standardised.abs() < 1.95996
    drawn = (check.outcomes > check.lower) & (check.outcomes < check.upper)
    assert torch.equal(inside, drawn)


@pytest.mark.parametrize("num", [1, 2, 9])
def test_a_model_of_few_outcomes_knows_nearly_nothing(num: int) -> None:
    check = told(num).check()
    noun = "outcome" if num == 1 else "outcomes"
    line = f"knows nearly nothing: it has {num} {noun}"
    assert check.words() == line
    assert str(check).splitlines()[0] == f"model               {line}"
    if num == 1:
        assert math.isnan(check.explained)


def test_equal_outcomes_leave_nothing_to_explain() -> None:
    opt = RobustOptimizer("erbo", UNIT, UNIT, hyperparameters=PRIOR)
    opt.tell(X, C, torch.ones_like(Y), closes_pending=False)
    assert "nothing to explain: the outcomes do not differ" in opt.check().words()


def test_noise_beyond_the_modelled_is_seen_in_repeated_rows() -> None:
    def check(noise: float, num: int = 12) -> ModelCheck:
        x = uniform(num, 1, seed=1).repeat(2, 1)
        c = uniform(num, 1, seed=2).repeat(2, 1)
        opt = RobustOptimizer("erbo", UNIT, UNIT, hyperparameters=PRIOR)
        generator = torch.Generator().manual_seed(0)
        added = torch.randn(2 * num, 1, generator=generator, dtype=torch.double)
        opt.tell(x, c, x + c + noise * added, closes_pending=False)
        return opt.check()

    quiet, loud = check(0.1), check(0.4)  # 0.1 is what the model says
    assert quiet.near is not None and loud.near is not None
    assert quiet.near.num_pairs == loud.near.num_pairs == 12
    assert loud.near.ratio == pytest.approx(4.0 * quiet.near.ratio, rel=1e-6)
    assert 0.6 < quiet.near.ratio < 1.4
    assert not quiet.near.noisier and loud.near.noisier
    assert "noise               as modelled, by 12 pairs of near rows" in str(quiet)
    said = f"{loud.near.ratio:.2g} times the modelled deviation, by 12 pairs"
    assert said in str(loud)
    assert told().check().near is None or "not known" not in str(told().check())


def test_contexts_outside_those_seen_are_named() -> None:
    space = Space(
        {"stock": (0.0, 9.0)},
        {"demand": (0.0, 100.0), "weather": Category(["sun", "rain", "snow"])},
        outcome="profit",
    )
    opt = NamedOptimizer("dro", space, radius=0.2, **BUDGET)
    demand, weather = [20.0, 40.0] * 6, ["sun", "rain", "rain"] * 4
    stock = [float(k % 5) for k in range(12)]
    profit = [s - d / 50 for s, d in zip(stock, demand, strict=True)]
    opt.tell({"stock": stock}, {"demand": demand, "weather": weather}, profit)
    check = opt.check()
    assert check.unseen == 0.0
    assert "contexts asked for  all inside those seen" in str(check)
    forecast = space.context_set(
        {"demand": [30.0, 50.0, 30.0, 90.0], "weather": ["sun", "sun", "snow", "snow"]},
        [0.4, 0.3, 0.2, 0.1],
    )
    check = opt.check(context_set=forecast)
    assert check.unseen == pytest.approx(0.6)
    assert check.unseen_columns == pytest.approx((0.4, 0.3))
    line = "60% of their weight outside those seen: demand 40%, weather 30%"
    assert line in str(check)
    asked = opt.recommend(context_set=forecast).model_check
    assert asked is not None and str(asked) == str(check)
    with pytest.raises(InputDataError, match="must be a ContextSet"):
        opt.check(context_set={"demand": 3.0})  # pyright: ignore[reportArgumentType]


def test_a_reference_counts_as_asked_for() -> None:
    reference = ContextSet(torch.tensor([[0.5], [1.0]]).double())
    assert told(reference=reference).check().unseen == pytest.approx(0.5)


def test_a_model_without_closed_form_is_refused_and_the_report_says_so() -> None:
    def make(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
        return SingleTaskVariationalGP(X, Y, inducing_points=5)

    opt = told(hyperparameters=None, model=make, **BUDGET)
    with pytest.raises(UnsupportedError, match="return a SingleTaskGP from"):
        opt.check()
    best = opt.recommend()
    assert best.model_check is None
    line = "model               14 outcomes; unchecked: `check` says why"
    assert line in str(best).splitlines()


def test_a_model_that_holds_other_rows_is_refused() -> None:
    def make(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
        return SingleTaskGP(X[1:], Y[1:])

    with pytest.raises(UnsupportedError, match="holds 13 outcomes, and 14 were told"):
        told(hyperparameters=None, model=make).check()


def test_there_has_to_be_an_outcome() -> None:
    with pytest.raises(InputDataError, match="no outcome yet"):
        RobustOptimizer("erbo", UNIT, UNIT).check()


def test_what_it_prints() -> None:
    check = ModelCheck(
        trials=tuple(range(3, 15)),
        outcomes=torch.arange(12.0).double(),
        predicted=torch.arange(12.0).double() + 1.0,
        lower=torch.arange(12.0).double() - 1.0,
        upper=torch.tensor([2.0, *range(2, 11), 9.0, 10.5]).double(),
        standardised=torch.tensor([0.1] * 9 + [-1.0, 2.0, 2.1]).double(),
        fold=torch.arange(12) % 5,
        refitted=True,
        near=None,
        unseen=0.0,
        unseen_columns=(0.0,),
        context_names=("demand",),
    )
    # Folds of 3, 3, 2, 2, 2 rows; each error is one.
    others = [[o for o in range(12) if o % 5 != y % 5] for y in range(12)]
    total = [(y - sum(o) / len(o)) ** 2 for y, o in enumerate(others)]
    share = 1 - 12 / sum(total)
    influences = [12 * (1 - (1 - share) * d) / sum(total) for d in total]
    # 2.1318: the 95% quantile of Student's t with 4 degrees of freedom, from a table
    half = 2.1318 * 1.5 * statistics.stdev(influences) / math.sqrt(12)
    low, high = check.explained_interval
    assert (low, high) == pytest.approx((share - half, share + half), abs=1e-4)
    explains = (
        f"explains {share:.0%} of what it has not seen (90%: {low:.0%} to {high:.0%})"
    )
    assert str(check).splitlines() == [
        "model               12 outcomes",
        f"five folds          {explains}",
        "outside their 95%   2 of 12; of a calibrated model about 0.6",
        # 9.5 squares, and 8.44 the 25% quantile of chi-squared with 12 degrees
        "intervals           widened 1.06 times, by five folds, each predicted by a "
        "fit to the others",
        "worst rows          trial 14: 11, from the others 12 (95%: 10 to 10.5)",
        "                    trial 13: 10, from the others 11 (95%: 9 to 9)",
        "                    trial 12: 9, from the others 10 (95%: 8 to 10)",
        "noise               not known: no two rows are so near that only noise "
        "parts them",
        "contexts asked for  all inside those seen",
    ]
    assert check.words() == f"12 outcomes; {explains}; 2 of 12 outside their 95%"
    assert repr(check) == (
        f"ModelCheck(outcomes=12, explained={share:.3g}, coverage=0.833, "
        "worst=(14, 13, 12))"
    )


def test_folds_are_predicted_by_fits_that_were_not_told_them() -> None:
    opt = RobustOptimizer("erbo", UNIT, UNIT, surrogate="matern", **BUDGET)
    opt.tell(X, C, Y, closes_pending=False)
    check = opt.check()
    assert check.refitted
    missed, total = 0.0, 0.0
    for fold in range(5):
        rest, own = check.fold != fold, check.fold == fold
        other = RobustOptimizer("erbo", UNIT, UNIT, surrogate="matern", **BUDGET)
        other.tell(X[rest], C[rest], Y[rest], closes_pending=False)
        mean, variance = other.predict(X[own], C[own])
        assert torch.allclose(check.predicted[own], mean, atol=1e-6)
        deviation = (variance + other.model.likelihood.noise * Y[rest].var()).sqrt()
        half = norm.ppf(0.975) * deviation
        assert torch.allclose(check.upper[own], mean + half, atol=1e-6)
        missed += (Y[own].flatten() - mean).square().sum().item()
        total += (Y[own] - Y[rest].mean()).square().sum().item()
    assert check.explained == pytest.approx(1.0 - missed / total, abs=1e-6)


def made(errors: Tensor, outcomes: Tensor, folds: int) -> ModelCheck:
    """A check with these errors, as if rows had been dealt to folds."""
    return ModelCheck(
        trials=tuple(range(len(outcomes))),
        outcomes=outcomes,
        predicted=outcomes - errors,
        lower=outcomes - 1.0,
        upper=outcomes + 1.0,
        standardised=errors,
        fold=torch.arange(len(outcomes)) % folds,
        refitted=folds < len(outcomes),
        near=None,
        unseen=0.0,
        unseen_columns=(0.0,),
        context_names=("c1",),
    )


@pytest.mark.parametrize("folds", [5, 400])
def test_the_uncertainty_of_the_share_is_that_of_other_rows(folds: int) -> None:
    """Against the bootstrap of the rows, and wider by the rows that fits share."""
    generator = torch.Generator().manual_seed(0)
    errors, outcomes = torch.randn(2, 400, generator=generator, dtype=torch.double)
    check = made(errors, outcomes, folds)
    own = check.fold.unsqueeze(-1) == check.fold
    means = torch.stack([outcomes[~row].mean() for row in own])
    rows = torch.randint(400, (4000, 400), generator=generator)
    total = (outcomes - means).square()[rows].sum(-1)
    deviation = (errors.square()[rows].sum(-1) / total).std().item()
    low, high = check.explained_interval
    wider = math.sqrt(1.0 + (1.25 if folds == 5 else 400 / 399))
    assert (high + low) / 2 == pytest.approx(check.explained)
    quantile = 2.1318 if folds == 5 else 1.6487  # of 4 and 399 degrees of freedom
    half = quantile * wider * deviation
    assert (high - low) / 2 == pytest.approx(half, rel=0.06)


def test_a_share_is_at_most_all_and_less_than_nothing_is_none() -> None:
    outcomes = torch.tensor([0.0, 1.0, 2.0, 10.0] * 5).double()
    perfect = made(torch.tensor([0.1] * 19 + [1.0]).double(), outcomes, 5)
    assert perfect.explained < 1.0 and perfect.explained_interval[1] == 1.0
    assert "explains over 99% of what it has" in perfect.words()
    wrong = made(9.0 * torch.ones(20).double(), outcomes, 5)
    assert wrong.explained < 0.0 and wrong.explained_interval[0] < wrong.explained
    assert "explains 0% of what it has not seen (90%: 0% to " in wrong.words()
    equal = made(torch.ones(20).double(), torch.ones(20).double(), 5)
    assert all(math.isnan(end) for end in equal.explained_interval)


@pytest.mark.parametrize(
    ("size", "t", "words"),
    [
        (0.01, 20, "is good: it"),
        (0.6, 20, "is fair, perhaps weak or good: it"),
        (0.6, 400, "is fair: it"),
        (3.0, 20, "is poor: it"),
    ],
)
def test_a_grade_has_the_words_of_both_ends(size: float, t: int, words: str) -> None:
    """The errors are alternately small and large, of outcomes of deviation one."""
    outcomes = torch.tensor([1.0, -1.0] * (t // 2)).double()
    errors = size * torch.tensor([0.5, 0.5, 1.32, 1.32] * (t // 4)).double()
    assert f"The model {words}" in grade(made(errors, outcomes, 5))


def test_a_model_of_pure_noise_is_not_said_to_explain_it() -> None:
    """In closed form it was: hyper-parameters had been fitted to each row."""
    shares = []
    for seed in range(4):
        x, c = uniform(20, 3, seed=seed), uniform(20, 2, seed=50 + seed)
        noise = torch.randn(20, 1, generator=torch.Generator().manual_seed(seed))
        bounds = torch.tensor([[0.0], [1.0]]).double()
        opt = RobustOptimizer(
            "erbo", bounds.expand(2, 3), bounds.expand(2, 2), surrogate="botorch"
        )
        opt.tell(x, c, noise.double(), closes_pending=False)
        check = opt.check()
        shares.append(check.explained)
        assert check.explained_interval[0] < 0.1
    assert sum(shares) / 4 < 0.05


def test_a_category_between_those_seen_is_unseen() -> None:
    """Neither the range of its codes nor the values of other columns matter."""
    space = Space(
        {"stock": (0.0, 9.0)},
        {"demand": (0.0, 100.0), "weather": Category(["sun", "rain", "snow"])},
        outcome="profit",
    )
    opt = NamedOptimizer("dro", space, radius=0.2, hyperparameters=PRIOR, **BUDGET)
    demand, weather = [0.0, 1.0, 2.0] * 4, ["sun", "snow"] * 6
    stock = [float(k % 5) for k in range(12)]
    opt.tell({"stock": stock}, {"demand": demand, "weather": weather}, stock)
    for level, expected in (("sun", 0.0), ("rain", 1.0), ("snow", 0.0)):
        asked = space.context_set({"demand": [2.0], "weather": [level]}, [1.0])
        check = opt.check(context_set=asked)
        assert check.unseen == expected
        assert check.unseen_columns == (0.0, expected)
