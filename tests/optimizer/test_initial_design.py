"""The design of decisions alone, and that of decisions and contexts together."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo.optimizer import RobustOptimizer

BOUNDS = torch.tensor([[-1.0, 0.0], [3.0, 1.0]], dtype=torch.double)
CONTEXTS = torch.tensor([[10.0], [12.0]], dtype=torch.double)
JOINT = {"num_initial": 16, "initial_design": "sobol_joint", "seed": 4}


def outcome(x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return -x.square().sum(-1, keepdim=True) - (c - 11)


def play(opt: RobustOptimizer, rounds: int, seed: int = 0) -> None:
    world = torch.Generator().manual_seed(seed)
    for _ in range(rounds):
        x = opt.ask()
        shown = 10 + 2 * torch.rand(1, 1, generator=world, dtype=torch.double)
        wanted = opt.design_contexts(x)
        c = torch.where(wanted.isnan(), shown, wanted)
        opt.tell(x, c, outcome(x, c))


def test_joint_design_is_one_sobol_sequence_over_decisions_and_contexts() -> None:
    opt = RobustOptimizer("random", BOUNDS, CONTEXTS, **JOINT)
    play(opt, 18)
    low, high = torch.cat([BOUNDS, CONTEXTS], dim=-1)
    unit = (torch.cat([opt.history.X, opt.history.C], -1) - low) / (high - low)
    # 16 points of a scrambled Sobol sequence: one in each sixteenth of every side, and
    # one in each square of a four by four grid of every pair of sides but at most one.
    design = unit[:16]
    for column in design.T:
        assert (column * 16).long().sort().values.tolist() == list(range(16))
    cells = {tuple(row) for row in (design[:, [0, 2]] * 4).long().tolist()}
    assert len(cells) == 16  # of a decision and the context together
    # Afterwards the world shows the contexts; those of the design stay in the data.
    assert opt.design_contexts(opt.history.X[16:]).isnan().all()
    assert torch.equal(opt.design_contexts(opt.history.X[:16]), opt.history.C[:16])
    assert len(opt.history.contexts) == 18


def test_plain_design_leaves_all_contexts_to_the_world() -> None:
    opt = RobustOptimizer("random", BOUNDS, CONTEXTS, num_initial=4)
    x = opt.ask(5)
    assert opt.design_contexts(x).shape == (5, 1)
    assert opt.design_contexts(x).isnan().all()


def test_batches_lists_and_resumed_runs_know_their_contexts(tmp_path) -> None:
    opt = RobustOptimizer("random", BOUNDS, CONTEXTS, journal=tmp_path / "j", **JOINT)
    one_by_one = RobustOptimizer("random", BOUNDS, CONTEXTS, **JOINT)
    x = opt.ask(18)
    wanted = opt.design_contexts(x)
    assert wanted[:16].isfinite().all() and wanted[16:].isnan().all()
    play(one_by_one, 16)
    assert torch.equal(one_by_one.history.X, x[:16])
    assert torch.equal(one_by_one.history.C, wanted[:16])
    opt.close()
    with RobustOptimizer.resume(tmp_path / "j") as resumed:
        assert torch.equal(resumed.design_contexts(x)[:16], wanted[:16])
    listed = RobustOptimizer("random", BOUNDS, CONTEXTS, **JOINT)
    row = listed.ask(candidates=torch.tensor([[0.5, 0.5], [1.0, 0.2]]).double())
    assert listed.design_contexts(row).isnan().all()


def test_unknown_design() -> None:
    with pytest.raises(InputDataError, match="`initial_design` must be one of"):
        RobustOptimizer("random", BOUNDS, CONTEXTS, initial_design="grid")
