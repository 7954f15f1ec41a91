"""A new ambiguity set is one class: everything else takes it as it is."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_drbo import RobustOptimizer
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import AmbiguitySet, Solution, SolverStatus
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from tests.models import make_model


class Contamination(AmbiguitySet):
    r"""A share of at most ``radius`` of all contexts comes from anywhere [Huber 1964].

    .. math:: q = (1 - \epsilon) p + \epsilon r, \quad r \in \Delta
    """

    knows_positions: ClassVar[bool] = False
    reaches_unseen: ClassVar[bool] = True

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        share = radius.clamp(max=1.0)  # ... x 1
        worst = values.argmin(-1, keepdim=True)
        there = torch.zeros_like(values).scatter(-1, worst, 1.0)
        grows = torch.where(radius < 1.0, there - weights, 0.0)
        return Solution(
            weights=(1 - share) * weights + share * there,
            multiplier=-(grows * values).sum(-1),
            reference_gradient=lambda: (1 - share) * values,
            direction=grows,
        )

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        return torch.where(p > 0, 1 - q / p, 0.0).amax(-1).clamp_min(0.0)


EPS = 0.3
UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
SPACE = SearchSpace(UNIT, UNIT)
SEARCH = {"num_restarts": 2, "raw_samples": 16}


def scores_and_weights() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    f = torch.randn(4, 6, generator=generator, dtype=torch.double)
    return f, torch.tensor([0.1, 0.3, 0.2, 0.0, 0.25, 0.15], dtype=torch.double)


def by_hand(f: Tensor, p: Tensor) -> Tensor:
    """The worst of all vertices of the set: all of the share in one context."""
    vertices = (1 - EPS) * p + EPS * torch.eye(len(p), dtype=p.dtype)  # n x n
    return (f @ vertices.mT).amin(-1)


def data() -> History:
    generator = torch.Generator().manual_seed(2)
    X, C = torch.rand(2, 7, 1, generator=generator, dtype=torch.double)
    return History(X=X, C=C, Y=(4 * X * C).sin() - (X - 0.4).square(), contexts=C)


def test_value_weights_and_status() -> None:
    f, p = scores_and_weights()
    ball = Contamination(EPS)
    robust = ball.worst_case(f, p)
    assert torch.allclose(robust.value, by_hand(f, p))
    assert torch.allclose((robust.weights * f).sum(-1), robust.value)
    assert torch.allclose(ball.distance(p, robust.weights), torch.tensor(EPS).double())
    assert robust.status is SolverStatus.EXACT


def test_gradients() -> None:
    f, p = scores_and_weights()

    def value(f: Tensor, p: Tensor, radius: Tensor) -> Tensor:
        # Weights in the simplex, so that the differences stay there too.
        return Contamination(0.0).worst_case(f, p / p.sum(), radius=radius).value

    inputs = (f, p.clamp_min(0.05), torch.tensor(EPS, dtype=torch.double))
    assert torch.autograd.gradcheck(value, [x.requires_grad_() for x in inputs])
    slope = Contamination(EPS).sensitivity(*scores_and_weights())
    longer = Contamination(EPS + 1e-6).value(*scores_and_weights())
    here = Contamination(EPS).value(*scores_and_weights())
    assert torch.allclose(slope, (longer - here) / 1e-6, atol=1e-6)


class Bare(AmbiguitySet):
    """The same, with the two things that a solution must have."""

    def solve(self, values: Tensor, weights: Tensor, radius: Tensor) -> Solution:
        found = Contamination(0.0).solve(values, weights, radius)
        return Solution(found.weights, found.multiplier)

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        return Contamination(0.0).distance(p, q)


def test_what_a_solution_may_leave_out() -> None:
    f, p = scores_and_weights()
    found, slopes = [], []
    for ball in (Contamination(EPS), Bare(EPS)):
        scores = f.clone().requires_grad_()
        robust, sensitivity = ball.worst_case_and_sensitivity(scores, p)
        found.append((robust.value.detach(), sensitivity.detach()))
        slopes.append(torch.autograd.grad((robust.value + sensitivity).sum(), scores))
    torch.testing.assert_close(found[1], found[0])
    torch.testing.assert_close(slopes[1], slopes[0])
    robust = Bare(EPS).worst_case(f, p)  # the weights need no gradient
    torch.testing.assert_close(robust.value, by_hand(f, p))
    with pytest.raises(UnsupportedError, match="reference_gradient"):
        Bare(EPS).worst_case(f, p.clone().requires_grad_())


@pytest.mark.parametrize("outside", [False, True])
def test_acquisition_function(outside: bool) -> None:
    model = make_model(d=2)
    contexts = ContextSet(torch.linspace(0, 1, 5).double().unsqueeze(-1))
    elsewhere = torch.tensor([[0.1], [0.6]], dtype=torch.double)[: 2 * outside]
    acqf = DistributionallyRobustUCB(
        model,
        2.25,
        contexts,
        objective=UncertaintyObjective(Contamination(EPS)),
        outside_contexts=elsewhere if outside else None,
    )
    X = torch.rand(3, 1, 1, dtype=torch.double)
    points = (
        contexts.points
        if elsewhere is None
        else torch.cat([contexts.points, elsewhere])
    )
    Z = torch.cat([X.expand(-1, len(points), -1), points.expand(3, -1, -1)], dim=-1)
    posterior = model.posterior(Z.unsqueeze(-2))  # one joint input each
    ucb = (posterior.mean + 1.5 * posterior.variance.sqrt()).reshape(3, -1).detach()
    p = torch.zeros(len(points), dtype=torch.double)
    p[: len(contexts.points)] = contexts.weights
    assert torch.allclose(acqf(X), by_hand(ucb, p), atol=1e-6)


def test_recipe_judges_over_the_whole_box() -> None:
    recipe = make_recipe("dro", ambiguity_set=Contamination(EPS), **SEARCH)
    best = recipe.recommend(data(), SPACE, seed=1)
    joint = recipe.fitted(data(), SPACE, uses_contexts=True)
    grid = torch.linspace(0, 1, 1001, dtype=torch.double).unsqueeze(-1)
    Z = torch.cat([best.x.expand(len(grid), -1), grid], dim=-1)
    posteriors = [each.posterior(Z) for each in members_of(joint)]
    means = torch.stack([each.mean.flatten() for each in posteriors])
    lowest = means.mean(0).min().item()
    expected = (1 - EPS) * best.expected_value + EPS * lowest
    assert best.worst_case_value == pytest.approx(expected, abs=1e-5)


def test_a_run_goes_on_from_its_journal(tmp_path: Path) -> None:
    options = {"ambiguity_set": Contamination(EPS), "num_initial": 3, **SEARCH}
    journal = tmp_path / "run.jsonl"
    with RobustOptimizer("dro", UNIT, UNIT, journal=journal, **options) as opt:
        for c in (0.2, 0.7, 0.4):
            x, c = opt.ask(), torch.tensor([[c]], dtype=torch.double)
            opt.tell(x, c, (x * c).sin())
        events = opt.state_dict()
    with RobustOptimizer.resume(journal) as again:
        assert again.algorithm.name == "dro"
        ball = again.algorithm.options["ambiguity_set"]
        assert type(ball) is Contamination and ball.radius.item() == EPS
        asked = again.ask()
    assert torch.equal(RobustOptimizer.from_state_dict(events).ask(), asked)
