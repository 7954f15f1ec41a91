"""Whole runs answer what is on record: to the bit where it was made, else nearly."""

from __future__ import annotations

import pytest

from tests.transcripts.runs import RUNS
from tests.transcripts.transcript import load, nearly, played, same_machine, to_the_bit

RECORD = load()
different = to_the_bit if same_machine() else nearly
CASES = [
    pytest.param(name, marks=[pytest.mark.slow] * run.slow)
    for name, run in RUNS.items()
]


def test_every_run_is_on_record() -> None:
    assert set(RECORD) == set(RUNS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_run_answers_what_is_on_record(name: str) -> None:
    changes = different(played(name), RECORD[name])
    assert not changes, "\n".join(["`python -m tests.transcripts` records:", *changes])


@pytest.mark.parametrize(
    ("found", "num_bits", "num_near"),
    [
        ({"a": [1.0, 2.0]}, 0, 0),
        ({"a": [1.0 + 1e-12, 2.0]}, 1, 0),
        ({"a": [1.01, 2.0]}, 1, 1),
        ({"a": [1, 2.0]}, 1, 1),
        ({"a": [-1.0, -2.0]}, 2, 2),
        ({"a": [1.0]}, 1, 1),
        ({"b": [1.0, 2.0]}, 1, 1),
    ],
)
def test_what_differs_is_found(found: object, num_bits: int, num_near: int) -> None:
    recorded = {"a": [1.0, 2.0]}
    assert len(to_the_bit(found, recorded)) == num_bits
    assert len(nearly(found, recorded)) == num_near


def test_texts_may_differ_in_a_rounded_digit_elsewhere() -> None:
    assert to_the_bit("0.125 to 3", "0.124 to 3") and not nearly(
        "0.125 to 3", "0.124 to 3"
    )
    assert nearly("0.125 of 3", "0.125 to 3") and nearly("0.3 to 3", "0.1 to 3")
