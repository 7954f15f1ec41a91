"""The page that says which version of which package was used, and what ran with it."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "versions.md"
_NAME = re.compile(r"[A-Za-z0-9_.-]+")

_HEAD = """# Versions

The table lists the versions with which this site was built, the range that
`pyproject.toml` allows, and what was run. `make docs` writes it, and `.ci/run` builds
the site in the environment in which it runs the tests. `make floors` runs a part of the
tests with the lowest versions that the ranges allow, and `make newest` with the newest.

| package | version here | allowed | what was run with it |
| --- | --- | --- | --- |
"""

_TAIL = """
All of this was run with Python 3.11 on Linux, a part of it with Python 3.12 and with
the lowest BoTorch. Other versions inside the ranges should work, but nobody has tried
them all.
"""


@dataclass(frozen=True)
class Row:
    """A package and what was run with it.

    Attributes:
        package: Its name on PyPI.
        what: What was run, in words.
        paths: Tests, pages and tutorials, relative to the root of the repository.
    """

    package: str
    what: str
    paths: tuple[str, ...]


ROWS = (
    Row(
        "torch",
        "all tests, on the CPU; on a GPU those of the devices",
        ("tests", "docs/gpu.md"),
    ),
    Row("gpytorch", "all tests of models and kernels", ("tests/kernels",)),
    Row(
        "botorch",
        "optimisers, wrappers and models with each acquisition function",
        ("tests/botorch", "docs/botorch.md"),
    ),
    Row("numpy", "all tests", ("tests",)),
    Row(
        "scipy", "all tests; exact worst cases as linear programs", ("tests/ambiguity",)
    ),
    Row("cvxpy", "every convex set a second way; your own sets", ("tests/ambiguity",)),
    Row("cvxpylayers", "gradients of your own sets", ("tests/ambiguity",)),
    Row(
        "ax-platform",
        "every recipe in a `Client`; JSON storage; analyses; outcome constraints",
        (
            "tests/integrations/test_ax.py",
            "tests/integrations/test_ax_constraints.py",
            "docs/ax.md",
            "tutorials/08_inside_ax.py",
        ),
    ),
    Row(
        "optuna",
        "recipes in a `Study`; storage, threads, processes",
        ("tests/integrations/test_optuna.py", "docs/optuna.md"),
    ),
    Row(
        "xopt",
        "recipes as a generator; YAML files",
        ("tests/integrations/test_xopt.py", "docs/xopt.md"),
    ),
    Row("pandas", "tables of named variables", ("tests/space", "docs/tables.md")),
    Row(
        "dask",
        "evaluations on a local cluster",
        ("tests/optimizer/test_evaluations_killed.py", "docs/cluster.md"),
    ),
    Row("joblib", "workers of the benchmarks", ("tests/benchmarks",)),
    Row("pyarrow", "result files of the benchmarks", ("tests/benchmarks",)),
    Row("matplotlib", "all figures", ("tests/test_plotting.py",)),
    Row("typer", "the command line", ("tests/cli",)),
)


def allowed() -> dict[str, str]:
    """The range of each package that `pyproject.toml` names, by its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    found: dict[str, str] = {}
    for requirement in [*project["dependencies"], *chain(*extras)]:
        name = _NAME.match(requirement)
        assert name is not None
        rest = requirement[name.end() :]
        found.setdefault(name[0], re.sub(r"^\[.*?\]", "", rest))
    return found


def page() -> str:
    """The page, in Markdown."""
    ranges = allowed()
    lines = [
        f"| {row.package} | {version(row.package)} | `{ranges[row.package]}` | "
        f"{row.what} ({', '.join(f'`{path}`' for path in row.paths)}) |\n"
        for row in ROWS
    ]
    return _HEAD + "".join(lines) + _TAIL
