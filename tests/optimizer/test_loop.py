"""RobustOptimizer in memory: ask, tell, recommend, state."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo import ContextSet
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.recipes import RECIPES, make_recipe
from botorch_drbo.recipes.random_search import RandomSearch
from botorch_drbo.schedules import InverseSquareRoot
from tests.products import each_recipe


def inside(x: torch.Tensor, bounds: torch.Tensor) -> bool:
    return bool(((x >= bounds[0]) & (x <= bounds[1])).all())


def test_design_first_then_the_algorithm(toy: Any) -> None:
    designs = [toy.run(toy.make(name), 0, 4) for name in ("erbo", "random", "wdrbo")]
    # Equal seeds begin with equal decisions, so that algorithms compare pairwise.
    for k in range(3):
        assert torch.equal(designs[0][k], designs[1][k])
        assert torch.equal(designs[0][k], designs[2][k])
    assert not torch.equal(designs[0][3], designs[1][3])
    other = toy.make(seed=1).ask()
    assert not torch.equal(other, designs[0][0])


def test_default_design_size_and_batches_across_its_end(toy: Any) -> None:
    opt = toy.make(num_initial=None)
    x = opt.ask(8)  # more than 2 * (2 + 1), but nothing to fit a model to: all design
    assert x.shape == (8, 2) and inside(x, toy.bounds)
    # The design is one sequence, whichever way it is asked for.
    one_by_one = toy.make(num_initial=None)
    assert torch.equal(x, torch.cat([one_by_one.ask() for _ in range(8)]))


def test_batch_that_crosses_the_end_of_the_design(toy: Any) -> None:
    opt = toy.make(num_initial=3)
    toy.run(opt, 0, 2)
    x = opt.ask(3)
    pure = toy.make(num_initial=9)
    toy.run(pure, 0, 2)
    design = pure.ask(3)
    assert torch.equal(x[0], design[0])
    assert not torch.equal(x[1], design[1])


@pytest.mark.parametrize("name", each_recipe())
def test_batch_of_three_is_distinct_and_pending(toy: Any, name: str) -> None:
    # Eight outcomes: an episode of `phased_gp_us` has seven decisions left then.
    opt = toy.make(name, num_initial=7)
    toy.run(opt, 0, 8)
    first, second = opt.ask(3), opt.ask()
    pending = torch.cat([first, second])
    assert torch.equal(opt.pending, pending)
    assert inside(pending, toy.bounds)
    assert torch.cdist(pending, pending).fill_diagonal_(1.0).min() > 1e-4


def test_no_design_and_no_data(toy: Any) -> None:
    opt = toy.make(num_initial=0)
    with pytest.raises(InputDataError, match="num_initial"):
        opt.ask()
    assert opt.state_dict()["events"] == []
    assert toy.make("random", num_initial=0).ask().shape == (1, 2)
    c = toy.contexts(1)
    x = torch.tensor([[0.5, 0.5]], dtype=torch.double)
    opt.tell(x, c, 1.0, closes_pending=False)
    assert opt.ask().shape == (1, 2)


def test_decisions_do_not_depend_on_reads(toy: Any) -> None:
    plain, curious = toy.make(), toy.make()
    toy.run(plain, 0, 4)
    toy.run(curious, 0, 4)
    curious.recommend()
    repr(curious)
    curious.history.X.zero_()  # a copy
    curious.pending.zero_()
    assert torch.equal(plain.ask(), curious.ask())


def test_generators_of_the_caller_are_left_alone(toy: Any) -> None:
    opt = toy.make("sbo_kde", num_contexts=16)
    torch.manual_seed(11)
    np.random.seed(11)
    random.seed(11)
    states = (
        torch.random.get_rng_state(),
        np.random.get_state()[1],
        random.getstate(),
    )
    asked = toy.run(opt, 0, 5)
    opt.recommend()
    assert torch.equal(torch.random.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])
    assert random.getstate() == states[2]
    # ... and are not a source of it.
    torch.manual_seed(12)
    again = toy.run(toy.make("sbo_kde", num_contexts=16), 0, 5)
    assert all(torch.equal(a, b) for a, b in zip(asked, again, strict=True))


@pytest.mark.parametrize("name", each_recipe())
def test_minimise_is_maximise_of_the_negative(toy: Any, name: str) -> None:
    up, down = toy.make(name), toy.make(name, maximize=False)
    for i, c in enumerate(toy.contexts(4)):  # a design of three
        x, z = up.ask(), down.ask()
        assert torch.equal(x, z), i
        y = toy.outcome(x, c.unsqueeze(0))
        up.tell(x, c, y)
        down.tell(z, c, -y)
    assert torch.equal(up.history.Y, -down.history.Y)
    best, least = up.recommend(), down.recommend()
    assert torch.equal(best.x, least.x)
    assert torch.equal(best.worst_case_weights, least.worst_case_weights)
    assert best.objective == -least.objective
    assert best.expected_value == -least.expected_value
    assert best.worst_case_value == -least.worst_case_value
    assert least.worst_case_value >= least.expected_value - 1e-9


def test_recommendation_is_good(toy: Any) -> None:
    opt = toy.make("erbo", num_initial=8, max_iterations=50)
    toy.run(opt, 0, 20)
    best = opt.recommend()
    target = toy.contexts(20).mean().item() / 10.0  # best on average
    assert best.x[0].item() == pytest.approx(target, abs=0.05)
    assert best.x[1].item() == pytest.approx(0.0, abs=0.05)
    expected = -(toy.contexts(20) / 10.0).var(correction=0).item()
    assert best.expected_value == pytest.approx(expected, abs=0.02)


def test_recommend_needs_an_outcome(toy: Any) -> None:
    opt = toy.make()
    opt.tell(opt.ask(), toy.contexts(1))  # a context is not enough
    with pytest.raises(InputDataError, match="no outcome"):
        opt.recommend()


@pytest.mark.filterwarnings("ignore:The model inputs are of type torch.float32")
def test_float32(toy: Any) -> None:
    opt = RobustOptimizer(
        "erbo", toy.bounds.float(), toy.context_bounds, num_initial=2, **toy.budget
    )
    asked = toy.run(opt, 0, 4)
    assert all(x.dtype == torch.float32 for x in asked)
    assert opt.history.Y.dtype == torch.float32
    again = RobustOptimizer.from_state_dict(json.loads(json.dumps(opt.state_dict())))
    assert torch.equal(again.history.X, opt.history.X)
    assert torch.equal(again.history.Y, opt.history.Y)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("erbo", {}),
        ("wdrbo", {"radius": InverseSquareRoot(0.5), "beta": 4.0}),
        ("sbo_kde", {"num_contexts": 16, "maximize": False}),
        ("stable_opt", {"reference": ContextSet(torch.rand(4, 1).double())}),
        ("random", {}),
        ("gp_ucb", {"seed": 5}),
    ],
)
def test_state_survives_json(toy: Any, name: str, options: dict) -> None:
    opt = toy.make(name, **options)
    toy.run(opt, 0, 4)
    opt.ask(2)
    opt.tell(0.99 * opt.pending[0], toy.contexts(1))  # a late outcome, another x
    state = json.loads(json.dumps(opt.state_dict(), allow_nan=False))
    again = RobustOptimizer.from_state_dict(state)
    assert again.state_dict() == opt.state_dict()
    assert torch.equal(again.pending, opt.pending)
    assert torch.equal(again.history.contexts, opt.history.contexts)
    assert torch.equal(again.ask(), opt.ask())
    first, second = opt.recommend(), again.recommend()
    assert torch.equal(first.x, second.x)
    assert first.worst_case_value == second.worst_case_value


def test_state_is_a_copy(toy: Any) -> None:
    opt = toy.make("random")
    toy.run(opt, 0, 2)
    opt.state_dict()["events"][0]["x"]["tensor"][0][0] = 17.0
    opt.state_dict()["events"].clear()
    assert len(opt.state_dict()["events"]) == 4


def test_ready_made_algorithm(toy: Any) -> None:
    named = toy.make("erbo")
    made = RobustOptimizer(
        make_recipe("erbo", surrogate="botorch", **toy.budget),
        toy.bounds,
        toy.context_bounds,
        num_initial=3,
    )
    pairs = zip(toy.run(named, 0, 4), toy.run(made, 0, 4), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_algorithm_of_the_user_must_be_registered_to_be_saved(
    toy: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Centre(RandomSearch):  # pyright: ignore[reportGeneralTypeIssues]
        name = "centre"

    arguments = (Centre(), toy.bounds, toy.context_bounds)
    opt = RobustOptimizer(*arguments)
    opt.ask()
    with pytest.raises(InputDataError, match="Register"):
        opt.state_dict()
    with pytest.raises(InputDataError, match="Register"):
        RobustOptimizer(*arguments, journal=tmp_path / "run.jsonl")
    assert not (tmp_path / "run.jsonl").exists()
    monkeypatch.setitem(RECIPES, "centre", Centre())
    again = RobustOptimizer.from_state_dict(opt.state_dict())
    assert isinstance(again.algorithm, Centre)


@pytest.mark.parametrize("name", each_recipe())
def test_gradients_that_the_user_has_switched_off(toy: Any, name: str) -> None:
    """The same decisions, recommendations and models inside ``torch.no_grad()``."""

    def told() -> Any:
        opt = toy.make(name)
        toy.run(opt, 0, 4)
        return opt

    with torch.no_grad():
        opt = told()
        x, best = opt.ask(), opt.recommend()
        mean, _ = opt.predict(opt.history.X, opt.history.C)
        assert opt.model is not None and opt.check() is not None
        assert not torch.is_grad_enabled()
    other = told()
    assert torch.equal(x, other.ask())
    assert torch.equal(best.x, other.recommend().x)
    assert torch.equal(mean, other.predict(opt.history.X, opt.history.C)[0])
