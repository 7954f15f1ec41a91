"""Few or many, and the counts of all processes."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from tests.attacks import counted


def test_one_variable_says_few_or_many(monkeypatch):
    monkeypatch.delenv(counted.VARIABLE, raising=False)
    assert counted.num_cases(3, 70) == 3
    monkeypatch.setenv(counted.VARIABLE, "many")
    assert counted.num_cases(3, 70) == 70
    monkeypatch.setenv(counted.VARIABLE, "all")
    with pytest.raises(ValueError, match="'few' or 'many', got 'all'"):
        counted.num_cases(3, 70)


def test_the_counts_of_all_processes_are_added(monkeypatch):
    total: Counter[str] = Counter()
    for num in (2, 5):
        with monkeypatch.context() as process:
            process.setattr(counted, "CASES", Counter())
            counted.count("files", num)
            config = SimpleNamespace(workeroutput={})
            counted.pytest_sessionfinish(SimpleNamespace(config=config))
        with monkeypatch.context() as first:
            first.setattr(counted, "CASES", total)
            counted.pytest_testnodedown(config)
    assert total == {"files": 7}


def test_the_summary_says_them(monkeypatch):
    lines: list[str] = []
    reporter = SimpleNamespace(section=lines.append, write_line=lines.append)
    monkeypatch.setattr(counted, "CASES", Counter(files=1_200, values=7))
    counted.pytest_terminal_summary(reporter)
    assert lines == [
        "random problems",
        "  1,200  files",
        "      7  values",
        "  1,207  together",
    ]
