"""A whole run as a list of answers, written so that each number keeps its last bit.

A run is a generator of pairs: what was asked, and the answer. Answers are those of
public doors only, so that a transcript outlives every change behind them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from botorch.exceptions.errors import BotorchError
from botorch.exceptions.warnings import BotorchWarning, OptimizationWarning
from torch import Tensor

from tests.recipes_golden import record

FOLDER = Path(__file__).with_name("record")
Answers = Iterator[tuple[str, Any]]
_LONG = 24
"""Of more numbers than these, their hash is on record and a summary."""
_ATOMS = re.compile(r"^[^:]*/ (context_set|worst_case_weights|contexts) ?/?[^:]*:")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")

# What of an answer is for the user, by the name of its class.
_VALUES = "x objective expected_value worst_case_value"
_TRUST = (
    "worst_case_status feasibility feasible stability searched num_outcomes held level"
    " expected_interval worst_case_interval beyond"
)
_SHOWN = {
    "Recommendation": f"{_VALUES} context_set worst_case_weights worst_case_box radius"
    f" {_TRUST} text",
    "NamedRecommendation": f"{_VALUES} contexts outcome {_TRUST} text",
    "RobustDecision": "params details",
    "Stability": "radius until searched rival num_rivals compared by_column",
    "Held": "measured together each",
    "ContextSet": "points weights",
    "History": "X C Y contexts Yvar constraints",
    "ConstraintData": "X C G",
    "Trial": "number x c y y_variance constraints status asked known_context"
    " chosen_context actions",
    "Comparison": "methods worlds decisions radii table better advice level"
    " num_outcomes outcome trust text",
    "ModelCheck": "trials outcomes predicted lower upper standardised fold"
    " refitted near explained explained_interval num_outside worst widening unseen"
    " unseen_columns context_names row_name text",
    "NearRows": "text",
    "RobustnessProfile": "radii values expected_value other_values falls_behind target"
    " falls_below",
    "GroupDecisions": "table failures",
}


@dataclass(frozen=True)
class Run:
    """A whole run.

    Attributes:
        answers: Plays it.
        slow: Whether it takes more than about two seconds.
    """

    answers: Callable[[], Answers]
    slow: bool = False

    @property
    def file(self) -> Path:
        """Where it is on record: a file for each module, none of them large."""
        return FOLDER / f"{self.answers.__module__.rpartition('.')[2]}.json"


RUNS: dict[str, Run] = {}
"""By name, in the order in which they are told."""


def run(answers: Callable[[], Answers]) -> Callable[[], Answers]:
    """Enter a run under the words of its name."""
    return _enter(answers, slow=False)


def slow_run(answers: Callable[[], Answers]) -> Callable[[], Answers]:
    """The same for one that takes long."""
    return _enter(answers, slow=True)


def _enter(answers: Callable[[], Answers], *, slow: bool) -> Callable[[], Answers]:
    name = answers.__name__.replace("_", " ")
    assert name not in RUNS, name
    RUNS[name] = Run(answers, slow)
    return answers


def refused(ask: Callable[[], object]) -> str:
    """What a question is answered with that has no answer."""
    try:
        return f"answered: {ask()!r:.60}"
    except BotorchError as error:
        return f"{type(error).__name__}: {error}"


def played(name: str) -> dict[str, Any]:
    """All answers of a run in JSON types, by what was asked.

    A warning is part of the answer that it came with, said once.
    """
    found: dict[str, Any] = {}
    answers = RUNS[name].answers()
    with torch.random.fork_rng(devices=[]), contextlib.closing(answers):
        torch.manual_seed(0)
        while True:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    what, value = next(answers)
                except StopIteration:
                    return found
                answer = written(value)
            if said := sorted({str(w.message) for w in caught if _is_for_users(w)}):
                answer = {"answer": answer, "warned": said}
            found[f"{len(found):02} {what}"] = answer


def _is_for_users(warning: warnings.WarningMessage) -> bool:
    kind = warning.category
    return issubclass(kind, BotorchWarning) and not issubclass(
        kind, OptimizationWarning
    )


def written(value: Any) -> Any:
    """A value in JSON types."""
    kind = type(value).__name__
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value)  # NumPy's as well
    if isinstance(value, Tensor):
        return _tensor(value)
    if kind in _SHOWN:
        names = _SHOWN[kind].split()
        shown = {n: str(value) if n == "text" else getattr(value, n) for n in names}
        return {kind: written(shown)}
    if isinstance(value, pd.DataFrame):
        rows = [list(row) for row in value.itertuples(index=False)]
        return {
            "columns": [*map(str, value.columns)],
            "rows": written(dict(zip(map(str, value.index), rows, strict=True))),
        }
    if isinstance(value, Mapping):
        return {str(key): written(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [written(entry) for entry in value]
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if hasattr(value, "item"):
        return written(value.item())
    return f"{kind}: {value}"


def _tensor(value: Tensor) -> dict[str, Any]:
    kind = f"{value.dtype} {list(value.shape)}".removeprefix("torch.")
    numbers = value.detach().flatten().tolist()
    if len(numbers) <= _LONG:
        return {kind: numbers}
    finite = torch.as_tensor([x for x in numbers if math.isfinite(x)]).double()
    digest = hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:16]
    summary = [finite.mean().item(), finite.square().mean().sqrt().item()]
    return {kind: numbers[:4], "hash": digest, "mean and size": summary}


def to_the_bit(found: Any, recorded: Any) -> list[str]:
    """Where two answers differ at all."""
    return differences(found, recorded, lambda a, b: json.dumps(a) == json.dumps(b))


def nearly(found: Any, recorded: Any) -> list[str]:
    """Where two answers differ by more than another processor explains.

    The contexts of a worst case are left out: one of no weight may come or go.
    """
    lines = differences(found, recorded, _near)
    return [line for line in lines if not _ATOMS.search(line)]


def differences(
    found: Any, recorded: Any, equal: Callable[[Any, Any], bool], place: str = ""
) -> list[str]:
    """Places at which two answers are not equal, each with both."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        if list(found) != list(recorded):
            return [f"{place}: {list(found)}, on record {list(recorded)}"]
        parts = [(f"{place} / {key}", found[key], recorded[key]) for key in recorded]
    elif isinstance(found, list) and isinstance(recorded, list):
        if len(found) != len(recorded):
            return [f"{place}: {found}, on record {recorded}"]
        pairs = zip(found, recorded, strict=True)
        parts = [(f"{place}[{i}]", a, b) for i, (a, b) in enumerate(pairs)]
    else:
        hashes = place.endswith(" / hash") and equal is _near
        if hashes or equal(found, recorded):
            return []
        return [f"{place}: {found!r}, on record {recorded!r}"]
    return [line for p, a, b in parts for line in differences(a, b, equal, p)]


def _near(found: Any, recorded: Any) -> bool:
    if isinstance(recorded, str) and isinstance(found, str):  # digits are rounded
        words = _NUMBER.split(found), _NUMBER.split(recorded)
        pairs = zip(_NUMBER.findall(found), _NUMBER.findall(recorded), strict=False)
        return words[0] == words[1] and all(
            math.isclose(float(a), float(b), rel_tol=2e-2, abs_tol=2e-3)
            for a, b in pairs
        )
    if not isinstance(recorded, float) or not isinstance(found, float):
        return type(found) is type(recorded) and found == recorded
    both_nan = math.isnan(found) and math.isnan(recorded)
    return both_nan or math.isclose(found, recorded, rel_tol=1e-4, abs_tol=1e-4)


def load() -> dict[str, Any]:
    """The answers of each run on record."""
    return {
        name: answers
        for file in sorted(FOLDER.glob("*.json"))
        for name, answers in record.load(file)["answers"].items()
    }


def save(answers: Mapping[str, Any]) -> None:
    """Write the record anew."""
    FOLDER.mkdir(exist_ok=True)
    for file in {run.file for run in RUNS.values()}:
        names = [name for name in answers if RUNS[name].file == file]
        record.save(file, {name: answers[name] for name in names})


def same_machine() -> bool:
    """Whether all of the record was made on a machine that computes like this one."""
    machines = [record.load(file)["machine"] for file in FOLDER.glob("*.json")]
    return all(machine == record.machine() for machine in machines)
