"""The list of capabilities shrinks only by a line in the changelog."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import capabilities


@pytest.fixture(scope="module")
def now() -> list[str]:
    return capabilities.capabilities()


def test_nothing_is_lost_in_silence(now: list[str]) -> None:
    gone = capabilities.lost(now)
    assert not gone, f"gone, and not named in CHANGELOG.md, in backticks: {gone}"


def test_the_list_is_complete(now: list[str]) -> None:
    new = sorted(set(now) - set(capabilities.recorded()))
    assert not new, f"`python -m tests.capabilities` adds: {new}"


def test_a_line_goes_if_the_changelog_of_this_version_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: list[str]
) -> None:
    changelog = tmp_path / "CHANGELOG.md"
    text = "## 0.3.0.dev0\n- `recipe wdrbo` and `dro(beta)` are gone.\n"
    changelog.write_text(text + "## 0.2.0\n- `recipe erbo`, `surrogate rbf`\n")
    monkeypatch.setattr(capabilities, "CHANGELOG", changelog)
    gone = {"recipe wdrbo", "option dro(beta)", "recipe erbo", "surrogate rbf"}
    assert gone <= set(now)
    rest = [line for line in now if line not in gone]
    assert capabilities.lost(rest) == ["recipe erbo", "surrogate rbf"]
