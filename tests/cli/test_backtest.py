"""`botorch-drbo backtest`: what the first rows said, judged by what came."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from botorch_drbo import Category, NamedOptimizer
from botorch_drbo.cli.commands import app

COLUMNS = ["--decisions", "stock=0:1", "shop=A,B", "--contexts", "demand=0:1"]
COLUMNS += ["--outcome", "profit", "--surrogate", "botorch"]
KINDS = {"stock": (0.0, 1.0), "shop": Category(["A", "B"])}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = torch.Generator().manual_seed(3)
    stock, demand = torch.rand(2, 16, generator=rng).double().mul(100).round() / 100
    profit = 9 * torch.minimum(stock, demand) - 5 * stock
    shop = ["A", "B", "B", "A"] * 4
    table = {"stock": stock, "shop": shop, "demand": demand, "profit": profit}
    path = tmp_path / "shop.csv"
    pd.DataFrame(table).round(3).to_csv(path, index=False)
    return path


def test_decisions_of_the_first_rows_are_judged_by_all(data: Path) -> None:
    words = ["backtest", str(data), *COLUMNS, "--first", "9", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["first"], found["later"]) == (9, 7)
    table = pd.read_csv(data)
    known, later = table[:9], table[9:]
    shared = {"contexts": {"demand": (0.0, 1.0)}, "outcome": "profit"}
    shared |= {"decisions": KINDS, "surrogate": "botorch"}
    then = NamedOptimizer.from_dataframe(known, **shared, seed=9).compare(
        ["erbo", "wdrbo_exact"]
    )
    everything = NamedOptimizer.from_dataframe(table, **shared, seed=16)
    assert [row["method"] for row in found["rows"]] == [
        *then.methods,
        "best row so far",
    ]
    top = known.loc[known["profit"].idxmax()]
    assert [found["rows"][-1][name] for name in KINDS] == [top["stock"], top["shop"]]
    assert found["rows"][-1]["expected_then"] == top["profit"]
    for i, row in enumerate(found["rows"]):
        stock = top["stock"] if i == 2 else then.columns["stock"][i]
        if i < 2:
            assert row["expected_then"] == pytest.approx(then.values.mean[i, 0].item())
            assert row["shop"] == then.columns["shop"][i]
        rows = later.assign(stock=stock, shop=row["shop"])
        predicted = everything.predict(rows, rows)["mean"].mean()
        assert row["by_all_rows"] == pytest.approx(predicted, rel=1e-6)
        assert row["interval"][0] < predicted < row["interval"][1]
        is_near = (later["stock"] - stock).abs() <= 0.1
        near = later["profit"][is_near & (later["shop"] == row["shop"])]
        assert row["near"] == len(near)
        if len(near):
            assert row["near_mean"] == pytest.approx(near.mean())
    assert sum(row["near"] for row in found["rows"])


def test_a_name_beside_another_is_not_near_it(data: Path) -> None:
    """Of twelve levels neighbours are numbered less than a tenth of the range apart."""
    levels = list("ABCDEFGHIJKL")
    table = pd.concat([pd.read_csv(data)] * 2, ignore_index=True)
    table["shop"] = (levels * 3)[: len(table)]
    table["stock"] = [0.5 + 0.002 * i for i in range(len(table))]  # all of them near
    table.to_csv(data, index=False)
    words = [word.replace("A,B", ",".join(levels)) for word in COLUMNS]
    done = CliRunner().invoke(app, ["backtest", str(data), *words, "--json"])
    assert done.exit_code == 0, done.output
    later = table[16:]
    for row in json.loads(done.stdout)["rows"]:
        is_near = (later["stock"] - row["stock"]).abs() <= 0.1
        assert row["near"] == (is_near & (later["shop"] == row["shop"])).sum()


def test_costs_are_judged_in_their_own_sign(data: Path) -> None:
    words = ["backtest", str(data), *COLUMNS, "--minimize", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found, table = json.loads(done.stdout), pd.read_csv(data)
    assert found["rows"][-1]["expected_then"] == table["profit"][:8].min()
    assert found["rows"][0]["by_all_rows"] < table["profit"].mean()


def test_its_limits_are_said(data: Path) -> None:
    done = CliRunner().invoke(app, ["backtest", str(data), *COLUMNS])
    assert done.exit_code == 0, done.output
    assert "what 8 of 16 rows said" in done.stdout
    assert "no proof" in done.stdout


@pytest.mark.parametrize(("first", "said"), [("16", "nothing to judge by"), ("3", "5")])
def test_too_few_rows_are_refused(data: Path, first: str, said: str) -> None:
    words = ["backtest", str(data), *COLUMNS, "--first", first]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert said in done.stderr
