"""Files that a checkout need not have: the papers' data, and raw results."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"
DATA = Path(os.environ.get("BOTORCH_DRBO_DATA") or BESIDE)
FILES = {
    "covid_testing": "covid_infection.npz",
    "plant_growth": "plant_growth.npz",
    "portfolio_normal": "portfolio.npz",
    "portfolio_uniform": "portfolio.npz",
}


def needs(name: str) -> pytest.MarkDecorator:
    """Skip a test in a checkout that has no such file."""
    return pytest.mark.skipif(
        not (DATA / name).is_file(), reason=f"no file at {DATA / name}"
    )


def needs_raw(name: str) -> pytest.MarkDecorator:
    """Skip a test where a raw file of committed results has not been brought."""
    return pytest.mark.skipif(
        not (RESULTS / name).is_file(),
        reason=f"no results/{name}: `python -m benchmarks results` brings it",
    )


def with_data(problems: Iterable[str]) -> list[Any]:
    """Names of problems as parameters; those whose file is missing are skipped."""
    return [
        pytest.param(problem, marks=needs(FILES[problem]) if problem in FILES else [])
        for problem in problems
    ]
