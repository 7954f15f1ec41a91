"""Both sides of each goal answer; what they cost is no matter of a test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.speed.goals import (
    Pair,
    against_botorch,
    against_optuna,
    recommend_over_ask,
)


@pytest.mark.filterwarnings("ignore")  # BoTorch's and Optuna's own
@pytest.mark.parametrize("case", [against_botorch, against_optuna, recommend_over_ask])
def test_both_sides_answer(case: Callable[[int, int], Pair]) -> None:
    if case is against_optuna:
        pytest.importorskip("optuna")
    ours, other = case(5, 0)
    assert ours > 0.0 and other > 0.0
