"""``suggest --group``: each group of rows is a problem of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from botorch_drbo.cli.commands import app

COLUMNS = ["--decisions", "price=10:90", "--contexts", "demand=0:100"]
COLUMNS += ["--outcome", "profit", "--algorithm", "erbo", "--surrogate", "botorch"]
CSV = "sku,price,demand,profit\n" + "".join(
    f"{sku},{price},{demand},{-abs(price - best)}\n"
    for price, demand in [(20.5, 30), (40, 60), (60, 20), (80, 90)]
    for sku, best in [("A", 30), ("B", 70)]
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    path.write_text(CSV)
    return path


def call(data: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["suggest", str(data), *COLUMNS, *words])
    return done.exit_code, " ".join(done.output.split())


def test_each_group_gets_what_its_own_file_gives(data: Path) -> None:
    code, shown = call(data, "--group", "sku", "-q", "2")
    assert code == 0, shown
    new = data.read_text()[len(CSV) :].splitlines()
    assert [line.split(",")[0] for line in new] == ["A", "A", "B", "B"]
    lines = CSV.splitlines(keepends=True)
    for sku in "AB":
        alone = data.with_name(f"{sku}.csv")
        own = [line for line in lines[1:] if line.startswith(f"{sku},")]
        alone.write_text(lines[0] + "".join(own))
        assert call(alone, "-q", "2")[0] == 0
        found = alone.read_text().splitlines()[-2:]
        assert [line.partition(",")[2] for line in found] == [
            line.partition(",")[2] for line in new if line.startswith(f"{sku},")
        ]


def test_processes_give_the_same(data: Path) -> None:
    assert call(data, "--group", "sku", "--workers", "2")[0] == 0
    parallel = data.read_text()
    data.write_text(CSV)
    assert call(data, "--group", "sku")[0] == 0
    assert data.read_text() == parallel


def test_failures_are_listed_and_the_rest_is_written(data: Path) -> None:
    data.write_text(CSV + "C,30,10,5\nD,30,10,5\nD,31,10,much\nE,30,,\n")
    code, shown = call(data, "--group", "sku")
    assert code == 1
    new = data.read_text().splitlines()[-2:]
    assert [line.split(",")[0] for line in new] == ["A", "B"]
    assert "No decision for 3 groups:" in shown
    assert "C: The group has 1 row and 1 outcome: at least 2 outcomes are" in shown
    assert "D: " in shown and "line 12, column `profit`" in shown
    assert "E: The group has 1 row and no outcomes" in shown


def test_a_script_gets_one_document(data: Path) -> None:
    data.write_text(CSV + "C,30,10,5\n")
    done = CliRunner().invoke(
        app, ["suggest", str(data), *COLUMNS, "--group", "sku", "--json", "--dry-run"]
    )
    document = json.loads(done.stdout)
    assert [row["sku"] for row in document["suggested"]] == ["A", "B"]
    assert list(document["failures"]) == ["C"] and document["appended_to"] is None
    assert data.read_text() == CSV + "C,30,10,5\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--group", "skew"], "no column `skew`"),
        (["--group", "price"], "`price` of --group is a decision"),
        (["--workers", "2"], "needs --group"),
        (["--dask", "tcp://127.0.0.1:1"], "needs --group"),
        (["--group", "sku", "--workers", "2", "--dask", "x"], "Leave one out"),
        (["--group", "sku", "--workers", "0"], "--workers"),
        (["--group", "sku", "--dask", "tcp://127.0.0.1:1"], "No dask scheduler answer"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(
    data: Path, words: list[str], message: str
) -> None:
    code, shown = call(data, *words)
    assert code == 2 and message in shown
    assert data.read_text() == CSV


def test_a_row_without_a_group_is_named(data: Path) -> None:
    data.write_text(CSV + ",30,10,5\n")
    code, shown = call(data, "--group", "sku")
    assert code == 2 and "line 10, column `sku`: is empty" in shown


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same(data: Path) -> None:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        assert call(data, "--group", "sku", "--dask", address)[0] == 0
    parallel = data.read_text()
    data.write_text(CSV)
    assert call(data, "--group", "sku")[0] == 0
    assert data.read_text() == parallel
