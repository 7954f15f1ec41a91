r"""Input constructors: acquisition functions from data and plain options.

Importing this module registers a constructor for each class:

>>> import torch
>>> from botorch.acquisition.input_constructors import get_acqf_input_constructor
>>> from botorch.models import SingleTaskGP
>>> from botorch.utils.datasets import SupervisedDataset
>>> import botorch_drbo.integrations.input_constructors
>>> from botorch_drbo.acquisition import DistributionallyRobustUCB
>>> Z = torch.rand(8, 2, dtype=torch.double)
>>> Y = Z.sum(dim=-1, keepdim=True)
>>> data = SupervisedDataset(Z, Y, feature_names=["x", "c"], outcome_names=["y"])
>>> construct = get_acqf_input_constructor(DistributionallyRobustUCB)
>>> inputs = construct(SingleTaskGP(Z, Y), training_data=data, context_names=["c"])
>>> acqf = DistributionallyRobustUCB(**inputs)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from botorch.acquisition.input_constructors import (
    acqf_input_constructor,
    get_acqf_input_constructor,
)
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.utils.datasets import SupervisedDataset

from botorch_drbo._validation import check_inside, did_you_mean
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
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.acquisition.upper_confidence_bound import ObjectiveUCB
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.codec import decode
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective

__all__: list[str] = []  # importing the module is all there is to do

ACQUISITION_FUNCTIONS: tuple[type[DecisionAcquisitionFunction], ...] = (
    DistributionallyRobustUCB,
    LipschitzPenalizedUCB,
    FiniteDifferenceUCB,
    RobustThompsonSampling,
    qDistributionallyRobustUCB,
    qLogDistributionallyRobustNoisyExpectedImprovement,
    LogExpectedImprovementOfExpectation,
    DisagreementPenalizedUCB,
    EnlargedConfidenceUCB,
    KernelDensityRobustUCB,
    MaximumMeanDiscrepancyRobustUCB,
)
"""The classes that have a constructor."""

# What follows from the contexts of the data, unless a context set is given.
_OF_THE_DATA: dict[type, Callable[..., ObjectiveUCB]] = {
    kind: kind.from_contexts
    for kind in (KernelDensityRobustUCB, MaximumMeanDiscrepancyRobustUCB)
}
# What a constructor takes beside the arguments of the class itself.
_EXTRA = (
    "training_data",
    "bounds",
    "context_names",
    "ambiguity_set",
    "X_baseline",
    "X_pending",
    "constraints_tuple",
)
_BETA = 2.25  # that of the recipes


def construct_inputs(
    kind: type[DecisionAcquisitionFunction],
    model: Model,
    training_data: SupervisedDataset | Mapping[str, SupervisedDataset],
    context_names: Sequence[str],
    bounds: Sequence[tuple[float, float]] | None = None,
    context_set: ContextSet | Mapping[str, Any] | None = None,
    ambiguity_set: AmbiguitySet | Mapping[str, Any] | None = None,
    constraints_tuple: object = None,
    **arguments: Any,
) -> dict[str, Any]:
    """The arguments of an acquisition function."""
    if constraints_tuple is not None:
        raise UnsupportedError(
            f"{kind.__name__} does not keep outcome constraints. Leave them out, or "
            "model an outcome in which a violation costs what it costs."
        )
    if isinstance(training_data, Mapping):
        if len(training_data) > 1:
            raise UnsupportedError(
                f"{kind.__name__} takes one outcome, got {list(training_data)}."
            )
        training_data = next(iter(training_data.values()))
    names, X = list(training_data.feature_names), training_data.X
    for name in context_names:
        if name not in names:
            raise InputDataError(
                f"There is no feature {name!r} for the context."
                f"{did_you_mean(name, names)} The data have {names}: Ax renames what "
                "it encodes, such as a choice without order."
            )
    columns = [names.index(name) for name in context_names]
    decisions = [i for i in range(len(names)) if i not in columns]
    takes = inspect.signature(kind).parameters

    box = None
    if bounds is not None:
        box = torch.tensor([bounds[i] for i in columns]).to(X).mT
    if context_set is None and kind in _OF_THE_DATA:
        if box is None:
            raise InputDataError(
                f"{kind.__name__} has a box of possible contexts. Give `bounds`, or a "
                "`context_set` with what belongs to it."
            )
        size = arguments.get("radius")
        found = _OF_THE_DATA[kind](
            model, X[:, columns], box, radius=size, context_indices=columns
        )
        context_set, ball = found.context_set, found.objective.ambiguity_set
        arguments |= {
            "radius": ball.radius,
            "outside_contexts": found.outside_contexts,
            "kernel_matrix": getattr(ball, "kernel_matrix", None),
        }
    elif context_set is None:
        context_set = ContextSet.empirical(X[:, columns])
    elif not isinstance(context_set, ContextSet):
        context_set = decode(context_set, ContextSet, "context_set")
    if box is not None:
        check_inside(context_set.points.to(X), box, "context_set", "bounds")
        arguments.setdefault("context_bounds", box)
    if isinstance(ambiguity_set, Mapping):
        ambiguity_set = decode(ambiguity_set, AmbiguitySet, "ambiguity_set")
    objective = (
        UncertaintyObjective.so()
        if ambiguity_set is None
        else UncertaintyObjective.dro(ambiguity_set)
    )
    for name in ("X_baseline", "X_pending"):
        given = arguments.get(name)
        if given is not None and given.shape[-1] == len(names):
            arguments[name] = given[..., decisions]
    arguments = {
        "beta": _BETA,
        "objective": objective,
        "X_baseline": X[:, decisions],
        **arguments,
        "model": model,
        "context_set": context_set,
        "context_indices": columns,
    }
    # A path of Thompson sampling is a new draw each time: nothing else is pending.
    return {name: value for name, value in arguments.items() if name in takes}


def _constructor(kind: type[DecisionAcquisitionFunction]) -> Callable[..., dict]:
    def construct(model: Model, **arguments: Any) -> dict[str, Any]:
        return construct_inputs(kind, model, **arguments)

    return _with_signature(construct, [*inspect.signature(kind).parameters, *_EXTRA])


def construct_joint(
    model: Model,
    acquisition: str = DistributionallyRobustUCB.__name__,
    **arguments: Any,
) -> dict[str, Any]:
    """The arguments of ``OverJointInputs``, the acquisition function for Ax."""
    kinds = {kind.__name__: kind for kind in ACQUISITION_FUNCTIONS}
    if acquisition not in kinds:
        raise InputDataError(
            f"There is no acquisition function {acquisition!r}."
            f"{did_you_mean(acquisition, kinds)} The choices are {list(kinds)}."
        )
    kind = kinds[acquisition]
    for name in ("misspecification", "objective"):
        if arguments.get(name) is not None:
            raise UnsupportedError(
                f"`{name}` has the units of the outcome, which Ax has standardised "
                "before it gets here. Use a recipe, whose outcomes stay as they are: "
                "`botorch_drbo.integrations.ax.generation_strategy`."
            )
    inputs = get_acqf_input_constructor(kind)(model, **arguments)
    return {"acq_function": kind(**inputs)}


def _with_signature(
    construct: Callable[..., dict[str, Any]], names: Sequence[str]
) -> Callable[..., dict[str, Any]]:
    """The same with these keywords: BoTorch refuses those that are not named."""
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
        for name in dict.fromkeys(names)
    ]
    construct.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    return construct


for _kind in ACQUISITION_FUNCTIONS:
    acqf_input_constructor(_kind)(_constructor(_kind))
acqf_input_constructor(OverJointInputs)(
    _with_signature(
        construct_joint,
        [
            "acquisition",
            *_EXTRA,
            *(
                n
                for k in ACQUISITION_FUNCTIONS
                for n in inspect.signature(k).parameters
            ),
        ],
    )
)
