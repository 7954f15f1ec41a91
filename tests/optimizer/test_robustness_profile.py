"""The profile of any decision agrees with the recommendation, and with brute force."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)

from botorch_drbo.ambiguity import TotalVariation

RADII = torch.tensor([0.0, 0.1, 0.3], dtype=torch.double)


def observed_run(toy, algorithm: str, **options):
    opt = toy.make(algorithm, **options)
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(12, 2, generator=generator, dtype=torch.double)
    C = toy.contexts(12)
    y = toy.outcome(X, C)
    opt.tell(X, C, y if options.get("maximize", True) else -y, closes_pending=False)
    return opt


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("wdrbo", {"radius": 0.1}),
        ("drbo_kde", {"radius": 0.1, "num_contexts": 64, "num_outside": 64}),
        ("drbo_mmd", {"radius": 0.1, "num_contexts": 16}),
        ("dro", {"radius": 0.1}),
    ],
)
def test_at_the_radius_of_the_recipe_it_is_the_recommendation(toy, algorithm, options):
    opt = observed_run(toy, algorithm, **options)
    best = opt.recommend()
    profile = opt.robustness_profile(best.x, radii=RADII)
    assert profile.expected_value == pytest.approx(best.expected_value, rel=1e-6)
    span = abs(best.worst_case_value)
    assert profile.values[1].item() == pytest.approx(
        best.worst_case_value, abs=1e-4 * span
    )
    assert profile.values[0].item() == pytest.approx(best.expected_value, rel=1e-6)


def test_in_total_variation_the_lowest_context_of_the_box_takes_the_mass(toy):
    opt = observed_run(toy, "dro", surrogate="botorch")
    x = torch.tensor([0.4, 0.1], dtype=torch.double)
    profile = opt.robustness_profile(x, radii=torch.tensor([0.0, 0.1]).double())
    # A fine grid of the model's mean, and 0.05 of the mass of the best contexts.
    grid = torch.linspace(0, 10, 2001).double().unsqueeze(-1)
    C = opt.history.contexts
    model = opt.algorithm.fitted(opt.history, opt.space, uses_contexts=True)
    at_grid, at_data = (
        model.posterior(torch.cat([x.expand(len(c), 2), c], -1)).mean.flatten().detach()
        for c in (grid, C)
    )
    falls = 0.05 * (at_data.max() - at_grid.min())  # 1 / 12 > 0.05: one atom is enough
    expected = at_data.mean() - falls
    assert profile.values[1].item() == pytest.approx(expected.item(), abs=1e-6)


def test_the_sign_of_the_user(toy):
    high, low = (observed_run(toy, "dro", maximize=flag) for flag in (True, False))
    x, other = torch.tensor([[0.4, 0.1], [0.9, 0.0]], dtype=torch.double)
    up = high.robustness_profile(x, other, target=-0.2, radii=RADII)
    down = low.robustness_profile(x, other, target=0.2, radii=RADII)
    assert torch.allclose(up.values, -down.values, atol=1e-6)
    assert torch.allclose(up.other_values, -down.other_values, atol=1e-6)
    assert up.expected_value == pytest.approx(-down.expected_value, abs=1e-6)
    assert (up.target, down.target) == (-0.2, 0.2)
    assert up.falls_below == pytest.approx(down.falls_below, abs=1e-4)


def test_another_set_for_a_recipe_without_a_radius(toy):
    opt = observed_run(toy, "erbo")
    x = opt.recommend().x
    with pytest.raises(InputDataError, match="NoAmbiguity has no radius"):
        opt.robustness_profile(x)
    profile = opt.robustness_profile(x, ambiguity_set=TotalVariation(0.2))
    assert len(profile.radii) == 25
    assert profile.radii[-1].item() == pytest.approx(0.8)
    assert (profile.values.diff() < 0).all()


def test_nothing_is_recorded_and_no_seed_is_used(toy):
    opt = observed_run(toy, "dro")
    events, state = opt.state_dict()["events"], torch.get_rng_state()
    opt.robustness_profile(torch.tensor([0.4, 0.1]), radii=RADII)
    assert opt.state_dict()["events"] == events
    assert torch.equal(state, torch.get_rng_state())


def test_refuses_in_the_words_of_the_user(toy):
    opt, inside = observed_run(toy, "dro"), torch.tensor([0.4, 0.1], dtype=torch.double)
    with pytest.raises(InputDataError, match="`x` has rows outside `bounds`"):
        opt.robustness_profile(inside + 1)
    with pytest.raises(BotorchTensorDimensionError, match="`other` must be one"):
        opt.robustness_profile(inside, inside.expand(2, 2))
    with pytest.raises(InputDataError, match="must ascend"):
        opt.robustness_profile(inside, radii=RADII.flip(0))
    with pytest.raises(InputDataError, match="pass `radii`"):
        opt.robustness_profile(inside, ambiguity_set=TotalVariation(0.0))
    with pytest.raises(InputDataError, match="no outcome yet"):
        toy.make("dro").robustness_profile(inside)
    with pytest.raises(UnsupportedError, match="`random` has no model"):
        observed_run(toy, "random").robustness_profile(inside)
