"""Worst case against radius: HiGHS's values, and the radii at which curves cross."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from scipy.optimize import brentq

from botorch_drbo.ambiguity import (
    KullbackLeibler,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.calibrate import robustness_profile
from tests.calibrate.oracles import worst_case_in_total_variation
from tests.models import uniform

BALL = TotalVariation(0.3)  # its own radius does not count
F = torch.tensor([0.0, 3.0, 1.5, 2.7, 0.6, 2.1]).double()  # bold
G = torch.tensor([1.2, 0.9, 1.0, 1.1, 1.3, 0.8]).double()  # safe
P = torch.full((6,), 1 / 6).double()
RADII = torch.linspace(0.0, 1.5, 7).double()


def test_values_are_those_of_highs():
    profile = robustness_profile(F, P, BALL, RADII, other_values=G)
    assert profile.other_values is not None
    for scores, values in ((F, profile.values), (G, profile.other_values)):
        by_highs = [worst_case_in_total_variation(scores, P, r.item()) for r in RADII]
        assert values.tolist() == pytest.approx(by_highs, abs=1e-6)
    assert profile.expected_value == pytest.approx((F @ P).item())
    assert torch.equal(profile.radii, RADII)


def test_the_crossings_are_roots():
    target = 0.8 * (F @ P).item()

    def worst(scores, radius):
        return worst_case_in_total_variation(scores, P, radius)

    below = brentq(lambda r: worst(F, r) - target, 0.0, 1.5)
    behind = brentq(lambda r: worst(F, r) - worst(G, r), 0.0, 1.5)
    profile = robustness_profile(F, P, BALL, RADII, other_values=G, target=target)
    assert profile.falls_below == pytest.approx(below, abs=1e-5)
    assert profile.falls_behind == pytest.approx(behind, abs=1e-5)
    assert isinstance(behind, float) and 0.0 < behind < 1.5


def test_the_radii_matter_no_more_than_their_largest():
    coarse, fine = (
        robustness_profile(F, P, BALL, radii, other_values=G, target=1.0)
        for radii in (RADII[-1:], torch.linspace(0.0, 1.5, 40))
    )
    assert coarse.falls_behind == pytest.approx(fine.falls_behind, rel=1e-6)
    assert coarse.falls_below == pytest.approx(fine.falls_below, rel=1e-6)


def test_never_and_always():
    low, high = F.min().item() - 1, F.max().item() + 1
    never = robustness_profile(F, P, BALL, RADII, other_values=F - 1, target=low)
    assert (never.falls_behind, never.falls_below) == (None, None)
    always = robustness_profile(F, P, BALL, RADII, other_values=F + 1, target=high)
    assert (always.falls_behind, always.falls_below) == (0.0, 0.0)
    same = robustness_profile(F, P, KullbackLeibler(0.1), RADII, other_values=F.clone())
    assert same.falls_behind is None


def test_a_set_that_knows_its_contexts():
    points = uniform(6, 1)
    ball = Wasserstein(0.0, torch.cdist(points, points))
    profile = robustness_profile(F, P, ball, RADII)
    assert profile.values[0].item() == pytest.approx(profile.expected_value)
    assert profile.values[-1].item() == pytest.approx(F.min().item())
    assert (profile.values.diff() <= 0).all()


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"ambiguity_set": NoAmbiguity()}, InputDataError, "has no radius"),
        ({"radii": RADII.flip(0)}, InputDataError, "must ascend"),
        ({"radii": RADII - 1}, InputDataError, "must ascend"),
        ({"radii": torch.zeros(0)}, BotorchTensorDimensionError, "`radii`"),
        ({"radii": [0.0, 1.0]}, InputDataError, "must be a torch.Tensor"),
        ({"target": float("nan")}, InputDataError, "`target`"),
        ({"values": F[:4]}, BotorchTensorDimensionError, "one score per context"),
        ({"other_values": F[None]}, BotorchTensorDimensionError, "`other_values`"),
    ],
)
def test_refuses_in_the_words_of_the_user(arguments, error, says):
    usual = {"values": F, "weights": P, "ambiguity_set": BALL, "radii": RADII}
    with pytest.raises(error, match=says):
        robustness_profile(**{**usual, **arguments})
