"""The package as its users meet it: imports, names, docstrings, BoTorch underneath."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import inspect
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

import botorch.utils.transforms as botorch_transforms
import pytest
from botorch.acquisition import AcquisitionFunction, UpperConfidenceBound
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.optim.core import scipy_minimize
from botorch.optim.utils import get_parameters_and_bounds
from botorch.posteriors import GPyTorchPosterior

import botorch_drbo

PACKAGE = Path(botorch_drbo.__file__).parent
ROOT = Path(__file__).parents[1]


def module_name(path: Path) -> str:
    """`.../botorch_drbo/a/__init__.py` -> `botorch_drbo.a`."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


SOURCES = sorted(PACKAGE.rglob("*.py"))
MODULES = [module_name(path) for path in SOURCES]
PACKAGES = [module_name(path) for path in SOURCES if path.name == "__init__.py"]
HOSTS = "botorch_drbo.integrations"  # has no names of its own: each module is a door
PUBLIC_PACKAGES = [name for name in PACKAGES if is_public(name) and name != HOSTS]
PUBLIC_PACKAGES += [n for n in MODULES if n.startswith(f"{HOSTS}.") and is_public(n)]
# matplotlib is their business alone, pandas and typer that of cli, hosts of their own
OPTIONAL = (
    "botorch_drbo.plotting",
    "botorch_drbo.report",
    "botorch_drbo.cli",
    HOSTS,
)
HEAVY = ("cvxpy", "cvxpylayers", "matplotlib", "pandas", "ax", "optuna", "xopt")


MOST_NAMES = 158
# Of use to the library alone: its modules are imported one by one.
NO_NAMES = (
    "botorch_drbo.execution",
    "botorch_drbo.kernels",
    "botorch_drbo.search",
    f"{HOSTS}.input_constructors",
)


def public_names(package: str) -> list[str]:
    return list(importlib.import_module(package).__all__)


def own_docstring(owner: type, name: str) -> str | None:
    """The docstring of a method, from its own class or from a class of ours above it.

    `inspect.getdoc` would go on to BoTorch and torch, and so hide that a decorator
    without `functools.wraps` (such as `average_over_ensemble_models`) has lost ours.
    """
    for base in owner.__mro__:
        if base.__module__.startswith("botorch_drbo") and name in vars(base):
            member = vars(base)[name]
            member = getattr(member, "__func__", member)  # classmethod, staticmethod
            if doc := inspect.getdoc(member):
                return doc
    return None


def documented_parts(package: str) -> Iterator[tuple[str, str | None]]:
    """Public classes and functions of a package, and public methods of the classes."""
    module = importlib.import_module(package)
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing):
            doc = vars(thing).get("__doc__")
            # A dataclass without a docstring gets its signature as one.
            if doc and doc.startswith(f"{name}("):
                doc = None
            yield name, doc
            for method, member in vars(thing).items():
                if is_public(method) and isinstance(
                    member, (property, classmethod, staticmethod, Callable)
                ):
                    yield f"{name}.{method}", own_docstring(thing, method)
        elif inspect.isroutine(thing):
            yield name, thing.__doc__


@pytest.mark.parametrize("name", MODULES)
def test_every_module_imports(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no module docstring"


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_public_names_exist_and_are_documented(package: str) -> None:
    names = public_names(package)
    assert names or package in NO_NAMES, f"{package}.__all__ is empty"
    assert len(names) == len(set(names)), f"{package}.__all__ repeats a name"
    module = importlib.import_module(package)
    assert [name for name in names if not hasattr(module, name)] == []
    bare = [part for part, doc in documented_parts(package) if not (doc or "").strip()]
    assert bare == [], f"without a docstring in {package}: {bare}"


def test_the_number_of_public_names() -> None:
    """A name that everybody may use is a promise: think before this grows."""
    names = {name for package in PUBLIC_PACKAGES for name in public_names(package)}
    assert len(names) <= MOST_NAMES
    assert public_names("botorch_drbo.kernels") == []
    assert len(public_names("botorch_drbo.posterior")) == 5


@cache
def imported_after() -> list[set[str]]:
    """What a new Python process has imported after one import, and another, and all."""
    names = [name for name in MODULES if not name.startswith(OPTIONAL)]
    code = f"""
import importlib, json, sys
for names in (["botorch_drbo"], ["botorch_drbo.acquisition"], {names}):
    for name in names:
        importlib.import_module(name)
    print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    package, part, whole = done.stdout.splitlines()[-3:]
    return [set(json.loads(line)) for line in (package, part, whole)]


def test_import_is_light() -> None:
    imported, _, _ = imported_after()
    assert "botorch_drbo" in imported and imported.isdisjoint(HEAVY)
    assert "botorch_drbo.test_functions" not in imported


def test_a_part_is_imported_without_the_rest() -> None:
    _, imported, _ = imported_after()
    ours = {name.split(".")[1] for name in imported if name.startswith("botorch_drbo.")}
    assert "acquisition" in ours
    assert ours.isdisjoint({"recipes", "policies", "calibrate", "optimizer", "space"})
    assert "ContextSet" in dir(botorch_drbo)
    with pytest.raises(AttributeError, match="no attribute 'NoSuchName'"):
        _ = botorch_drbo.NoSuchName


def test_the_two_names_of_the_first_lines() -> None:
    from botorch_drbo import ContextSet, RobustOptimizer, contexts, optimizer

    assert ContextSet is contexts.ContextSet
    assert RobustOptimizer is optimizer.RobustOptimizer


def test_no_module_imports_the_heavy_dependencies_at_the_top() -> None:
    _, _, imported = imported_after()
    assert "botorch_drbo.optimizer" in imported and imported.isdisjoint(HEAVY)


def test_types_are_shipped() -> None:
    assert files("botorch_drbo").joinpath("py.typed").is_file()


def test_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert botorch_drbo.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


CITATION = re.compile(r"\[([A-Z][A-Za-z]*\d{4}[a-z]*)\]_")


def test_every_citation_is_in_the_bibliography() -> None:
    entries = re.findall(
        r"^@\w+\{(\w+),", (ROOT / "docs/references.bib").read_text(), flags=re.MULTILINE
    )
    assert len(entries) == len(set(entries))
    cited = {key for path in SOURCES for key in CITATION.findall(path.read_text())}
    assert cited, "no docstring cites a paper: is the pattern still right?"
    assert cited - set(entries) == set()


# What we rely on in BoTorch. A name that goes, or changes its default, fails here first
# and says so; a new one with a default does not concern us.
RELIED_ON: list[tuple[Callable, dict[str, object]]] = [
    (
        optimize_acqf,
        {
            "acq_function": inspect.Parameter.empty,
            "bounds": inspect.Parameter.empty,
            "q": inspect.Parameter.empty,
            "num_restarts": inspect.Parameter.empty,
            "raw_samples": None,
            "options": None,
            "fixed_features": None,
            "batch_initial_conditions": None,
            "return_best_only": True,
            "sequential": False,
            "ic_generator": None,
        },
    ),
    (AcquisitionFunction.__init__, {"model": inspect.Parameter.empty}),
    (AcquisitionFunction.set_X_pending, {"X_pending": None}),
    (
        UpperConfidenceBound.__init__,
        {
            "model": inspect.Parameter.empty,
            "beta": inspect.Parameter.empty,
            "posterior_transform": None,
            "maximize": True,
        },
    ),
    (
        botorch_transforms.t_batch_mode_transform,
        {"expected_q": None, "assert_output_shape": True},
    ),
    (
        botorch_transforms.average_over_ensemble_models,
        {"method": inspect.Parameter.empty},
    ),
    (botorch_transforms.is_ensemble, {"model": inspect.Parameter.empty}),
    (GPyTorchPosterior.__init__, {"distribution": inspect.Parameter.empty}),
    (
        fit_gpytorch_mll,
        {"mll": inspect.Parameter.empty, "optimizer": None, "optimizer_kwargs": None},
    ),
    (
        scipy_minimize,
        {
            "closure": inspect.Parameter.empty,
            "parameters": inspect.Parameter.empty,
            "bounds": None,
            "method": "L-BFGS-B",
        },
    ),
    (
        get_parameters_and_bounds,
        {"module": inspect.Parameter.empty, "requires_grad": None},
    ),
    (
        SingleTaskGP.__init__,
        {
            "train_X": inspect.Parameter.empty,
            "train_Y": inspect.Parameter.empty,
            "train_Yvar": None,
            "covar_module": None,
            "input_transform": None,
        },
    ),
    (
        SingleTaskGP.posterior,
        {
            "X": inspect.Parameter.empty,
            "observation_noise": False,
            "posterior_transform": None,
        },
    ),
    (Normalize.__init__, {"d": inspect.Parameter.empty, "bounds": None}),
    (Standardize.__init__, {"m": inspect.Parameter.empty}),
    (acqf_input_constructor, {"acqf_cls": inspect.Parameter.empty}),
]


@pytest.mark.parametrize(
    ("relied_on", "expected"),
    RELIED_ON,
    ids=[function.__qualname__ for function, _ in RELIED_ON],
)
def test_botorch_has_not_drifted(
    relied_on: Callable, expected: dict[str, object]
) -> None:
    parameters = inspect.signature(relied_on).parameters
    gone = [name for name in expected if name not in parameters]
    assert gone == [], f"{relied_on.__qualname__} has no {gone} any more"
    now = {name: parameters[name].default for name in expected}
    assert now == expected


def unbound_names(docstring: str) -> list[str]:
    """Names that the examples use and nobody has imported or made in them."""
    known, unbound = set(dir(builtins)), set()
    for example in doctest.DocTestParser().get_examples(docstring):
        nodes = list(ast.walk(ast.parse(example.source)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        known |= {n.id for n in names if not isinstance(n.ctx, ast.Load)}
        known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        known |= {
            node.name
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        known |= {
            (alias.asname or alias.name).partition(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        unbound |= {n.id for n in names if n.id not in known}
    return sorted(unbound)


def shown_by_help(name: str, thing: object) -> Iterator[tuple[str, object]]:
    """What ``help`` shows of a public name: of a class its methods as well."""
    yield name, thing
    for kind in inspect.getmro(thing) if inspect.isclass(thing) else ():
        if kind.__module__.startswith("botorch_drbo"):
            for method, value in vars(kind).items():
                if not method.startswith("_"):
                    yield f"{name}.{method}", value


@pytest.mark.parametrize("package", PUBLIC_PACKAGES)
def test_an_example_of_help_runs_where_it_is_pasted(package: str) -> None:
    """With all of its imports; doctest alone sees those of the module as well."""
    found = {
        shown: unbound_names(inspect.cleandoc(documented.__doc__ or ""))
        for name in public_names(package)
        if callable(value := getattr(importlib.import_module(package), name))
        and (value.__module__ or "").startswith("botorch_drbo")
        for shown, documented in shown_by_help(name, value)
    }
    assert {name: names for name, names in found.items() if names} == {}
