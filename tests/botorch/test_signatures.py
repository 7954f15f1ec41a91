"""What the library relies on in its dependencies: names, parameters, attributes.

A canary: with a new version of BoTorch, GPyTorch, Ax, Optuna or Xopt this fails first
and says what changed, and who uses it. Names and calls are read off the source of the
library; only methods and attributes, which a call does not name in full, are listed.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

LIBRARY = Path(__file__).parents[2] / "botorch_drbo"
PACKAGES = ("botorch", "gpytorch", "linear_operator", "ax", "optuna", "xopt")


class Use(NamedTuple):
    """One call of something imported."""

    module: str
    name: str
    place: str
    positional: int
    keywords: tuple[str, ...]


def uses() -> Iterator[tuple[Use, bool]]:
    """Every import from the packages, and every call of what was imported."""
    for file in sorted(LIBRARY.rglob("*.py")):
        tree = ast.parse(file.read_text())
        known: dict[str, tuple[str, str]] = {}
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
                continue
            if node.module.split(".")[0] in PACKAGES:
                for alias in node.names:
                    known[alias.asname or alias.name] = node.module, alias.name
        place = file.relative_to(LIBRARY).as_posix()
        for module, name in known.values():
            yield Use(module, name, place, 0, ()), False
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id not in known:
                continue
            starred = [a for a in node.args if isinstance(a, ast.Starred)]
            if starred or any(k.arg is None for k in node.keywords):
                continue  # `f(*args)` and `f(**options)` are known when they run
            keywords = tuple(k.arg for k in node.keywords if k.arg)
            line = f"{place}:{node.lineno}"
            yield Use(*known[node.func.id], line, len(node.args), keywords), True


@cache
def found() -> tuple[list[Use], list[Use]]:
    """Imports, and calls."""
    installed = {name for name in PACKAGES if find_spec(name)}
    here = [
        (u, is_call) for u, is_call in uses() if u.module.split(".")[0] in installed
    ]
    imports = [use for use, is_call in here if not is_call]
    calls = [use for use, is_call in here if is_call]
    return imports, calls


def changed(use: Use) -> str | None:
    """What is no longer as the library has it; None if nothing is."""
    try:
        module = importlib.import_module(use.module)
    except ImportError as error:
        return f"{use.place}: no module {use.module} ({error})"
    if not hasattr(module, use.name):
        try:
            importlib.import_module(f"{use.module}.{use.name}")
        except ImportError:
            return f"{use.place}: {use.module} has no {use.name}"
        return None
    target = getattr(module, use.name)
    if isinstance(target, ModuleType) or not callable(target):
        return None
    return refused(target, use.name, use.place, use.positional, use.keywords)


def refused(
    target: Callable[..., Any],
    name: str,
    place: str,
    positional: int,
    keywords: tuple[str, ...],
) -> str | None:
    """Why a call would not fit; None if it does, or nobody can tell."""
    try:
        signature = inspect.signature(target)
    except ValueError:
        return None  # written in C
    try:
        signature.bind_partial(*range(positional), **dict.fromkeys(keywords))
    except TypeError as error:
        return f"{place}: {name}{signature} does not take this call: {error}"
    return None


def test_everything_that_is_imported_is_there():
    imports, _ = found()
    assert len(imports) > 300
    assert [change for use in imports if (change := changed(use))] == []


def test_every_call_fits_its_signature():
    _, calls = found()
    assert len(calls) > 150
    assert [change for use in calls if (change := changed(use))] == []


# Methods of objects, whose class a call does not tell: with what they are called.
METHODS = {
    "botorch.models.model:Model.posterior": ("X", "posterior_transform"),
    "botorch.models:SingleTaskGP.posterior": (
        "X",
        "observation_noise",
        "posterior_transform",
    ),
    "botorch.models:SingleTaskGP.__init__": (
        "train_X",
        "train_Y",
        "train_Yvar",
        "likelihood",
        "covar_module",
        "mean_module",
        "outcome_transform",
        "input_transform",
    ),
    "botorch.models.model:Model.transform_inputs": ("X",),
    "botorch.acquisition:AcquisitionFunction.set_X_pending": ("X_pending",),
    "botorch.optim:optimize_acqf": (
        "acq_function",
        "bounds",
        "q",
        "num_restarts",
        "raw_samples",
        "options",
        "sequential",
    ),
    "botorch.models.transforms.outcome:OutcomeTransform.untransform_posterior": (
        "posterior",
    ),
    "gpytorch.models:ExactGP.set_train_data": ("inputs", "targets", "strict"),
}


@pytest.mark.parametrize("method", METHODS)
def test_methods_have_the_parameters_that_are_named(method):
    module, _, path = method.partition(":")
    target: Any = importlib.import_module(module)
    for part in path.split("."):
        target = getattr(target, part)
    missing = set(METHODS[method]) - set(inspect.signature(target).parameters)
    assert not missing, f"{method} has no {sorted(missing)}"


def test_models_hold_what_is_read_off_them():
    import torch
    from botorch.models import SingleTaskGP
    from botorch.models.transforms.input import Normalize

    Z = torch.rand(4, 2, dtype=torch.double)
    model = SingleTaskGP(Z, Z[:, :1], input_transform=Normalize(2)).eval()
    for name in (
        "_original_train_inputs",
        "_has_transformed_inputs",
        "train_inputs",
        "train_targets",
        "outcome_transform.means",
        "outcome_transform.stdvs",
        "input_transform.bounds",
        "covar_module.lengthscale",
        "likelihood.noise",
        "mean_module.constant",
    ):
        held: Any = model
        for part in name.split("."):
            assert hasattr(held, part), f"SingleTaskGP has no {name}"
            held = getattr(held, part)


def test_a_change_is_named():
    def old(X, posterior_transform=None):
        pass

    assert refused(old, "old", "a.py:1", 1, ("posterior_transform",)) is None
    said = refused(old, "old", "a.py:1", 1, ("transform",))
    assert said and "a.py:1" in said and "transform" in said
    gone = changed(Use("botorch.models", "SingleTaskGPx", "b.py", 0, ()))
    assert gone == "b.py: botorch.models has no SingleTaskGPx"
