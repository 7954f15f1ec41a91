"""A run that goes on under other versions says so."""

from __future__ import annotations

import json
import platform
import warnings
from pathlib import Path
from typing import Any

import pytest
import scipy
import torch
from botorch.exceptions.warnings import BotorchWarning

import botorch_drbo
from botorch_drbo import RobustOptimizer
from botorch_drbo.optimizer.journal import checksum


def test_versions_stand_in_states_and_journals(toy: Any, path: Path) -> None:
    with toy.make("random", journal=path) as opt:
        stored = opt.state_dict()["environment"]
    assert json.loads(path.read_text().splitlines()[0])["environment"] == stored
    assert stored["botorch_drbo"] == botorch_drbo.__version__
    assert stored["scipy"] == scipy.__version__
    assert stored["python"] == platform.python_version()
    assert stored["threads"] == torch.get_num_threads()
    assert {"torch", "gpytorch", "botorch"} < set(stored)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("threads", 4096, "threads 4096, now"),
        ("botorch_drbo", "0.0.1", r"botorch_drbo 0.0.1, now \d"),
        ("python", "2.7", "python 2.7, now 3"),
        ("gurobi", "1", "gurobi 1, now unknown"),
        ("scipy", None, "scipy not recorded, now"),  # as in version 2
    ],
)
def test_what_is_different_is_said_and_nothing_else(
    toy: Any, name: str, value: object, words: str
) -> None:
    state = toy.make("random").state_dict()
    if value is None:
        del state["environment"][name]
    else:
        state["environment"][name] = value
    with pytest.warns(BotorchWarning, match=words) as caught:
        RobustOptimizer.from_state_dict(state)
    assert "torch 2" not in str(caught[0].message)


def with_header(path: Path, change: dict[str, Any]) -> None:
    """Other entries of the header, under a checksum that fits."""
    header = json.loads(path.read_text())
    del header["check"]
    header |= change
    header = {name: value for name, value in header.items() if value != "out"}
    body = json.dumps(header).encode().removesuffix(b"}")
    path.write_bytes(body + b', "check": "%s"}\n' % checksum("", body).encode())


@pytest.mark.parametrize("broken", ["out", None, [], "torch 2.0"])
def test_an_environment_that_is_none_is_said(
    toy: Any, path: Path, broken: object
) -> None:
    opt = toy.make("random", journal=path)
    state = opt.state_dict() | {"environment": broken}
    if broken == "out":
        del state["environment"]
    opt.close()
    with_header(path, {"environment": broken})
    with pytest.warns(BotorchWarning, match="no `environment` says"):
        RobustOptimizer.from_state_dict(state)
    with pytest.warns(BotorchWarning, match="no `environment` says"):
        RobustOptimizer.resume(path).close()


def test_the_same_versions_are_no_matter(toy: Any, path: Path) -> None:
    with toy.make("random", journal=path) as opt:
        state = opt.state_dict()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RobustOptimizer.from_state_dict(json.loads(json.dumps(state)))
        RobustOptimizer.resume(path).close()
