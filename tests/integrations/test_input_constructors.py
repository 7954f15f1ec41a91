"""Acquisition functions from plain options equal those that are made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.utils.datasets import SupervisedDataset
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DisagreementPenalizedUCB,
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    KernelDensityRobustUCB,
    LipschitzPenalizedUCB,
    LogExpectedImprovementOfExpectation,
    MaximumMeanDiscrepancyRobustUCB,
    OverJointInputs,
    RobustThompsonSampling,
    qDistributionallyRobustUCB,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.codec import encode
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.testing.fixtures import ensemble

import_module("botorch_drbo.integrations.ax")  # it registers what Ax stores

BOUNDS = [(0.0, 1.0), (10.0, 12.0), (0.0, 2.0)]  # the context in the middle
_Z = torch.quasirandom.SobolEngine(3, scramble=True, seed=1).draw(8, dtype=torch.double)
Z = _Z * torch.tensor([1.0, 2.0, 2.0]) + torch.tensor([0.0, 10.0, 0.0])
Y = (Z[:, :1] - 0.1 * Z[:, 1:2]).square() + Z[:, 2:].sin()
X, C = Z[:, [0, 2]], Z[:, 1:2]
DATA = SupervisedDataset(Z, Y, feature_names=["x", "c", "z"], outcome_names=["y"])
MODEL = SingleTaskGP(Z, Y).eval()
EMPIRICAL = ContextSet.empirical(C)
FORECAST = ContextSet(torch.tensor([[10.5], [11.5]], dtype=torch.double))
BALL = TotalVariation(0.4)
DRO, SO = UncertaintyObjective.dro(BALL), UncertaintyObjective.so()
BOX = torch.tensor([[10.0], [12.0]], dtype=torch.double)
MINIMISE = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.double))
AT: dict[str, Any] = {"context_indices": [1]}
PATHS: dict[str, Any] = {"num_paths": 4, "num_features": 16, "seed": 5}

# class, plain options, the same by hand
CASES: list[tuple[type, dict[str, Any], Callable[[], AcquisitionFunction]]] = [
    (
        DistributionallyRobustUCB,
        {"ambiguity_set": json.loads(json.dumps(encode(BALL)))},
        lambda: DistributionallyRobustUCB(MODEL, 2.25, EMPIRICAL, DRO, **AT),
    ),
    (
        DistributionallyRobustUCB,
        {"context_set": encode(FORECAST), "beta": 4.0, "X_pending": Z[:1] + 0.01},
        lambda: DistributionallyRobustUCB(
            MODEL, 4.0, FORECAST, SO, X_pending=X[:1] + 0.01, **AT
        ),
    ),
    (
        LipschitzPenalizedUCB,
        {"radius": 0.3, "posterior_transform": MINIMISE},
        lambda: LipschitzPenalizedUCB(
            MODEL, 2.25, EMPIRICAL, 0.3, BOX, posterior_transform=MINIMISE, **AT
        ),
    ),
    (
        DistributionallyRobustUCB,
        {"misspecification": 0.1, "ambiguity_set": BALL},
        lambda: DistributionallyRobustUCB(
            MODEL, 2.25, EMPIRICAL, DRO, misspecification=0.1, **AT
        ),
    ),
    (
        EnlargedConfidenceUCB,
        {"misspecification": 0.1, "ambiguity_set": BALL},
        lambda: EnlargedConfidenceUCB(MODEL, 2.25, 0.1, EMPIRICAL, DRO, **AT),
    ),
    (
        KernelDensityRobustUCB,
        {},
        lambda: KernelDensityRobustUCB.from_contexts(MODEL, C, BOX, **AT),
    ),
    (
        KernelDensityRobustUCB,
        {"context_set": encode(FORECAST), "radius": 0.3},
        lambda: KernelDensityRobustUCB(MODEL, 2.25, FORECAST, 0.3, **AT),
    ),
    (
        MaximumMeanDiscrepancyRobustUCB,
        {"radius": 0.2, "beta": 1.0},
        lambda: MaximumMeanDiscrepancyRobustUCB.from_contexts(
            MODEL, C, BOX, radius=0.2, beta=1.0, **AT
        ),
    ),
    (
        FiniteDifferenceUCB,
        {"objective": UncertaintyObjective.wcs(BALL)},
        lambda: FiniteDifferenceUCB(
            MODEL, 2.25, EMPIRICAL, UncertaintyObjective.wcs(BALL), **AT
        ),
    ),
    (
        RobustThompsonSampling,
        {"ambiguity_set": BALL, "num_features": 16, "seed": 5, "X_pending": Z[:1]},
        lambda: RobustThompsonSampling(
            MODEL, EMPIRICAL, DRO, num_features=16, seed=5, **AT
        ),
    ),
    (
        qDistributionallyRobustUCB,
        {"ambiguity_set": BALL, **PATHS},
        lambda: qDistributionallyRobustUCB(MODEL, 2.25, EMPIRICAL, DRO, **PATHS, **AT),
    ),
    (
        qLogDistributionallyRobustNoisyExpectedImprovement,
        {"ambiguity_set": BALL, "X_baseline": Z[:5], **PATHS},
        lambda: qLogDistributionallyRobustNoisyExpectedImprovement(
            MODEL, X[:5], EMPIRICAL, DRO, **PATHS, **AT
        ),
    ),
    (
        LogExpectedImprovementOfExpectation,
        {"context_set": encode(FORECAST), "X_pending": Z[:1] + 0.01},
        lambda: LogExpectedImprovementOfExpectation(
            MODEL, X, FORECAST, X_pending=X[:1] + 0.01, **AT
        ),
    ),
]


def test_an_ensemble_and_its_disagreement() -> None:
    model = ensemble(Z, (Y - Y.mean()) / Y.std())
    construct = get_acqf_input_constructor(DisagreementPenalizedUCB)
    given = construct(model, training_data=DATA, context_names=["c"], penalty=0.5)
    by_hand = DisagreementPenalizedUCB(model, 2.25, EMPIRICAL, SO, penalty=0.5, **AT)
    inputs = some_inputs()[..., [0, 2]]
    found = DisagreementPenalizedUCB(**given)(inputs)
    torch.testing.assert_close(found, by_hand(inputs))
    with pytest.raises(UnsupportedError, match="ensemble"):
        constructed(DisagreementPenalizedUCB)


def some_inputs() -> Tensor:
    low, high = torch.tensor(BOUNDS, dtype=torch.double).mT
    return low + (high - low) * torch.rand(6, 1, 3, dtype=torch.double)


def constructed(kind: type[AcquisitionFunction], **options: Any) -> AcquisitionFunction:
    given = {"training_data": DATA, "context_names": ["c"], "bounds": BOUNDS, **options}
    return kind(**get_acqf_input_constructor(kind)(MODEL, **given))


@pytest.mark.parametrize(("kind", "options", "by_hand"), CASES)
def test_plain_options_make_what_is_made_by_hand(
    kind: type[AcquisitionFunction],
    options: dict[str, Any],
    by_hand: Callable[[], AcquisitionFunction],
) -> None:
    inputs = some_inputs()
    torch.testing.assert_close(
        constructed(kind, **options)(inputs[..., [0, 2]]),
        by_hand()(inputs[..., [0, 2]]),
    )
    if not {"misspecification", "objective"} & options.keys():
        joint = constructed(OverJointInputs, acquisition=kind.__name__, **options)
        torch.testing.assert_close(joint(inputs), by_hand()(inputs[..., [0, 2]]))


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"context_names": ["c_OH_0"]}, InputDataError, "no feature 'c_OH_0'"),
        ({"context_set": ContextSet(C - 10)}, InputDataError, "`context_set` has rows"),
        ({"constraints_tuple": (Y, Y)}, UnsupportedError, "outcome constraints"),
        ({"training_data": {"y": DATA, "z": DATA}}, UnsupportedError, "one outcome"),
        ({"acquisition": "RobustUCB"}, InputDataError, "no acquisition function"),
        ({"misspecification": 0.1}, UnsupportedError, "Ax has standardised"),
        (
            {"acquisition": "LipschitzPenalizedUCB", "misspecification": 0.1},
            UnsupportedError,
            "`misspecification` has the units",
        ),
        ({"radios": 0.1}, TypeError, "radios"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        constructed(OverJointInputs, **options)


def test_a_client_with_a_strategy_of_ones_own_asks_and_is_saved(tmp_path: Any) -> None:
    options = {
        "acquisition": "LipschitzPenalizedUCB",
        "radius": 0.1,
        "context_names": ["c"],
    }
    optimisation = {"optimizer_kwargs": {"num_restarts": 2, "raw_samples": 16}}
    sobol = GeneratorSpec(generator_enum=Generators.SOBOL, generator_kwargs={"seed": 0})
    modular = GeneratorSpec(
        generator_enum=Generators.BOTORCH_MODULAR,
        generator_kwargs={
            "botorch_acqf_class": OverJointInputs,
            "botorch_acqf_options": options,
        },
        generator_gen_kwargs={"model_gen_options": optimisation},
    )
    start = GenerationNode(
        name="start",
        generator_specs=[sobol],
        transition_criteria=[MinTrials(threshold=3, transition_to="robust")],
    )
    robust = GenerationNode(name="robust", generator_specs=[modular])
    client = Client(random_seed=1)
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name=name, parameter_type="float", bounds=bounds)
            for name, bounds in zip("xcz", BOUNDS, strict=True)
        ]
    )
    client.configure_optimization(objective="-cost")
    client.set_generation_strategy(GenerationStrategy(nodes=[start, robust]))
    for _ in range(4):
        for index, values in client.get_next_trials(max_trials=1).items():
            client.complete_trial(
                index, {"cost": float(values["x"]) + float(values["z"])}
            )
    path = str(tmp_path / "client.json")
    client.save_to_json_file(path)
    again = Client.load_from_json_file(path)
    assert len(again.get_next_trials(max_trials=2)) == 2  # the second knows the first
