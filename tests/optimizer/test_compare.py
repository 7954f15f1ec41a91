"""Methods on one's own data, against samples of the posterior and rules by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from torch import Tensor

from botorch_drbo import (
    Category,
    ContextSet,
    Log,
    MeanShift,
    NamedOptimizer,
    RobustOptimizer,
    Space,
)
from botorch_drbo.optimizer import comparison
from botorch_drbo.plotting import plot_compare
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recommendation.comparison import TODAY, Comparison
from botorch_drbo.surrogate import EnsembleOf, FixedHyperparameters

PRIOR = FixedHyperparameters(lengthscale=0.5, noise_variance=1e-2)
SHORT: dict[str, Any] = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 30}
SMALL: dict[str, Any] = {**SHORT, "hyperparameters": PRIOR}
SPACE = Space(
    {"stock": (0.0, 40.0)},
    {"temp": (-10.0, 50.0), "weather": Category(["sun", "rain"])},
    outcome="profit",
)
COLD = {"colder": {"temp": -6.0}}


def data(num: int = 14, factor: float = 1.0, offset: float = 0.0) -> pd.DataFrame:
    generator = torch.Generator().manual_seed(0)
    stock = 40 * torch.rand(num, generator=generator).double()
    temp = 20 + 4 * torch.randn(num, generator=generator).double()
    rainy = torch.arange(num) % 3 == 0
    sold = torch.minimum(stock, temp * torch.where(rainy, 0.6, 1.0))
    return pd.DataFrame(
        {
            "stock": stock.tolist(),
            "temp": (factor * temp + offset).tolist(),
            "weather": ["rain" if wet else "sun" for wet in rainy.tolist()],
            "profit": (9 * sold - 5 * stock).tolist(),
        }
    )


def optimizer(
    name: str = "erbo",
    num: int = 14,
    factor: float = 1.0,
    offset: float = 0.0,
    **options: Any,
) -> NamedOptimizer:
    low, high = factor * -10.0 + offset, factor * 50.0 + offset
    return NamedOptimizer.from_dataframe(
        data(num, factor, offset),
        decisions={"stock": (0.0, 40.0)},
        contexts={"temp": (low, high), "weather": Category(["sun", "rain"])},
        outcome="profit",
        algorithm=name,
        **{**SMALL, **options},
    )


def test_every_number_is_that_of_samples_of_the_posterior() -> None:
    opt = optimizer()
    forecast = SPACE.context_set({"temp": [5.0, 30.0], "weather": ["rain", "sun"]})
    found = opt.compare(
        ["erbo", "wdrbo_exact"], shifts={**COLD, "forecast": forecast}, level=0.8
    )
    assert found.worlds == (TODAY, "colder", "forecast")
    seen = opt.tensors.history.C
    colder = seen - torch.tensor([6.0, 0.0]).double()
    torch.manual_seed(0)
    rows, sizes = [], []
    for x in found.decisions:
        for contexts in (seen, colder, forecast.points):
            rows.append(torch.cat([x.expand(len(contexts), -1), contexts], -1))
            sizes.append(len(contexts))
    with torch.no_grad():
        draws = opt.model.posterior(torch.cat(rows)).rsample(torch.Size([40_000]))
    means = [part.mean(-1) for part in draws.squeeze(-1).split(sizes, -1)]
    values = torch.stack(means, -1).unflatten(-1, (2, 3))
    # This model is found overconfident: what a recommendation promises is stretched so.
    promise = opt.tensors.recommend().promise
    assert promise is not None and promise.widening is not None
    assert promise.widening > 2.0
    assert promise.words() in str(found)
    values = values.mean(0) + promise.widening * (values - values.mean(0))
    gains, costs = values - values[:, :1], values[:, :1, :1] - values[:, :1]
    costs = costs.squeeze(1)
    for mine, sampled in (
        (found.values, values),
        (found.gains, gains),
        (found.costs, costs),
    ):
        error = 4 * sampled.std(0) / 200
        assert ((mine.mean - sampled.mean(0)).abs() <= error + 1e-3).all()
        assert torch.allclose(mine.deviation, sampled.std(0), rtol=0.03, atol=5e-3)
    chances = (gains[:, 1] > 0).double().mean(0)
    assert torch.allclose(found.better[1], chances, atol=0.02)
    assert found.better[0].tolist() == [0.5] * 3
    quantiles = values.quantile(0.1, dim=0), values.quantile(0.9, dim=0)
    table = found.table
    assert table["method"].tolist() == ["erbo"] * 3 + ["wdrbo_exact"] * 3
    for name, sampled in zip(("low", "high"), quantiles, strict=True):
        mine = torch.tensor(table[name].to_numpy()).reshape(2, 3)
        assert torch.allclose(mine, sampled, rtol=0.02, atol=0.5)
    assert table["stock"].tolist()[::3] == found.decisions[:, 0].tolist()


@pytest.mark.parametrize(
    ("words", "num", "head"),
    [
        ("mean", 15, "expected profit ("),
        ("worst fifth", 3, "expected profit over the worst fifth of the contexts ("),
        ("minimum", 1, "expected profit in the worst context ("),
        ("share above 60", 15, "expected profit, not the share above 60 ("),
    ],
)
def test_methods_are_judged_by_the_objective_of_the_run(
    words: str, num: int, head: str
) -> None:
    """By the mean over the worst contexts of each decision, in each world."""
    opt = optimizer(num=15, objective=words)
    found = opt.compare(["erbo", "wdrbo_exact"], shifts=COLD)
    seen = opt.tensors.history.C
    colder = seen - torch.tensor([6.0, 0.0]).double()
    for i, x in enumerate(found.decisions):
        for j, contexts in enumerate((seen, colder)):
            means, _ = opt.tensors.predict(x.expand(len(seen), -1), contexts)
            worst = means.sort().values[:num]
            assert found.values.mean[i, j].item() == pytest.approx(worst.mean().item())
    assert str(found).startswith(head)
    assert plot_compare(found).get_ylabel() == head.removesuffix(" (")


def test_each_method_recommends_what_it_recommends_alone() -> None:
    opt = optimizer(radius={"temp": 4}, name="wdrbo_exact")
    found = opt.compare(["erbo", "wdrbo_exact", "gp_ucb"], radii=[{"temp": 4}])
    alone = [
        optimizer().recommend(),
        opt.recommend(),
        optimizer("gp_ucb").recommend(),
    ]
    for x, other in zip(found.decisions[:, 0].tolist(), alone, strict=True):
        assert x == pytest.approx(other.x["stock"].item(), abs=1e-3)
    for i, other in enumerate(alone):
        mean = found.values.mean[i, 0].item()
        assert mean == pytest.approx(other.expected_value, rel=1e-5)
    worst = found.values.mean[1, 1].item()
    assert worst == pytest.approx(alone[1].worst_case_value, rel=1e-5)
    assert found.worlds == (TODAY, "worst within 4 of temp")
    assert found.better[1, 1] >= 0.5  # it was made for this


@pytest.mark.parametrize(("unit", "two"), [(1e-3, "0.002"), (1.0, "2"), (1e3, "2000")])
def test_the_rounding_of_equal_decisions_is_not_shown(unit: float, two: str) -> None:
    """In any unit; a gain is shown with its sign."""

    def of(mean: list[float], deviation: list[float]) -> GaussianMixture:
        row = unit * torch.tensor([mean, deviation], dtype=torch.double).unsqueeze(-1)
        return GaussianMixture(row[:1], row[1:])

    def lines(gain: float, deviation: float) -> str:
        found = Comparison(
            methods=("erbo", "dro"),
            radii=("", ""),
            worlds=(TODAY,),
            decisions=torch.zeros(2, 1),
            columns={"stock": [1.0, 1.0]},
            values=of([3.3, 3.3], [0.4, 0.4]),
            gains=of([0.0, gain], [0.0, deviation]),
            costs=GaussianMixture(torch.zeros(1, 1), torch.zeros(1, 1)),
            level=0.9,
            num_outcomes=9,
            outcome="profit",
            judged_by="expected profit",
            trust="by the model",
        )
        return str(found)

    nothing = "; +0 ± 0 against erbo, better with probability 0.50"
    assert nothing in lines(1.8e-15, 4.2e-9)
    assert nothing not in lines(1.8e-3, 4.2e-3)
    assert f"; +{two} ± " in lines(2.0, 0.1)
    assert f"; -{two} ± " in lines(-2.0, 0.1)


def test_methods_with_the_same_adversary_share_the_run_s_radius() -> None:
    own = make_recipe("wdrbo_exact", radius=0.17)
    of_run = comparison._as_recipe("ei_wdrbo", own)
    assert type(of_run.adversary) is type(own.adversary)
    assert of_run.options["radius"] == 0.17
    other = comparison._as_recipe("drbo_kde", own)
    assert other.options["radius"] == make_recipe("drbo_kde").options["radius"]


def test_it_says_with_which_radius_each_method_decided() -> None:
    own = make_recipe("wdrbo_exact", radius={"temp": 6})
    found = optimizer().compare(["erbo", own, "ucb_ro"], radii=[{"temp": 3}])
    assert found.radii == ("", "6 of temp (Wasserstein)", "")
    assert found.worlds[1] == "worst within 3 of temp"
    shown = str(found).splitlines()
    assert shown[1].endswith("(decided without a radius)")
    assert any(
        line.endswith("(decided within 6 of temp (Wasserstein))") for line in shown
    )


def test_few_contexts_stand_for_many() -> None:
    points = torch.arange(1000).double().unsqueeze(-1) / 1000
    weights = torch.where(points < 0.5, 3.0, 1.0).squeeze(-1)
    many = ContextSet(points, weights / weights.sum())
    few = comparison._thinned(many, 64)
    assert few.num_points <= 64
    assert comparison._thinned(few, 64) is few
    last = ContextSet(
        points,
        torch.full((1000,), 0.5 / 999).double().index_fill(0, torch.tensor([999]), 0.5),
    )
    assert (comparison._thinned(last, 64).points == points[-1]).sum() == 32
    for power in (1, 2):
        moments = [
            (each.weights @ each.points.pow(power)).item() for each in (many, few)
        ]
        assert moments[1] == pytest.approx(moments[0], abs=0.01)


def test_one_model_serves_all_and_nothing_is_recorded() -> None:
    calls = []

    def model(
        train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None, bounds: Tensor
    ) -> SingleTaskGP:
        calls.append(len(train_X))
        return SingleTaskGP(
            train_X,
            train_Y,
            train_Yvar,
            input_transform=Normalize(bounds.shape[-1], bounds=bounds),
            outcome_transform=Standardize(m=1),
        )

    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    opt = RobustOptimizer("erbo", unit, unit, model=model, **SHORT)
    generator = torch.Generator().manual_seed(0)
    x, c = torch.rand(2, 8, 1, generator=generator).double()
    opt.tell(x, 0.5 * c, -(x - c).square(), closes_pending=False)
    before = json.dumps(opt.state_dict()["events"])
    calls.clear()
    found = opt.compare(["erbo", "wdrbo_exact", "ts_erbo"], shifts={"c1": 0.2})
    assert len(calls) == 1
    assert json.dumps(opt.state_dict()["events"]) == before
    again = opt.compare(["erbo", "wdrbo_exact", "ts_erbo"], shifts={"c1": 0.2})
    assert str(again) == str(found)
    assert found.worlds == (TODAY, "c1 +0.2")
    assert found.columns["x1"] == found.decisions[:, 0].tolist()


def test_costs_are_outcomes_with_the_other_sign() -> None:
    best = optimizer().compare(shifts=COLD, radii=[0.1])
    opt = NamedOptimizer.from_dataframe(
        data().assign(profit=-data()["profit"]),
        decisions=SPACE.decisions,
        contexts=SPACE.contexts,
        outcome="profit",
        algorithm="erbo",
        maximize=False,
        **SMALL,
    )
    cost = opt.compare(shifts=COLD, radii=[0.1])
    assert torch.allclose(cost.values.mean, -best.values.mean, rtol=1e-6)
    assert torch.allclose(cost.gains.mean, best.gains.mean, atol=1e-5)
    assert torch.allclose(cost.better, best.better, atol=1e-5)
    assert cost.advice == best.advice
    high, low = cost.table["high"], best.table["low"]
    assert torch.allclose(torch.tensor(high), -torch.tensor(low), rtol=1e-5)


def test_the_unit_of_a_context_does_not_matter() -> None:
    here = optimizer().compare(shifts=COLD, radii=[{"temp": 3}])
    there = optimizer(factor=1.8, offset=32.0).compare(
        shifts={"colder": {"temp": -6.0 * 1.8}}, radii=[{"temp": 5.4}]
    )
    assert torch.allclose(here.values.mean, there.values.mean, atol=0.02)
    assert torch.allclose(here.gains.deviation, there.gains.deviation, atol=0.02)
    assert there.worlds[-1] == "worst within 5.4 of temp"


def test_it_prints_decisions_worlds_and_advice() -> None:
    found = optimizer().compare(["erbo", "wdrbo_exact"], shifts=COLD)
    lines = str(found).splitlines()
    assert lines[0].startswith("expected profit (90% intervals by the model")
    assert lines[1].startswith("erbo: stock = ")
    assert lines[2].startswith("  as things are  ")
    assert "against erbo, better with probability" in lines[-2]
    assert lines[-1] == found.advice


def test_a_recipe_may_be_given_and_twice() -> None:
    recipe = make_recipe("wdrbo_exact", radius={"temp": 6}, **SMALL)
    found = optimizer().compare(["erbo", "wdrbo_exact", recipe, "erbo"])
    assert found.methods == (
        "erbo (1)",
        "wdrbo_exact (1)",
        "wdrbo_exact (2)",
        "erbo (2)",
    )
    assert found.better[3].tolist() == [0.5]


def test_nothing_may_leave_the_bounds_of_a_box_unless_named() -> None:
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    opt = RobustOptimizer("erbo", unit, unit, **SHORT)
    Z = torch.rand(6, 2, generator=torch.Generator().manual_seed(0)).double()
    opt.tell(Z[:, :1], Z[:, 1:], Z.sum(-1, keepdim=True))
    with pytest.raises(InputDataError, match="beyond the bounds"):
        opt.compare(shifts={"far": {"c1": 0.9}})
    found = opt.compare(shifts={"far": {"c1": 0.9}}, clip=1.0)
    assert found.worlds[1] == "far"


def test_what_leaves_the_bounds_is_refused_unless_its_share_is_named() -> None:
    opt = optimizer()
    temps = torch.tensor(data()["temp"].to_numpy())
    far = 48.0 - temps.max().item()  # then the warmest day is two degrees within
    share = ((temps + far + 4.0) > 50.0).double().mean().item()
    shifts = {"hot": {"temp": far + 4.0}}
    with pytest.raises(InputDataError, match=r"'hot' moves .* beyond.*clip=0\."):
        opt.compare(shifts=shifts)
    with pytest.raises(InputDataError, match="beyond the bounds"):
        opt.compare(shifts=shifts, clip=0.9 * share)
    found = opt.compare(shifts=shifts, clip=share + 1e-9)
    clipped = SPACE.context_set(
        data().assign(temp=(temps + far + 4.0).clamp_max(50.0))[["temp", "weather"]]
    )
    same = opt.compare(shifts={"hot": clipped})
    assert torch.allclose(found.values.mean, same.values.mean)


def test_a_table_is_a_forecast() -> None:
    opt = optimizer()
    frame = pd.DataFrame({"temp": [5.0, 30.0], "weather": ["rain", "sun"]})
    as_table = opt.compare(shifts={"forecast": frame})
    as_set = opt.compare(shifts={"forecast": SPACE.context_set(frame)})
    assert torch.equal(as_table.values.means, as_set.values.means)
    base = opt.compare(context_set=SPACE.context_set(frame))
    # As things are is then the forecast, for the decisions too.
    expected = opt.recommend(context_set=SPACE.context_set(frame)).expected_value
    assert base.values.mean[0, 0].item() == pytest.approx(expected, rel=1e-5)


def test_a_logarithm_shifts_by_a_factor() -> None:
    frame = data(8).rename(columns={"temp": "dose"}).drop(columns="weather")
    opt = NamedOptimizer.from_dataframe(
        frame,
        decisions={"stock": (0.0, 40.0)},
        contexts={"dose": Log(1.0, 100.0)},
        outcome="profit",
        algorithm="erbo",
        **SMALL,
    )
    found = opt.compare(shifts={"half": {"dose": 0.5}})
    halved = opt.named_space.context_set(pd.DataFrame({"dose": frame["dose"] * 0.5}))
    same = opt.compare(shifts={"half": halved})
    assert torch.allclose(found.values.mean, same.values.mean)
    with pytest.raises(InputDataError, match="positive factor"):
        opt.compare(shifts={"dose": -0.5})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shifts": {"tmp": 6}}, "names `tmp`, which is not a context.*Did you mean"),
        ({"shifts": {"a": {"stock": 6}}}, "is not a context"),
        ({"shifts": {"a": {"weather": 1}}}, "is a category.*ContextSet"),
        ({"shifts": {"a": {}}}, "is empty. Name a context"),
        ({"shifts": {"a": {"temp": float("inf")}}}, "finite number"),
        ({"shifts": {"a": {"temp": "6"}}}, "finite number"),
        ({"shifts": {"a": 6, "b": {"temp": 1}}}, "'a' must be a dictionary"),
        ({"shifts": {TODAY: {"temp": 1}}}, "cannot be called"),
        ({"methods": ["erbo", "wdrbo_exacd"]}, "Did you mean `wdrbo_exact`"),
        ({"methods": ["erbo", 3]}, "name of a recipe"),
        ({"methods": "erbo"}, "in brackets"),
        ({"methods": ["erbo"]}, "two recipes or more"),
        ({"radii": [{"tmp": 6}]}, "is not a context"),
        ({"radii": ["far"]}, "one of"),
        ({"radii": 0.1}, "`radii` must be a list.*got 0.1"),
        ({"radii": {"temp": 6}}, "`radii` must be a list.*brackets"),
        ({"radii": "sd"}, "`radii` must be a list.*got 'sd'"),
        ({"shifts": [{"temp": 6}]}, "`shifts` must be a dictionary.*got list"),
        ({"clip": 2.0}, "between 0 and 1"),
        ({"level": 90}, "`level`"),
        ({"context_set": data()}, "must be a ContextSet"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputDataError, match=words):
        optimizer().compare(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"shifts": {"tmp": 1.0}},
        {"shifts": {"hot": {"temp": 60.0}}},
        {"shifts": {"other": {"weather": 1.0}}},
        {"radii": [{"tmp": 1.0}]},
        {"methods": ["erbo", "erbbo"]},
    ],
)
def test_bad_input_is_refused_before_a_model_is_fitted(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fitted(Exception):
        pass

    def fit(recipe: Any, state: Any) -> Any:
        raise Fitted

    opt = optimizer()
    monkeypatch.setattr(type(opt.algorithm), "judging_model", fit)
    with pytest.raises(InputDataError):
        opt.compare(**arguments)
    with pytest.raises(Fitted):
        opt.compare()


def test_a_shift_may_be_a_number_of_numpy() -> None:
    found, same = (
        optimizer().compare(shifts={"temp": shift}) for shift in (np.float32(2), 2)
    )
    assert found.worlds == same.worlds == (TODAY, "temp +2")


def test_decisions_that_a_search_cannot_tell_apart_are_alike() -> None:
    """The deviation of a difference is no more exact than the root of its variance."""
    gains = [[0.0, 0.0], [1e-12, 1e-12]]
    found = by_hand([[1e6, 1e6]] * 2, gains, [0.0, 94.0], 50.0, 1e-6)
    assert found.advice.startswith("All methods recommend the decision of erbo")
    assert (found.better == 0.5).all()
    apart = by_hand([[1e6, 1e6]] * 2, [[0.0, 0.0], [1.0, 1.0]], [0.0, 94.0], 50.0, 0.1)
    assert (apart.better[1] > 0.99).all()


def test_fewer_than_five_outcomes_are_refused() -> None:
    with pytest.raises(InputDataError, match="at least 5 outcomes, got 4"):
        optimizer(num=4).compare()
    assert optimizer(num=5).compare().num_outcomes == 5


def test_a_method_that_cannot_take_the_space_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="needs contexts that are numbers"):
        optimizer().compare(["erbo", "wdrbo"])


def by_hand(
    values: list[list[float]],
    gains: list[list[float]],
    costs: list[float],
    error: float,
    spread: float,
) -> Comparison:
    def mixture(numbers: Any, deviation: float) -> GaussianMixture:
        means = torch.tensor([numbers]).double()
        return GaussianMixture(means, torch.full_like(means, deviation))

    gained = mixture(gains, spread)
    gained.deviations[:, 0] = 0.0
    return Comparison(
        methods=("erbo", "wdrbo_exact"),
        radii=("", "30 of demand"),
        worlds=(TODAY, "demand falls by a third")[: len(costs)],
        decisions=torch.zeros(2, 1),
        columns={"x": [0.0, 1.0]},
        values=mixture(values, error),
        gains=gained,
        costs=mixture(costs, 60.0),
        level=0.9,
        num_outcomes=20,
        outcome="profit",
        judged_by="expected profit",
        trust="by the model",
    )


@pytest.mark.parametrize(
    ("gains", "costs", "error", "spread", "words"),
    [
        (
            [[0.0, 0.0], [-9.0, 45.0]],
            [0.0, 94.0],
            196.0,
            9.0,
            "'demand falls by a third' costs 94 ± 60; the model's own error here is "
            "196: more outcomes first.",
        ),
        (
            [[0.0, 0.0], [-9.0, 45.0]],
            [0.0, 94.0],
            50.0,
            9.0,
            "wdrbo_exact costs 9 ± 9 as things are, and saves 45 ± 9 under 'demand "
            "falls by a third'.",
        ),
        (
            [[0.0, 0.0], [-9.0, 5.0]],
            [0.0, 94.0],
            50.0,
            9.0,
            "wdrbo_exact saves 5 ± 9 under 'demand falls by a third', which the model "
            "cannot tell from nothing: stay with erbo.",
        ),
        (
            [[0.0, 0.0], [-9.0, -5.0]],
            [0.0, 94.0],
            50.0,
            9.0,
            "No method is better than erbo under 'demand falls by a third': stay with "
            "erbo.",
        ),
        (  # a shift that surely helps is no reason for more outcomes
            [[0.0, 0.0], [-9.0, 45.0]],
            [0.0, -94.0],
            50.0,
            9.0,
            "wdrbo_exact costs 9 ± 9 as things are, and saves 45 ± 9 under 'demand "
            "falls by a third'.",
        ),
        (
            [[0.0, 0.0], [0.0, 0.0]],
            [0.0, 94.0],
            50.0,
            0.0,
            "All methods recommend the decision of erbo: nothing to choose.",
        ),
        (
            [[0.0], [-9.0]],
            [0.0],
            50.0,
            9.0,
            "No method is significantly better than erbo as things are.",
        ),
        (
            [[0.0], [30.0]],
            [0.0],
            50.0,
            9.0,
            "wdrbo_exact gains 30 ± 9 over erbo as things are.",
        ),
    ],
)
def test_the_advice_follows_its_rule(
    gains: list[list[float]],
    costs: list[float],
    error: float,
    spread: float,
    words: str,
) -> None:
    values = [[100.0] * len(costs)] * 2
    assert by_hand(values, gains, costs, error, spread).advice == words


def test_the_command_line_compares(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from botorch_drbo.cli.commands import app

    path = tmp_path / "data.csv"
    data().to_csv(path, index=False)
    words = ["compare", str(path), "--decisions", "stock=0:40", "--contexts"]
    words += ["temp=-10:50", "weather=sun,rain", "--outcome", "profit"]
    done = CliRunner().invoke(
        app,
        [*words, "--methods", "erbo", "gp_ucb", "--shift", "temp=-6", "temp=+2"],
    )
    shown = " ".join(done.output.split())
    assert done.exit_code == 0, shown
    for part in ("erbo: stock =", "gp_ucb: stock =", "temp=-6", "temp=+2"):
        assert part in shown
    done = CliRunner().invoke(app, [*words, "--shift", "temp=much"])
    assert done.exit_code == 2 and "NAME=SIZE" in done.output
    done = CliRunner().invoke(app, [*words, "--shift", "temp=60"])
    assert done.exit_code == 2 and "`--clip 1`" in " ".join(done.output.split())


def test_members_of_an_ensemble_are_mixed() -> None:
    surrogate = EnsembleOf(["botorch", "matern"])
    opt = optimizer(hyperparameters=None, surrogate=surrogate)
    found = opt.compare(["erbo", "wdrbo_exact"], shifts=COLD)
    assert len(found.values.means) == 2
    apart = [
        optimizer(hyperparameters=None, surrogate=name)
        for name in ("botorch", "matern")
    ]
    seen = opt.tensors.history.C
    colder = seen - torch.tensor([6.0, 0.0]).double()
    for i, x in enumerate(found.decisions):
        for j, contexts in enumerate((seen, colder)):
            rows = x.expand(len(seen), -1)
            means = [
                one.tensors.predict(rows, contexts)[0].mean().item() for one in apart
            ]
            mine = found.values.mean[i, j].item()
            assert mine == pytest.approx(sum(means) / 2, rel=1e-3)
    # Members that disagree make the mixture wider than either.
    between = found.values.means.std(0, correction=0)
    assert (found.values.deviation >= between).all()


def test_dangers_and_prices_are_said_of_each_method() -> None:
    draw = torch.Generator().manual_seed(0)
    x, c = torch.rand(2, 12, generator=draw).double()
    table = pd.DataFrame({"x": x, "c": 0.2 + 0.5 * c, "y": -((x - c) ** 2)})
    opt = NamedOptimizer.from_dataframe(
        table,
        decisions={"x": (0, 1)},
        contexts={"c": (0, 1)},
        outcome="y",
        surrogate="botorch",
        num_restarts=1,
        raw_samples=16,
    )
    feared = make_recipe("erbo", against=MeanShift(0.5), give_up={"y": 0.25})
    told = str(opt.compare(["erbo", feared], shifts={"up": {"c": 0.1}}))
    assert "(Wasserstein), giving up at most 10%)" in told
    assert re.search(r"decided for the worst of: as seen; c .*at most 0\.25 of y", told)
