"""A table with measured limits and failed trials is told as its rows say."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo import NamedOptimizer

ROWS = {
    "dose": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "rain": [10.0, 20.0, 30.0, 40.0, 50.0, None],
    "runoff": [8.0, 9.5, None, 12.0, None, None],
    "ph": [6.0, 7.5, None, 4.0, None, None],
    "state": ["ok", "done", None, "Failed ", "failed", "pending"],
    "yield": [1.0, 2.0, 3.0, None, None, None],
}


def told(rows: dict[str, list[Any]] = ROWS, **further: Any) -> NamedOptimizer:
    return NamedOptimizer.from_dataframe(
        pd.DataFrame(rows),
        decisions={"dose": (0, 10)},
        contexts={"rain": (0, 100)},
        outcome="yield",
        **further,
    )


LIMITS = {"runoff": (None, 9), "ph": (5, 7)}


def test_the_room_that_was_left_to_each_limit_is_told() -> None:
    opt = told(outcome_constraints=LIMITS, status="state")
    # Upper minus measured, measured minus lower, by hand.
    assert [t.constraints for t in opt.trials] == [
        (1.0, 1.0, 1.0),
        (-0.5, 2.5, -0.5),
        None,
        (-3.0, -1.0, 3.0),
        None,
        None,
    ]
    statuses = [t.status for t in opt.trials]
    assert statuses == ["complete"] * 3 + ["failed"] * 2 + ["pending"]
    assert opt.pending["dose"].tolist() == [6.0]


def test_a_status_is_of_no_matter_unless_it_is_named() -> None:
    assert [t.status for t in told().trials] == ["complete"] * 3 + ["pending"] * 3


def test_limits_of_a_trial_that_is_still_out_wait_for_its_outcome() -> None:
    waiting = {**ROWS, "runoff": [8.0, 9.5, None, 12.0, 3.0, 4.0]}
    opt = told(waiting, outcome_constraints={"runoff": (None, 9)})
    assert [t.constraints for t in opt.trials][3:] == [None, None, None]


def test_withdrawn_rows_are_left_out_and_a_table_can_be_read_again() -> None:
    opt = told(outcome_constraints=LIMITS, status="state")
    opt.withdraw(1)
    table = opt.table()
    again = NamedOptimizer.from_dataframe(
        table,
        decisions={"dose": (0, 10)},
        contexts={"rain": (0, 100)},
        outcome="yield",
        status="status",
    )
    left = table[table["status"] != "withdrawn"]
    assert again.table()["dose"].tolist() == left["dose"].tolist()
    assert again.table()["status"].tolist() == left["status"].tolist()


def test_a_row_with_some_of_its_limits_measured_is_named() -> None:
    half = {**ROWS, "ph": [6.0, None, None, 4.0, None, None]}
    with pytest.warns(BotorchWarning, match=r"In row 1 some of .* some are empty\. "):
        opt = told(half, outcome_constraints=LIMITS, status="state")
    assert [t.constraints is None for t in opt.trials][:2] == [False, True]
    assert opt.trials[1].y == 2.0


@pytest.mark.parametrize(
    ("change", "further", "message"),
    [
        ({}, {"outcome_constraints": {"run": (None, 9)}}, "Did you mean `runoff`"),
        ({}, {"outcome_constraints": {"dose": (None, 9)}}, "no column that is measure"),
        ({}, {"outcome_constraints": {"runoff": 9}}, "must be a pair"),
        ({}, {"outcome_constraints": {"runoff": (None, None)}}, "a number as lower"),
        ({}, {"outcome_constraints": {"runoff": (9, 5)}}, "below its upper one"),
        ({}, {"outcome_constraints": [9]}, "must be a dictionary"),
        ({"runoff": ["much", *ROWS["runoff"][1:]]}, {}, "row 0, column `runoff`"),
        ({}, {"status": "stat"}, "Did you mean `state`"),
        ({"state": ["failed", *ROWS["state"][1:]]}, {}, "row 0, column `state`.*Empty"),
        ({"state": [*ROWS["state"][:4], "faild", None]}, {}, "Did you mean `failed`"),
        (
            {"state": [*ROWS["state"][:5], "failed"], "runoff": [1.0] * 6},
            {},
            "row 5, column `rain`.*withdr",
        ),
    ],
)
def test_what_is_wrong_is_named(
    change: dict[str, list[Any]], further: dict[str, Any], message: str
) -> None:
    given = {"outcome_constraints": {"runoff": (None, 9)}, "status": "state", **further}
    with pytest.raises(InputDataError, match=message):
        told({**ROWS, **change}, **given)
