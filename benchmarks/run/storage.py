"""Where runs live: a journal and a file of records for each (algorithm, seed).

``OUT/runs/LABEL/seed_0003.journal.jsonl`` belongs to the optimizer and is the truth
about decisions, contexts and outcomes. ``seed_0003.records.jsonl`` beside it is what
the benchmark adds: expected values, regrets, seconds. It starts with a header that says
which run it is, and each line is flushed and synced, so that killing a benchmark loses
at most one line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.run.config import AlgorithmConfig, BenchmarkConfig, ConfigError

FORMAT = 1


@dataclass(frozen=True)
class Record:
    """One iteration of one run.

    Args:
        iteration: From 0; the initial decisions are not counted.
        x: The decision.
        c: The context that followed.
        y: The noisy outcome.
        expected: The true expected value at ``x``.
        regret: The optimum of the expected value minus ``expected``.
        cumulative: The sum of the regrets so far.
        seconds: What ``ask`` took; None if a killed benchmark had asked already.
        warnings: The first line of each different warning that ``ask`` raised.
    """

    iteration: int
    x: list[float]
    c: list[float]
    y: float
    expected: float
    regret: float
    cumulative: float
    seconds: float | None
    warnings: list[str]


@dataclass(frozen=True)
class RunFiles:
    """The two files of one run.

    Args:
        folder: The folder of the algorithm.
        seed: The seed of the run.
    """

    folder: Path
    seed: int

    @property
    def journal(self) -> Path:
        """The optimizer's journal."""
        return self.folder / f"seed_{self.seed:04d}.journal.jsonl"

    @property
    def records(self) -> Path:
        """The benchmark's records."""
        return self.folder / f"seed_{self.seed:04d}.records.jsonl"

    @property
    def journal_begun(self) -> bool:
        """Whether the journal has its first line; before that it holds nothing."""
        return bool(_complete_lines(self.journal))

    def remove(self) -> None:
        """Delete both files, if they are there."""
        self.journal.unlink(missing_ok=True)
        self.records.unlink(missing_ok=True)

    def load(self, header: Mapping[str, Any]) -> list[Record]:
        """The records of the run that ``header`` describes; none if it never started.

        A torn last line (of a killed benchmark) is not a record; :meth:`start` cuts it
        off.

        Raises:
            ConfigError: The file holds another run.
        """
        lines = _complete_lines(self.records)
        if not lines:
            return []
        stored = json.loads(lines[0])
        if stored != json.loads(json.dumps(header)):
            raise ConfigError(
                f"{self.records} holds another run.\n  stored: {stored}\n  asked:  "
                f"{dict(header)}\nChoose another --out, or delete {self.folder}."
            )
        return [Record(**json.loads(line)) for line in lines[1:]]

    def start(self, header: Mapping[str, Any]) -> None:
        """Make the folder, cut off a torn last line, write the header if it is new."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = _complete_lines(self.records)
        kept = sum(len(line) + 1 for line in lines)
        if self.records.exists() and self.records.stat().st_size > kept:
            os.truncate(self.records, kept)
        if not lines:
            _append(self.records, header)

    def append(self, record: Record) -> None:
        """Write one record and wait until it is on the disk."""
        _append(self.records, asdict(record))


def run_files(out: Path, algorithm: AlgorithmConfig, seed: int) -> RunFiles:
    """Where a run of a benchmark with results folder ``out`` lives."""
    return RunFiles(out / "runs" / algorithm.label, seed)


def run_header(
    config: BenchmarkConfig, algorithm: AlgorithmConfig, seed: int
) -> dict[str, Any]:
    """What makes a run this run. Not the number of iterations: runs can be extended."""
    return {
        "format": FORMAT,
        "problem": config.problem,
        "problem_options": dict(config.problem_options),
        "algorithm": algorithm.name,
        "options": dict(algorithm.options),
        "seed": seed,
        "initial": config.initial,
    }


def load_runs(config: BenchmarkConfig, out: Path) -> dict[str, dict[int, list[Record]]]:
    """All finished runs: label -> seed -> its first ``iterations`` records."""
    runs: dict[str, dict[int, list[Record]]] = {}
    for algorithm in config.algorithms:
        finished = runs.setdefault(algorithm.label, {})
        for seed in config.seeds:
            header = run_header(config, algorithm, seed)
            records = run_files(out, algorithm, seed).load(header)
            if len(records) >= config.iterations:
                finished[seed] = records[: config.iterations]
    return runs


def _complete_lines(path: Path) -> list[bytes]:
    """The lines that end in a newline: what was written before a kill is whole."""
    if not path.exists():
        return []
    return path.read_bytes().split(b"\n")[:-1]


def _append(path: Path, value: Mapping[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(json.dumps(value, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
