"""Whether what made a committed result would make it again today.

The golden record (``tests/recipes_golden``) has the answers of all recipes to a list
of questions. The record of a commit beside that of today says which have changed
since, and so which results belong to one version of the methods.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.experiments.small_tables import COMMITS
from benchmarks.run.config import ConfigError
from benchmarks.run.report import Table
from benchmarks.run.tables import RUNS, load_tables

ROOT = Path(__file__).parents[2]
RECORD = "tests/recipes_golden/record.json"
TOLERANCE = 4e-6  # that of the record's own test: another processor moves less
Answers = Mapping[str, Mapping[str, Any]]


def unchanged_table(results: Path) -> Table:
    """One row for each commit that made a committed result, the oldest first.

    Args:
        results: The folder of all results.

    Raises:
        ConfigError: This is no clone with its history.
    """
    made: dict[str, list[str]] = {}
    for name, commits in sorted(_commits(results)):
        for commit in commits:
            made.setdefault(commit, []).append(f"`{name}`")
    today = json.loads((ROOT / RECORD).read_text(encoding="utf-8"))["answers"]
    rows = []
    for commit, names in sorted(made.items(), key=lambda pair: _date_of(pair[0])):
        then = _answers_of(commit)
        cells = ["", "no record then"] if then is None else _cells(then, today)
        rows.append([f"`{commit}`", ", ".join(names), *cells])
    head = ["commit", "results", "answers compared", "changed since"]
    return Table(head, rows, left=4)


def changes(then: Answers, today: Answers) -> tuple[int, dict[str, list[float]]]:
    """How many answers can be compared, and by how much those that changed did.

    Args:
        then: Recipe and question -> numbers in hexadecimal, or words.
        today: The same; questions that are new are left out.

    Returns:
        The number, and the largest change in each answer that changed, by recipe: not
        a number where it is in words or shape.
    """
    compared, changed = 0, {}
    for recipe, questions in then.items():
        for question, answer in questions.items():
            if (now := today.get(recipe, {}).get(question)) is None:
                continue
            compared += 1
            moved = _moved(answer, now)
            if not moved <= TOLERANCE:
                changed.setdefault(recipe, []).append(moved)
    return compared, changed


def _moved(answer: Any, now: Any) -> float:
    if isinstance(answer, str) or isinstance(now, str) or len(answer) != len(now):
        return 0.0 if answer == now else float("nan")
    pairs = zip(answer, now, strict=True)
    return max(abs(float.fromhex(a) - float.fromhex(b)) for a, b in pairs)


def _cells(then: Answers, today: Answers) -> list[str]:
    compared, changed = changes(then, today)
    words = ", ".join(
        f"`{recipe}` {len(moved)} of {len(then[recipe])}, {_by(moved)}"
        for recipe, moved in changed.items()
    )
    known = sum(map(len, then.values()))
    number = f"{compared:,}" if compared == known else f"{compared:,} of {known:,}"
    return [number, words or "none"]


def _by(moved: Sequence[float]) -> str:
    if any(math.isnan(each) for each in moved):
        return "in words or number"
    return f"by up to {max(moved):.1g}"


def _commits(results: Path) -> Iterator[tuple[str, list[str]]]:
    """Each committed result, and by which commits it was made."""
    for path in results.rglob(RUNS):
        made = {commit.rstrip("+") for commit in load_tables(path.parent)[1]["commit"]}
        yield str(path.parent.relative_to(results)), sorted(made)
    for path in results.rglob(COMMITS):
        for table, made in json.loads(path.read_text(encoding="utf-8")).items():
            yield f"{path.parent.relative_to(results)}/{table}", made


def _date_of(commit: str) -> int:
    date = _git("show", "--no-patch", "--format=%ct", f"{commit}^{{commit}}")
    if date is None:
        raise ConfigError(
            f"The history of {ROOT} has no commit {commit}: this needs a whole clone."
        )
    return int(date)


def _answers_of(commit: str) -> Answers | None:
    """The record of a commit; None where it had none yet."""
    text = _git("show", f"{commit}:{RECORD}")
    return None if text is None else json.loads(text)["answers"]


def _git(*arguments: str) -> str | None:
    """What git prints; None if it fails."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True
    )
    return done.stdout if done.returncode == 0 else None
