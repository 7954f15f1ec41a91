"""The recipes inside a real Ax client: they ask what a RobustOptimizer asks."""

from __future__ import annotations

import logging
import math
import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ax.analysis.analysis import ErrorAnalysisCard
from ax.analysis.plotly.arm_effects import ArmEffectsPlot
from ax.analysis.plotly.plotly_analysis import PlotlyAnalysisCard
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.analysis_card import AnalysisCardBase
from ax.core.arm import Arm
from ax.core.parameter import (
    ChoiceParameter,
    FixedParameter,
    Parameter,
    ParameterType,
    RangeParameter,
)
from ax.core.parameter_constraint import ParameterConstraint
from ax.core.search_space import SearchSpace
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning

from botorch_drbo import ContextSet, NamedOptimizer, RobustOptimizer
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.integrations import ax as robust
from botorch_drbo.integrations._ax_parameters import Translation
from botorch_drbo.objectives import RobustSatisficing
from botorch_drbo.recipes import RECIPES
from botorch_drbo.space import (
    Category,
    Continuous,
    Integer,
    LinearConstraint,
    Ordinal,
    Space,
    Variable,
)
from botorch_drbo.testing.fixtures import PRIOR

pytestmark = pytest.mark.filterwarnings("ignore::ax.exceptions.core.AxParameterWarning")
logging.getLogger("ax").setLevel(logging.ERROR)

SMALL = {
    "num_restarts": 1,
    "raw_samples": 16,
    "max_iterations": 5,
    "hyperparameters": PRIOR,
}
NEEDED = {
    "regret_balancing": {"reward_range": (-10.0, 10.0)},
    "drbo_mmd_minimax": {"num_contexts": 16},
}


def real(name: str, low: float, high: float, **more: Any) -> RangeParameterConfig:
    return RangeParameterConfig(
        name=name, parameter_type="float", bounds=(low, high), **more
    )


X, C = real("x", 0.0, 1.0), real("c", 10.0, 12.0)


def make(
    algorithm: str = "wdrbo",
    *,
    parameters: Sequence[Any] = (X, C),
    objective: str = "-cost",
    contexts: Sequence[str] = ("c",),
    parameter_constraints: Sequence[str] | None = None,
    outcome_constraints: Sequence[str] | None = None,
    num_initial: int = 3,
    **options: Any,
) -> Client:
    client = Client()
    client.configure_experiment(
        parameters=list(parameters), parameter_constraints=parameter_constraints
    )
    client.configure_optimization(
        objective=objective, outcome_constraints=outcome_constraints
    )
    small = {} if algorithm == "random" else SMALL
    client.set_generation_strategy(
        robust.generation_strategy(
            list(contexts),
            algorithm,
            num_initial=num_initial,
            seed=3,
            **{**small, **options},
        )
    )
    return client


def ask(client: Client, **fixed: Any) -> tuple[int, dict[str, Any]]:
    ((index, decision),) = client.get_next_trials(
        max_trials=1, fixed_parameters=fixed or None
    ).items()
    return index, dict(decision)


def cost(x: float, c: float) -> float:
    return (x - 0.3 * (c - 10.0)) ** 2 + 0.1 * c


def world(t: int) -> float:
    """The context of round ``t``."""
    return 10.0 + 2.0 * math.modf(0.37 + 0.618 * t)[0]


def play(client: Client, rounds: range) -> list[float]:
    asked = []
    for t in rounds:
        index, decision = ask(client)
        c = world(t)
        robust.tell(client, index, {"c": c}, {"cost": cost(decision["x"], c)})
        asked.append(decision["x"])
    return asked


def reference_run(**options: Any) -> RobustOptimizer:
    """The same problem without Ax."""
    bounds = torch.tensor([[0.0], [1.0]]).double()
    context_bounds = torch.tensor([[10.0], [12.0]]).double()
    settings = {"num_initial": 3, "seed": 3, "maximize": False, **SMALL, **options}
    return RobustOptimizer("wdrbo", bounds, context_bounds, **settings)


def tell_row(opt: RobustOptimizer, x: float, c: float, y: float | None) -> None:
    opt.tell(*torch.tensor([[[x]], [[c]]], dtype=torch.double), y)


@pytest.fixture(scope="module")
def uninterrupted() -> tuple[Client, list[float]]:
    client = make()
    return client, play(client, range(12))


@pytest.mark.slow
def test_twelve_trials_saved_and_loaded_in_the_middle_ask_what_one_run_asks(
    uninterrupted: tuple[Client, list[float]], tmp_path: Path
) -> None:
    first = make()
    asked = play(first, range(6))
    path = str(tmp_path / "client.json")
    first.save_to_json_file(path)
    again = Client.load_from_json_file(path)
    asked += play(again, range(6, 12))
    assert asked == uninterrupted[1]
    assert robust.recommend(again) == robust.recommend(uninterrupted[0])


@pytest.mark.slow
def test_the_client_asks_and_recommends_what_an_optimizer_does(
    uninterrupted: tuple[Client, list[float]],
) -> None:
    opt = reference_run()
    for t, x in enumerate(uninterrupted[1]):
        assert opt.ask().item() == x
        tell_row(opt, x, world(t), cost(x, world(t)))
    assert robust.recommend(uninterrupted[0]) == {"x": opt.recommend().x.item()}
    table = robust.optimizer(uninterrupted[0]).history
    assert table["cost"].tolist() == opt.history.Y.flatten().tolist()


@pytest.mark.slow
def test_the_completed_trials_are_what_happened_and_nothing_else_is_pending(
    uninterrupted: tuple[Client, list[float]],
) -> None:
    client, asked = uninterrupted
    table = client.summarize(trial_statuses=["completed"])
    assert table["x"].tolist() == asked
    assert table["c"].tolist() == [world(t) for t in range(12)]
    assert len(robust.optimizer(client).pending) == 0


def test_a_maximised_objective_has_the_other_sign() -> None:
    minimised, maximised = make(), make(objective="gain")
    for t in range(4):
        (i, a), (j, b) = ask(minimised), ask(maximised)
        assert a == b
        y = cost(a["x"], world(t))
        robust.tell(minimised, i, {"c": world(t)}, {"cost": y})
        robust.tell(maximised, j, {"c": world(t)}, {"gain": -y})
    assert ask(minimised) == ask(maximised)
    assert robust.recommend(minimised) == robust.recommend(maximised)


def test_a_log_scale_of_ax_is_the_recipes_scale_and_references_are_in_plain_units() -> (
    None
):
    forecast = torch.tensor([[1.0], [10.0], [50.0]]).double()
    parameters = (real("x", 0.01, 1.0, scaling="log"), real("c", 1, 100, scaling="log"))
    client = make(parameters=parameters, reference=ContextSet(forecast))
    opt = RobustOptimizer(
        "wdrbo",
        torch.tensor([[0.01], [1.0]]).double().log(),
        torch.tensor([[1.0], [100.0]]).double().log(),
        seed=3,
        num_initial=3,
        maximize=False,
        reference=ContextSet(forecast.log()),
        **SMALL,
    )
    for t in range(4):
        index, decision = ask(client)
        assert math.log(decision["x"]) == pytest.approx(opt.ask().item(), abs=1e-6)
        c = 100.0 ** math.modf(0.618 * t)[0]
        robust.tell(client, index, {"c": c}, {"cost": decision["x"] * c})
        tell_row(opt, math.log(decision["x"]), math.log(c), decision["x"] * c)


def test_parallel_trials_spread_and_contexts_come_in_any_order() -> None:
    client, opt = make(), reference_run()
    play(client, range(4))
    for t in range(4):
        x = opt.ask().item()
        tell_row(opt, x, world(t), cost(x, world(t)))
    trials = client.get_next_trials(max_trials=3)
    xs = [trial["x"] for trial in trials.values()]
    assert xs == [opt.ask().item() for _ in range(3)]
    gaps = [abs(a - b) for a in xs for b in xs if a is not b]
    assert min(gaps) > 1e-3
    last = list(trials)[-1]
    robust.tell(client, last, {"c": 11.0}, {"cost": cost(xs[-1], 11.0)})
    tell_row(opt, xs[-1], 11.0, cost(xs[-1], 11.0))
    assert robust.optimizer(client).pending["x"].tolist() == xs[:2]
    assert ask(client)[1]["x"] == opt.ask().item()


def test_a_context_counts_before_its_outcome_and_a_failed_trial_keeps_it() -> None:
    client = make()
    index, decision = ask(client)
    goes_on = robust.tell(client, index, {"c": 11.0})
    seen = robust.optimizer(client)
    assert seen.pending["x"].tolist() == [decision["x"]]
    assert [trial.c.tolist() for trial in seen.trials if trial.c is not None] == [
        [11.0]
    ]
    with pytest.raises(InputDataError, match=f"see trial {goes_on}"):
        robust.tell(client, index, {"c": 11.0}, {"cost": 1.0})
    assert robust.tell(client, goes_on, {"c": 11.0}, {"cost": 1.0}) == goes_on
    other = robust.tell(client, ask(client)[0], {"c": 11.5})
    client.mark_trial_failed(other)
    table = robust.optimizer(client).history
    assert table["c"].tolist() == [11.0, 11.5]
    assert table["cost"].isna().tolist() == [False, True]
    assert len(robust.optimizer(client).pending) == 0


@pytest.mark.parametrize("forgotten", [False, True])
def test_what_failed_before_its_context_came_is_not_asked_again(
    forgotten: bool, tmp_path: Path
) -> None:
    client = make("erbo")
    play(client, range(5))
    lost = []
    for _ in range(3):
        index, decision = ask(client)
        lost.append(decision["x"])
        if forgotten:
            client.complete_trial(index, {"cost": 1.0})
        else:
            client.mark_trial_failed(index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)
        x = ask(reloaded(client, tmp_path))[1]["x"]
    gaps = torch.pdist(torch.tensor([*lost, x]).double().unsqueeze(-1))
    assert gaps.min() >= 0.999e-3
    seen = robust.optimizer(client).trials
    assert [t.status for t in seen].count("failed") == 3


def test_a_failure_in_a_known_context_says_nothing_of_others() -> None:
    both = (X, C, real("d", 0.0, 1.0))
    client = make("erbo", parameters=both, contexts=("c", "d"))
    for t in range(4):
        robust.tell(
            client, ask(client)[0], {"c": world(t), "d": 0.5}, {"cost": 1.0 * t}
        )
    index, decision = ask(client, c=11.0)
    client.mark_trial_failed(index)
    (lost,) = [t for t in robust.optimizer(client).trials if t.status == "failed"]
    assert lost.c is None and lost.known_context is not None
    assert lost.known_context.tolist() == pytest.approx([11.0, math.nan], nan_ok=True)
    assert abs(ask(client, c=11.0)[1]["x"] - decision["x"]) >= 0.999e-3


def test_a_trial_whose_context_came_has_not_failed() -> None:
    client = make()
    index = robust.tell(client, ask(client)[0], {"c": 11.0})
    robust.tell(client, index, {"c": 11.0}, {"cost": 1.0})
    statuses = [trial.status for trial in robust.optimizer(client).trials]
    assert statuses == ["withdrawn", "complete"]


def test_what_was_abandoned_is_pending_and_what_failed_is_not() -> None:
    client = make()
    (failed, _), (abandoned, decision) = ask(client), ask(client)
    client.mark_trial_failed(failed)
    client.mark_trial_abandoned(abandoned)
    assert robust.optimizer(client).pending["x"].tolist() == [decision["x"]]


def test_a_context_known_before_is_a_fixed_parameter() -> None:
    client, opt = make(), reference_run()
    play(client, range(4))
    for t in range(4):
        x = opt.ask().item()
        tell_row(opt, x, world(t), cost(x, world(t)))
    known = torch.tensor([11.75]).double()
    index, decision = ask(client, c=11.75)
    assert decision == {"x": opt.ask(context=known).item(), "c": 11.75}
    client.complete_trial(index, {"cost": 1.25})  # it is all known: Ax's own way
    tell_row(opt, decision["x"], 11.75, 1.25)
    assert ask(client)[1]["x"] == opt.ask().item()
    best = opt.recommend(context=known).x.item()
    assert robust.recommend(client, {"c": 11.75}) == {"x": best}


def test_what_was_known_before_need_not_be_told_again() -> None:
    client = make("erbo", parameters=(X, C, real("d", 0.0, 1.0)), contexts=("c", "d"))
    index, _ = ask(client, c=11)
    index = robust.tell(client, index, {"d": 0.5}, {"cost": 1.0})
    table = robust.optimizer(client).history
    assert table[["c", "d", "cost"]].to_numpy().tolist() == [[11.0, 0.5, 1.0]]


def test_an_outcome_without_its_context_is_refused_until_it_is_told() -> None:
    client = make(outside="raise")
    index, decision = ask(client)
    client.complete_trial(index, {"cost": 1.0})
    with pytest.raises(InputDataError, match=f"Trial {index} .*not its context"):
        ask(client)
    robust.tell(client, index, {"c": 11.0}, {"cost": 1.0})
    table = robust.optimizer(client).history
    assert table[["x", "c"]].to_numpy().tolist() == [[decision["x"], 11.0]]


UNUSABLE = [9.0, 13, math.nan, math.inf, None, "warm", [11.0], True]


@pytest.mark.parametrize("c", UNUSABLE, ids=str)
def test_an_unusable_context_closes_its_trial_and_nothing_else(
    c: Any, tmp_path: Path
) -> None:
    client, failed = make("erbo"), make("erbo")
    play(client, range(3))
    play(failed, range(3))
    index, decision = ask(client)
    with pytest.warns(InputDataWarning, match=f"'c' of the context of trial {index}"):
        assert robust.tell(client, index, {"c": c}, {"cost": 1.0}) == index
    assert ask(failed)[1] == decision
    failed.mark_trial_failed(index)
    client = reloaded(client, tmp_path)
    assert ask(client)[1]["x"] == pytest.approx(ask(failed)[1]["x"], abs=1e-6)
    reason = client.summarize(trial_statuses=["failed"])["status_reason"].iloc[-1]
    assert str({"c": c}) in reason and "{'cost': 1.0}" in reason


def test_a_forgotten_context_closes_its_trial_unless_it_comes_later() -> None:
    client = make()
    index, _ = ask(client)
    with pytest.warns(InputDataWarning, match=r"lacks \['c'\]"):
        assert robust.tell(client, index, {}) == index
    index = robust.tell(client, index, {"c": 11.0}, {"cost": 1.0})
    assert robust.optimizer(client).history["cost"].tolist() == [1.0]
    forgotten, _decision = ask(client)
    client.complete_trial(forgotten, {"cost": 2.0})  # the context was never told
    with pytest.warns(InputDataWarning, match=f"Trial {forgotten} .*not its context"):
        ask(client)
    robust.tell(client, forgotten, {"c": 10.5}, {"cost": 2.0})
    assert robust.optimizer(client).history["c"].tolist() == [11.0, 10.5]


@pytest.mark.parametrize(("c", "end"), [(9, 10.0), (13.0, 12.0)])
def test_a_context_is_clipped_where_asked(c: float, end: float) -> None:
    client = make(outside="clip")
    with pytest.warns(InputDataWarning, match=f"It is taken as {end:g}"):
        robust.tell(client, ask(client)[0], {"c": c}, {"cost": 1.0})
    assert client.summarize(trial_statuses=["completed"])["c"].tolist() == [end]
    with pytest.warns(InputDataWarning, match="counts as failed"):
        robust.tell(client, ask(client)[0], {"c": math.nan}, {"cost": 1.0})


@pytest.mark.parametrize("outside", ["skip", "clip", "raise"])
def test_what_was_attached_outside_of_the_bounds(outside: str) -> None:
    client = make("erbo", outside=outside)
    play(client, range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # Ax says so too
        for x, c in ((0.5, 99.0), (7.0, 11.0)):
            index = client.attach_trial({"x": x, "c": c})
            client.complete_trial(index, {"cost": 1.0})
    if outside == "raise":
        with pytest.raises(InputDataError, match="'c' of trial 6 must lie between"):
            ask(client)
        return
    with pytest.warns(InputDataWarning) as caught:
        table = robust.optimizer(client).history
    assert [str(w.message)[:14] for w in caught] == ["'c' of trial 6", "'x' of trial 7"]
    added = [[0.5, 12.0]] if outside == "clip" else []
    assert table[["x", "c"]].to_numpy().tolist()[3:] == added


@pytest.mark.parametrize("y", [math.nan, math.inf, 1e200])
def test_an_outcome_that_cannot_be_modelled_is_none_and_its_context_counts(
    y: float,
) -> None:
    client = make()
    with pytest.warns(InputDataWarning, match="The outcome in `raw_data`"):
        robust.tell(client, ask(client)[0], {"c": 11.0}, {"cost": y})
    index = client.attach_trial({"x": 0.5, "c": 11.5})
    client.complete_trial(index, {"cost": y})
    with pytest.warns(InputDataWarning, match=f"the outcome of trial {index}"):
        table = robust.optimizer(client).history
    assert table["c"].tolist() == [11.0, 11.5] and table["cost"].isna().all()


def cards(client: Client) -> list[AnalysisCardBase]:
    """All cards of all groups."""
    found = list(client.compute_analyses(display=False))
    for card in found:
        found += getattr(card, "children", [])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("num_trials", [0, 1, 3])
def test_no_card_of_the_analyses_is_an_error(num_trials: int) -> None:
    client = make("wdrbo_exact", num_initial=2)
    play(client, range(num_trials))
    ask(client)
    found = cards(client)
    names = {card.name for card in found if isinstance(card, PlotlyAnalysisCard)}
    assert not [card.name for card in found if isinstance(card, ErrorAnalysisCard)]
    expected = {"ArmEffectsPlot", "CrossValidationPlot", "SlicePlot"}
    assert (expected <= names) == (num_trials > 1)


def test_analyses_change_no_decision_and_follow_the_data() -> None:
    client, undisturbed = make("erbo"), make("erbo")
    for one in (client, undisturbed):
        play(one, range(4))
    effects = ArmEffectsPlot("cost", use_model_predictions=True)
    shown = client.compute_analyses([effects], display=False)
    ((mean, _),) = (p["cost"] for p in client.predict([{"x": 0.9, "c": 11.0}]))
    assert abs(mean - cost(0.9, 11.0)) < 1.0
    assert play(client, range(4, 5)) == play(undisturbed, range(4, 5))
    ((later, _),) = (p["cost"] for p in client.predict([{"x": 0.9, "c": 11.0}]))
    assert later != mean
    shown += client.compute_analyses([effects], display=False)
    completed = [(c.df["trial_status"] == "COMPLETED").sum() for c in shown]
    assert completed == [4, 5]


def test_the_default_recipe_takes_every_kind_of_context() -> None:
    strategy = robust.generation_strategy(["c"])
    assert strategy.name == "wdrbo_exact"


def test_a_file_of_version_0_2_0_can_be_loaded(tmp_path: Path) -> None:
    """Its strategy knew no `outside`."""
    client = make()
    play(client, range(2))
    path = tmp_path / "client.json"
    client.save_to_json_file(str(path))
    written = path.read_text()
    assert written.count('"outside": "skip"') == 1
    path.write_text(re.sub(r',?\s*"outside": "skip"', "", written))
    again = Client.load_from_json_file(str(path))
    assert ask(again) == ask(client)


def test_a_standard_error_is_the_noise_of_its_outcome() -> None:
    client = make()
    for error in (0.5, 0.1):
        robust.tell(client, ask(client)[0], {"c": 11.0}, {"cost": (1.0, error)})
    trials = robust.optimizer(client).trials
    noise = [trial.y_variance for trial in trials if trial.y is not None]
    assert noise == pytest.approx([0.25, 0.01])
    index = robust.tell(client, ask(client)[0], {"c": 11.0}, {"cost": 1.0})
    with pytest.raises(InputDataError, match=rf"attach_data\({index}, "):
        ask(client)
    client.attach_data(index, {"cost": (1.0, 0.2)})
    trials = robust.optimizer(client).trials
    noise = [trial.y_variance for trial in trials if trial.y is not None]
    assert noise == pytest.approx([0.25, 0.01, 0.04])


def test_a_negative_standard_error_is_refused_and_can_be_corrected() -> None:
    """Its square would have been taken for a variance."""
    client = make()
    with pytest.warns(InputDataWarning, match="must not be negative, got -0.5"):
        robust.tell(client, ask(client)[0], {"c": 11.0}, {"cost": (1.0, -0.5)})
    index = client.attach_trial({"x": 0.5, "c": 11.5})
    client.complete_trial(index, {"cost": (1.0, -0.5)})
    with pytest.raises(InputDataError, match=rf"trial {index} is negative, -0.5"):
        ask(client)
    client.attach_data(index, {"cost": (1.0, 0.5)})
    trials = robust.optimizer(client).trials
    assert [t.y_variance for t in trials if t.y is not None] == [0.25]


def test_a_trial_of_several_arms_cannot_be_told_one_context() -> None:
    client = make()
    experiment = client._experiment
    batch = experiment.new_batch_trial()
    for x in (0.2, 0.7):
        batch.add_arm(Arm({"x": x}))
    batch.mark_running(no_runner_required=True)
    with pytest.raises(InputDataError, match="Trial 0 has 2 arms"):
        robust.tell(client, 0, {"c": 11.0}, {"cost": 1.0})


def test_a_recipe_of_decisions_alone_refuses_standard_errors() -> None:
    client = make("gp_ucb")
    robust.tell(client, ask(client)[0], {"c": 11.0}, {"cost": (1.0, 0.5)})
    with pytest.raises(UnsupportedError, match="standard error"):
        ask(client)


@pytest.mark.slow
def test_every_kind_of_decision_is_asked_as_ax_has_it_and_constraints_hold() -> None:
    count = RangeParameterConfig(name="n", parameter_type="int", bounds=(1, 4))
    size = ChoiceParameterConfig(
        name="size", parameter_type="int", values=[1, 5], is_ordered=True
    )
    kind = ChoiceParameterConfig(
        name="kind", parameter_type="str", values=["a", "b", "d"]
    )
    fixed = ChoiceParameterConfig(name="site", parameter_type="str", values=["here"])
    client = make(
        "erbo",
        parameters=(X, count, size, kind, fixed, C),
        parameter_constraints=["x + n <= 3"],
    )
    for t in range(5):
        index, decision = ask(client)
        assert {name: type(value) for name, value in decision.items()} == {
            "x": float,
            "n": int,
            "size": int,
            "kind": str,
            "site": str,
        }
        assert decision["size"] in {1, 5} and decision["kind"] in {"a", "b", "d"}
        assert decision["x"] + decision["n"] <= 3 + 1e-9
        y = cost(decision["x"], world(t)) + decision["n"]
        robust.tell(client, index, {"c": world(t)}, {"cost": y})
    assert robust.recommend(client)["n"] == 1


def test_an_equality_of_ax_is_one() -> None:
    """Which its client has no words for yet."""
    parts = [RangeParameter(n, ParameterType.FLOAT, 0.0, 1.0) for n in "abc"]
    one = ParameterConstraint(equality="a + 2*b == 1")
    found = Translation.of(SearchSpace(parts, [one]), ["c"], "cost").space
    assert found.constraints == (LinearConstraint({"a": 1.0, "b": 2.0}, 1.0, 1.0),)


def test_parts_of_a_mixture_add_up() -> None:
    """By two opposite inequalities."""
    sums = ["a + b + d <= 1", "a + b + d >= 1"]
    parts = [real(name, 0.0, 1.0) for name in "abd"]
    client = make("erbo", parameters=(*parts, C), parameter_constraints=sums)
    asked = []
    for t in range(5):
        index, decision = ask(client)
        asked.append(tuple(round(value, 4) for value in decision.values()))
        assert abs(sum(decision.values()) - 1.0) <= 1e-9
        y = (decision["a"] - 0.2) ** 2 + decision["b"]
        robust.tell(client, index, {"c": world(t)}, {"cost": y})
    assert len(set(asked)) == 5
    assert abs(sum(robust.recommend(client)[name] for name in "abd") - 1.0) <= 1e-9


def choice(name: str, kind: Any, *values: Any, **more: Any) -> ChoiceParameterConfig:
    return ChoiceParameterConfig(
        name=name, parameter_type=kind, values=list(values), **more
    )


def whole(name: str, low: int, high: int, **more: Any) -> RangeParameterConfig:
    return RangeParameterConfig(
        name=name, parameter_type="int", bounds=(low, high), **more
    )


# A parameter, what a model of ours sees of it, and values as a user has them at hand
# beside those that Ax keeps.
KINDS: dict[str, tuple[Any, Variable, Sequence[Any], Sequence[Any]]] = {
    "bool": (
        choice("p", "bool", True, False),
        Category(["False", "True"]),
        [True, 0, np.bool_(True), 1],
        [True, False, True, True],
    ),
    "two names": (
        choice("p", "str", "B", "A"),
        Category(["B", "A"]),
        ["A", "B", "A", "A"],
        ["A", "B", "A", "A"],
    ),
    "two names without order": (
        choice("p", "str", "rain", "sun", is_ordered=False),
        Category(["rain", "sun"]),
        ["sun", "rain", "sun", "sun"],
        ["sun", "rain", "sun", "sun"],
    ),
    "two numbers": (
        choice("p", "int", 1, 5),
        Ordinal([1, 5]),
        [5, 1.0, np.int64(5), 1],
        [5, 1, 5, 1],
    ),
    "geometric": (
        choice("p", "int", 16, 32, 64),
        Ordinal([math.log(16), math.log(32), math.log(64)]),
        [16, 64.0, np.int64(32), 64],
        [16, 64, 32, 64],
    ),
    "geometric fractions": (
        choice("p", "float", 0.001, 0.01, 0.1, 1.0),
        Ordinal([math.log(v) for v in (0.001, 0.01, 0.1, 1.0)]),
        [0.01, 1, np.float32(0.1), 0.001],
        [0.01, 1.0, 0.1, 0.001],
    ),
    "log integer": (
        whole("p", 1, 200, scaling="log"),
        Ordinal([math.log(v) for v in range(1, 201)]),
        [1, 200.0, np.int64(14), 7],
        [1, 200, 14, 7],
    ),
    "integer": (whole("p", 0, 9), Integer(0, 9), [1, 9.0, np.int8(3), 0], [1, 9, 3, 0]),
    "number": (
        real("p", 0.0, 2.0),
        Continuous(0.0, 2.0),
        [1, 0, np.float64(0.3), torch.tensor(2.0)],
        [1.0, 0.0, 0.3, 2.0],
    ),
    "grid": (
        RangeParameterConfig(
            name="p", parameter_type="float", bounds=(0.0, 1.0), step_size=0.1
        ),
        Ordinal([0.1 * i for i in range(11)]),
        [0.3, 1, 0.7, np.float64(0.1)],
        [0.3, 1.0, 0.7, 0.1],
    ),
}


def in_model_units(variable: Variable, value: Any) -> Any:
    """The value as the user of a space with this variable has it."""
    if isinstance(variable, Category):
        return str(value)
    logs = isinstance(variable, Ordinal) and variable.choices[-1] in {
        math.log(64),
        math.log(1.0),
        math.log(200),
    }
    return math.log(value) if logs else value


def reloaded(client: Client, folder: Path) -> Client:
    path = str(folder / "client.json")
    client.save_to_json_file(path)
    return Client.load_from_json_file(path)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_context_of_every_kind_is_told_saved_and_asked_for(
    kind: str, tmp_path: Path
) -> None:
    """As a RobustOptimizer of a space with that variable has it."""
    parameter, variable, given_values, kept = KINDS[kind]
    client = make("wdrbo_exact", parameters=(X, parameter), contexts=("p",))
    space = Space({"x": (0.0, 1.0)}, {"p": variable})
    settings = {"num_initial": 3, "seed": 3, "maximize": False, **SMALL}
    opt = NamedOptimizer("wdrbo_exact", space, **settings)
    for t, (given, value) in enumerate(zip(given_values, kept, strict=True)):
        index, decision = ask(client)
        decision_of_run = opt.ask()
        assert decision["x"] == pytest.approx(decision_of_run["x"].item(), abs=1e-6)
        y = (decision["x"] - 0.2 * t) ** 2
        index = robust.tell(client, index, {"p": given}, {"cost": y})
        opt.tell(decision_of_run, {"p": in_model_units(variable, value)}, y)
        if t == 1:
            client = reloaded(client, tmp_path)
    table = client.summarize(trial_statuses=["completed"])
    assert table["p"].tolist() == pytest.approx(kept)
    known = given_values[0]
    _, decision = ask(client, p=known)
    theirs = opt.ask(context={"p": in_model_units(variable, kept[0])})
    assert decision["x"] == pytest.approx(theirs["x"].item(), abs=1e-6)
    assert type(decision["p"]) is type(kept[0])
    assert decision["p"] in list(table["p"])  # .30000000000000004 of a grid
    best = robust.recommend(client, {"p": known})
    assert list(best) == ["x"] and 0.0 <= float(best["x"]) <= 1.0
    with pytest.raises(InputDataError, match="'p' of `context`"):
        robust.recommend(client, {"p": "nothing of the kind"})


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_decision_of_every_kind_is_asked_told_and_saved(
    kind: str, tmp_path: Path
) -> None:
    parameter, variable, _, kept = KINDS[kind]
    client = make("wdrbo_exact", parameters=(X, parameter, C))
    space = Space({"x": (0.0, 1.0), "p": variable}, {"c": (10.0, 12.0)})
    settings = {"num_initial": 3, "seed": 3, "maximize": False, **SMALL}
    opt = NamedOptimizer("wdrbo_exact", space, **settings)
    for t in range(4):
        index, decision = ask(client)
        decision_of_run = opt.ask()
        value = decision["p"]
        assert type(value) is type(kept[0])
        expected = in_model_units(variable, value)
        assert decision_of_run["p"].item() == pytest.approx(expected, abs=1e-6)
        y = cost(decision["x"], world(t)) + t
        robust.tell(client, index, {"c": world(t)}, {"cost": y})
        opt.tell(decision_of_run, {"c": world(t)}, y)
        if t == 2:
            client = reloaded(client, tmp_path)
    other = client.attach_trial({"x": 0.5, "p": kept[0], "c": 11.0})
    client.complete_trial(other, {"cost": 0.5})
    assert robust.optimizer(client).history["cost"].iloc[-1] == 0.5


def test_a_log_integer_of_many_values_is_searched_between_them_and_rounded() -> None:
    budget = whole("p", 1, 10**7, scaling="log")
    client = make("erbo", parameters=(X, budget, C), num_initial=3)
    for t in range(4):
        index, decision = ask(client)
        assert type(decision["p"]) is int and 1 <= decision["p"] <= 10**7
        y = (math.log10(decision["p"]) - 3.0) ** 2
        robust.tell(client, index, {"c": world(t)}, {"cost": y})
    seen = robust.optimizer(client).history["p"]
    assert seen.tolist() == client.summarize(trial_statuses=["completed"])["p"].tolist()


def test_a_context_may_be_a_category_for_recipes_that_know_no_order() -> None:
    weather = ChoiceParameterConfig(
        name="c", parameter_type="str", values=["sun", "rain", "snow"]
    )
    ball = TotalVariation(0.4)
    client = make("dro", parameters=(X, weather), ambiguity_set=ball)
    for c in ("sun", "rain", "sun", "snow"):
        index, decision = ask(client)
        robust.tell(client, index, {"c": c}, {"cost": decision["x"] * len(c)})
    assert robust.optimizer(client).history["c"].tolist()[-1] == "snow"
    assert set(ask(client, c="rain")[1]) == {"x", "c"}
    index = ask(client)[0]
    with pytest.warns(InputDataWarning, match=f"'c' of the context of trial {index}"):
        assert robust.tell(client, index, {"c": "hail"}, {"cost": 1.0}) == index
    failed = client.summarize(trial_statuses=["failed"])
    assert "hail" in failed["status_reason"].iloc[-1]
    with pytest.raises(UnsupportedError):
        ask(make("wdrbo", parameters=(X, weather)))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", sorted(RECIPES))
def test_every_recipe_asks_and_recommends(algorithm: str, tmp_path: Path) -> None:
    client = make(
        algorithm, num_initial=2, hyperparameters=None, **NEEDED.get(algorithm, {})
    )
    play(client, range(3))
    path = str(tmp_path / "client.json")
    client.save_to_json_file(path)
    again = Client.load_from_json_file(path)
    assert 0.0 <= ask(again)[1]["x"] <= 1.0
    assert 0.0 <= float(robust.recommend(again)["x"]) <= 1.0


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"contexts": ["d"]}, InputDataError, "no parameter 'd'"),
        ({"contexts": ["x", "c"]}, InputDataError, "none is left to decide"),
        ({"objective": "-cost, -time"}, UnsupportedError, "optimise one metric"),
        ({"objective": "-cost - 2*time"}, UnsupportedError, "optimise one metric"),
        (
            {"parameter_constraints": ["x + c <= 11"]},
            InputDataError,
            "names \\['c'\\], which are no decisions",
        ),
        (
            {"reference": ContextSet(torch.tensor([[0.25]]).double())},
            InputDataError,
            "must lie between 10 and 12",
        ),
    ],
)
def test_what_recipes_cannot_do_is_refused_at_the_first_ask(
    settings: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        ask(make(**settings))


@pytest.mark.parametrize(
    ("parameter", "match"),
    [
        (
            RangeParameter("c", ParameterType.FLOAT, 0.1, 0.9, logit_scale=True),
            "'c' is on a logit scale",
        ),
        (
            RangeParameter(
                "c", ParameterType.FLOAT, 0, 1, is_fidelity=True, target_value=1
            ),
            "'c' is a fidelity",
        ),
        (
            ChoiceParameter(
                "c", ParameterType.STRING, ["a", "b", "d"], is_ordered=True
            ),
            "an ordered choice among names.*Leave `is_ordered` out",
        ),
        (FixedParameter("c", ParameterType.FLOAT, 0.5), "'c' is a FixedParameter"),
    ],
)
def test_a_context_that_is_no_plain_number_is_refused(
    parameter: Parameter, match: str
) -> None:
    x = RangeParameter("x", ParameterType.FLOAT, 0.0, 1.0)
    with pytest.raises(UnsupportedError, match=match):
        Translation.of(SearchSpace([x, parameter]), ["c"], "cost")


def test_a_decision_cannot_be_held_fixed() -> None:
    with pytest.raises(UnsupportedError, match="'x' cannot be held fixed"):
        ask(make(), x=0.5)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"context": {"C": 11.0}}, "no context 'C'.*They are"),
        ({"context": {}}, r"lacks \['c'\]"),
        ({"context": [11.0]}, r"must be a dictionary with the names \['c'\]"),
        ({"raw_data": {"cost": (1.0, -0.5)}}, "must not be negative"),
        ({"context": {"c": 0.5}}, "'c' of the context of trial 0 must lie between"),
        ({"context": {"c": True}}, "'c' of the context of trial 0 must be a finite"),
        ({"raw_data": {"costs": 1.0}}, "lacks the objective 'cost'"),
        ({"raw_data": 1.0}, "must be a dictionary such as"),
        ({"raw_data": {"cost": math.nan}}, "finite number"),
        ({"raw_data": {"cost": "1"}}, "finite number"),
        ({"trial_index": 7}, "no trial 7"),
    ],
)
def test_a_wrong_tell_records_nothing(arguments: dict[str, Any], match: str) -> None:
    client = make(outside="raise")
    index, _ = ask(client)
    valid = {"trial_index": index, "context": {"c": 11.0}, "raw_data": {"cost": 1.0}}
    before = client.summarize()
    with pytest.raises(InputDataError, match=match):
        robust.tell(client, **{**valid, **arguments})
    assert client.summarize().equals(before)


def test_another_context_for_what_happened_is_refused() -> None:
    client = make()
    index = robust.tell(client, ask(client)[0], {"c": 11.0})
    with pytest.raises(InputDataError, match=r"has the context {'c': 11.0} already"):
        robust.tell(client, index, {"c": 11.5}, {"cost": 1.0})


def test_a_client_without_our_strategy_is_refused() -> None:
    client = Client()
    client.configure_experiment(parameters=[X, C])
    client.configure_optimization(objective="-cost")
    client.configure_generation_strategy(method="random_search")
    with pytest.raises(InputDataError, match="none of botorch_drbo"):
        robust.recommend(client)


@pytest.mark.parametrize(
    ("make_it", "match"),
    [
        (lambda: robust.generation_strategy("c"), "Write them in brackets"),
        (
            lambda: robust.generation_strategy(
                ["c"], objective=partial(RobustSatisficing, target=1.0)
            ),
            "`objective` is the function `RobustSatisficing`",
        ),
        (lambda: robust.generation_strategy([]), "must be a list of names"),
        (lambda: robust.generation_strategy(["c", "c"]), "must differ"),
        (lambda: robust.generation_strategy(["c"], "wdrb"), "Did you mean"),
        (lambda: robust.generation_strategy(["c"], radios=1), "no option radios"),
        (lambda: robust.generation_strategy(["c"], radius=-1.0), "radius"),
        (lambda: robust.generation_strategy(["c"], outside="no"), "'skip' or 'clip'"),  # pyright: ignore
    ],
)
def test_a_strategy_checks_its_arguments(
    make_it: Callable[[], object], match: str
) -> None:
    with pytest.raises(InputDataError, match=match):
        make_it()
