"""The examples of the README run, one after the other, and print what it says."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", re.DOTALL)


@pytest.mark.slow
def test_examples_print_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    blocks = BLOCK.findall(README.read_text())
    names: dict[str, object] = {}
    ran = [block for block in blocks if "client" not in block[0]]  # Ax brings that
    assert len(ran) == 2
    for code, expected in ran:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue().strip()
        # Digits may differ from machine to machine, the story may not.
        words = [line.split()[0] for line in expected.splitlines()]
        assert [line.split()[0] for line in printed.getvalue().splitlines()][
            : len(words)
        ] == words
