"""Journals that 0.1.0 wrote are read, and continued under checksums."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo.optimizer import RobustOptimizer

OLD = Path(__file__).parent / "data" / "version_1.jsonl"  # written by 0.1.0


def test_journal_of_version_1_is_read_and_continued(toy: Any, path: Path) -> None:
    old = OLD.read_bytes()
    path.write_bytes(old)
    state = json.loads(OLD.with_name("version_1_state.json").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # other versions, perhaps
        whole = RobustOptimizer.from_state_dict(state)
        with RobustOptimizer.resume(path) as opt:
            assert opt.state_dict()["events"] == state["events"]
            assert path.read_bytes() == old
            first = toy.run(opt, 7, 8)
        with RobustOptimizer.resume(path) as opt:
            second = toy.run(opt, 8, 9)
            events = opt.state_dict()["events"]
        assert all(map(torch.equal, toy.run(whole, 7, 9), first + second))
        assert path.read_bytes().startswith(old)
        assert RobustOptimizer.resume(path).state_dict()["events"] == events


def test_continuation_of_version_1_protects_what_was_there(path: Path) -> None:
    path.write_bytes(OLD.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        with RobustOptimizer.resume(path) as opt:
            opt.tell(opt.pending[:1], torch.tensor([[5.0]]).double(), 1.0)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"-0.688837", b"-0.688836"))
    with pytest.raises(InputDataError, match=r"Line 15 .* checksum"):
        RobustOptimizer.resume(path)
    lines = content.splitlines()  # and no line without a checksum after one with
    path.write_bytes(content + b'{"event": "ask", "x": [[0.0, 0.0]], "number": 15}\n')
    with pytest.raises(InputDataError, match=r"Line 16 .* checksum"):
        RobustOptimizer.resume(path)
    assert len(lines) == 15


def test_torn_end_of_version_1(path: Path) -> None:
    content = OLD.read_bytes()
    kept = content.rindex(b"\n", 0, -1) + 1
    for end in (kept + 1, kept + 40, len(content) - 2, len(content) - 1):
        path.write_bytes(content[:end])
        with pytest.warns(BotorchWarning, match="last line"):
            RobustOptimizer.resume(path).close()
        whole = end == len(content) - 1
        assert path.read_bytes() == (content if whole else content[:kept])
    path.write_bytes(content[:-10] + b"\n")
    with pytest.raises(InputDataError, match=r"Line 14 .* not JSON"):
        RobustOptimizer.resume(path)
