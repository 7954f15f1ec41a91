"""Runs inside Ax, Optuna and Xopt."""

from __future__ import annotations

import logging
from typing import Any

import optuna
import pandas as pd
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from gest_api.vocs import VOCS, ContextualVariable
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState
from xopt import Evaluator, Xopt

from botorch_drbo.integrations import ax as in_ax
from botorch_drbo.integrations import optuna as in_optuna
from botorch_drbo.integrations.xopt import RobustGenerator
from tests.transcripts.transcript import Answers, run
from tests.transcripts.worlds import ONE, SHORT, spread

FEW: dict[str, Any] = {"num_initial": 2, "seed": 3, **ONE}


def number(name: str, low: float, high: float, **more: Any) -> RangeParameterConfig:
    return RangeParameterConfig(
        name=name, parameter_type="float", bounds=(low, high), **more
    )


def unit(t: int) -> float:
    return spread(1, 1, t).item()


def in_a_client(*, objective: str, **options: Any) -> Client:
    client = Client()
    shelf = ChoiceParameterConfig(
        name="shelf", parameter_type="str", values=["low", "high"], is_ordered=False
    )
    client.configure_experiment(
        parameters=[number("x", 0.01, 1.0, scaling="log"), shelf, number("c", 10, 12)]
    )
    client.configure_optimization(
        objective=objective, outcome_constraints=["heat <= 9"]
    )
    strategy = in_ax.generation_strategy(["c"], "erbo", **{**FEW, **options})
    client.set_generation_strategy(strategy)
    return client


def measured(decision: dict[str, Any], c: float) -> dict[str, float]:
    gap = decision["x"] - 0.3 * (c - 10.0)
    return {"cost": gap**2 + 0.1 * c, "heat": 8.0 + decision["x"]}


@run
def inside_ax() -> Answers:
    logging.getLogger("ax").setLevel(logging.ERROR)
    client = in_a_client(objective="-cost", feasibility=0.8)
    for t in range(4):
        ((index, decision),) = client.get_next_trials(max_trials=1).items()
        yield "ask", decision
        c = 10.0 + 2.0 * unit(t)
        if t == 1:
            index = in_ax.tell(client, index, {"c": c})  # the outcome comes later
        if t == 2:
            client.mark_trial_failed(index)
            continue
        in_ax.tell(client, index, {"c": c}, measured(dict(decision), c))
    fixed = client.get_next_trials(max_trials=2, fixed_parameters={"c": 11.0})
    yield "known", list(fixed.values())
    yield "recommend", in_ax.recommend(client)
    yield "known", in_ax.recommend(client, {"c": 11.5})
    yield "table", in_ax.optimizer(client).table()
    best = in_ax.optimizer(client).recommend()
    yield "values", [best.expected_value, best.worst_case_value]


@run
def inside_optuna() -> Answers:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {
        "a": FloatDistribution(0.1, 10.0, log=True),
        "b": CategoricalDistribution(["x", "y"]),
    }
    sampler = in_optuna.RobustSampler(
        {"c": FloatDistribution(0.0, 10.0)}, search_space=space, **FEW
    )
    study = optuna.create_study(direction="minimize", sampler=sampler)
    for t in range(6):
        trial = study.ask() if t == 4 else study.ask(space)
        if t == 4:
            trial.set_user_attr("c", 4.0)  # known before the decision
            trial.suggest_float("a", 0.1, 10.0, log=True)
            trial.suggest_categorical("b", ["x", "y"])
        yield "ask", trial.params
        c = 4.0 if t == 4 else 10.0 * unit(t)
        loss = (trial.params["a"] - c) ** 2 + (trial.params["b"] == "x")
        if t == 2:
            in_optuna.tell(study, trial, {"c": c}, state=TrialState.FAIL)
            continue
        in_optuna.tell(study, trial, {"c": c})
        if t != 3:
            in_optuna.tell(study, trial, {"c": c}, value=loss)
    yield "recommend", in_optuna.recommend(study)
    yield "known", in_optuna.recommend(study, {"c": 2.0})


def world(inputs: dict[str, float]) -> dict[str, float]:
    warmth = (1e4 * (inputs["zeta"] + inputs["alpha"])) % 10.0
    gap = inputs["zeta"] - warmth / 10.0
    return {"warmth": warmth, "loss": gap**2 + inputs["alpha"] ** 2}


@run
def inside_xopt() -> Answers:
    variables: dict[str, Any] = {
        "zeta": [0.0, 1.0],
        "alpha": [-1.0, 1.0],
        "warmth": ContextualVariable(domain=[0.0, 10.0]),
    }
    vocs = VOCS(variables=variables, objectives={"loss": "MINIMIZE"})
    options = {**SHORT, "surrogate": "botorch", "radius": 0.1}
    generator = RobustGenerator(vocs=vocs, options=options, num_initial=2, seed=3)
    host = Xopt(generator=generator, evaluator=Evaluator(function=world), strict=False)
    for _ in range(4):
        host.step()
    failed = pd.DataFrame([{"zeta": 0.9, "alpha": 0.0, "warmth": 9.0, "loss": None}])
    host.add_data(failed.assign(xopt_error=True))
    yield "data", host.data[["zeta", "alpha", "warmth", "loss"]].astype(float)
    generator = host.generator
    yield "candidates", generator.generate(2)
    yield "recommend", generator.recommend()
    yield "known", generator.recommend({"warmth": 2.0})
    again = Xopt(host.yaml())
    yield "from a dump", again.generator.generate(1)
