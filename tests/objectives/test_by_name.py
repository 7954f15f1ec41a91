"""Objectives in words: each against the definition, written out."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo.ambiguity import NoAmbiguity, TotalVariation
from botorch_drbo.codec import decode, encode
from botorch_drbo.objectives import NamedObjective

SHARES = {
    "worst half": 0.5,
    "worst third": 1 / 3,
    "worst quarter": 0.25,
    "worst fifth": 0.2,
    "worst tenth": 0.1,
    "worst 30%": 0.3,
    "Worst  2.5 %": 0.025,
    "worst_100%": 1.0,
}


def mean_of_the_worst(values: Tensor, weights: Tensor, share: float) -> float:
    """Walk up from the lowest score until the share is used up."""
    total, left = 0.0, share
    for value, weight in sorted(zip(values.tolist(), weights.tolist(), strict=True)):
        taken = min(weight, left)
        total, left = total + taken * value, left - taken
    return total / share


@given(
    st.sampled_from(sorted(SHARES)),
    st.lists(st.tuples(st.floats(-50, 50), st.integers(1, 9)), min_size=1, max_size=9),
)
def test_the_worst_share(words: str, rows: list[tuple[float, int]]) -> None:
    values, counts = torch.tensor(rows, dtype=torch.double).T
    weights = counts / counts.sum()
    found = NamedObjective(words)(TotalVariation(0.4))(values, weights)
    expected = mean_of_the_worst(values, weights, SHARES[words])
    assert found.item() == pytest.approx(expected, abs=1e-9)


def test_mean_and_minimum() -> None:
    values, weights = torch.tensor([4.0, 1.0, 3.0]), torch.tensor([0.5, 0.25, 0.25])
    ball = TotalVariation(0.4)  # that of an adversary has no part in it
    assert NamedObjective("mean")(ball)(values, weights).item() == 3.0
    for words in ("minimum", "maximum"):  # of costs the sign is turned before
        assert NamedObjective(words)(ball)(values, weights).item() == 1.0


def test_a_share_has_its_threshold_in_the_users_sign() -> None:
    above, below = (
        NamedObjective("Share above 60"),
        NamedObjective("share below -2.5e1"),
    )
    assert (above.threshold, above.tau, above.low_is_good) == (60.0, 60.0, False)
    assert (below.threshold, below.tau, below.low_is_good) == (-25.0, 25.0, True)
    with pytest.raises(UnsupportedError, match="`confidence_bound`, as `erbo` has it"):
        above(NoAmbiguity())


@pytest.mark.parametrize("words", ["minimum", "share above 60"])
def test_words_are_of_one_direction(words: str) -> None:
    named = NamedObjective(words)
    named.check_direction(maximize=True)
    with pytest.raises(InputDataError, match="where the outcome is minimised"):
        named.check_direction(maximize=False)
    for both in ("mean", "worst fifth"):
        for maximize in (True, False):
            NamedObjective(both).check_direction(maximize=maximize)
    other = {"minimum": "maximum", "share above 60": "share below 60"}[words]
    with pytest.raises(InputDataError, match=f"Write `objective='{words}'`"):
        NamedObjective(other).check_direction(maximize=True)


@pytest.mark.parametrize(
    "words",
    [
        *("", "worst", "worst sixth", "worst 0%", "worst 101%", "share above", "cvar"),
        *("share above sixty", "share over 60", "worst 30", "means", 0.8, None),
    ],
)
def test_other_words_are_told_which_there_are(words: object) -> None:
    with pytest.raises(InputDataError, match=r"mean, worst fifth .*share above 60"):
        NamedObjective(words)  # pyright: ignore[reportArgumentType]


def test_it_is_stored_by_its_words() -> None:
    named = NamedObjective("WORST fifth")
    assert decode(encode(named), NamedObjective) == named
    assert named.words == "worst fifth"
