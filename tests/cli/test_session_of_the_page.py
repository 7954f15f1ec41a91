"""What docs/tables.md tells an analyst to type works, line by line."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from botorch_drbo.cli.commands import app
from tests.page_numbers import ROOT

PAGE = (ROOT / "docs" / "tables.md").read_text()


def block(mark: str) -> str:
    """The block of code behind a mark."""
    return re.findall(rf"<!-- {mark} -->\n```text\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.mark.slow
def test_the_session_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data, problem = Path("farm.csv"), Path("problem.toml")
    data.write_text(block("farm.csv"))
    shown = {}
    for line in block("session").splitlines():
        program, *words = shlex.split(line)
        done = CliRunner().invoke(app, words)
        assert (program, done.exit_code) == ("botorch-drbo", 0), line + done.output
        shown[words[0]] = done.stdout
        if words[0] == "init":
            text = problem.read_text()
            written = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
            assert [x for x in written.splitlines() if x not in text.splitlines()] == []
            problem.write_text('surrogate = "botorch"\n' + text)  # to be quick here
    assert data.read_text().startswith(block("farm.csv"))
    assert len(data.read_text().splitlines()) == 1 + 8 + 2
    assert "90 of rain" in shown["profile"] and "runoff" not in shown["predict"]
    assert json.loads(shown["recommend"])["feasibility"] is not None
    assert Path("farm.png").exists()
