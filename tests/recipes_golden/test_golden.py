"""Recipes and options answer as they did in 0.2.0, up to what was mended.

Decisions agree within ``1e-6`` of a side: on another processor a sum may be taken in
another order, and a virtual machine does not tell which processor it has. Whether the
last bit is the same shows in ``git diff`` after ``python -m tests.recipes_golden.make``
before and after a change. Each recipe is asked a third of its questions, another third
than the one before it; ``make attacks`` asks them all.
"""

from __future__ import annotations

import pytest
import torch

from botorch_drbo.recipes import RECIPES
from tests.attacks.counted import count, num_cases
from tests.recipes_golden import record
from tests.recipes_golden.cases import (
    OPTIONS,
    SEED,
    Answer,
    mixed,
    pinned,
    questions,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # what is said has its own tests

RECORD = record.load(record.FILE)
THIRDS = num_cases(1, 3)
TOLERANCE = 1e-6 * 4.0  # of the widest side


def check(found: Answer, recorded: Answer, key: str) -> None:
    if isinstance(recorded, str):
        assert found == recorded, key
        return
    numbers = [[float.fromhex(text) for text in row] for row in (found, recorded)]
    assert numbers[0] == pytest.approx(numbers[1], abs=TOLERANCE), key


def check_mixed(found: Answer, recorded: list[str], key: str, name: str) -> None:
    """Steps between categories may end at another maximum, but not at a lower one.

    A last digit may tell which.
    """
    assert not isinstance(found, str), found
    decisions = [[float.fromhex(text) for text in row] for row in (found, recorded)]
    if decisions[0] != pytest.approx(decisions[1], abs=TOLERANCE):
        assert better_of(decisions, key, name) == decisions[0], key


def better_of(decisions: list[list[float]], key: str, name: str) -> list[float]:
    """What a recipe chooses if it may choose one of two decisions alone."""
    to, one = mixed(categories="categories" in key), pinned(name)
    both = torch.tensor(decisions, dtype=torch.double)
    return one.propose(to.history, to.space, seed=SEED, candidates=both)[0].tolist()


def test_every_recipe_is_on_record() -> None:
    assert set(RECORD["answers"]) == set(OPTIONS) == set(RECIPES)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_first_answers_are_those_on_record(name: str) -> None:
    recorded, asked = RECORD["answers"][name], questions(name)
    for key in ("1+1, propose", "1+1, recommend"):
        check(asked[key](), recorded[key], key)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_all_answers_are_those_on_record(name: str) -> None:
    recorded, asked = RECORD["answers"][name], questions(name)
    assert list(recorded) == list(asked)
    first = list(OPTIONS).index(name)
    for i, (key, ask) in enumerate(asked.items()):
        if (i + first) % 3 < THIRDS:
            count("answers on record")
            found, known = ask(), recorded[key]
            searched = key.startswith("mixed") and key.endswith("propose")
            if searched and not isinstance(known, str):
                check_mixed(found, known, key, name)
            else:
                check(found, known, key)
