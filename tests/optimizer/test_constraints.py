"""Outcome constraints through the loop: told, kept, withdrawn, resumed, refused."""

from __future__ import annotations

import json

import pytest
import torch
from botorch.exceptions.errors import (
    BotorchError,
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)

from benchmarks.problems import Reservoir
from botorch_drbo import Category, NamedOptimizer, RobustOptimizer, Space
from botorch_drbo.ambiguity import TotalVariation
from tests.models import UNIT, uniform

FUNCTION = Reservoir(num_reference=20)
SMALL = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 5}
X, C = uniform(10, 2, seed=1), uniform(10, 1, seed=2)
Y, G = FUNCTION.evaluate(X, C), FUNCTION.constraints(X, C)


def optimizer(**options) -> RobustOptimizer:
    options = {
        "feasibility": 0.6,
        "reference": FUNCTION.reference,
        "ambiguity_set": TotalVariation(0.2),
        "num_initial": 2,
    } | options
    return RobustOptimizer(
        "dro", FUNCTION.bounds, FUNCTION.context_bounds, **SMALL | options
    )


def observed_run(**options) -> RobustOptimizer:
    opt = optimizer(**options)
    opt.tell(X, C, Y, constraints=G)
    return opt


def test_they_reach_the_recipe_and_the_recommendation() -> None:
    opt = observed_run()
    data = opt.history.constraints
    assert torch.equal(data.G, G) and torch.equal(data.X, X) and torch.equal(data.C, C)
    assert [trial.constraints for trial in opt.trials] == [
        tuple(row) for row in G.tolist()
    ]
    best = opt.recommend()
    assert best.feasible and best.feasibility >= 0.6
    careless = optimizer()
    careless.tell(X, C, Y)
    assert careless.recommend().feasible is None
    assert best.x.norm() < careless.recommend().x.norm() - 0.2


def test_low_outcomes_may_be_good() -> None:
    """The sign of the outcome is not that of the constraints."""
    mirrored = optimizer(maximize=False)
    mirrored.tell(X, C, -Y, constraints=G)
    best, same = mirrored.recommend(), observed_run().recommend()
    assert torch.allclose(best.x, same.x, atol=1e-6)
    assert best.feasibility == pytest.approx(same.feasibility, abs=1e-6)
    assert best.expected_value == pytest.approx(-same.expected_value, abs=1e-6)


def test_shapes_of_one_trial_and_of_one_constraint() -> None:
    opt = optimizer()
    opt.tell(X[0], C[0], Y[0].item(), constraints=0.25)
    opt.tell(X[1], C[1], Y[1].item(), constraints=torch.tensor([0.5]).double())
    opt.tell(X[2:4], C[2:4], Y[2:4], constraints=torch.tensor([0.125, 2.0]).double())
    assert opt.history.constraints.G.flatten().tolist() == [0.25, 0.5, 0.125, 2.0]
    two = optimizer()
    two.tell(X[0], C[0], Y[0].item(), constraints=torch.tensor([0.5, -1.0]).double())
    assert two.history.constraints.G.tolist() == [[0.5, -1.0]]


def test_an_outcome_that_comes_late_brings_them() -> None:
    opt = optimizer()
    x = opt.ask()
    opt.tell(x, C[:1])
    assert opt.history.constraints is None
    opt.tell(x, C[:1], 1.0, constraints=0.5)
    (trial,) = opt.trials
    assert trial.status == "complete" and trial.constraints == (0.5,)


def test_a_failed_trial_may_have_violated_them() -> None:
    opt = observed_run()
    x = opt.ask()
    opt.tell(x, C[:1], failed=True, constraints=-0.4)
    assert opt.trials[-1].status == "failed"
    assert opt.trials[-1].constraints == (-0.4,)
    assert opt.history.t == 10 and len(opt.history.constraints.G) == 11
    opt.ask()


def test_some_trials_may_have_none() -> None:
    opt = observed_run()
    opt.tell(uniform(2, 2, seed=8), C[:2], Y[:2])
    assert opt.history.t == 12 and len(opt.history.constraints.G) == 10
    assert opt.recommend().feasibility is not None


def test_what_is_withdrawn_is_forgotten() -> None:
    opt = observed_run()
    x = opt.ask()
    opt.tell(x, C[:1], 1.0, constraints=-9.0)
    before = opt.history.constraints.G.clone()
    opt.withdraw(10)
    assert opt.trials[10].constraints is None and opt.trials[10].status == "pending"
    assert len(opt.history.constraints.G) == len(before) - 1
    opt.withdraw(0)  # data from elsewhere
    assert len(opt.history.constraints.G) == 9
    for number in range(1, 10):
        opt.withdraw(number)
    assert opt.history.constraints is None
    # With nothing measured another number of constraints is right.
    opt.tell(X[:2], C[:2], Y[:2], constraints=torch.cat([G[:2], G[:2]], -1))


def test_resume_asks_and_recommends_the_same(tmp_path) -> None:
    path = tmp_path / "run.jsonl"
    opt = observed_run(journal=path)
    x = opt.ask()
    opt.tell(x, C[:1], failed=True, constraints=-0.4)
    opt.close()
    again = RobustOptimizer.resume(path)
    state = json.loads(json.dumps(again.state_dict()))
    copied = RobustOptimizer.from_state_dict(state)
    for other in (again, copied):
        assert torch.equal(other.history.constraints.G, opt.history.constraints.G)
        assert other.algorithm.feasibility == 0.6
    assert torch.equal(again.recommend().x, copied.recommend().x)
    assert torch.equal(again.ask(), copied.ask())
    again.close()


BAD = {
    "NaN": (
        lambda opt: opt.tell(X[0], C[0], 1.0, constraints=torch.nan),
        InputDataError,
        "`constraints` has 1 NaN",
    ),
    "integers": (
        lambda opt: opt.tell(X[0], C[0], 1.0, constraints=torch.tensor([[1]])),
        InputDataError,
        "floating point",
    ),
    "no number": (
        lambda opt: opt.tell(X[0], C[0], 1.0, constraints="met"),
        InputDataError,
        "`constraints` must be a torch.Tensor, got str",
    ),
    "rows": (
        lambda opt: opt.tell(X[:3], C[:3], Y[:3], constraints=G[:2]),
        BotorchTensorDimensionError,
        "a row for each of 3 trials",
    ),
    "none at all": (
        lambda opt: opt.tell(X[:3], C[:3], Y[:3], constraints=G[:3, :0]),
        BotorchTensorDimensionError,
        "a column for each constraint",
    ),
    "another number": (
        lambda opt: opt.tell(X[0], C[0], 1.0, constraints=torch.rand(1, 2).double()),
        InputDataError,
        "[1, 2] numbers in different trials",
    ),
    "before the trial is over": (
        lambda opt: opt.tell(X[0], C[0], constraints=0.5),
        InputDataError,
        "they are told when a trial is over",
    ),
    "too large": (
        lambda opt: opt.tell(X[0], C[0], 1.0, constraints=1e300),
        InputDataError,
        "`constraints` has the value 1e+300",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_nothing_is_recorded_if_they_are_wrong(name: str) -> None:
    act, error, message = BAD[name]
    opt = observed_run()
    with pytest.raises(error) as caught:
        act(opt)
    assert isinstance(caught.value, BotorchError) and message in str(caught.value)
    assert len(opt.trials) == 10 and opt.history.t == 10


def test_recipes_that_would_not_heed_them_refuse_them() -> None:
    opt = RobustOptimizer("regret_balancing", UNIT, UNIT)
    with pytest.raises(UnsupportedError, match="does not support outcome constraints"):
        opt.tell(UNIT[1], UNIT[0], 1.0, constraints=0.5)
    assert opt.history.t == 0


def test_with_named_variables() -> None:
    pd = pytest.importorskip("pandas")
    space = Space(
        decisions={"fill": (0.0, 10.0), "dam": Category(["old", "new"])},
        contexts={"inflow": (0.0, 10.0)},
        outcome="value",
    )
    opt = NamedOptimizer("erbo", space, feasibility=0.6, num_initial=2, **SMALL)
    fill, inflow = 10 * uniform(12, seed=1), 10 * uniform(12, seed=2)
    room = 10 - fill - inflow + torch.tensor([0.0, 2.0]).repeat(6)
    opt.tell(
        pd.DataFrame({"fill": fill, "dam": ["old", "new"] * 6}),
        pd.DataFrame({"inflow": inflow}),
        fill.tolist(),
        constraints=pd.DataFrame({"room": room}),
    )
    best = opt.recommend()
    assert best.feasible and "feasible" in str(best)
    assert best.x["dam"].item() == "new"  # it has more room
    x = opt.ask()
    opt.tell(x, {"inflow": 3.0}, 2.0, constraints=[[1.0]])
    with pytest.raises(InputDataError, match="must be numbers"):
        opt.tell(x, {"inflow": 3.0}, 2.0, constraints=["wet"])
