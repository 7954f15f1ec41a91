"""Perturbed decisions through the loop, against the model of executed decisions."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize
from torch import Tensor

from botorch_drbo import ContextSet, Integer, NamedOptimizer, RobustOptimizer, Space
from botorch_drbo.ambiguity import FullSimplex
from botorch_drbo.recipes import RECIPES
from botorch_drbo.surrogate import FixedHyperparameters
from tests.models import UNIT, uniform

BOX = torch.tensor([[-0.1], [0.1]], dtype=torch.double)
ERRORS = ContextSet(torch.linspace(-0.1, 0.1, 9, dtype=torch.double).unsqueeze(-1))
SMALL = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 30}
X, C = uniform(14, 1, seed=1), 0.2 * (uniform(14, 1, seed=2) - 0.5)


def peaks(z: Tensor) -> Tensor:
    """A high, narrow peak at .25 and a broad one at .7, of executed decisions."""
    narrow = (-((z - 0.25) / 0.05).square()).exp()
    return 1.2 * narrow + (-((z - 0.7) / 0.25).square()).exp()


def optimizer(name: str = "dro", **options) -> RobustOptimizer:
    if name == "dro":
        options = {"reference": ERRORS, "ambiguity_set": FullSimplex()} | options
    return RobustOptimizer(
        name, UNIT, BOX, **{"num_initial": 2, "perturbation": True} | SMALL | options
    )


def observed_run(name: str = "dro", **options) -> RobustOptimizer:
    opt = optimizer(name, **options)
    opt.tell(X, C, peaks(X + C))
    return opt


def test_the_model_knows_the_executed_decision_alone() -> None:
    opt = observed_run()
    grid = torch.linspace(0.15, 0.85, 8).double().unsqueeze(-1)
    shifted = [opt.predict(grid + s, torch.full_like(grid, -s)) for s in (0.0, 0.05)]
    assert torch.allclose(shifted[0][0], shifted[1][0], atol=1e-8)
    assert torch.allclose(shifted[0][1], shifted[1][1], atol=1e-8)
    plain = observed_run(perturbation=False)
    apart = [plain.predict(grid + s, torch.full_like(grid, -s))[0] for s in (0.0, 0.05)]
    assert not torch.allclose(*apart, atol=1e-3)


def test_the_recommendation_is_the_best_under_the_worst_error() -> None:
    """Against a grid, through the model's own predictions."""
    generator = torch.linspace(0, 1, 40).double().unsqueeze(-1)
    opt = optimizer()
    opt.tell(generator, torch.zeros_like(generator), peaks(generator))
    best = opt.recommend()
    grid = torch.linspace(0, 1, 201).double().unsqueeze(-1)
    errors = ERRORS.points
    values = torch.stack(
        [opt.predict(grid, error.expand_as(grid))[0] for error in errors]
    ).amin(0)
    assert best.objective == pytest.approx(values.max().item(), abs=1e-3)
    assert best.x.item() == pytest.approx(grid[values.argmax()].item(), abs=0.01)
    # The narrow peak is the highest, and no place to aim at.
    assert best.x.item() > 0.5 and peaks(generator).argmax() < 20


def test_errors_may_lead_out_of_the_bounds() -> None:
    opt = observed_run()
    opt.tell(torch.tensor([[1.0]]).double(), BOX[1:], 0.1)
    assert opt.ask().shape == (1, 1)


def test_a_known_error_and_a_forecast() -> None:
    opt = observed_run()
    known = opt.recommend(context=torch.tensor([0.1], dtype=torch.double))
    meant, _ = opt.predict(known.x, torch.tensor([0.1], dtype=torch.double))
    assert known.objective == pytest.approx(meant.item(), abs=1e-6)
    narrow = ContextSet(torch.zeros(1, 1).double())
    assert opt.recommend(context_set=narrow).objective >= opt.recommend().objective


def test_resume_knows_that_contexts_perturb(tmp_path) -> None:
    path = tmp_path / "run.jsonl"
    opt = observed_run("erbo", journal=path)
    opt.close()
    again = RobustOptimizer.resume(path)
    copied = RobustOptimizer.from_state_dict(opt.state_dict())
    assert again.space.perturbation and copied.space.perturbation
    assert torch.equal(again.ask(), copied.ask())
    again.close()
    plain = optimizer("erbo", perturbation=False)
    assert plain.state_dict()["config"]["perturbation"] is False


def test_known_hyperparameters_are_those_of_the_executed_decision() -> None:
    prior = FixedHyperparameters(lengthscale=(0.1,), noise_variance=1e-4)
    opt = observed_run("erbo", hyperparameters=prior)
    kernel = opt.model.covar_module
    assert kernel.lengthscale.shape == (1, 1)
    # In units of the box of x + c, which is 1.2 wide.
    executed = torch.tensor([[0.3], [0.4]]).double()
    covariance = opt.model.forward(
        opt.model.transform_inputs(
            torch.cat([executed, torch.zeros_like(executed)], dim=-1)
        )
    ).covariance_matrix
    ratio = (covariance[0, 1] / covariance[0, 0]).item()
    assert ratio == pytest.approx(
        torch.tensor(-0.5 * (0.1 / 1.2 / 0.1) ** 2).exp().item(), abs=1e-6
    )


def test_a_model_of_ones_own_is_given_the_executed_decisions() -> None:
    seen = []

    def made(train_X, train_Y, train_Yvar, bounds):
        seen.append((train_X, bounds))
        transform = Normalize(1, bounds=bounds)
        return SingleTaskGP(train_X, train_Y, input_transform=transform)

    opt = observed_run("erbo", model=made)
    assert opt.recommend().x.shape == (1,)
    assert torch.equal(seen[0][0], X + C)
    assert seen[0][1].tolist() == [[-0.1], [1.1]]


def test_together_with_outcome_constraints() -> None:
    """What is executed must not exceed .6: a safety distance of the worst error."""
    opt = optimizer(feasibility=0.9)
    opt.tell(X, C, peaks(X + C), constraints=0.6 - X - C)
    best = opt.recommend()
    assert best.feasible and 0.3 < best.x.item() < 0.51


TAKE = [
    name
    for name, made in RECIPES.items()
    if made.uses_contexts and name not in ("drbo_mmd_minimax", "ts_drbo_mmd")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKE)
def test_every_recipe_that_looks_at_contexts(name: str) -> None:
    options = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 5}
    opt = observed_run(name, **options)
    x, best = opt.ask(), opt.recommend()
    assert x.shape == (1, 1) and best.x.shape == (1,)
    assert best.worst_case_value <= best.expected_value + 1e-6


@pytest.mark.parametrize("name", ["gp_ucb", "ec_gp_ucb", "phased_gp_us"])
def test_recipes_that_model_the_decision_alone_refuse(name: str) -> None:
    with pytest.raises(UnsupportedError, match="`perturbation` is no use to"):
        RobustOptimizer(name, UNIT, BOX, perturbation=True)


def test_bad_input() -> None:
    with pytest.raises(InputDataError, match="True or False, got 1"):
        optimizer(perturbation=1)
    square = torch.cat([UNIT, UNIT], dim=-1)
    with pytest.raises(BotorchTensorDimensionError, match="got 1 and 2"):
        RobustOptimizer("erbo", square, BOX, perturbation=True)
    space = Space({"stock": Integer(0, 9)}, {"shift": (-1.0, 1.0)}, outcome="y")
    with pytest.raises(InputDataError, match="numbers of an interval"):
        NamedOptimizer("erbo", space, perturbation=True)


def test_named_variables() -> None:
    space = Space({"angle": (0.0, 90.0)}, {"slip": (-3.0, 3.0)}, outcome="y")
    opt = NamedOptimizer("erbo", space, perturbation=True, num_initial=2, **SMALL)
    angle, slip = 90 * uniform(8, seed=1), 6 * uniform(8, seed=2) - 3
    y = -((angle + slip - 40) / 20).square()
    opt.tell({"angle": angle.tolist()}, {"slip": slip.tolist()}, y.tolist())
    assert opt.recommend().x["angle"].item() == pytest.approx(40, abs=5)
