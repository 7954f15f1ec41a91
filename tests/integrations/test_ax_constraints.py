"""Outcome constraints of an Ax experiment are honoured as those of an optimizer are."""

from __future__ import annotations

import logging
import math
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from ax.analysis.analysis import ErrorAnalysisCard, NotApplicableStateAnalysisCard
from ax.analysis.best_trials import BestTrials
from ax.analysis.insights import InsightsAnalysis
from ax.analysis.overview import OverviewAnalysis
from ax.analysis.plotly.arm_effects import ArmEffectsPlot
from ax.analysis.plotly.constraint_feasibility import ConstraintFeasibilityPlot
from ax.analysis.plotly.cross_validation import CrossValidationPlot
from ax.analysis.plotly.parallel_coordinates import ParallelCoordinatesPlot
from ax.analysis.plotly.sensitivity import SensitivityAnalysisPlot
from ax.analysis.plotly.surface.contour import ContourPlot
from ax.analysis.plotly.surface.slice import SlicePlot
from ax.analysis.plotly.utility_progression import UtilityProgressionAnalysis
from ax.analysis.summary import Summary
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning

from botorch_drbo import RobustOptimizer
from botorch_drbo.integrations import ax as robust
from botorch_drbo.recipes import RECIPES

logging.getLogger("ax").setLevel(logging.ERROR)

SMALL = {"num_restarts": 1, "raw_samples": 16, "max_iterations": 5}


def make(
    algorithm: str = "wdrbo", *constraints: str, objective: str = "gain", **options: Any
) -> Client:
    client = Client()
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name=name, parameter_type="float", bounds=bounds)
            for name, bounds in (("x", (0.0, 1.0)), ("c", (10.0, 12.0)))
        ]
    )
    client.configure_optimization(
        objective=objective, outcome_constraints=list(constraints)
    )
    small = {} if algorithm == "random" else SMALL
    level = {"feasibility": 0.6} if RECIPES[algorithm].takes_constraints else {}
    strategy = robust.generation_strategy(
        ["c"], algorithm, num_initial=3, seed=3, **{**small, **level, **options}
    )
    client.set_generation_strategy(strategy)
    return client


def ask(client: Client) -> tuple[int, float]:
    ((index, decision),) = client.get_next_trials(max_trials=1).items()
    return index, float(decision["x"])


def world(t: int) -> float:
    return 10.0 + 2.0 * math.modf(0.37 + 0.618 * t)[0]


def heat(x: float, c: float) -> float:
    return 2.0 * x + 0.5 * (c - 10.0)


def reference_run() -> RobustOptimizer:
    return RobustOptimizer(
        "wdrbo",
        torch.tensor([[0.0], [1.0]]).double(),
        torch.tensor([[10.0], [12.0]]).double(),
        **{"num_initial": 3, "seed": 3, "feasibility": 0.6, **SMALL},
    )


def row(value: float) -> torch.Tensor:
    return torch.tensor([[value]], dtype=torch.double)


@pytest.mark.parametrize(
    ("constraint", "room"),
    [
        ("heat <= 1.5", lambda h: 1.5 - h),
        ("heat >= 1.5", lambda h: h - 1.5),
        ("2*heat - cool <= 4", lambda h: 4.0 - 2.0 * h - 1.0),
    ],
)
def test_the_client_asks_and_recommends_what_an_optimizer_with_constraints_does(
    constraint: str, room: Any
) -> None:
    """Ax's inequality is the room that is left, not negative where it holds."""
    client, opt = make("wdrbo", constraint), reference_run()
    for t in range(6):
        index, x = ask(client)
        assert x == opt.ask().item()
        c = world(t)
        measured = {"gain": x, "heat": heat(x, c), "cool": -1.0}
        robust.tell(client, index, {"c": c}, measured)
        opt.tell(row(x), row(c), row(x), constraints=row(room(heat(x, c))))
    assert robust.recommend(client) == {"x": opt.recommend().x.item()}
    assert robust.optimizer(client).recommend().feasibility == pytest.approx(
        opt.recommend().feasibility
    )


def test_the_limit_moves_the_recommendation_to_where_it_holds() -> None:
    """The gain grows with x, and heat <= 1 holds up to x = .5 in the mildest case."""
    free, limited = make("erbo"), make("erbo", "heat <= 1.0", feasibility=0.8)
    for t in range(10):
        x, c = (t + 0.5) / 10, world(t)
        for client in (free, limited):
            index = client.attach_trial({"x": x, "c": c})
            client.complete_trial(index, {"gain": x, "heat": heat(x, c)})
    assert float(robust.recommend(free)["x"]) > 0.9
    assert float(robust.recommend(limited)["x"]) < 0.5


def test_several_constraints_are_told_in_their_order_and_a_changed_limit_counts() -> (
    None
):
    client = make("wdrbo", "heat <= 1.5", "noise >= 2")
    index, x = ask(client)
    measured = {"gain": x, "heat": 1.25, "noise": 4.0}
    robust.tell(client, index, {"c": 11.0}, measured)
    assert robust.optimizer(client).trials[-1].constraints == (0.25, 2.0)
    client.configure_optimization(objective="gain", outcome_constraints=["heat <= 1"])
    assert robust.optimizer(client).trials[-1].constraints == (-0.25,)


def test_what_was_measured_before_a_trial_failed_is_learnt() -> None:
    client = make("wdrbo", "heat <= 1.5")
    index = robust.tell(client, ask(client)[0], {"c": 11.0})
    client.attach_data(index, {"heat": 2.0})
    client.mark_trial_failed(index)
    last = robust.optimizer(client).trials[-1]
    assert (last.status, last.constraints) == ("failed", (-0.5,))


def test_a_trial_without_all_constraints_teaches_its_outcome_alone() -> None:
    client = make("wdrbo", "heat <= 1.5", "noise >= 2")
    index, x = ask(client)
    with pytest.warns(InputDataWarning, match=r"lacks \['noise'\].*outcome constraint"):
        robust.tell(client, index, {"c": 11.0}, {"gain": x, "heat": 1.0})
    last = robust.optimizer(client).trials[-1]
    assert (last.y, last.constraints) == (x, None)


def test_constraints_that_no_trial_has_measured_are_ignored_with_a_warning() -> None:
    client = make("erbo", "heat <= 1.5")
    assert ask(client)[1] >= 0.0  # no data yet, no warning
    index = client.attach_trial({"x": 0.5, "c": 11.5})
    client.complete_trial(index, {"gain": 1.0})
    with pytest.warns(InputDataWarning, match=r"No trial has all of \['heat'\]"):
        assert robust.optimizer(client).recommend().feasible is None
    client.attach_data(index, {"heat": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputDataWarning)
        assert robust.optimizer(client).trials[-1].constraints == (0.5,)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_constraint_that_is_no_number_is_as_good_as_not_measured(
    value: float,
) -> None:
    client = make("wdrbo", "heat <= 1.5")
    with pytest.warns(InputDataWarning, match="'heat' in `raw_data`"):
        robust.tell(client, ask(client)[0], {"c": 11.0}, {"gain": 1.0, "heat": value})
    index = client.attach_trial({"x": 0.5, "c": 11.5})
    client.complete_trial(index, {"gain": 1.0, "heat": value})
    with pytest.warns(InputDataWarning, match=f"'heat' of trial {index}"):
        trials = robust.optimizer(client).trials
    complete = [trial for trial in trials if trial.y is not None]
    assert [trial.constraints for trial in complete] == [None, None]


def test_a_wrong_constraint_records_nothing_where_errors_are_wanted() -> None:
    strategy = robust.generation_strategy(["c"], "erbo", outside="raise", **SMALL)
    client = make("erbo", "heat <= 1.5")
    client.set_generation_strategy(strategy)
    index, _ = ask(client)
    before = client.summarize()
    with pytest.raises(InputDataError, match="'heat' in `raw_data`"):
        robust.tell(client, index, {"c": 11.0}, {"gain": 1.0, "heat": math.nan})
    assert client.summarize().equals(before)


def test_all_digits_of_a_constraint_survive_a_file(tmp_path: Path) -> None:
    client = make("wdrbo", "heat <= 1.5")
    value = 1.0 + math.pi * 1e-9
    measured = {"gain": (1.0, 0.5), "heat": (value, 0.1)}
    robust.tell(client, ask(client)[0], {"c": 11.0}, measured)
    path = str(tmp_path / "client.json")
    client.save_to_json_file(path)
    again = Client.load_from_json_file(path)
    for one in (client, again):
        assert robust.optimizer(one).trials[-1].constraints == (1.5 - value,)


def test_a_relative_constraint_is_refused_with_the_way_out() -> None:
    with pytest.raises(UnsupportedError, match=r"'heat <= 0.9\*baseline'.*a number"):
        ask(make("wdrbo", "heat <= 0.9*baseline"))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", sorted(RECIPES))
def test_every_recipe_honours_constraints_or_refuses_before_the_first_trial(
    algorithm: str,
) -> None:
    needed: dict[str, dict[str, Any]] = {
        "regret_balancing": {"reward_range": (-10.0, 10.0)},
        "drbo_mmd_minimax": {"num_contexts": 16},
    }
    if not RECIPES[algorithm].takes_constraints:
        client = make(algorithm, "heat <= 1.5", **needed.get(algorithm, {}))
        with pytest.raises(UnsupportedError, match=r"outcome constraints.*`dro`"):
            ask(client)
        return
    client = make(algorithm, "heat <= 1.5", **needed.get(algorithm, {}))
    for t in range(3):
        index, x = ask(client)
        measured = {"gain": x, "heat": heat(x, world(t))}
        robust.tell(client, index, {"c": world(t)}, measured)
    assert 0.0 <= ask(client)[1] <= 1.0
    assert robust.optimizer(client).recommend().feasibility is not None


ANALYSES = (
    OverviewAnalysis(),
    InsightsAnalysis(),
    ArmEffectsPlot("gain"),
    BestTrials(),
    ConstraintFeasibilityPlot(),
    ContourPlot("x", "c", "gain"),
    CrossValidationPlot(),
    ParallelCoordinatesPlot("gain"),
    SensitivityAnalysisPlot("gain"),
    SlicePlot("c", "gain"),
    Summary(),
    UtilityProgressionAnalysis(),
)


def failed(client: Client, analysis: Any) -> list[str]:
    """The cards of an analysis that show an error, or nothing."""
    found = list(client.compute_analyses([analysis], display=False))
    for card in found:
        found += getattr(card, "children", [])
    bad = (ErrorAnalysisCard, NotApplicableStateAnalysisCard)
    return [card.name for card in found if isinstance(card, bad)]


@pytest.mark.slow
def test_the_analyses_that_the_page_names_work_also_after_loading(
    tmp_path: Path,
) -> None:
    client = make("erbo", "heat <= 1.5")
    for t in range(4):
        index, x = ask(client)
        measured = {"gain": x, "heat": heat(x, world(t))}
        robust.tell(client, index, {"c": world(t)}, measured)
    path = str(tmp_path / "client.json")
    client.save_to_json_file(path)
    client = Client.load_from_json_file(path)
    robust.recommend(client)
    page = (Path(__file__).parents[2] / "docs" / "ax.md").read_text()
    for analysis in ANALYSES:
        assert f"`{type(analysis).__name__}`" in page
        assert failed(client, analysis) == []
    over_contexts = [SlicePlot("c", "gain"), ContourPlot("x", "c", "gain")]
    index, _ = ask(client)  # a running trial has no context, and Ax logs a KeyError
    assert [failed(client, plot) for plot in over_contexts] == [
        ["SlicePlot"],
        ["ContourPlot"],
    ]
    robust.tell(client, index, {"c": 11.0})
    assert [failed(client, plot) for plot in over_contexts] == [[], []]
