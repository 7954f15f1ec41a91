"""Decisions do not depend on the units in which x, c and y are measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import Recipe, make_recipe
from botorch_drbo.recipes.base import says_how_to_model
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.search.candidates import score
from botorch_drbo.surrogate import FixedHyperparameters
from tests.products import FEW, each_recipe, one_model

SMALL = {"num_restarts": 2, "raw_samples": 16, "max_iterations": 10}


@dataclass(frozen=True)
class Units:
    """Sides of the boxes, the unit of y, and how far zero is from the lower bounds."""

    x: tuple[float, float] = (1.0, 1.0)
    c: tuple[float, float] = (1.0, 1.0)
    y: float = 1.0
    shift: float = 0.0  # in sides, and in units of y

    def bounds(self, sides: tuple[float, ...]) -> Tensor:
        lower = torch.tensor(sides, dtype=torch.double)
        return torch.stack([self.shift * lower, (self.shift + 1.0) * lower])


PLAIN = Units()
OTHERS = {
    "small": Units(x=(1e-6, 1e6), c=(1e6, 1e-6), y=1e-8, shift=-3.0),
    "large": Units(x=(1e4, 1e-5), c=(1e-6, 1e3), y=1e8, shift=1.0),
}


def problem(units: Units, d_c: int, t: int = 12) -> tuple[History, SearchSpace]:
    """A hill whose best decision depends on the context."""
    generator = torch.Generator().manual_seed(d_c)
    X = torch.rand(t, 2, generator=generator, dtype=torch.double)
    C = torch.rand(t, d_c, generator=generator, dtype=torch.double)
    target = 0.2 + 0.6 * C.mean(-1, keepdim=True)
    Y = (-4.0 * (X - target).square().sum(-1, keepdim=True)).exp() + 0.3 * C[:, :1]
    space = SearchSpace(units.bounds(units.x), units.bounds(units.c[:d_c]))
    X, C = (
        low + unit * (high - low)
        for unit, (low, high) in ((X, space.bounds), (C, space.context_bounds))
    )
    return History(X=X, C=C, Y=units.y * (Y + units.shift), contexts=C), space


def recipe(name: str, units: Units, **options: object) -> Recipe:
    """The recipe with what it is told in units of y in these units."""
    of_y = {
        "regret_balancing": {
            "reward_range": tuple(units.y * (y + units.shift) for y in (-1.0, 3.0))
        },
        "ec_gp_ucb": {"misspecification": 0.1 * units.y},
        "ec_wdrbo": {"misspecification": 0.1 * units.y},
    }
    told = {**FEW.get(name, {}), **of_y.get(name, {})}
    if name != "wdrbo_exact" and not says_how_to_model(options):
        told |= one_model(name)
    return make_recipe(name, **{**SMALL, **told, **options})


def in_sides(x: Tensor, space: SearchSpace) -> Tensor:
    return (x - space.bounds[0]) / (space.bounds[1] - space.bounds[0])


def answer(
    name: str, units: Units, d_c: int = 1, **options: object
) -> tuple[Tensor, Recommendation]:
    """A proposed and the recommended decision, in sides; and the recommendation."""
    history, space = problem(units, d_c)
    algorithm = recipe(name, units, **options)
    x = algorithm.propose(history, space, seed=1)
    best = algorithm.recommend(history, space, seed=1)
    return in_sides(torch.cat([x, best.x.unsqueeze(0)]), space), best


plainly = cache(answer)


def check(
    found: tuple[Tensor, Recommendation],
    plain: tuple[Tensor, Recommendation],
    units: Units,
) -> None:
    torch.testing.assert_close(found[0], plain[0], rtol=0.0, atol=1e-6)
    for kind in ("objective", "expected_value", "worst_case_value"):
        value = getattr(found[1], kind) / units.y - units.shift
        assert value == pytest.approx(getattr(plain[1], kind), abs=1e-6)


@pytest.mark.parametrize("units", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("name", each_recipe())
def test_every_recipe_in_other_units(name: str, units: Units) -> None:
    check(answer(name, units), plainly(name, PLAIN), units)


@pytest.mark.parametrize("name", ["drbo_mmd", "ec_wdrbo", "stable_opt", "wdrbo_exact"])
def test_two_contexts_in_other_units(name: str) -> None:
    units = OTHERS["large"]
    check(answer(name, units, 2), plainly(name, PLAIN, 2), units)


exponents = st.floats(-6.0, 6.0)


@settings(max_examples=5)
@given(exponents, exponents, exponents, st.floats(-100.0, 100.0), st.floats(-5.0, 5.0))
def test_any_units(x: float, x2: float, c: float, y: float, shift: float) -> None:
    units = Units((10**x, 10**x2), (10**c, 1.0), 10**y, shift)
    check(answer("erbo", units), plainly("erbo", PLAIN), units)


@pytest.mark.parametrize("name", ["wdrbo", "gp_ucb"])
def test_known_hyperparameters_in_other_units(name: str) -> None:
    def prior(units: Units) -> FixedHyperparameters:
        square = units.y**2
        return FixedHyperparameters((0.3, 0.5, 0.4), 1e-3 * square, 0.7 * square)

    plain = answer(name, PLAIN, hyperparameters=prior(PLAIN))
    for y in (1e-9, 1e9):  # no shift: the prior's mean is zero
        units = Units(x=(1e5, 1e-3), y=y)
        check(answer(name, units, hyperparameters=prior(units)), plain, units)


@pytest.mark.parametrize(("side", "unit"), [(1e4, 1.0), (1e-4, 1e5), (1.0, 1e-9)])
def test_the_climb_gets_to_a_top(side: float, unit: float) -> None:
    # Nothing in a cloud of decisions is better than what was found; L-BFGS-B used to
    # stop where it had started in [0, 1e4]^4, and at a spread of 1e-9 in a corner.
    unit_box = torch.tensor([[0.0] * 4, [1.0] * 4], dtype=torch.double)
    space = SearchSpace(side * unit_box, unit_box[:, :1])
    cloud = SobolEngine(4, scramble=True, seed=3).draw(4096, dtype=torch.double)
    X, C = cloud[:20], cloud[-20:, :1]
    Y = -(X - 0.3 - 0.4 * C).square().sum(-1, keepdim=True) - 1.0
    history = History(X=side * X, C=C, Y=unit * Y, contexts=C)
    erbo = make_recipe("erbo", num_restarts=2, raw_samples=16)
    model = erbo.fitted(history, space, uses_contexts=True)
    x = erbo.propose(history, space)
    acqf = erbo.exploring(erbo.state_of(model, history, space, 0), None)
    found, others = score(acqf, x), score(acqf, side * cloud)
    assert found.item() > others.max()
    best = erbo.recommend(history, space)
    acqf = erbo.exploiting(erbo.state_of(model, history, space, 0))
    value = score(acqf, best.x.unsqueeze(0)).item()
    assert best.objective == pytest.approx(value, rel=1e-12)
    assert best.objective > score(acqf, side * cloud).max()
    assert best.expected_value < 0.0  # as all outcomes are


@pytest.mark.parametrize("level", [0.0, 1.0, -1e20, 1e-20])
@pytest.mark.parametrize("name", ["erbo", "gp_ucb", "wdrbo"])
def test_equal_outcomes_are_explored_with_a_warning(name: str, level: float) -> None:
    history, space = problem(PLAIN, 1)
    X = 0.2 * history.X  # in one corner
    equal = History(
        X=X, C=history.C, Y=torch.full_like(history.Y, level), contexts=history.C
    )
    with pytest.warns(InputDataWarning, match="All 12 outcomes are equal") as seen:
        x = recipe(name, PLAIN).propose(equal, space)
    assert len(seen) == 1
    assert x.max() > 0.8
    with pytest.warns(InputDataWarning, match="equal"):
        best = recipe(name, PLAIN).recommend(equal, space)
    assert best.expected_value == pytest.approx(level)


def minimised(*outcomes: float) -> RobustOptimizer:
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    settings = {"maximize": False, "num_initial": 0, "num_restarts": 1}
    opt = RobustOptimizer("erbo", unit, unit, raw_samples=8, **settings)
    rows = torch.tensor([[0.2], [0.6]], dtype=torch.double)
    opt.tell(rows, rows, torch.tensor(outcomes, dtype=torch.double))
    return opt


def test_messages_of_a_run_that_minimises_have_no_value_of_the_other_sign() -> None:
    with pytest.warns(InputDataWarning, match="All 2 outcomes are equal") as warned:
        minimised(7.5, 7.5).ask()
    assert "-7.5" not in str(warned[0].message)
    with pytest.raises(InputDataError, match="up to 2e-200 in size") as refused:
        minimised(1e-200, 2e-200).ask()
    assert "-2e-200" not in str(refused.value)


def test_one_outcome_is_no_reason_to_warn(recwarn: pytest.WarningsRecorder) -> None:
    history, space = problem(PLAIN, 1, t=1)
    recipe("erbo", PLAIN).propose(history, space)
    assert not [warning for warning in recwarn if warning.category is InputDataWarning]


@pytest.mark.parametrize(
    ("unit", "dtype"),
    [(1e-200, torch.double), (1e200, torch.double), (1e-30, torch.float)],
)
def test_outcomes_without_a_variance_are_refused(unit: float, dtype: torch.dtype):
    history, space = problem(PLAIN, 1)
    parts = (part.to(dtype) for part in (history.X, history.C, unit * history.Y))
    X, C, Y = parts
    space = SearchSpace(space.bounds.to(dtype), space.context_bounds.to(dtype))
    with pytest.raises(InputDataError, match=r"variance is not a number .* unit"):
        recipe("erbo", PLAIN).propose(History(X=X, C=C, Y=Y, contexts=C), space)


@pytest.mark.parametrize("name", ["wdrbo", "ts_bocu"])
def test_a_whole_run_in_other_units(name: str) -> None:
    def run(units: Units) -> list[Tensor]:
        bounds, context_bounds = units.bounds(units.x), units.bounds(units.c[:1])
        opt = RobustOptimizer(name, bounds, context_bounds, num_initial=4, **SMALL)
        space, asked = SearchSpace(bounds, context_bounds), []
        for i in range(6):
            x = opt.ask()
            asked.append(in_sides(x, space))
            unit = torch.tensor([[(0.37 * i) % 1.0]], dtype=torch.double)
            y = -(asked[-1] - 0.3 - 0.4 * unit).square().sum(-1, keepdim=True)
            c = torch.lerp(context_bounds[0], context_bounds[1], unit)
            opt.tell(x, c, units.y * (y + units.shift))
        return [*asked, in_sides(opt.recommend().x.unsqueeze(0), space)]

    plain = run(PLAIN)
    for units in OTHERS.values():
        torch.testing.assert_close(run(units), plain, rtol=0.0, atol=1e-4)
