"""Intervals of what is promised, against the joint posterior of the model itself."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP, SingleTaskVariationalGP
from botorch.models.model import Model
from botorch.models.transforms import Log, Normalize
from scipy.stats import norm
from torch import Tensor

from botorch_drbo import (
    Category,
    ContextSet,
    Integer,
    NamedOptimizer,
    RobustOptimizer,
    Space,
)
from botorch_drbo.ambiguity import FullSimplex, KullbackLeibler
from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.recommendation import promise as promises
from botorch_drbo.recommendation.promise import Later, Promise
from botorch_drbo.recommendation.recommendation import Certainty
from botorch_drbo.surrogate import EnsembleOf, FixedHyperparameters, ModelData
from botorch_drbo.surrogate.botorch_default import BoTorchDefault
from botorch_drbo.surrogate.cross_validation import folds, leave_one_out
from tests.models import UNIT, ensemble, uniform

BUDGET = {"num_restarts": 1, "raw_samples": 16, "max_iterations": 10}
PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=0.01, outputscale=2.0)
X, C = uniform(14, 1, seed=1), uniform(14, 1, seed=2)
Y = 3.0 * (4 * X).sin() * (1.0 - C) + 0.1 * (uniform(14, 1, seed=3) - 0.5)


def told(name: str = "wdrbo_exact", **options: Any) -> RobustOptimizer:
    settings = {"hyperparameters": PRIOR, **BUDGET, **options}
    opt = RobustOptimizer(name, UNIT, UNIT, **settings)
    opt.tell(X, C, Y, closes_pending=False)
    return opt


def by_hand(
    model: Model, x: Tensor, contexts: Tensor, weights: Tensor
) -> tuple[float, float]:
    """Mean and deviation of an expectation, from the model's joint posterior."""
    Z = torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)
    with torch.no_grad():
        joint = model.posterior(Z)
    variance = weights @ joint.distribution.covariance_matrix @ weights
    return (weights @ joint.mean.squeeze(-1)).item(), variance.sqrt().item()


def check(opt: RobustOptimizer, best: Recommendation) -> None:
    """Both intervals of a run whose model is one Gaussian process."""
    model, sign = opt.model, 1.0 if opt._run.configuration.maximize else -1.0
    known, promise = best.context_set, best.promise
    assert promise is not None and promise.widening is not None
    mean, deviation = by_hand(model, best.x, known.points, known.weights)
    assert best.expected_value == pytest.approx(sign * mean, abs=1e-6)
    wide = norm.ppf(0.5 + best.level / 2) * deviation * promise.widening
    expected = (sign * mean - wide, sign * mean + wide)
    assert best.expected_interval == pytest.approx(expected, abs=2e-6)
    # No distribution is worse than the worst one: not in one of the draws.
    mean, deviation = by_hand(model, best.x, known.points, best.worst_case_weights)
    assert best.worst_case_value == pytest.approx(sign * mean, abs=1e-6)
    drawn = promise.worst_case.widened(1.0 / promise.widening)
    for probability in (0.05, 0.5, 0.95):
        of_found = mean + norm.ppf(probability) * deviation
        at = probability if sign > 0.0 else 1.0 - probability
        assert sign * drawn.quantile(at).item() <= of_found + 0.4 * deviation
    if len(drawn.means) == 1:  # nothing else is possible
        assert best.worst_case_interval == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("wdrbo_exact", {}),
        ("wdrbo_exact", {"half_life": 3.0}),
        ("wdrbo_exact", {"maximize": False}),
        ("erbo", {}),
        ("dro", {"ambiguity_set": KullbackLeibler(0.3), "radius": None}),
        ("dro", {"ambiguity_set": FullSimplex(), "radius": None, "maximize": False}),
        ("drbo_kde", {"num_contexts": 32, "num_outside": 32}),
        ("stable_opt", {"num_contexts": 16}),
        ("gp_ucb", {}),
        ("random", {}),
        ("ts_bocu", {}),
    ],
)
def test_intervals_are_those_of_the_joint_posterior(
    name: str, options: dict[str, Any]
) -> None:
    options = {k: v for k, v in options.items() if v is not None}
    opt = told(name, **options)
    best = opt.recommend()
    check(opt, best)
    low, high = best.expected_interval or (0.0, 0.0)
    assert high - low > 0.01


def test_every_recipe_states_them() -> None:
    from botorch_drbo.recipes import RECIPES

    special = {
        "regret_balancing": {"reward_range": (-9.0, 9.0), "horizon": 8},
        "phased_gp_us": {"num_decisions": 16},
        "edrbo": {"hyperparameters": None},  # which is of several models
    }
    skipped = {"drbo_mmd", "drbo_mmd_minimax", "ts_drbo_mmd"}  # as `dro`, but slow
    for name in set(RECIPES) - skipped:
        best = told(name, **special.get(name, {})).recommend()
        assert best.expected_interval is not None, name
        assert best.worst_case_interval is not None, name
        assert "by the model" in str(best)


def test_a_forecast_and_a_level_are_heeded() -> None:
    opt = told()
    forecast = ContextSet(torch.tensor([[0.1], [0.9]]).double(), uniform(2, seed=5))
    best = opt.recommend(context_set=forecast, radius=0.2, level=0.5)
    check(opt, best)
    assert "(50%: " in str(best)
    wide = opt.recommend(context_set=forecast, radius=0.2, level=0.99)
    check(opt, wide)
    assert wide.expected_value == best.expected_value
    assert best.promise is not None
    assert best.promise.expected.interval(0.99) == wide.expected_interval


def test_of_many_contexts_some_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the joint draws; all of them give nearly the same."""
    opt, rows, found = told(), [], []
    points, draw = uniform(600, 1, seed=5).sort(0).values, promises.joint_samples
    forecast = ContextSet(points)  # in order: those that are taken are spread evenly

    def counted(model: Model, Z: Tensor, num: int) -> Tensor:
        rows.append(len(Z))
        return draw(model, Z, num)

    monkeypatch.setattr(promises, "joint_samples", counted)
    for most in (100, 10**6):
        monkeypatch.setattr(promises, "_MOST_SEEN", most)
        monkeypatch.setattr(promises, "_MOST_OTHERS", most)
        best = opt.recommend(context_set=forecast, radius=0.1)
        assert best.promise is not None
        found.append(best.promise.worst_case)
    assert rows[0] <= 400 and rows[1] > 600
    few, everything = found
    spread = (everything.quantile(0.95) - everything.quantile(0.05)).item()
    for level in (0.05, 0.5, 0.95):
        assert (few.quantile(level) - everything.quantile(level)).abs() < 0.15 * spread


def test_a_known_context_leaves_one_outcome() -> None:
    opt = told()
    best = opt.recommend(context=torch.tensor([0.25]).double())
    here = torch.tensor([[best.x.item(), 0.25]]).double()
    with torch.no_grad():
        there = opt.model.posterior(here)
    assert best.promise is not None and best.promise.widening is not None
    half = norm.ppf(0.95) * there.variance.sqrt().item() * best.promise.widening
    middle = there.mean.item()
    assert best.expected_interval == pytest.approx((middle - half, middle + half))
    assert best.worst_case_interval == pytest.approx((middle - half, middle + half))


def test_to_minimise_is_to_maximise_the_mirror_image() -> None:
    up = told().recommend()
    down = RobustOptimizer(
        "wdrbo_exact", UNIT, UNIT, maximize=False, hyperparameters=PRIOR, **BUDGET
    )
    down.tell(X, C, -Y, closes_pending=False)
    best = down.recommend()
    assert up.expected_interval is not None and up.worst_case_interval is not None
    low, high = up.expected_interval
    assert best.expected_interval == pytest.approx((-high, -low))
    low, high = up.worst_case_interval
    assert best.worst_case_interval == pytest.approx((-high, -low))


@pytest.mark.parametrize("scale", [1e-4, 1e5])
def test_units_of_the_outcome_do_not_matter(scale: float) -> None:
    def best(scale: float, level: float) -> Recommendation:
        opt = RobustOptimizer("erbo", UNIT, UNIT, num_restarts=2, raw_samples=32)
        opt.tell(X, C, level + scale * Y, closes_pending=False)
        return opt.recommend(torch.tensor([[0.3], [0.8]]).double())

    one, other = best(1.0, 0.0), best(scale, 7.0 * scale)
    assert one.expected_interval is not None
    expected = tuple(scale * (end + 7.0) for end in one.expected_interval)
    # Fits to the folds stop a little earlier or later.
    assert other.expected_interval == pytest.approx(expected, rel=1e-3)


def test_constraints_leave_the_intervals_to_the_outcome() -> None:
    opt = told("dro", radius=0.2, feasibility=0.5)
    other = told("dro", radius=0.2, feasibility=0.5)
    opt.tell(X, C, Y, constraints=1.0 + X, closes_pending=False)
    other.tell(X, C, Y, closes_pending=False)
    check(opt, opt.recommend())
    lists = torch.tensor([[0.4]]).double()
    constrained, free = opt.recommend(lists), other.recommend(lists)
    assert constrained.feasible
    assert constrained.expected_interval == pytest.approx(free.expected_interval)


def test_errors_of_execution_are_averaged() -> None:
    box = torch.tensor([[-0.1], [0.1]], dtype=torch.double)
    opt = RobustOptimizer(
        "erbo", UNIT, box, perturbation=True, hyperparameters=PRIOR, **BUDGET
    )
    errors = 0.2 * C - 0.1
    opt.tell(X, errors, (5 * (X + errors)).sin(), closes_pending=False)
    check(opt, opt.recommend())


def test_mixed_columns_in_the_units_of_the_user() -> None:
    space = Space(
        {"stock": Integer(0, 40), "supplier": Category(["A", "B", "C"])},
        {"demand": (0.0, 50.0), "weather": Category(["sun", "rain"])},
        outcome="profit",
    )
    options = {**BUDGET, "hyperparameters": None, "surrogate": "botorch"}
    opt = NamedOptimizer("wdrbo_exact", space, **options)
    rows = torch.cat(
        [
            (41 * X).floor(),
            (3 * C).floor(),
            50 * uniform(14, 1, seed=7),
            (2 * uniform(14, 1, seed=8)).floor(),
        ],
        dim=-1,
    )
    profit = 9 * torch.minimum(rows[:, 0], rows[:, 2]) - 5 * rows[:, 0] + rows[:, 3]
    opt.tell(rows[:, :2], rows[:, 2:], profit, closes_pending=False)
    named, plain = opt.recommend(level=0.8), opt.tensors.recommend(level=0.8)
    check(opt.tensors, plain)
    assert named.expected_interval == plain.expected_interval
    assert named.worst_case_interval == plain.worst_case_interval
    assert named.level == 0.8


def maps(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
    return ensemble(X, Y)


@pytest.mark.parametrize(
    ("options", "num_members"), [({"model": maps}, 3), ({"surrogate": "ensemble"}, 4)]
)
def test_an_ensemble_is_a_mixture(options: dict[str, Any], num_members: int) -> None:
    opt = told("wdrbo_exact", hyperparameters=None, **options)
    best = opt.recommend()
    assert best.promise is not None and best.promise.expected.means.shape == (
        num_members,
    )
    Z = torch.cat(
        [best.x.expand(best.context_set.num_points, -1), best.context_set.points], -1
    )
    torch.manual_seed(0)
    with torch.no_grad():
        drawn = opt.model.posterior(Z).rsample(torch.Size([40_000])).squeeze(-1)
    assert best.promise is not None and best.promise.widening is not None
    interval, value = best.expected_interval, best.expected_value
    values = (drawn @ best.context_set.weights).flatten()
    assert interval is not None
    assert value == pytest.approx(values.mean().item(), abs=0.02 * values.std().item())
    for end, probability in zip(interval, (0.05, 0.95), strict=True):
        quantile = values.quantile(probability).item()
        stretched = value + best.promise.widening * (quantile - value)
        assert end == pytest.approx(stretched, abs=0.03 * values.std().item())


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize("members", [1, 3])
def test_the_worst_case_is_that_of_each_function_that_may_be_true(
    maximize: bool, members: int
) -> None:
    """Against a linear program for each of 2,000 draws by Cholesky's factor."""
    levels = ["a", "b", "c", "d"]
    space = Space({"x": Category(["k", "l"])}, {"c": Category(levels)}, outcome="y")
    surrogate = "botorch" if members == 1 else EnsembleOf(["botorch", "rbf", "matern"])
    opt = NamedOptimizer("wdrbo_exact", space, maximize=maximize, surrogate=surrogate)
    seen = [levels[i] for i in (0, 1, 2, 3, 0, 1, 2, 0, 0, 1)]
    y = [4.0, 3.0, 9.0, 1.0, 5.0, 2.0, 8.0, 6.0, 3.0, 7.0]
    opt.tell({"x": ["k", "l"] * 5}, {"c": seen}, y, closes_pending=False)
    best, (x,) = opt.tensors.recommend(radius=0.3), opt.tensors.recommend(radius=0.3).x
    shares = torch.tensor([seen.count(level) / 10 for level in levels]).double()
    Z = torch.stack([x.expand(4), torch.arange(4).to(x)], dim=-1)
    sign = 1.0 if maximize else -1.0
    found = []
    generator = torch.Generator().manual_seed(7)
    for member in members_of(opt.tensors.model):
        with torch.no_grad():
            posterior = member.posterior(Z)
        mean = posterior.mean.squeeze(-1)
        root = torch.linalg.cholesky(posterior.distribution.covariance_matrix)
        for _ in range(2000 // members):
            f = mean + root @ torch.randn(4, generator=generator, dtype=torch.double)
            found.append(sign * moved_worst(f, shares, 0.3))
    assert best.promise is not None and best.promise.widening is not None
    drawn = best.promise.worst_case.widened(1.0 / best.promise.widening)
    true = torch.tensor(found).double()
    for probability in (0.05, 0.5, 0.95):
        expected = true.quantile(probability).item()
        spread = true.std().item()
        assert drawn.quantile(probability).item() == pytest.approx(
            expected, abs=0.4 * spread
        )
    assert drawn.mean.item() == pytest.approx(true.mean().item(), abs=0.2 * spread)
    assert sign * drawn.mean.item() < sign * best.worst_case_value  # Jensen
    rows = opt.tensors.robustness_profile(best.x, radius=0.3)
    assert rows.belief is not None
    for i in (6, 24):
        expected = [
            sign * moved_worst(f, shares, rows.radii[i].item())
            for f in samples(opt.tensors.model, Z)
        ]
        middle = torch.tensor(expected).double()
        assert rows.belief[i].mean.item() == pytest.approx(
            middle.mean().item(), abs=0.3 * middle.std().item()
        )


def samples(model: Model, Z: Tensor) -> Tensor:
    """Draws of each model of an ensemble, to be maximised."""
    torch.manual_seed(3)
    drawn = [m.posterior(Z).rsample(torch.Size([300])) for m in members_of(model)]
    return torch.cat(drawn).squeeze(-1).detach()


def moved_worst(f: Tensor, shares: Tensor, radius: float) -> float:
    """Weight goes to the lowest outcome, first from where it is highest."""
    low, left, total = f.min(), radius, (f @ shares).item()
    for i in f.argsort(descending=True).tolist():
        moved = min(left, shares[i].item())
        total -= moved * (f[i] - low).item()
        left -= moved
    return total


def test_a_model_of_the_logarithm_keeps_to_what_is_possible() -> None:
    def make(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
        transform = Normalize(2, bounds=bounds)
        return SingleTaskGP(X, Y, input_transform=transform, outcome_transform=Log())

    opt = RobustOptimizer("erbo", UNIT, UNIT, model=make, **BUDGET)
    opt.tell(X, C, (2.0 * Y - 5.0).exp(), closes_pending=False)
    best = opt.recommend()
    assert best.expected_interval is not None and best.promise is not None
    low, high = best.expected_interval
    assert low < best.expected_value < high
    if best.promise.widening == 1.0:
        assert low > 0.0
    again = opt.recommend()
    assert again.expected_interval == best.expected_interval  # drawn under the seed


def stretched(residuals: Tensor) -> float:
    """The rule, of 14 residuals: 10.165 is the 25% quantile of their chi-squared."""
    assert len(residuals) == 14
    return max(1.0, (residuals.square().sum().item() / 10.165314) ** 0.5)


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1.0, "by the model"),
        (1.004, "by the model"),  # and not "widened 1 times"
        (1.04, "by the model, widened 1.04 times"),
        (1.36, "by the model, widened 1.4 times"),
    ],
)
def test_a_factor_is_never_rounded_to_one(factor: float, words: str) -> None:
    belief = GaussianMixture(torch.zeros(1), torch.ones(1))
    assert Promise(belief, belief, factor).words() == words


def test_a_known_model_that_is_overconfident_is_widened() -> None:
    """Nothing is fitted, so that leaving one out has a closed form."""
    sure = FixedHyperparameters(lengthscale=2.0, noise_variance=1e-3, outputscale=1.0)
    opt = told("erbo", hyperparameters=sure)
    best = opt.recommend()
    factor = stretched(leave_one_out(opt.model).standardised)
    assert best.promise is not None and factor > 2.0
    assert best.promise.widening == pytest.approx(factor)
    check(opt, best)
    assert f"by the model, widened {factor:.2g} times)" in str(best)
    line = f"widened {factor:.2g} times, with the hyper-parameters of the fit to all"
    assert line in str(opt.check())


@pytest.mark.parametrize("surrogate", ["botorch", "ensemble"])
def test_a_model_that_is_fitted_is_widened_by_further_fits(surrogate: str) -> None:
    """By runs that were told the other folds only, and the noise of their models."""
    rough = (20 * X).sin() + (15 * C).cos()
    residuals = torch.empty(14).double()
    fold_of_row = folds(
        ModelData(torch.cat([X, C], dim=-1), rough, torch.eye(2)[:, :1])
    )
    for fold in range(5):
        left_out = fold_of_row == fold
        opt = RobustOptimizer("erbo", UNIT, UNIT, surrogate=surrogate)
        opt.tell(X[~left_out], C[~left_out], rough[~left_out], closes_pending=False)
        Z = torch.cat([X[left_out], C[left_out]], dim=-1)
        model = opt.model
        with torch.no_grad():
            there = model.posterior(Z, observation_noise=True)
        means = there.mean.reshape(-1, len(Z))
        z = (rough[left_out].flatten() - means) / there.variance.reshape(
            means.shape
        ).sqrt()
        below = torch.from_numpy(norm.cdf(z.numpy())).mean(0)
        residuals[left_out] = torch.from_numpy(norm.ppf(below.numpy()))
    opt = RobustOptimizer("erbo", UNIT, UNIT, surrogate=surrogate, **BUDGET)
    opt.tell(X, C, rough, closes_pending=False)
    best, checked = opt.recommend(), opt.check()
    factor = stretched(residuals)
    assert factor > 1.1
    assert best.promise is not None
    assert best.promise.widening == pytest.approx(factor, rel=1e-3)
    assert checked.widening == best.promise.widening
    line = f"widened {factor:.2g} times, by five folds, each predicted by a fit to the"
    assert line in str(checked)
    assert f"by the model, widened {factor:.2g} times)" in str(best)


def test_asking_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The further fits are for those who read the intervals."""
    fits = []
    for name in ("fit", "predict_others"):  # of folds
        fit = getattr(BoTorchDefault, name)

        def counted(self: BoTorchDefault, *data: ModelData, fit: Any = fit) -> Any:
            fits.append(len(data[0].inputs))
            return fit(self, *data)

        monkeypatch.setattr(BoTorchDefault, name, counted)
    opt = told("erbo", hyperparameters=None)
    opt.ask()
    assert fits == [14]
    fits.clear()
    best = opt.recommend()
    assert not fits
    assert best.expected_interval is not None
    assert sorted(fits) == [11, 11, 11, 11, 12]  # the model is that of the ask


def test_a_model_that_cannot_be_checked_says_so() -> None:
    def make(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
        return SingleTaskVariationalGP(X, Y, inducing_points=5)

    best = told("erbo", hyperparameters=None, model=make).recommend()
    assert best.promise is not None and best.promise.widening is None
    assert "by the model, unchecked)" in str(best)


@pytest.mark.parametrize("level", [0.0, 1.0, 90, "high"])
def test_a_level_that_is_no_probability_is_refused(level: Any) -> None:
    with pytest.raises(InputDataError, match="`level` must be a number between 0 and"):
        told().recommend(level=level)


def promise(**changes: Any) -> Promise:
    def one(mean: float, deviation: float) -> GaussianMixture:
        return GaussianMixture(
            torch.tensor([mean]).double(), torch.tensor([deviation]).double()
        )

    return replace(Promise(one(376.2, 149.0), one(282.4, 164.0), 1.0), **changes)


def certain(promise: Promise | None) -> Later[Certainty]:
    return Later.of(Certainty(promise))


def test_how_it_prints() -> None:
    space = Space({"stock": (0, 9)}, {"demand": (0, 9)}, outcome="profit")
    opt = NamedOptimizer("erbo", space, hyperparameters=PRIOR, **BUDGET)
    opt.tell({"stock": [1.0, 5.0]}, {"demand": [2.0, 3.0]}, [1.0, 2.0])
    best = replace(
        opt.recommend(),
        expected_value=376.2,
        worst_case_value=282.4,
        certainty=certain(promise()),
    )
    lines = str(best).splitlines()
    assert "expected profit     376.2 (90%: 130 to 620, by the model)" in lines
    assert "worst-case profit   282.4 (90%: 10 to 550)" in lines
    lines = str(replace(best, level=0.999)).splitlines()
    assert any(line.startswith("worst-case profit   282.4 (99.9%: -") for line in lines)
    text = str(replace(best, certainty=certain(promise(widening=2.345))))
    assert "by the model, widened 2.3 times)" in text
    nothing = str(replace(best, certainty=certain(None)))
    assert "376.2 (no interval: the recipe states none)\n" in nothing
    assert not re.search(r"\d%", nothing)
    small = GaussianMixture(torch.zeros(1).double(), torch.full((1,), 1e-3).double())
    text = str(replace(best, certainty=certain(promise(expected=small))))
    assert "(90%: -0.0016 to 0.0016, by the model)" in text
    sure = GaussianMixture(torch.ones(1).double(), torch.zeros(1).double())
    text = str(replace(best, certainty=certain(promise(expected=sure))))
    assert "(90%: 1 to 1, by" in text


def test_an_interval_of_tiny_units_has_powers_of_ten() -> None:
    belief = GaussianMixture(
        torch.tensor([1.4e-13]).double(), torch.tensor([1e-12]).double()
    )
    low, high = promises.interval_words(belief, 0.9).split(" to ")
    assert (low, high) == ("-1.5e-12", "1.8e-12")


@pytest.mark.parametrize(
    ("width", "words"),
    [(2e-5, "0.000000 to 0.000020"), (2e-6, "0 to 2e-06"), (20.0, "0 to 20")],
)
def test_up_to_six_digits_are_written_behind_the_point(
    width: float, words: str
) -> None:
    half = 0.5 * width
    belief = GaussianMixture(
        torch.tensor([half], dtype=torch.double),
        torch.tensor([half / norm.ppf(0.95)], dtype=torch.double),
    )
    assert promises.interval_words(belief, 0.9) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0%"),
        (1e-9, "under 0.1%"),
        (0.001, "0.1%"),
        (0.25, "25%"),
        (0.999, "99.9%"),
        (1.0 - 1e-9, "over 99.9%"),
        (1.0, "100%"),
    ],
)
def test_a_share_is_none_or_all_only_if_it_is(share: float, words: str) -> None:
    assert promises.share_words(share) == words
