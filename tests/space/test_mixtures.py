"""Equalities of decisions: sums are right, designs fill, searches reach the maximum."""

from __future__ import annotations

import itertools
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from botorch_drbo import NamedOptimizer
from botorch_drbo.problem.feasible import joint_sample, sample
from botorch_drbo.search.maximise import Effort, maximise
from botorch_drbo.space import (
    Category,
    Integer,
    LinearConstraint,
    Log,
    Ordinal,
    Space,
    Variable,
)
from botorch_drbo.space.table import to_frame, to_tensor
from tests.models import small_model

CONTEXT = {"t": (0.0, 1.0)}
FEW = {"num_restarts": 2, "raw_samples": 32}


def equal(total: float, **weights: float) -> LinearConstraint:
    return LinearConstraint(weights, upper=total, lower=total)


def simplex(num: int, **more: Any) -> Space:
    names = [f"x{i}" for i in range(num)]
    one = equal(1.0, **dict.fromkeys(names, 1.0))
    return Space(dict.fromkeys(names, (0.0, 1.0)) | more, CONTEXT, constraints=[one])


class Near(AcquisitionFunction):
    """Minus the squared distance from a target, in sides of the box."""

    _log = True  # has no units

    def __init__(self, target: Tensor, bounds: Tensor) -> None:
        super().__init__(small_model())
        self.target, self.side = target, bounds[1] - bounds[0]

    def forward(self, X: Tensor) -> Tensor:
        gaps = (X.reshape(-1, X.shape[-1]) - self.target) / self.side
        return -gaps.square().sum(-1)


class Mixture(NamedTuple):
    """A random space with equalities that a hidden decision satisfies."""

    space: Space
    weights: np.ndarray  # m x d
    sums: np.ndarray  # m


@st.composite
def mixtures(draw: st.DrawFn, log: bool = False) -> Mixture:
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    num, beside = draw(st.integers(2, 6)), draw(st.sampled_from(["", "n", "k", "l"]))
    scale = 10.0 ** draw(st.integers(-3, 3))
    decisions: dict[str, Any] = {}
    point = []
    for i in range(num):
        lower = scale * rng.choice([0.0, 0.0, 0.1, -0.5])
        upper = lower + scale * rng.choice([0.3, 1.0, 10.0])
        decisions[f"x{i}"] = (float(lower), float(upper))
        point.append(rng.uniform(lower, upper))
    if log:  # a part of the sum
        decisions["c"] = Log(1e-3 * scale, scale)
        point.append(scale * 10 ** rng.uniform(-3, 0))
    if beside == "n":
        decisions["n"] = Integer(0, 4)
        point.append(float(rng.integers(5)))
    m = draw(st.integers(1, min(3, num - 1)))
    weights = rng.choice([0.0, 1.0, 1.0, -1.0, 2.5], (m, len(point)))
    weights[:, :num] += (np.abs(weights[:, :num]).sum(1) == 0)[:, None]
    if beside == "n":
        weights[:, -1] *= scale / 4
    if beside == "k":
        decisions["k"] = Category(["a", "b", "d"])
    if beside == "l" and not log:
        decisions["l"] = Log(1.0, 100.0)
    names = list(decisions)[: len(point)]
    sums = weights @ point
    constraints = [
        equal(float(s), **{n: float(a) for n, a in zip(names, w, strict=True) if a})
        for w, s in zip(weights, sums, strict=True)
    ]
    weights = np.pad(weights, ((0, 0), (0, len(decisions) - len(point))))
    return Mixture(Space(decisions, CONTEXT, constraints=constraints), weights, sums)


def check_rows(mixture: Mixture, X: Tensor) -> None:
    """In the user's units, as they are returned."""
    space = mixture.space
    table = to_frame(X, space.decisions)
    again = to_tensor(table, space.decisions, "x")  # refuses what no variable may be
    torch.testing.assert_close(again, X, atol=1e-12, rtol=1e-12)
    numbers = np.array(
        [
            [0.0 if isinstance(v, str) else v for v in row]
            for row in table.itertuples(index=False)
        ]
    )
    terms = numbers[:, None] * mixture.weights  # n x m x d
    size = np.abs(terms).sum(-1) + np.abs(mixture.sums)
    assert (np.abs(terms.sum(-1) - mixture.sums) <= 1e-9 * size).all()


@given(mixture=st.booleans().flatmap(lambda log: mixtures(log=log)))
@settings(max_examples=60, deadline=None)
def test_samples_are_different_and_their_sums_right(mixture: Mixture) -> None:
    space = mixture.space.search_space
    for rows in (sample(space, 24, 1), joint_sample(space, 24, 1)[:, : space.d_x]):
        check_rows(mixture, rows)
        if any(j not in space.discrete for j in space.equalities.free):
            assert len(rows.unique(dim=0)) > 20 or "k" in mixture.space.decisions
    assert torch.equal(sample(space, 9, 1), sample(space, 24, 1)[:9])


def best_value(mixture: Mixture, target: Tensor) -> float:
    """The maximum of ``Near``, by a quadratic program for each whole number."""
    space = mixture.space.search_space
    lower, upper = space.bounds.numpy()
    x = cp.Variable(space.d_x)
    goal = cp.Minimize(cp.sum_squares((x - target.numpy()) / (upper - lower)))
    within = [x >= lower, x <= upper, mixture.weights @ x == mixture.sums]
    columns = sorted(space.values)
    found = []
    for chosen in itertools.product(*(space.values[j] for j in columns)):
        fixed = [x[j] == v for j, v in zip(columns, chosen, strict=True)]
        program = cp.Problem(goal, within + fixed)
        program.solve(solver="CLARABEL")
        if program.status in ("optimal", "optimal_inaccurate"):
            found.append(-program.value)
    return max(found)


@given(mixture=mixtures(), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_a_search_reaches_the_maximum(mixture: Mixture, seed: int) -> None:
    space = mixture.space.search_space
    unit = torch.rand(space.d_x, generator=torch.Generator().manual_seed(seed)).double()
    target = space.snap(space.bounds[0] + unit * (space.bounds[1] - space.bounds[0]))
    acqf = Near(target, space.bounds)
    X, values = maximise(acqf, space, Effort(6, 128, 100, seed))
    check_rows(mixture, X)
    best = best_value(mixture, target)
    assert best - 1e-3 * (1.0 - best) <= values.max() <= best + 1e-6


def test_a_search_reaches_a_corner_and_its_zeros_are_zeros() -> None:
    space = simplex(5).search_space
    acqf = Near(torch.tensor([-1.0, 2.0, -1.0, -1.0, -1.0]).double(), space.bounds)
    X, values = maximise(acqf, space, Effort(4, 64, 100, 0))
    assert X[values.argmax()].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_a_design_of_a_mixture_differs() -> None:
    """``cases/03``; BoTorch's walk goes on where a sample of the box has too few."""
    for num in (5, 11):
        x = NamedOptimizer("erbo", simplex(num)).ask(12)
        assert len(x.round(4).drop_duplicates()) == 12
        assert (x.sum(axis=1) - 1.0).abs().max() <= 1e-9


@pytest.mark.slow
def test_a_run_on_a_mixture_leaves_the_corner() -> None:
    """``cases/05``, asked and recommended."""
    best = np.array([0.1, 0.35, 0.15, 0.4])
    opt = NamedOptimizer("erbo", simplex(4), **FEW)
    asked, outcomes = [], []
    for t in range(12):
        x = opt.ask()
        assert abs(x.to_numpy().sum() - 1.0) <= 1e-9
        outcomes.append(-float(((x.to_numpy() - best) ** 2).sum()))
        asked.append(x.round(3))
        opt.tell(x, {"t": t % 5 / 5}, outcomes[-1])
    assert len(pd.concat(asked).drop_duplicates()) == 12 and max(outcomes) > -0.05
    found = opt.recommend().x.iloc[0]
    assert abs(found.sum() - 1.0) <= 1e-9
    # The maximum of the posterior mean over a grid of the simplex is not higher.
    grid = np.array([p for p in np.ndindex(15, 15, 15, 15) if sum(p) == 14]) / 14
    rows = [*grid.tolist(), found.tolist()]
    Z = torch.tensor([[*row, t / 5] for row in rows for t in range(5)]).double()
    mean = opt.model.posterior(Z).mean.reshape(-1, len(rows), 5).mean(0).mean(-1)
    assert mean[-1] >= mean[:-1].max() - 1e-3


@pytest.mark.slow
def test_decisions_asked_together_differ_and_constraints_are_met_beside() -> None:
    opt = NamedOptimizer("wdrbo_exact", simplex(3, k=Category(["a", "b"])), **FEW)
    x = opt.ask(8)
    y = -((x["x0"] - 0.3) ** 2) - (x["k"] == "a")
    opt.tell(x, {"t": np.linspace(0, 1, 8)}, y, constraints=0.5 - x[["x1"]].to_numpy())
    asked = opt.ask(4)
    sums = asked[["x0", "x1", "x2"]].sum(axis=1)
    assert len(asked.drop_duplicates()) == 4 and (sums - 1.0).abs().max() <= 1e-9
    best = opt.recommend()
    parts = best.x[["x0", "x1", "x2"]].iloc[0]
    assert best.feasible and parts["x1"] <= 0.5 and abs(parts.sum() - 1.0) <= 1e-9


def test_a_small_set_of_a_function_is_filled() -> None:
    """``cases/07``: a disc; another one on a simplex; two of them."""

    def disc(c: dict[str, Tensor]) -> Tensor:
        return 0.002**2 - (c["x0"] - 0.37) ** 2 - (c["x1"] - 0.61) ** 2

    def discs(c: dict[str, Tensor]) -> Tensor:
        other = 0.002**2 - (c["x0"] - 0.8) ** 2 - (c["x1"] - 0.1) ** 2
        return disc(c).maximum(other)

    plane: dict[str, Variable | tuple[float, float]] = {"x0": (0, 1), "x1": (0, 1)}
    one = equal(1.0, x0=1, x1=1, x2=1)
    for space in (
        Space(plane, CONTEXT, constraints=[disc]),
        Space(plane | {"x2": (0, 1)}, CONTEXT, constraints=[one, disc]),
        Space(plane, CONTEXT, constraints=[discs]),
    ):
        inner = space.search_space
        X = sample(inner, 40, 0)
        assert len(X.unique(dim=0)) == 40
        (function,) = inner.nonlinear_inequality_constraints
        assert (function(X) >= -1e-6).all()
        assert torch.equal(sample(inner, 7, 0), X[:7])
        assert X[:, :2].std(0).min() > 2e-4  # it is filled, not one point with noise
        C = joint_sample(inner, 40, 0)[:, inner.d_x :]
        assert C.std() > 0.2


@pytest.mark.parametrize(
    "bounds",
    [
        [{"lower": 0.1 + 0.2}, {"upper": 0.3}],  # .30000000000000004
        [{"upper": 0.3}, {"lower": 0.3}],
        [{"lower": 0.3 - 1e-12, "upper": 0.3}],
    ],
)
def test_opposite_inequalities_without_a_gap_are_an_equality(bounds: Any) -> None:
    weights = {"a": 1.0, "b": 1.0}
    both = [LinearConstraint(weights, **b) for b in bounds]
    space = Space({"a": (0, 1), "b": (0, 1)}, CONTEXT, constraints=both).search_space
    assert space.equalities is not None and not space.inequality_constraints
    X = sample(space, 16, 0)
    assert len(X.unique(dim=0)) == 16 and (X.sum(-1) - 0.3).abs().max() <= 1e-9


def test_inequalities_with_a_gap_stay_what_they_are() -> None:
    within = LinearConstraint({"a": 1.0, "b": 1.0}, lower=0.3, upper=0.301)
    space = Space({"a": (0, 1), "b": (0, 1)}, CONTEXT, constraints=[within])
    assert space.search_space.equalities is None
    assert len(space.search_space.inequality_constraints) == 2


WHOLE = {"a": Integer(0, 10), "b": Integer(0, 10)}
UNIT = dict.fromkeys("abc", (0.0, 1.0))


@pytest.mark.parametrize(
    ("decisions", "constraints", "right"),
    [
        (WHOLE, [equal(10, a=1, b=1)], [(a, 10 - a) for a in range(11)]),
        (WHOLE, [equal(12, a=3, b=2)], [(0, 6), (2, 3), (4, 0)]),
        (WHOLE, [equal(11, a=1, b=2)], [(11 - 2 * b, b) for b in range(1, 6)]),
        ({"a": Integer(0, 5), "b": (0.0, 9.0)}, [equal(3, a=2, b=1)], [(0, 3), (1, 1)]),
        ({"a": Ordinal([0.1, 0.4]), "b": (0.0, 0.8)}, [equal(1, a=2, b=1)],
         [(0.1, 0.8), (0.4, 0.2)]),
    ],
)  # fmt: skip
def test_whole_and_listed_numbers_in_a_sum(
    decisions: Any, constraints: Any, right: Any
) -> None:
    space = Space(decisions, CONTEXT, constraints=constraints)
    rows = to_frame(sample(space.search_space, 60, 0), space.decisions).round(12)
    assert sorted(set(rows.itertuples(index=False, name=None))) == sorted(right)
    with pytest.warns(
        BotorchWarning, match=rf"60 decisions asked for only {len(right)} "
    ):
        NamedOptimizer("random", space).ask(60)
    for a, b in right:  # each is found where it is the best
        inner = space.search_space
        X, values = maximise(
            Near(torch.tensor([a, b]).double(), inner.bounds),
            inner,
            Effort(2, 16, 9, 0),
        )
        torch.testing.assert_close(X[values.argmax()], torch.tensor([a, b]).double())


def test_many_whole_numbers_in_a_sum() -> None:
    names = "abcd"
    space = Space(
        {n: Integer(0, 1000) for n in names},
        CONTEXT,
        constraints=[equal(1000, **dict.fromkeys(names, 1.0))],
    ).search_space
    target = torch.tensor([200.0, 400.0, 100.0, 300.0]).double()
    X, values = maximise(Near(target, space.bounds), space, Effort(4, 64, 100, 0))
    assert torch.equal(X.sum(-1), torch.full((len(X),), 1000.0).double())
    assert (X[values.argmax()] - target).abs().max() <= 2.0


def test_logarithms_in_a_sum_are_meant_in_the_units_of_the_user() -> None:
    """All of them, and the search ends where it should."""
    decisions: dict[str, Any] = {n: Log(1e-3, 1.0) for n in "abc"}
    space = Space(decisions, CONTEXT, constraints=[equal(1, a=1, b=1, c=1)])
    inner = space.search_space
    assert (sample(inner, 50, 0).exp().sum(-1) - 1).abs().max() <= 1e-12
    target = torch.tensor([0.01, 0.1, 0.89]).double().log()
    X, values = maximise(Near(target, inner.bounds), inner, Effort(4, 64, 100, 0))
    assert values.max() > -1e-6
    torch.testing.assert_close(X[values.argmax()], target, atol=1e-2, rtol=0)


@pytest.mark.parametrize(
    ("decisions", "constraints", "words"),
    [
        (UNIT, [equal(4, a=1, b=1, c=1)], "`a + b + c = 4`: the sum lies between 0"),
        (UNIT, [equal(1, a=1, b=1), equal(3, a=1, b=2)], "1`, `a + 2*b = 3` together"),
        (UNIT, [equal(1, a=1, b=1), equal(1, b=1, c=1), equal(2, a=2, b=2)], None),
        (UNIT, [equal(1, a=1, b=1), equal(1.5, a=1, b=1), equal(1, c=2)],
         "`a + b = 1`, `a + b = 1.5` together"),
        (UNIT, [LinearConstraint({"a": 1, "b": 1, "c": 1}, lower=3)],
         "a single decision, a = 1, b = 1, c = 1"),
        (WHOLE, [equal(5, a=2, b=2)], "Whole and listed numbers may not add up"),
        (UNIT, [LinearConstraint({"a": -1, "b": 2}, lower=3, upper=4)],
         "`3 <= -a + 2*b <= 4`: the sum lies between -1 and 2"),
    ],
)  # fmt: skip
def test_what_cannot_be_says_why_and_what_is_said_twice_is_taken(
    decisions: Any, constraints: Any, words: str | None
) -> None:
    if words is None:
        assert Space(
            decisions, CONTEXT, constraints=constraints
        ).search_space.equalities
        return
    with pytest.raises(InputDataError, match=re.escape(words)):
        Space(decisions, CONTEXT, constraints=constraints)


def test_what_bounds_leave_of_a_sum_is_filled() -> None:
    """A column that cannot move, wide bounds, inequalities that leave no room."""
    bounds = {"a": (0.5, 1.0), "b": (0.3, 1.0), "c": (0.2, 1.0), "d": (0.0, 1.0)}
    fixed = Space(bounds, CONTEXT, constraints=[equal(1, a=1, b=1, c=1)]).search_space
    X = sample(fixed, 20, 0)
    torch.testing.assert_close(X[:, :3], torch.tensor([[0.5, 0.3, 0.2]] * 20).double())
    assert len(X.unique(dim=0)) == 20
    wide = dict.fromkeys("abcde", (0.0, 10000.0))
    one = equal(1, **dict.fromkeys("abcde", 1.0))
    X = sample(Space(wide, CONTEXT, constraints=[one]).search_space, 20, 0)
    assert len(X.unique(dim=0)) == 20 and (X.sum(-1) - 1).abs().max() <= 1e-9
    halves = [LinearConstraint(dict.fromkeys(w, 1.0), upper=0.5) for w in ("ab", "cd")]
    one = equal(1, **dict.fromkeys("abcd", 1.0))
    unit = dict.fromkeys("abcd", (0.0, 1.0))
    X = sample(Space(unit, CONTEXT, constraints=[one, *halves]).search_space, 20, 0)
    assert len(X.unique(dim=0)) == 20
    assert (X[:, :2].sum(-1) - 0.5).abs().max() <= 1e-9


def test_rows_of_a_list_may_be_rounded_and_others_are_refused() -> None:
    opt = NamedOptimizer("erbo", simplex(3), num_initial=1)
    rows = pd.DataFrame({"x0": [0.333333, 0.5], "x1": [0.333333, 0.2]})
    rows["x2"] = [0.333334, 0.3]
    assert opt.ask(1, candidates=rows).sum(axis=1).item() == pytest.approx(1.0)
    rows.loc[1, "x2"] = 0.31
    with pytest.raises(InputDataError, match=r"violate the constraints: rows \[1\]"):
        opt.ask(1, candidates=rows)


def test_a_run_with_an_equality_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with NamedOptimizer("erbo", simplex(3), journal=path) as opt:
        first = opt.ask(3)
    again = NamedOptimizer.resume(path)
    assert again.named_space.constraints == opt.named_space.constraints
    assert not pd.concat([first, again.ask(2)]).duplicated().any()


def test_nothing_is_said_where_decisions_differ() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NamedOptimizer("erbo", simplex(3)).ask(5)
