"""Every kind of bad input that the README promises an error for, in one list."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from botorch.exceptions.errors import (
    BotorchError,
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import EnlargedConfidenceUCB, LipschitzPenalizedUCB
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.optimizer import RobustOptimizer
from tests.models import UNIT

C = torch.tensor([[0.2], [0.7]], dtype=torch.double)
NAN = torch.full((2, 1), torch.nan, dtype=torch.double)
Z = torch.linspace(0, 1, 12, dtype=torch.double).reshape(6, 2)


def optimizer(**options) -> RobustOptimizer:
    options = {"num_initial": 2, "num_restarts": 1, "raw_samples": 8} | options
    return RobustOptimizer("erbo", UNIT, UNIT, **options)


def tell(x, c, y) -> None:
    opt = optimizer()
    opt.tell(UNIT[1], C[0], 1.0)
    try:
        opt.tell(x, c, y)
    finally:  # nothing is lost, and nothing wrong is kept
        assert opt.history.X.tolist() == [[1.0]]
        assert opt.history.Y.tolist() == [[1.0]]


def penalized(model=None, contexts=None, radius=0.1, bounds=UNIT) -> None:
    model = SingleTaskGP(Z, Z[:, :1]) if model is None else model
    contexts = ContextSet(C) if contexts is None else contexts
    LipschitzPenalizedUCB(model, 2.25, contexts, radius, bounds)


def act(x) -> None:
    opt = optimizer()
    opt.ask(actions=C)
    opt.tell(x, C[0], 1.0)


def rewarded(y: float) -> None:
    opt = RobustOptimizer("regret_balancing", UNIT, UNIT, num_initial=1, num_design=1)
    opt.tell(opt.ask(), C[0], y)
    opt.ask()


CASES: dict[str, tuple[Callable[[], object], type[BotorchError], str]] = {
    "NaN contexts": (lambda: ContextSet(NAN), InputDataError, "NaN"),
    "infinite contexts": (lambda: ContextSet(NAN / 0), InputDataError, "infinite"),
    "NaN outcome": (lambda: tell(C[0], C[0], torch.nan), InputDataError, "NaN"),
    "NaN bounds": (
        lambda: RobustOptimizer("erbo", NAN, UNIT),
        InputDataError,
        "bounds",
    ),
    "contexts without columns": (
        lambda: ContextSet(C.flatten()),
        BotorchTensorDimensionError,
        "n x d",
    ),
    "weights that do not match": (
        lambda: ContextSet(C, torch.ones(3)),
        BotorchTensorDimensionError,
        "2 entries",
    ),
    "scores that do not match": (
        lambda: Wasserstein(0.1, torch.zeros(2, 2)).worst_case(
            torch.zeros(3), torch.ones(2) / 2
        ),
        BotorchTensorDimensionError,
        "scores",
    ),
    "context columns that do not match": (
        lambda: penalized(contexts=ContextSet(Z)),
        BotorchTensorDimensionError,
        "no column is left",
    ),
    "contexts outside their bounds": (
        lambda: penalized(contexts=ContextSet(C + 1)),
        InputDataError,
        "outside",
    ),
    "told context outside its bounds": (
        lambda: tell(C[0], C[0] + 1, 1.0),
        InputDataError,
        "context_bounds",
    ),
    "negative weights": (
        lambda: ContextSet(C, torch.tensor([-1.0, 2.0])),
        InputDataError,
        "negative",
    ),
    "zero-sum weights": (
        lambda: ContextSet(C, torch.zeros(2)),
        InputDataError,
        "positive sum",
    ),
    "negative radius": (lambda: penalized(radius=-0.1), InputDataError, "radius"),
    "negative radius of a set": (
        lambda: Wasserstein(-0.1, torch.zeros(2, 2)),
        InputDataError,
        "radius",
    ),
    "negative radius of a recipe": (
        lambda: RobustOptimizer("wdrbo", UNIT, UNIT, radius=-0.1),
        InputDataError,
        "-0.1",
    ),
    "two outputs": (
        lambda: penalized(model=SingleTaskGP(Z, Z)),
        UnsupportedError,
        "2 outputs",
    ),
    "integer contexts": (
        lambda: ContextSet(torch.tensor([[1], [2]])),
        InputDataError,
        "int64",
    ),
    "integer bounds": (
        lambda: RobustOptimizer("erbo", UNIT.long(), UNIT),
        InputDataError,
        "int64",
    ),
    "bounds reversed": (
        lambda: RobustOptimizer("erbo", UNIT.flip(0), UNIT),
        InputDataError,
        "lower bounds below",
    ),
    "context bounds reversed": (
        lambda: penalized(bounds=UNIT.flip(0)),
        InputDataError,
        "lower bounds below",
    ),
    "ask before any data": (
        lambda: optimizer(num_initial=0).ask(),
        InputDataError,
        "num_initial",
    ),
    "recommend before any data": (
        lambda: optimizer().recommend(),
        InputDataError,
        "no outcome",
    ),
    "tell with too many columns": (
        lambda: tell(torch.rand(1, 2).double(), C[:1], 1.0),
        BotorchTensorDimensionError,
        "columns",
    ),
    "tell with too many outcomes": (
        lambda: tell(C[:1], C[:1], torch.ones(2).double()),
        BotorchTensorDimensionError,
        "y",
    ),
    "negative misspecification": (
        lambda: EnlargedConfidenceUCB(SingleTaskGP(Z, Z[:, :1]), 2.25, -0.1),
        InputDataError,
        "misspecification",
    ),
    "negative misspecification of a recipe": (
        lambda: RobustOptimizer("ec_gp_ucb", UNIT, UNIT, misspecification=-0.1),
        InputDataError,
        "misspecification",
    ),
    "delta of one": (
        lambda: RobustOptimizer("regret_balancing", UNIT, UNIT, delta=1.0),
        InputDataError,
        "delta",
    ),
    "an action outside the round's set": (
        lambda: act(C[0] + 0.1),
        InputDataError,
        "none of the 2 actions",
    ),
    "a reward out of range": (
        lambda: rewarded(1.5),
        InputDataError,
        "reward_range",
    ),
    "an unknown algorithm": (
        lambda: RobustOptimizer("wdrob", UNIT, UNIT),
        InputDataError,
        "wdrbo",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_a_clear_error(case):
    call, error, text = CASES[case]
    with pytest.raises(error, match=text):
        call()
