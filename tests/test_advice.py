"""What the advice pages say of a method is what the tournament's table says."""

from __future__ import annotations

import re

import pytest

from tests.page_numbers import ROOT
from tests.page_sources.files import committed_table

VERDICTS = {
    name.strip("`"): cells[2]
    for name, cells in committed_table("tournament/methods.md").items()
}
AT_THE_END = re.compile(r"significantly worse\*\*, (?!regret while learning)")


def advice(page: str) -> dict[str, str]:
    """A method of the first cell behind the description -> the last cell of its row."""
    text = (ROOT / page).read_text()
    lines = text[text.index("| you know about the context ... |") :].splitlines()
    found = {}
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        found |= dict.fromkeys(re.findall(r"`(\w+)`", cells[1]), cells[-1])
    return found


@pytest.mark.parametrize("page", ["docs/methods.md", "docs/measured.md"])
def test_verdicts_of_methods_are_those_of_the_tournament(page: str):
    told = advice(page)
    assert len(told) >= 10
    for name, words in told.items():
        verdict = VERDICTS.get(name)
        if words.startswith("not decided"):
            assert verdict == "not decided", name
        named = "worse while they learn" in words and f"`{name}`" in words
        if named or words.startswith("worse while it learns"):
            assert verdict is not None and "regret while learning" in verdict, name
        if words.startswith("worse, also at the end"):
            assert verdict is not None and AT_THE_END.search(verdict), name
        if words == "not measured":
            assert verdict is None, name


def test_each_verdict_can_be_missed():
    """No rule above is empty: each kind of verdict is on a page."""
    words = set(advice("docs/methods.md").values())
    words |= set(advice("docs/measured.md").values())
    for start in ("not decided", "worse while it learns", "worse, also at the end"):
        assert any(each.startswith(start) for each in words)
    assert "not measured" in words
