"""Every Python block of README and the pages can be pasted, alone.

A block of `>>>` lines goes on from those above it, as a session does: the page is run
as one. What needs the reader's own objects is a block ``py`` whose first line names
them, ``# with: opt``.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.page_numbers import ROOT

PAGES = ["README.md", *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(python|py)\n(.*?)^```", re.DOTALL | re.MULTILINE)
ALONE, FRAGMENTS = [], []
for page in PAGES:
    for num, (kind, code) in enumerate(FENCE.findall((ROOT / page).read_text())):
        if not code.startswith(">>>"):
            case = pytest.param(code, id=f"{page}-{num}")
            (ALONE if kind == "python" else FRAGMENTS).append(case)


@pytest.mark.parametrize("code", ALONE)
def test_a_block_runs_alone_without_a_warning(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        warnings.simplefilter("default", DeprecationWarning)  # of torch about itself
        exec(code, {"__name__": "__main__"})


def undefined(code: str) -> set[str]:
    """Names that a block reads and does not bind."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name for alias in node.names}
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    return read - bound - set(dir(builtins)) - {"__name__"}


@pytest.mark.parametrize("code", FRAGMENTS)
def test_a_fragment_says_what_it_needs(code: str) -> None:
    first = code.splitlines()[0]
    assert first.startswith("# with: ")
    assert set(first.removeprefix("# with: ").split(", ")) == undefined(code)


def test_no_session_begins_in_the_middle() -> None:
    """A plain block is found, and prompts are at its beginning or nowhere."""
    assert len(ALONE) >= 3 and len(FRAGMENTS) >= 5
    mixed = [case.id for case in ALONE if ">>>" in case.values[0]]
    assert mixed == []
