"""How far the runs of a committed result are from those of an earlier commit.

The same code on the same kind of processor makes the same digits. On another kind the
last digits differ, and differences grow from round to round.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.run.config import ConfigError
from benchmarks.run.report import Table
from benchmarks.run.storage import RESULTS, RunKey, load, runs_of

# Of an experiment those that it has: what was decided, what followed, how good it was.
_RECORDED = ("x", "position", "c", "y", "expected", "regret")
_MOVED = 0.01  # a share of the cumulative regret


class Rerun(NamedTuple):
    """A run beside the earlier one, over the rounds that both have.

    Args:
        key: Which.
        same: Whether all that was recorded has the same digits.
        regret: The cumulative ones, the earlier first; None if one of the two records
            none.
    """

    key: RunKey
    same: bool
    regret: tuple[float, float] | None

    @property
    def moved(self) -> float | None:
        """By which share of the earlier one the cumulative regret is another."""
        if self.regret is None:
            return None
        old, new = self.regret
        if old == 0:
            return 0.0 if new == 0 else math.inf
        return new / old - 1


def rerun_table(results: Path, name: str, commit: str) -> Table:
    """A row for each method: its runs that the earlier commit has, too.

    Args:
        results: The folder of all results, in a clone with its history.
        name: An experiment in it.
        commit: One whose results of the same name are the earlier ones.

    Raises:
        ConfigError: There are no such results, or no run is in both.
    """
    found = reruns(_earlier(results, name, commit), load(results / name)[0])
    if not found:
        raise ConfigError(f"No run of {name} is in its results of {commit}, too.")
    rows: dict[str, list[Rerun]] = {}
    for each in found:
        rows.setdefault(f"`{each.key.algorithm}`", []).append(each)
    cells = [_row(method, of_method) for method, of_method in rows.items()]
    head = ["method", "runs", "same digits", "regret moved by more than 1%", "the most"]
    head += ["means moved by, at most"]
    title = (
        f"The runs of `{name}` beside those of `{commit}`, over the rounds of both. "
    )
    title += "Means over the seeds, in standard errors of the difference."
    return Table(head, [*cells, _row("all", found)], title)


def reruns(earlier: pd.DataFrame, later: pd.DataFrame) -> list[Rerun]:
    """The runs that are in both, in the order of the later ones."""
    before, found = runs_of(earlier), []
    for key, run in runs_of(later).items():
        if key in before:
            rounds = min(len(run), len(before[key]))
            found.append(_beside(key, before[key].head(rounds), run.head(rounds)))
    return found


def _beside(key: RunKey, before: pd.DataFrame, now: pd.DataFrame) -> Rerun:
    same = all(
        name in before
        and name in now
        and _equal(before[name].tolist(), now[name].tolist())
        for name in _RECORDED
        if name in before or name in now
    )
    # BOCU's decisions have one for each objective, in no column.
    if "regret" not in before or "regret" not in now:
        return Rerun(key, same, None)
    old, new = (float(np.sum(run["regret"].to_numpy())) for run in (before, now))
    return Rerun(key, same, (old, new))


def _equal(one: list[Any], other: list[Any]) -> bool:
    """Whether two columns, of numbers or of lists, have the same digits."""
    return np.array_equal(np.stack(one), np.stack(other))


def _row(name: str, found: list[Rerun]) -> list[str]:
    moved = {each.key: each.moved for each in found if each.moved is not None}
    far = {key: by for key, by in moved.items() if abs(by) > _MOVED}
    most = max(far, key=lambda key: abs(far[key]), default=None)
    return [
        name,
        str(len(found)),
        str(sum(each.same for each in found)),
        str(len(far)) if moved else "",
        f"{far[most]:+.0%} ({most})" if most else "",
        means_moved(found),
    ]


def means_moved(found: list[Rerun]) -> str:
    """How far the mean over the seeds of a method on a problem has moved at most.

    In standard errors of the difference of the two means; nothing if none has moved.
    """
    totals = pd.DataFrame(
        [
            (f"{each.key.algorithm} on {each.key.problem}", *each.regret)
            for each in found
            if each.regret is not None
        ],
        columns=["of", "old", "new"],
    ).groupby("of")
    means: Any = totals.mean()
    errors: Any = totals.sem()  # none of a single seed
    change = (means["new"] - means["old"]).abs()
    far = change / np.hypot(errors["old"], errors["new"])
    far = far[far > 0]
    return f"{far.max():.1f} ({far.idxmax()})" if len(far) else ""


def _earlier(results: Path, name: str, commit: str) -> pd.DataFrame:
    """The rows that a commit has of an experiment."""
    file = f"{commit}:./{name}/{RESULTS}"
    done = subprocess.run(
        ["git", "-C", str(results), "show", file], capture_output=True
    )
    if done.returncode != 0:
        raise ConfigError(
            f"git shows no {file} in {results} ({done.stderr.decode().strip()}): "
            "give a commit with results of that name, in a clone with its history."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / RESULTS
        path.write_bytes(done.stdout)
        return load(path)[0]
