"""What is known about one round: its forecast, its radius, its context."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.codec import decode
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.problem import Round
from botorch_drbo.surrogate import FixedHyperparameters
from tests.products import FEW

BUDGET = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 20}
BOUNDS = torch.tensor([[0.0], [2.0]], dtype=torch.double)
BOX = torch.tensor([[0.0, 10.0], [1.0, 20.0]], dtype=torch.double)
PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-3)
FORECAST = ContextSet(
    torch.tensor([[0.2, 12.0], [0.3, 15.0], [0.9, 11.0]], dtype=torch.double),
    torch.tensor([0.5, 0.3, 0.2], dtype=torch.double),
)


def rows(num: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Decisions, contexts of two columns in other units, outcomes."""
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(num, 3, generator=generator, dtype=torch.double)
    X = 2.0 * unit[:, :1]
    C = BOX[0] + unit[:, 1:] * (BOX[1] - BOX[0])
    weather = (C[:, 1:] - 10.0) / 10.0
    return X, C, -(X - C[:, :1] - weather).square() - 0.3 * weather


def make(algorithm: str = "erbo", **options: Any) -> RobustOptimizer:
    """An optimizer that has been told twelve trials, and asks the algorithm."""
    settings = {"num_initial": 0, "hyperparameters": PRIOR, **BUDGET}
    settings |= FEW.get(algorithm, {}) | options
    opt = RobustOptimizer(algorithm, BOUNDS, BOX, **settings)
    opt.tell(*rows(12))
    return opt


def mean_at(opt: RobustOptimizer, x: Tensor, contexts: Tensor) -> Tensor:
    """The posterior mean by BoTorch, decisions ``m x 1``: ``m x n``."""
    pairs = torch.cat(
        [
            x.unsqueeze(1).expand(-1, len(contexts), -1),
            contexts.expand(len(x), -1, -1),
        ],
        dim=-1,
    )
    with torch.no_grad():
        return opt.model.posterior(pairs).mean.squeeze(-1)


# ------------------------------------------------------------------------- forecasts


@pytest.mark.parametrize("name", ["wdrbo", "drbo_kde", "drbo_mmd", "ts_wdrbo"])
def test_a_forecast_is_the_reference_of_its_round_alone(name: str) -> None:
    opt, fixed = make(name), make(name, reference=FORECAST, radius=0.07)
    x = opt.ask(context_set=FORECAST, radius=0.07)
    assert torch.equal(x, fixed.ask())
    own, unchanged = opt.recommend(), make(name)
    unchanged.ask()
    assert own.worst_case_value == unchanged.recommend().worst_case_value
    at_round = opt.recommend(context_set=FORECAST, radius=0.07)
    assert at_round.expected_value == fixed.recommend().expected_value
    assert at_round.worst_case_value == fixed.recommend().worst_case_value


def test_a_radius_alone_keeps_the_contexts_seen() -> None:
    opt = make("wdrbo")
    x = opt.ask(radius=0.3)
    assert torch.equal(x, make("wdrbo", radius=0.3).ask())


def test_rounds_survive_resume(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    settings = {"num_initial": 2, "hyperparameters": PRIOR, **BUDGET}
    partly = torch.tensor([0.4, torch.nan], dtype=torch.double)

    def play(opt: RobustOptimizer, first: int, last: int) -> list[Tensor]:
        _X, C, Y = rows(6)
        kinds: list[dict[str, Any]] = [
            {"context_set": FORECAST, "radius": 0.1},
            {"context": partly},
            {"context": C[2]},
            {"context_set": FORECAST},
            {"radius": 0.2, "context": partly},
            {},
        ]
        asked = []
        for i in range(first, last):
            asked.append(opt.ask(**kinds[i]))
            opt.tell(asked[-1], C[i], Y[i])
        return asked

    whole = play(RobustOptimizer("wdrbo", BOUNDS, BOX, **settings), 0, 6)
    with RobustOptimizer("wdrbo", BOUNDS, BOX, journal=path, **settings) as opt:
        play(opt, 0, 4)
        state, trials = opt.state_dict(), opt.trials
    with RobustOptimizer.resume(path) as opt:
        assert opt.state_dict() == state
        assert opt.trials[0].known_context is None
        for k in (1, 2):
            known, before = opt.trials[k].known_context, trials[k].known_context
            assert known is not None and before is not None
            assert torch.equal(known.nan_to_num(-1.0), before.nan_to_num(-1.0))
        assert all(map(torch.equal, play(opt, 4, 6), whole[4:]))
    stored = [json.loads(line) for line in path.read_text().splitlines()]
    rounds = [decode(stored[k]["this_round"], Round) for k in (1, 3)]
    assert rounds[0].radius == 0.1 and rounds[0].context_set is not None
    assert torch.equal(rounds[0].context_set.weights, FORECAST.weights)
    known = rounds[1].known_context
    assert known is not None and known[0] == 0.4 and known[1].isnan()


# --------------------------------------------------------------------- known contexts


@pytest.mark.parametrize("name", ["erbo", "wdrbo", "drbo_kde", "drbo_mmd", "ei_wdrbo"])
def test_a_known_context_leaves_no_ambiguity(name: str) -> None:
    opt, c = make(name), torch.tensor([0.3, 14.0], dtype=torch.double)
    best = opt.recommend(context=c)
    grid = torch.linspace(0.0, 2.0, 2001, dtype=torch.double).unsqueeze(-1)
    values = mean_at(opt, grid, c.unsqueeze(0)).squeeze(-1)
    assert best.expected_value == pytest.approx(values.max().item(), abs=1e-6)
    assert best.worst_case_value == pytest.approx(best.expected_value, abs=1e-9)
    assert best.x.item() == pytest.approx(grid[values.argmax()].item(), abs=2e-3)
    assert (best.context_set.points == c).all()


@pytest.mark.parametrize("name", ["ucb_ro", "erbo"])
def test_what_is_not_known_stays_uncertain(name: str) -> None:
    opt = make(name)
    context = torch.tensor([torch.nan, 14.0], dtype=torch.double)
    best = opt.recommend(context=context)
    contexts = opt.history.contexts
    contexts[:, 1] = 14.0
    grid = torch.linspace(0.0, 2.0, 2001, dtype=torch.double).unsqueeze(-1)
    values = mean_at(opt, grid, contexts)
    robust = values.amin(-1) if name == "ucb_ro" else values.mean(-1)
    # The maximum of a minimum may be a kink, between two points of the grid.
    assert -1e-5 <= best.objective - robust.max().item() <= 2e-3
    assert best.x.item() == pytest.approx(grid[robust.argmax()].item(), abs=5e-3)


def test_the_adversary_moves_in_unknown_columns_only() -> None:
    from botorch_drbo.ambiguity import TotalVariation

    opt = make("dro", ambiguity_set=TotalVariation(0.4))
    context = torch.tensor([0.35, torch.nan], dtype=torch.double)
    best = opt.recommend(context=context)
    assert (best.context_set.points[:, 0] == 0.35).all()
    # Mass 0.2 may go anywhere where the first column is 0.35.
    line = torch.linspace(10.0, 20.0, 4001, dtype=torch.double).unsqueeze(-1)
    line = torch.cat([torch.full_like(line, 0.35), line], dim=-1)
    lowest = mean_at(opt, best.x.unsqueeze(0), line).min().item()
    seen = opt.history.contexts
    seen[:, 0] = 0.35
    values = mean_at(opt, best.x.unsqueeze(0), seen).flatten().sort().values
    kept = torch.full((12,), 1 / 12, dtype=torch.double)
    left = 0.2
    for i in range(11, -1, -1):
        taken = min(left, kept[i].item())
        kept[i], left = kept[i] - taken, left - taken
    worst = (kept @ values).item() + 0.2 * lowest
    assert best.worst_case_value == pytest.approx(worst, abs=1e-4)


@pytest.mark.parametrize("name", ["wdrbo", "wdrbo_exact", "drbo_mmd", "stable_opt"])
def test_worst_cases_keep_what_is_known(name: str) -> None:
    opt = make(name)
    context = torch.tensor([torch.nan, 14.0], dtype=torch.double)
    best = opt.recommend(context=context)
    assert (best.context_set.points[:, 1] == 14.0).all()
    if best.worst_case_box is not None:
        assert (best.worst_case_box[:, 1] == 14.0).all()
    means = mean_at(opt, best.x.unsqueeze(0), best.context_set.points).flatten()
    value = (best.worst_case_weights @ means).item()
    assert best.worst_case_value == pytest.approx(value, abs=1e-6)
    x = opt.ask(context=context)
    assert x.shape == (1, 1) and not x.isnan().any()


def test_a_forecast_of_what_is_not_known() -> None:
    opt = make("erbo")
    context = torch.tensor([0.5, torch.nan], dtype=torch.double)
    best = opt.recommend(context=context, context_set=FORECAST)
    replaced = FORECAST.points.clone()
    replaced[:, 0] = 0.5
    means = mean_at(opt, best.x.unsqueeze(0), replaced).flatten()
    expected = (FORECAST.weights @ means).item()
    assert best.expected_value == pytest.approx(expected, abs=1e-9)


def test_a_policy_is_a_recommendation_for_each_context() -> None:
    opt = make("wdrbo")
    contexts = torch.tensor(
        [[0.1, 11.0], [0.9, torch.nan], [torch.nan, 18.0]], dtype=torch.double
    )
    table = opt.policy(contexts)
    for context, x in zip(contexts, table, strict=True):
        assert torch.equal(x, opt.recommend(context=context).x)
    assert table.std() > 0.05


def test_a_decision_that_waits_for_another_context_is_not_avoided() -> None:
    opt = make("erbo")
    low = torch.tensor([0.1, 14.0], dtype=torch.double)
    high = torch.tensor([0.9, 14.0], dtype=torch.double)
    first = opt.ask(context=low)
    other = opt.ask(context=high)
    again = opt.ask(context=low)
    assert (again - first).abs() > 0.01  # the same context: not the same decision
    unaware = make("erbo")
    x = unaware.ask(context=low)  # the same number of calls, nothing pending
    unaware.withdraw(unaware.trials[-1].number)
    assert torch.equal(unaware.ask(context=high), other) and torch.equal(x, first)


def test_a_row_belongs_to_the_decision_that_knew_its_context() -> None:
    opt = make()
    low = torch.tensor([0.1, 14.0], dtype=torch.double)
    high = torch.tensor([0.9, torch.nan], dtype=torch.double)
    only = torch.tensor([[0.5]], dtype=torch.double)
    for context in (None, low, high):
        opt.ask(candidates=only, context=context)
    opt.tell(only, torch.tensor([0.9, 17.0], dtype=torch.double), 1.0)
    assert [t.status for t in opt.trials[12:]] == ["complete", "pending", "pending"]
    opt.tell(only, torch.tensor([0.9, 18.0], dtype=torch.double), 1.0)
    assert [t.status for t in opt.trials[12:]] == ["complete", "pending", "complete"]
    opt.tell(only, torch.tensor([0.5, 18.0], dtype=torch.double), 1.0)
    assert not len(opt.pending)  # the world does as it likes


# --------------------------------------------------------------------------- bad input


def _first(opt: RobustOptimizer, **options: Any) -> None:
    opt.ask(**options)


def _recommend(opt: RobustOptimizer, **options: Any) -> None:
    opt.recommend(**options)


@pytest.mark.parametrize("call", [_first, _recommend])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"context_set": torch.rand(3, 2)}, InputDataError, "`context_set`"),
        (
            {"context_set": ContextSet(torch.rand(3, 1).double())},
            BotorchTensorDimensionError,
            "`context_set` has 1 context columns",
        ),
        (
            {"context_set": ContextSet(torch.rand(3, 2).double())},
            InputDataError,
            "`context_set` has rows outside `context_bounds`",
        ),
        ({"radius": -0.1}, InputDataError, "`radius`"),
        ({"radius": "wide"}, InputDataError, "`radius`"),
        ({"radius": torch.rand(2)}, BotorchTensorDimensionError, "`radius`"),
        ({"context": [0.3, 14.0]}, InputDataError, "`context`"),
        ({"context": torch.tensor([1, 14])}, InputDataError, "floating point"),
        (
            {"context": torch.rand(1).double()},
            BotorchTensorDimensionError,
            "`context` must have 2 columns",
        ),
        ({"context": torch.rand(2, 2)}, BotorchTensorDimensionError, "policy"),
        ({"context": torch.full((2,), torch.nan)}, InputDataError, "nothing is known"),
        ({"context": torch.tensor([0.1, torch.inf])}, InputDataError, "infinite"),
        ({"context": torch.tensor([3.0, torch.nan])}, InputDataError, "outside"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_and_not_recorded(
    call: Callable[..., None],
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    opt = make("wdrbo")
    before = opt.state_dict()
    with pytest.raises(error, match=message):
        call(opt, **options)
    assert opt.state_dict() == before


@pytest.mark.parametrize("num_initial", [0, 20])  # also while the design lasts
def test_recipes_that_cannot_say_so(num_initial: int) -> None:
    c = torch.tensor([0.3, 14.0], dtype=torch.double)
    opt = make("gp_ucb", num_initial=num_initial)
    for options in ({"context": c}, {"context_set": FORECAST}):
        with pytest.raises(UnsupportedError, match="decision alone"):
            opt.ask(**options)
    with pytest.raises(UnsupportedError, match="decision alone"):
        opt.recommend(context=c)
    with pytest.raises(UnsupportedError, match="decision alone"):
        opt.policy(c.unsqueeze(0))
    with pytest.raises(UnsupportedError, match="no radius"):
        make("erbo", num_initial=num_initial).ask(radius=0.1)
    assert not opt.pending.numel()


@pytest.mark.parametrize("contexts", [torch.rand(2), torch.rand(0, 2), [[0.1, 11.0]]])
def test_a_policy_needs_a_table(contexts: Any) -> None:
    with pytest.raises(BotorchTensorDimensionError, match="`contexts`"):
        make().policy(contexts)


@pytest.mark.parametrize(
    "change",
    [
        {"radius": -1.0},
        {"radius": "x"},
        {"context": [None, None]},
        {"context": [0.1]},
        {"context_set": {"points": [[0.2, 12.0]]}},
        {"context_set": 3},
        {"chosen_contexts": [[0.2, 99.0]]},
    ],
    ids=str,
)
def test_a_damaged_round_is_seen(change: dict[str, Any]) -> None:
    from botorch_drbo.optimizer.run import Run

    opt = make()
    opt.ask()
    state = json.loads(json.dumps(opt.state_dict()))
    state["events"][-1].update(change)
    with pytest.raises(InputDataError, match="Event 2"):
        Run.replayed(state["config"], state["events"], "cpu", "the state")
