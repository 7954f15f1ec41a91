"""The formats of versions 0.1.0 and 0.2.0, one for each kind of object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from botorch.exceptions.errors import InputDataError

from botorch_drbo.codec.tags import find_by_name, tag_of
from botorch_drbo.codec.tensors import decode_tensor, encode_tensor


def translated(data: Mapping[str, Any]) -> Any:
    r"""The record that is written today in place of an old one.

    Args:
        data: A JSON object without a class.

    Returns:
        What ``decode`` reads.

    Raises:
        InputDataError: No version has written this.
    """
    keys = set(data)
    try:
        for known, translate in _FORMATS:
            if keys >= known:
                return translate(data)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputDataError(f"{error!r}: it is damaged.") from error
    raise InputDataError(f"nothing is stored with the entries {sorted(keys)!r:.200}.")


def _object(name: object, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"class": tag_of(find_by_name(name)), "arguments": dict(arguments)}


def _without(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}


def _tensor(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"tensor": data["values"], "dtype": data["dtype"]}


def _ambiguity_set(data: Mapping[str, Any]) -> dict[str, Any]:
    """Old records hold the tensors of a set in place of its arguments."""
    numbers = {k: _tensor(v) for k, v in data["numbers"].items() if v is not None}
    takes = inspect.signature(find_by_name(data["type"])).parameters
    known = {**numbers, **data["sets"], **_lost_arguments(data["type"], numbers)}
    arguments = {name: known[name] for name in known.keys() & takes.keys()}
    return {**_object(data["type"], arguments), "exact": numbers}


def _lost_arguments(name: object, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that have to be worked out from what the constructor made of them."""
    if name == "MaximumMeanDiscrepancy":
        factor = decode_tensor(numbers["factor"])
        return {"kernel_matrix": encode_tensor(factor @ factor.mT)}
    if name == "ConditionalValueAtRisk":
        radius = decode_tensor(numbers["radius"]).double()
        return {"alpha": (radius / (1.0 + radius)).item()}
    return {}


def _context_set(data: Mapping[str, Any]) -> dict[str, Any]:
    points, weights = (
        {"tensor": data[name], "dtype": data["dtype"]} for name in ("points", "weights")
    )
    record = _object("ContextSet", {"points": points, "weights": weights})
    return {**record, "exact": {"weights": weights}}


def _kind(data: Mapping[str, Any]) -> dict[str, Any]:
    """A variable, or a constraint of decisions."""
    name = {"linear": "LinearConstraint", "function": "FunctionName"}.get(data["kind"])
    fields = _without(data, "kind")
    if name == "LinearConstraint":
        fields["coefficients"] = {"mapping": [*map(list, data["coefficients"].items())]}
    return _object(name or data["kind"].capitalize(), fields)


def _space(data: Mapping[str, Any]) -> dict[str, Any]:
    variables = {k: {"mapping": data[k]} for k in ("decisions", "contexts")}
    return _object("Space", {**data, **variables})


_FORMATS: tuple[tuple[set[str], Callable[[Mapping[str, Any]], Any]], ...] = (
    *(
        ({wrapper}, lambda data, wrapper=wrapper: data[wrapper])
        for wrapper in ("__schedule__", "__context_set__", "__ambiguity_set__")
    ),
    (
        {"__hyperparameters__"},
        lambda data: _object("FixedHyperparameters", data["__hyperparameters__"]),
    ),
    (
        {"__function__"},
        lambda data: _object("FunctionName", {"name": data["__function__"]}),
    ),
    (
        {"schedule"},
        lambda data: _object(data["schedule"], _without(data, "schedule")),
    ),
    ({"points", "weights", "dtype"}, _context_set),
    ({"type", "numbers", "sets"}, _ambiguity_set),
    ({"kind"}, _kind),
    ({"decisions", "contexts", "outcome", "constraints"}, _space),
)
"""The entries by which each kind of record is known, and what it becomes."""
