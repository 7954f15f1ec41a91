"""All trials as one table, in the user's words."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from botorch_drbo import Category, Integer, Log, NamedOptimizer, RobustOptimizer, Space

SPACE = Space(
    {"dose": Log(1.0, 100.0), "status": Integer(0, 4)},
    {"weather": Category(["sun", "rain"]), "guests": Integer(0, 50)},
    outcome="profit",
)


def observed_run(opt: NamedOptimizer) -> NamedOptimizer:
    """Four trials: complete, failed, withdrawn, and one whose context is out."""
    x = {"dose": [1.0, 100.0, 10.0], "status": [0, 4, 2]}
    c = {"weather": ["rain", "sun", "rain"], "guests": [7, 50, 3]}
    for i, (outcome, constraints) in enumerate(
        [(3.5, [0.25, -1.0]), (None, [-0.5, 2.0]), (9.0, None)]
    ):
        opt.tell(
            {key: column[i] for key, column in x.items()},
            {key: column[i] for key, column in c.items()},
            outcome,
            constraints=None if constraints is None else torch.tensor([constraints]),
            failed=outcome is None,
            closes_pending=False,
        )
    opt.withdraw(2)
    return opt


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Its rows, with None for NaN."""
    rows: list[dict[str, Any]] = table.astype(object).to_dict("records")
    return [{k: None if pd.isna(v) else v for k, v in row.items()} for row in rows]


def test_a_named_run_speaks_in_names_and_units() -> None:
    opt = observed_run(NamedOptimizer("erbo", SPACE, maximize=False))
    asked = opt.ask()
    table = opt.table()
    rows = records(table)
    assert table.index.tolist() == [0, 1, 2, 3] and table.index.name == "trial"
    assert rows[0] == {
        "dose": pytest.approx(1.0),
        "status": 0,
        "weather": "rain",
        "guests": 7,
        "profit": 3.5,  # in the user's sign
        "constraint1": 0.25,
        "constraint2": -1.0,
        "status_": "complete",
    }
    assert rows[1]["dose"] == pytest.approx(100.0) and rows[1]["profit"] is None
    assert (rows[1]["constraint1"], rows[1]["constraint2"]) == (-0.5, 2.0)
    withdrawn = {"weather": "rain", "guests": 3, "profit": 9.0, "constraint1": None}
    assert withdrawn.items() <= rows[2].items()  # as it was told
    nothing = dict.fromkeys(["weather", "guests", "profit", "constraint1"])
    assert nothing.items() <= rows[3].items()
    assert rows[3]["dose"] == asked["dose"].item()
    states = ["complete", "failed", "withdrawn", "pending"]
    assert [row["status_"] for row in rows] == states


def test_history_has_the_same_values() -> None:
    opt = observed_run(NamedOptimizer("erbo", SPACE))
    history, table = opt.history, opt.table()
    pd.testing.assert_frame_equal(
        history, table.loc[[0, 1], history.columns], check_dtype=False
    )


def test_a_run_without_names_numbers_its_columns() -> None:
    bounds = torch.tensor([[0.0, -1.0], [1.0, 1.0]]).double()
    opt = RobustOptimizer("erbo", bounds, bounds[:, :1])
    empty = opt.table()
    columns = ["x1", "x2", "c1", "outcome"]
    assert len(empty) == 0 and empty.columns.tolist() == [*columns, "status"]
    x = torch.tensor([[0.25, -0.5], [0.5, 1.0]]).double()
    opt.tell(x, x[:, :1], torch.tensor([1.0, 2.0]), y_variance=torch.tensor([0.1, 0.4]))
    opt.ask()
    table = opt.table()
    assert table.columns.tolist() == [*columns, "outcome_variance", "status"]
    assert table.iloc[0, :4].tolist() == [0.25, -0.5, 0.25, 1.0]
    assert table["outcome_variance"][:2].tolist() == pytest.approx([0.1, 0.4])
    assert math.isnan(table["c1"][2]) and math.isnan(table["outcome_variance"][2])
    assert table["status"].tolist() == ["complete", "complete", "pending"]


def test_it_survives_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with NamedOptimizer("erbo", SPACE, journal=path) as opt:
        table = observed_run(opt).table()
    with NamedOptimizer.resume(path) as opt:
        pd.testing.assert_frame_equal(opt.table(), table)


def test_the_rival_of_a_recommendation_is_in_units_too() -> None:
    search = {"surrogate": "botorch", "num_restarts": 1, "raw_samples": 8}
    opt = NamedOptimizer("dro", SPACE, radius=0.3, **search)
    generator = torch.Generator().manual_seed(0)
    dose = torch.linspace(1, 100, 12)
    guests = torch.randint(20, 51, (12,), generator=generator)
    opt.tell(
        {"dose": dose.tolist(), "status": [1, 3] * 6},
        {"weather": ["sun", "rain"] * 6, "guests": guests.tolist()},
        (dose.log() * (guests - 30) / 10).tolist(),
    )
    best = opt.recommend()
    assert best.stability is not None and best.rival is best.stability.rival
    assert best.rival.columns.tolist() == ["dose", "status"] and len(best.rival) == 1
    row = best.rival.iloc[0]
    assert any(
        (row["dose"], row["status"]) == (pytest.approx(d), s)
        for d, s in zip(dose.tolist(), [1, 3] * 6, strict=True)
    )
    (line,) = (x for x in str(best).splitlines() if x.startswith("answer holds"))
    assert f"then dose = {row['dose']:.4g}, status = {row['status']:.0f}" in line
