"""A danger and a price are options in each host, kept with what the host keeps."""

from __future__ import annotations

import json

import optuna
import pytest
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from botorch.exceptions.errors import InputDataError
from gest_api.vocs import VOCS, ContextualVariable
from optuna.distributions import FloatDistribution

from botorch_drbo import MeanShift
from botorch_drbo.integrations import ax
from botorch_drbo.integrations import optuna as for_optuna
from botorch_drbo.integrations.xopt import RobustGenerator

SEARCH = {"num_restarts": 1, "raw_samples": 16, "surrogate": "botorch"}
FEARED = {"against": MeanShift({"demand": 5}), "give_up": 0.02}
TRIALS = [(20.0, 30.0), (40.0, 45.0), (60.0, 38.0), (80.0, 52.0), (50.0, 41.0)]


def profit(stock: float, demand: float) -> float:
    return -((stock - 50.0) ** 2) / 100.0 - max(0.0, demand - stock)


def in_optuna(**options: object) -> float:
    demand = {"demand": FloatDistribution(0, 100)}
    sampler = for_optuna.RobustSampler(demand, "erbo", **options, **SEARCH)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for x, c in TRIALS:
        study.enqueue_trial({"stock": x})
        trial = study.ask({"stock": FloatDistribution(10, 90)})
        for_optuna.tell(study, trial, {"demand": c}, value=profit(x, c))
    return for_optuna.recommend(study).params["stock"]


def in_xopt(**options: object) -> float:
    vocs = VOCS(
        variables={
            "stock": [10.0, 90.0],
            "demand": ContextualVariable(domain=[0.0, 100.0]),
        },
        objectives={"profit": "MAXIMIZE"},
    )
    made = RobustGenerator(vocs=vocs, algorithm="erbo", options={**options, **SEARCH})
    kept = json.loads(json.dumps(made.model_dump()["options"]))
    generator = RobustGenerator(vocs=vocs, algorithm="erbo", options=kept)
    generator.ingest(
        [{"stock": x, "demand": c, "profit": profit(x, c)} for x, c in TRIALS]
    )
    return generator.recommend().params["stock"]


def in_ax(**options: object) -> float:
    client = Client()
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name="stock", parameter_type="float", bounds=(10, 90)),
            RangeParameterConfig(
                name="demand", parameter_type="float", bounds=(0, 100)
            ),
        ]
    )
    client.configure_optimization(objective="profit")
    client.set_generation_strategy(
        ax.generation_strategy(["demand"], "erbo", **options, **SEARCH)
    )
    for x, c in TRIALS:
        index = client.attach_trial({"stock": x, "demand": c})
        client.complete_trial(index, {"profit": profit(x, c)})
    return ax.recommend(client)["stock"]


@pytest.mark.parametrize("host", [in_optuna, in_xopt, in_ax])
def test_a_price_moves_the_decision_and_nothing_paid_does_not(host) -> None:
    plain = host()
    assert abs(host(**FEARED) - plain) > 1e-3
    nothing = host(**{**FEARED, "give_up": 0.0})
    assert nothing == pytest.approx(plain, abs=0.1)


@pytest.mark.parametrize("host", [in_optuna, in_xopt, in_ax])
def test_a_price_of_another_outcome_is_refused(host) -> None:
    with pytest.raises(InputDataError, match=r"`give_up` is an amount of `income`"):
        host(**{**FEARED, "give_up": {"income": 1.0}})
