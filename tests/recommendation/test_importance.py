"""Which columns matter, against closed forms of functions that are known."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.deterministic import GenericDeterministicModel
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_drbo import LinearConstraint, Space
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.problem import SearchSpace
from botorch_drbo.recommendation.importance import importance

BOX = torch.tensor([[0.0, -1.0], [1.0, 3.0]], dtype=torch.double)
UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
# A quarter of the weight at 0.2, the rest at 0.7: another draw differs in 3/8 of cases.
CONTEXTS = ContextSet(
    torch.tensor([[0.2], [0.7]]).double(), torch.tensor([0.25, 0.75]).double()
)


def known(a: float, b: float, c: float) -> GenericDeterministicModel:
    slopes = torch.tensor([a, b, c], dtype=torch.double)
    return GenericDeterministicModel(lambda Z: (Z @ slopes).unsqueeze(-1))


def test_the_typical_difference_of_a_straight_function() -> None:
    found = importance(known(3.0, 0.0, 2.0), SearchSpace(BOX, UNIT), CONTEXTS)
    # Two uniform numbers differ by 1 / sqrt(6) of the width, root mean square.
    expected = [3.0 / math.sqrt(6.0), 0.0, 2.0 * 0.5 * math.sqrt(3 / 8)]
    assert found.members.shape == (1, 3)
    assert found.mean.tolist() == pytest.approx(expected, rel=0.06)


def test_an_interaction_counts_for_both_columns() -> None:
    product = GenericDeterministicModel(lambda Z: Z[..., :1] * Z[..., 1:2])
    unit = torch.cat([UNIT, UNIT], dim=-1)
    found = importance(product, SearchSpace(unit, UNIT), CONTEXTS)
    # E[y^2] E[(x - x')^2] = 1/3 * 1/6.
    assert found.mean[:2].tolist() == pytest.approx(2 * [math.sqrt(1 / 18)], rel=0.08)
    assert found.mean[2] == 0.0


def test_of_shares_the_others_make_room_for_the_one_that_changes() -> None:
    """Of two that add up to one the other moves the other way, by as much."""
    shares = LinearConstraint({"a": 1, "b": 1}, lower=1.0, upper=1.0)
    space = Space({"a": (0, 1), "b": (0, 1)}, {"c": (0, 1)}, constraints=[shares])
    found = importance(known(3.0, 1.0, 2.0), space.search_space, CONTEXTS)
    expected = [2.0 / math.sqrt(6.0)] * 2 + [2.0 * 0.5 * math.sqrt(3 / 8)]
    assert found.mean.tolist() == pytest.approx(expected, rel=0.06)


def test_contexts_do_not_follow_the_order_of_the_decisions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sampler may walk from one end of the decisions to the other."""

    def walk(space: SearchSpace, num: int, seed: int) -> torch.Tensor:
        return torch.linspace(0.0, 1.0, num, dtype=torch.double).unsqueeze(-1)

    monkeypatch.setattr("botorch_drbo.recommendation.importance.sample", walk)
    slope = GenericDeterministicModel(lambda Z: Z[..., :1] * (Z[..., 1:2] < 0.5))
    found = importance(slope, SearchSpace(UNIT, UNIT), CONTEXTS)
    # P[c = 0.2] E[(x - x')^2] = 1/4 * 1/6, and E[x^2] P[c differs] = 1/3 * 3/8.
    assert found.mean[0].item() == pytest.approx(math.sqrt(1 / 24), rel=0.08)
    assert found.mean[1].item() == pytest.approx(math.sqrt(1 / 8), rel=0.08)


def test_each_model_of_an_ensemble_has_its_word() -> None:
    models = [known(1.0, 1.0, 0.0), known(3.0, 0.0, 0.0)]
    space = SearchSpace(BOX, UNIT)
    found = importance(ModelEnsemble(models), space, CONTEXTS)
    alone = [importance(model, space, CONTEXTS).members[0] for model in models]
    assert torch.equal(found.members, torch.stack(alone))
    # The models are certain: what they do not know is which of them is right.
    both = torch.stack(alone).square().mean(0).sqrt()
    assert found.possible.tolist() == pytest.approx(both.tolist(), rel=0.1)


def test_what_may_be_true_counts_what_the_model_does_not_know() -> None:
    """Of a prior of variance 4 without data: E[(f - f')^2] = 8 (1 - k)."""
    Z = torch.zeros(1, 2, dtype=torch.double)
    model = SingleTaskGP(Z, Z[:, :1], covar_module=ScaleKernel(RBFKernel()))
    model.covar_module.outputscale = 4.0
    model.covar_module.base_kernel.lengthscale = 0.01
    model.likelihood.noise = 1e4  # the one outcome says nothing
    found = importance(model.eval(), SearchSpace(UNIT, UNIT), CONTEXTS)
    assert found.mean.max() < 0.01
    assert found.possible[0].item() == pytest.approx(math.sqrt(8.0), rel=0.05)
    # The context differs in 3/8 of the pairs.
    assert found.possible[1].item() == pytest.approx(math.sqrt(3.0), rel=0.15)
