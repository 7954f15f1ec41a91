"""``ask(choose_context=True)``: a laboratory, where the context may be chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.surrogate import FixedHyperparameters

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
PRIOR = FixedHyperparameters(lengthscale=0.3, noise_variance=1e-4)
WORLD = ContextSet(torch.linspace(0.0, 1.0, 9, dtype=torch.double).unsqueeze(-1))


def outcome(x: Tensor, c: Tensor) -> Tensor:
    return -(x - 0.5 * c).square() + 0.3 * (5.0 * c).sin() * x


def make(algorithm: str = "ucb_ro", **options: Any) -> RobustOptimizer:
    settings = {
        "reference": WORLD,
        "hyperparameters": PRIOR,
        "num_initial": 3,
        "num_restarts": 2,
        "raw_samples": 32,
        **options,
    }
    return RobustOptimizer(algorithm, UNIT, UNIT, **settings)


def play(opt: RobustOptimizer, num: int) -> list[Tensor]:
    asked = []
    for _ in range(num):
        x, c = opt.ask(choose_context=True)
        asked.append(torch.cat([x, c], dim=-1))
        opt.tell(x, c, outcome(x, c))
    return asked


def test_the_context_is_where_the_worst_case_may_lie() -> None:
    opt = make()
    play(opt, 5)
    x, c = opt.ask(choose_context=True)
    assert x.shape == (1, 1) and c.shape == (1, 1)
    # The worst case of ucb_ro is one context: the least pessimistic outcome.
    posterior = opt.model.posterior(torch.cat([x.expand(9, -1), WORLD.points], -1))
    low = posterior.mean - 1.5 * posterior.variance.sqrt()
    assert c.item() == pytest.approx(WORLD.points[low.argmin()].item())


def test_of_several_the_one_that_teaches_most_is_chosen() -> None:
    opt = make("erbo")  # the whole reference carries the worst case
    play(opt, 5)
    known: list[Tensor] = []
    for _ in range(2):  # the second one knows that the first is pending
        model = opt.model
        x, c = opt.ask(choose_context=True)
        joint = torch.cat([x.expand(9, -1), WORLD.points], -1)
        model.posterior(joint)  # BoTorch conditions a model that was used
        left = []
        for row in joint:  # what the mean is uncertain by, if this one is told
            told = torch.stack([*known, row])
            more = model.condition_on_observations(
                told, torch.zeros(len(told), 1).to(told)
            )
            left.append(more.posterior(joint).covariance_matrix.mean())
        assert c.item() == WORLD.points[torch.stack(left).argmin()].item()
        known.append(torch.cat([x, c], dim=-1)[0])


def test_chosen_contexts_are_not_the_worlds() -> None:
    opt = make("wdrbo", radius=0.05)
    play(opt, 4)
    assert opt.history.t == 4 and len(opt.history.contexts) == 0
    x, shown = opt.ask(), torch.tensor([[0.7]], dtype=torch.double)
    opt.tell(x, shown, outcome(x, shown))
    assert torch.equal(opt.history.contexts, shown)
    assert torch.equal(opt.history.C[-1:], shown)


def test_the_design_fills_both_boxes() -> None:
    for design in ("sobol", "sobol_joint"):
        opt = make(initial_design=design, num_initial=8)
        points = torch.cat(play(opt, 8))
        for column in points.mT:
            cells = (4 * column).long().clamp_max(3).bincount(minlength=4)
            assert cells.tolist() == [2, 2, 2, 2]


def test_a_laboratory_survives_resume(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    whole = play(make(), 6)
    with make(journal=path) as opt:
        play(opt, 4)
        x, c = opt.ask(choose_context=True)
    with RobustOptimizer.resume(path) as opt:
        chosen = opt.trials[-1].chosen_context
        assert chosen is not None and torch.equal(chosen, c[0])
        opt.tell(x, c, outcome(x, c))
        assert len(opt.history.contexts) == 0
        assert torch.equal(play(opt, 1)[0], whole[5])


def test_what_cannot_be_chosen_is_refused() -> None:
    for num_initial in (0, 3):
        opt = make(reference=None, num_initial=num_initial)
        with pytest.raises(InputDataError, match="context_set"):
            opt.ask(choose_context=True)
        assert not opt.trials
    x, c = make(reference=None).ask(choose_context=True, context_set=WORLD)
    assert x.shape == c.shape
    opt = make()
    with pytest.raises(InputDataError, match="`choose_context`"):
        opt.ask(choose_context=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputDataError, match="cannot be chosen"):
        opt.ask(choose_context=True, context=torch.tensor([0.5]).double())
    with pytest.raises(UnsupportedError, match="decision alone"):
        make("gp_ucb").ask(choose_context=True)
    assert not opt.trials


@pytest.mark.slow
def test_choosing_the_context_beats_random_ones_on_branin() -> None:
    contexts = torch.linspace(0.0, 1.0, 12, dtype=torch.double).unsqueeze(-1)
    grid = torch.linspace(0.0, 1.0, 201, dtype=torch.double).unsqueeze(-1)

    def branin(x: Tensor, c: Tensor) -> Tensor:
        u, v = 15.0 * x - 5.0, 15.0 * c
        valley = v - 5.1 / (4 * torch.pi**2) * u.square() + 5.0 / torch.pi * u - 6.0
        return -valley.square() - 10.0 * (1 - 1 / (8 * torch.pi)) * u.cos() - 10.0

    worst = branin(grid, contexts.mT).amin(-1)  # of each decision

    def regret(choose: bool, seed: int) -> float:
        opt = make(
            reference=ContextSet(contexts),
            hyperparameters=None,
            num_initial=4,
            seed=seed,
        )
        generator = torch.Generator().manual_seed(seed)
        for _ in range(14):
            if choose:
                x, c = opt.ask(choose_context=True)
            else:
                x = opt.ask()
                c = contexts[torch.randint(12, (1,), generator=generator)]
            opt.tell(x, c, branin(x, c))
        decision = opt.recommend().x
        return (worst.max() - branin(decision, contexts.mT).min()).item()

    chosen = [regret(True, seed) for seed in range(3)]
    random = [regret(False, seed) for seed in range(3)]
    assert sum(chosen) < 0.5 * sum(random), (chosen, random)
