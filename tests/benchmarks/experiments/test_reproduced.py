"""Whether a committed result's decisions are made again."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.stats import chi2

from benchmarks.commands import RESULTS
from benchmarks.experiments.reproduced import (
    EXPERIMENTS,
    FURTHER,
    Again,
    moved,
    reproduced,
    samples_of,
    tasks_of_runs,
)
from benchmarks.run import storage
from benchmarks.run.config import (
    AlgorithmConfig,
    BenchmarkConfig,
    ConfigError,
    ProblemConfig,
)
from benchmarks.run.engine import run_tasks
from benchmarks.run.report import Table
from benchmarks.run.runner import tasks_of
from benchmarks.run.tables import KEY, RUNS, load_tables
from tests.data import needs_raw

CONFIG = BenchmarkConfig(
    name="tiny",
    problems=(ProblemConfig("wdrbo_figure1", options={"noise_std": 0.1}),),
    algorithms=(AlgorithmConfig("random"), AlgorithmConfig("erbo")),
    seeds=(0, 1),
    iterations=3,
    initial=2,
    options={"num_restarts": 1, "raw_samples": 8, "max_iterations": 5},
)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    out = tmp_path / "tiny"
    assert run_tasks(tasks_of(CONFIG, out), out) == {}
    storage.collect(CONFIG, out)
    return tmp_path


def move(file: Path, factor: float) -> None:
    """Multiply the recorded decisions of `random`, which do not look at them."""
    table = parquet.read_table(file)
    x = [
        [value * (factor if algorithm == "random" else 1.0) for value in x]
        for algorithm, x in zip(
            table["algorithm"].to_pylist(), table["x"].to_pylist(), strict=True
        )
    ]
    place = table.column_names.index("x")
    column = pa.array(x, pa.list_(pa.float64()))
    parquet.write_table(table.set_column(place, "x", column), file)


def counts(results: Path) -> list[str]:
    _, table, _, times, *far = reproduced(results, [], workers=1).blocks
    assert isinstance(table, Table)
    assert isinstance(times, Table)
    ((name, *cells),) = table.rows
    listed = [row for each in far if isinstance(each, Table) for row in each.rows]
    assert len(listed) == int(cells[4])
    assert all(row[1].startswith("random on ") for row in listed)
    assert name == "`tiny`"
    assert re.fullmatch("`random` [.0-9e-]+, `erbo` [.0-9e-]+", times.rows[0][1])
    return list(cells)


def test_decisions_are_made_again_bit_for_bit(results: Path) -> None:
    assert counts(results) == ["4", "4", "0", "0", "0", "0"]


@pytest.mark.parametrize(("by", "column"), [(2e-7, 2), (2e-4, 3), (0.25, 4)])
def test_a_decision_that_moved_is_counted(
    results: Path, by: float, column: int
) -> None:
    move(results / "tiny" / "results.parquet", 1 - by)
    cells = counts(results)
    expected = ["4", "2", "0", "0", "0"]
    expected[column] = "2"
    assert cells[:5] == expected
    assert by / 10 < float(cells[5]) < by * 10


def test_a_move_is_measured_by_the_range_in_the_run() -> None:
    def row(x: float, c: float = 0.5, regret: float = 2.0) -> storage.Row:
        return {"x": [x, 0.0], "c": [c], "regret": regret}

    rows = [row(100.0), row(300.0, 0.7), row(200.0)]
    assert moved(rows, 2, row(200.0)) == 0.0
    assert moved(rows, 2, row(200.1)) == pytest.approx(5e-4)
    assert moved(rows, 2, row(200.1, 0.6)) == pytest.approx(0.5)
    assert moved(rows, 2, row(200.0, regret=2.0 + 1e-12)) == 0.0
    never = {"x": [200.0, 1e-9], "c": [0.5], "regret": 2.0}
    for other in (row(200.0, regret=2.1), never):
        assert moved(rows, 2, other) == math.inf
    assert Again(moved(rows, 2, row(math.nan)), 0.0).step == FURTHER
    listed = [{"position": 3, "regret": 0.0}, {"position": 4, "regret": 1.0}]
    assert moved(listed, 1, {"position": 4, "regret": 1.0 + 1e-15}) == 0.0
    assert moved(listed, 1, {"position": 4}) == 0.0  # BOCU's have no regret
    assert moved(listed, 1, {"position": 5, "regret": 1.0}) == math.inf


def test_a_result_or_run_that_is_not_known_is_refused(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"no result 'large' in .*: tiny"):
        reproduced(results, ["large"], workers=1)
    monkeypatch.setitem(EXPERIMENTS, "tiny", lambda seed, rounds: [])
    with pytest.raises(ConfigError, match="erbo on wdrbo_figure1, seed 0, which"):
        samples_of(results, "tiny")


def runs_of_result(name: str) -> dict[storage.RunKey, int]:
    """The runs of a committed result, and how many rounds each has."""
    table = load_tables(RESULTS / name)[0][[*KEY, "rounds"]]
    return {
        storage.RunKey(*key): rounds for *key, rounds in table.itertuples(index=False)
    }


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_runs_of_an_experiment_are_known(name: str) -> None:
    runs = runs_of_result(name)
    tasks = tasks_of_runs(name, runs)
    assert tasks.keys() == runs.keys()
    assert all(key == task.key for key, task in tasks.items())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs_raw(f"{name}/{storage.RESULTS}"))
        for name in EXPERIMENTS
    ],
)
def test_the_rounds_of_an_experiment_are_drawn(name: str) -> None:
    samples = samples_of(RESULTS, name)
    assert all(key == sample.task.key for key, sample in samples.items())
    assert len({sample.at for sample in samples.values()}) > 5


def test_every_committed_run_was_made_again() -> None:
    table = (RESULTS / "reproduced.md").read_text(encoding="utf-8")
    paths = list(RESULTS.rglob(RUNS))
    assert len(paths) == 14
    for path in paths:
        name = str(path.parent.relative_to(RESULTS))
        assert f"| `{name}` | {len(runs_of_result(name)):,} |" in table


def test_the_page_has_the_sums_of_the_table() -> None:
    text = (RESULTS / "reproduced.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| `\w+` \| ([\d,]+) " + r"\| ([\d,]+) " * 4, text)
    sums = [
        sum(int(cell.replace(",", "")) for cell in cells)
        for cells in zip(*rows, strict=True)
    ]
    assert len(sums) == 5
    assert sums[4] == 3
    page = (RESULTS.parents[1] / "docs" / "evidence.md").read_text(encoding="utf-8")
    bits, rounding, digits = (f"{number:,}" for number in sums[1:4])
    assert (
        f"Of {sums[0]:,} decisions {bits} come out bit for bit, {rounding} within 1e-6 "
        f"of the range of their run and {digits} within 1e-3: the search ends at the "
        "same optimum, in other digits. Three move further"
    ) in page.replace("\n", " ")
    elsewhere = ("ablations", "edrbo_slips", "figure1", "sbo_kde", "wdrbo")
    assert f"(`{'`, `'.join(elsewhere)}`)" in page.replace("\n", " ")
    made = sum(sum(runs_of_result(name).values()) for name in elsewhere)
    further = text[text.index("Those that moved further") :]
    found = sum(further.count(f"| `{name}` |") for name in elsewhere)
    assert further.count("\n| `") == sums[4] and found == 2
    most = chi2.ppf(0.95, 2 * (found + 1)) / 2
    words = (
        f"at most {most:.1f} expected; each counts as the 195 rounds of the longest "
    )
    words += f"runs, of {round(made, -3):,})"
    assert words in page.replace("\n", " ") and 0.006 < most * 195 / made < 0.007
