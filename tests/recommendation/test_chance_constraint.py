"""Outcome constraints in recipes: a dense grid of decisions is the oracle."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.exceptions.warnings import BotorchWarning
from botorch.models import ModelListGP
from torch import Tensor

from benchmarks.problems import Reservoir
from botorch_drbo import ContextSet
from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.ambiguity import FullSimplex, TotalVariation
from botorch_drbo.problem import ConstraintData, History, Round, SearchSpace
from botorch_drbo.problem.feasible import sample
from botorch_drbo.recipes import RECIPES, make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recommendation.best_decision import (
    ChanceConstraint,
    Effort,
    best_feasible,
    incumbents,
)
from botorch_drbo.search.candidates import score
from botorch_drbo.surrogate.fit import fit_constraints
from tests.models import UNIT, known_model, uniform
from tests.products import one_model

FUNCTION = Reservoir(num_reference=20)
SPACE = SearchSpace(FUNCTION.bounds, FUNCTION.context_bounds)
SMALL = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 20}
LEVEL = 0.7


def history(num: int = 14, shift: float = 0.0) -> History:
    X, C = uniform(num, 2, seed=1), uniform(num, 1, seed=2)
    G = FUNCTION.constraints(X, C) + shift
    return History(
        X=X,
        C=C,
        Y=FUNCTION.evaluate(X, C).unsqueeze(-1),
        contexts=C,
        constraints=ConstraintData(X, C, G),
    )


HISTORY = history()


def recipe(name: str = "dro", **options) -> ModelBasedRecipe:
    options = {"reference": FUNCTION.reference, "feasibility": LEVEL} | options
    if name == "dro":
        options = {"ambiguity_set": TotalVariation(0.2)} | options
    made = make_recipe(name, **SMALL | one_model(name) | options)
    assert isinstance(made, ModelBasedRecipe)
    return made


def grid(side: int = 41) -> Tensor:
    points = torch.linspace(0, 1, side).double()
    return torch.cartesian_prod(points, points)


def chance(made: ModelBasedRecipe, data: History = HISTORY):
    model = made.fitted_model(data, SPACE)
    state = made.state_of(model, data, SPACE, 0)
    return made._chance(fit_constraints(data, SPACE), state), model


def test_the_recommendation_is_the_best_of_those_that_reach_the_level() -> None:
    made = recipe()
    best = made.recommend(HISTORY, SPACE)
    constraint, model = chance(made)
    points = grid()
    with torch.no_grad():
        values = made.exploiting(made.state_of(model, HISTORY, SPACE, 0))(
            points.unsqueeze(-2)
        )
    probability = constraint.probability(points)
    allowed = values[probability >= LEVEL]
    assert best.feasible and best.feasibility >= LEVEL
    assert allowed.max() < values.max() - 0.1  # the constraint binds
    aimed = values[probability >= constraint.aim]  # a little above the level
    assert best.objective >= aimed.max() - 2e-3
    assert best.objective <= values[probability >= LEVEL - 0.02].max() + 2e-3
    assert f"with probability {best.feasibility:.3f}" in str(best)


def test_its_probability_is_the_least_over_the_whole_box() -> None:
    """A total variation ball moves a tenth of the mass to the worst inflow of all."""
    made = recipe()
    best = made.recommend(HISTORY, SPACE)
    constraint, _ = chance(made)
    inflows = torch.linspace(0, 1, 2001).double().unsqueeze(-1)
    (member,) = constraint.model.models

    def probabilities(contexts: Tensor) -> Tensor:
        Z = torch.cat([best.x.expand(len(contexts), -1), contexts], dim=-1)
        with torch.no_grad():
            at = member.posterior(Z.unsqueeze(-2))
        z = (at.mean / at.variance.sqrt()).flatten()
        return torch.distributions.Normal(0.0, 1.0).cdf(z)

    own = probabilities(FUNCTION.reference.points).sort(descending=True).values
    lowest = probabilities(inflows).min()
    kept = own[2:].sum() / 20  # two of twenty atoms are a tenth
    assert best.feasibility == pytest.approx((kept + 0.1 * lowest).item(), abs=1e-4)


def test_ambiguity_makes_the_recommendation_more_careful() -> None:
    """For the same objective, which the context shifts alike for all decisions."""
    found = [
        recipe(ambiguity_set=TotalVariation(radius)).recommend(HISTORY, SPACE)
        for radius in (0.0, 0.2, 0.5)
    ]
    sizes = [best.x.norm().item() for best in found]
    assert sizes[0] > sizes[1] + 0.05 > sizes[2] + 0.1
    # Near the truth: |x|^2 = 2 (1.05 - level - radius / 2).
    for size, radius in zip(sizes[:2], (0.0, 0.2), strict=True):
        assert size == pytest.approx((2 * (1.05 - LEVEL - radius / 2)) ** 0.5, abs=0.12)


def test_a_decision_is_asked_where_a_gain_is_likely_and_feasible() -> None:
    """The weighted gain at its own maximum, against a grid."""
    made = recipe(num_restarts=4, raw_samples=128)
    x = made.propose(HISTORY, SPACE)
    constraint, model = chance(made)
    tried = HISTORY.X
    objective = made.exploiting(made.state_of(model, HISTORY, SPACE, 0))
    reached = constraint.probability(tried) >= LEVEL
    with torch.no_grad():
        reference = objective(tried.unsqueeze(-2))[reached].max()
    ucb = made.exploring(made.state_of(model, HISTORY, SPACE, 0), None)

    def gain(X: Tensor) -> Tensor:
        with torch.no_grad():
            rise = (ucb(X.unsqueeze(-2)) - reference).clamp_min(0.0)
        return rise * (constraint.probability(X) / constraint.aim).clamp_max(1.0) ** 20

    assert reached.any()
    assert gain(x) >= gain(grid()).max() * 0.999


@pytest.mark.filterwarnings("ignore:No decision was found")
def test_when_none_reaches_the_level_the_most_feasible_is_recommended() -> None:
    data = history(shift=-0.7)  # empty reservoirs take an inflow of .35
    made = recipe(ambiguity_set=TotalVariation(0.2))
    with pytest.warns(BotorchWarning, match="No decision was found that meets"):
        best = made.recommend(data, SPACE)
    assert best.feasible is False and best.feasibility < LEVEL
    assert "TOO LITTLE" in str(best)
    constraint, _ = chance(made, data)
    assert constraint.probability(best.x.unsqueeze(0)) >= (
        constraint.probability(grid()).max() - 1e-3
    )
    x = made.propose(data, SPACE)
    assert constraint.probability(x) >= 0.5 * constraint.probability(grid()).max()


def few_samples(seed: int, limit: float = 0.9) -> tuple[History, SearchSpace]:
    """Four decisions and one context, of which few known decisions are feasible."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(14, 4, generator=generator, dtype=torch.double)
    C = torch.rand(14, 1, generator=generator, dtype=torch.double)
    Y = -(X - 0.3).square().sum(-1) - (C[:, 0] - 0.5) ** 2 + X[:, 0] * C[:, 0]
    G = limit - X[:, :1] - 0.5 * C - 0.5 * X[:, 1:2]  # n x 1
    known = ConstraintData(X, C, G)
    data = History(X=X, C=C, Y=Y.unsqueeze(-1), contexts=C, constraints=known)
    return data, SearchSpace(UNIT.expand(2, 4), UNIT)


@pytest.mark.parametrize(
    ("seed", "limit", "num"), [(0, 0.7, 0), (2, 0.9, 1), (9, 0.9, 2)]
)
def test_a_search_starts_from_the_few_known_that_reach_the_level(
    seed: int, limit: float, num: int
) -> None:
    """From none, where an ascent finds a single one first; from one; from two."""
    data, space = few_samples(seed, limit)
    made = make_recipe("wdrbo_exact", num_restarts=2, raw_samples=8)
    state = made.state_of(made.fitted_model(data, space), data, space, 0)
    constraint = made._chance(fit_constraints(data, space), state)
    known = torch.cat([data.X, sample(space, 8, 0)])
    reached = constraint.probability(known) >= constraint.aim
    assert reached.sum() == num
    best = made.recommend(data, space)
    assert best.feasible and best.feasibility >= 0.95
    assert constraint.probability(best.x.unsqueeze(0)) >= 0.95
    values = score(made.exploiting(state), known)
    assert (best.objective >= values[reached]).all()


class _FirstColumn(AcquisitionFunction):
    """Small first columns are good."""

    def forward(self, X: Tensor) -> Tensor:
        return -X[..., 0, 0]


class _Counted(_FirstColumn):
    """How many decisions were scored without a graph."""

    num = 0

    def forward(self, X: Tensor) -> Tensor:
        self.num += 0 if torch.is_grad_enabled() else len(X)
        return super().forward(X)


def test_a_search_scores_each_decision_once() -> None:
    Z = uniform(12, 2, seed=3)
    # Surely positive where the first column exceeds one half.
    model = known_model(Z, 4 * Z[:, :1] - 2.0, lengthscale=1.0, noise=1e-4)
    space = SearchSpace(UNIT, UNIT)
    problem = WorstCaseProblem.of(ContextSet(UNIT), TotalVariation(0.1), space)
    constraint = ChanceConstraint(ModelListGP(model), problem, UNIT, level=0.9, seed=0)
    effort = Effort(num_restarts=2, raw_samples=64, max_iterations=9, seed=0)
    acqf = _Counted(model)
    x, value, _ = best_feasible(acqf, constraint, space, sample(space, 64, 0), effort)
    assert value.item() == -x.item()
    drawn = sample(space, 64, 0)
    num_reached = int((constraint.probability(drawn) >= 0.9).sum())
    assert 16 < num_reached < 48
    assert num_reached <= acqf.num <= num_reached + 4  # two starts, two ends


def test_each_decision_that_fails_over_the_box_makes_room_for_the_next() -> None:
    """Seven decisions fail in a context of their own that is not on the list."""
    points, contexts = torch.arange(1, 8).double() / 10, torch.linspace(0, 1, 41)
    columns = (points, torch.tensor([0.0, 1.0]).double(), contexts.double())
    Z = torch.cartesian_prod(*columns)
    dips = 2 * (-(((Z[:, 2] - Z[:, 0]) / 0.06) ** 2)).exp() * (1 - Z[:, 1])
    model = known_model(
        Z, (1 - dips).unsqueeze(-1), lengthscale=0.08, noise=1e-4, normalise=False
    )
    space = SearchSpace(UNIT.expand(2, 2), UNIT)
    problem = WorstCaseProblem.of(ContextSet(UNIT), TotalVariation(0.4), space)
    constraint = ChanceConstraint(ModelListGP(model), problem, UNIT, level=0.95, seed=0)
    fails = torch.stack([points, torch.zeros(7).double()], dim=-1)
    holds = torch.tensor([[0.7, 1.0]]).double()
    rows = torch.cat([fails, holds])
    assert (constraint.probability(rows) >= 0.95).all()  # on the list of two
    x, value, probability = best_feasible(
        _FirstColumn(model), constraint, space, rows, None
    )
    assert torch.equal(x, holds[0]) and probability >= 0.95
    assert value.item() == pytest.approx(-0.7)
    x, _, probability = best_feasible(
        _FirstColumn(model), constraint, space, fails, None
    )
    assert probability == pytest.approx(0.8, abs=1e-3)  # .2 of the mass is in the dip
    # Where the list alone falls short too the box still counts.
    edge = torch.linspace(0.1, 0.2, 2001).double().unsqueeze(-1)  # of the first dip
    with torch.no_grad():
        at = model.posterior(torch.cat([fails[:1].expand(2001, 2), edge], -1))
    halfway = at.mean.flatten().abs().argmin()  # a probability of one half
    longer = replace(constraint, points=torch.cat([UNIT, edge[halfway : halfway + 1]]))
    assert 0.81 < longer.probability(fails[:1]) < 0.949
    _, _, probability = best_feasible(
        _FirstColumn(model), longer, space, fails[:1], None
    )
    assert probability == pytest.approx(0.8, abs=1e-3)


def test_a_search_learns_the_contexts_that_the_list_lacks() -> None:
    """The dip at one half is off the list; decisions from 0.6 on have none."""
    Z = torch.cartesian_prod(
        torch.linspace(0, 1, 21).double(), torch.linspace(0, 1, 21).double()
    )
    dip = 3 * (-(((Z[:, 1] - 0.5) / 0.15) ** 2)).exp()
    depth = (0.6 - Z[:, 0]).clamp_min(0) / 0.6
    model = known_model(
        Z, (0.3 - dip * depth).unsqueeze(-1), lengthscale=0.15, noise=1e-4,
        normalise=False,
    )  # fmt: skip
    space = SearchSpace(UNIT, UNIT)
    problem = WorstCaseProblem.of(ContextSet(UNIT), TotalVariation(0.4), space)
    constraint = ChanceConstraint(ModelListGP(model), problem, UNIT, level=0.95, seed=0)
    effort = Effort(num_restarts=2, raw_samples=16, max_iterations=50, seed=0)
    x, _, probability = best_feasible(
        _FirstColumn(model), constraint, space, sample(space, 16, 0), effort
    )
    assert probability >= 0.95
    fine = torch.linspace(0.3, 0.7, 401).double().unsqueeze(-1)
    everywhere = ChanceConstraint.of(ModelListGP(model), problem, 0.95, seed=0)
    allowed = fine[everywhere.probability(fine) >= everywhere.aim]
    assert x.item() == pytest.approx(allowed.min().item(), abs=3e-3)


def test_while_nothing_is_feasible_any_decision_is_a_gain() -> None:
    made = recipe()
    data = history(shift=-2.0)
    constraint, model = chance(made, data)
    state = made.state_of(model, data, SPACE, 0)
    observed, reference = incumbents(made.exploiting(state), constraint, state)
    values = score(made.exploiting(state), data.X)
    assert (constraint.probability(data.X) < LEVEL).all()
    assert reference == pytest.approx(values.min().item())
    assert observed.history.baseline is not None
    assert torch.equal(observed.history.baseline, data.X[values.argmin()].unsqueeze(0))


def test_a_list_of_decisions() -> None:
    listed = grid(9)
    made = recipe()
    best = made.recommend(HISTORY, SPACE, candidates=listed)
    constraint, model = chance(made)
    with torch.no_grad():
        values = made.exploiting(made.state_of(model, HISTORY, SPACE, 0))(
            listed.unsqueeze(-2)
        )
    allowed = constraint.probability(listed) >= LEVEL
    expected = listed[torch.where(allowed, values, -torch.inf).argmax()]
    assert torch.equal(best.x, expected)
    x = made.propose(HISTORY, SPACE, candidates=listed, q=2)
    assert (listed.unsqueeze(0) == x.unsqueeze(1)).all(-1).any(-1).all()


def test_without_constraints_nothing_changes() -> None:
    plain = History(X=HISTORY.X, C=HISTORY.C, Y=HISTORY.Y, contexts=HISTORY.C)
    best = recipe().recommend(plain, SPACE)
    assert best.feasibility is None and best.feasible is None
    assert "feasible" not in str(best)
    assert torch.equal(best.x, recipe(feasibility=0.5).recommend(plain, SPACE).x)


def test_the_unit_of_a_constraint_does_not_matter() -> None:
    given = HISTORY.constraints
    assert given is not None
    small = replace(HISTORY, constraints=replace(given, G=1e-9 * given.G))
    (plain, _), (found, _) = chance(recipe()), chance(recipe(), small)
    for x in grid(3):
        wanted = plain.robust_probability(x)[1].value.item()
        assert found.robust_probability(x)[1].value.item() == pytest.approx(
            wanted, abs=1e-3
        )


def test_constraints_of_trials_without_an_outcome_count() -> None:
    """A crash with a measured violation keeps decisions away."""
    X, C = uniform(30, 2, seed=5), uniform(30, 1, seed=6)
    few = ConstraintData(HISTORY.X[:4], HISTORY.C[:4], HISTORY.constraints.G[:4])
    many = ConstraintData(X, C, FUNCTION.constraints(X, C))
    data = [
        History(X=HISTORY.X, C=HISTORY.C, Y=HISTORY.Y, contexts=C, constraints=known)
        for known in (few, many)
    ]
    errors = []
    for known in data:
        constraint, _ = chance(recipe(), known)
        found = constraint.probability(grid(11))
        truth = FUNCTION.feasibility(grid(11), 0.2)
        errors.append((found - truth).abs().mean())
    assert errors[1] < 0.05 < errors[0]


def test_a_context_that_is_known_before_the_choice() -> None:
    """With a drought foreseen the reservoirs are kept full, and else they are not."""
    found = [
        recipe().recommend(
            HISTORY,
            SPACE,
            this_round=Round(known_context=torch.tensor([inflow]).double()),
        )
        for inflow in (0.2, 0.9)
    ]
    for best, inflow in zip(found, (0.2, 0.9), strict=True):
        room = (2 * (1.05 - inflow)) ** 0.5  # the context is certain, and so is g
        assert best.feasible
        assert best.x.norm().item() == pytest.approx(min(room, 1.27), abs=0.15)
    contexts = torch.tensor([[0.2], [0.9]]).double()
    table = recipe().recommend_for(HISTORY, SPACE, contexts)
    assert torch.allclose(table, torch.stack([best.x for best in found]), atol=2e-2)


def test_two_constraints() -> None:
    """The second bounds the first reservoir: x_1 <= .3, whatever the inflow."""
    G = torch.cat([HISTORY.constraints.G, 0.3 - HISTORY.X[:, :1]], dim=-1)
    data = History(
        X=HISTORY.X,
        C=HISTORY.C,
        Y=HISTORY.Y,
        contexts=HISTORY.C,
        constraints=ConstraintData(HISTORY.X, HISTORY.C, G),
    )
    best = recipe().recommend(data, SPACE)
    assert best.feasible and best.x[0] < 0.31
    assert recipe().recommend(HISTORY, SPACE).x[0] > 0.35


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_every_constraint_counts_in_the_probability(order: tuple[int, int]) -> None:
    """By hand, context by context: the product of both, whichever is told last."""
    Z = uniform(20, 2, seed=3)
    columns = [0.42 - Z[:, :1] * Z[:, 1:], Z[:, :1] - 0.75 + 0.5 * Z[:, 1:]]
    members = [
        known_model(Z, columns[j], lengthscale=0.4, noise=1e-3, normalise=False)
        for j in order
    ]
    contexts = torch.linspace(0, 1, 9).double().unsqueeze(-1)
    problem = WorstCaseProblem(
        contexts=ContextSet(contexts), ball=lambda points: TotalVariation(0.5)
    )
    constraint = ChanceConstraint.of(ModelListGP(*members), problem, 0.9, seed=0)
    x = torch.tensor([0.6]).double()
    rows = torch.cat([x.expand(9, 1), contexts], dim=-1)
    by_hand = torch.ones(9).double()
    for member in members:
        with torch.no_grad():
            at = member.posterior(rows.unsqueeze(-2))
        z = (at.mean / at.variance.sqrt()).flatten()
        alone = torch.distributions.Normal(0.0, 1.0).cdf(z)
        assert alone.min() < 0.9 * alone.max()  # each of them matters
        by_hand = by_hand * alone
    ordered = by_hand.sort().values
    moved = 0.25 * ordered[0]  # a quarter of the mass to the worst of nine
    kept = torch.cumsum(torch.full((9,), 1 / 9).double(), 0).clamp_max(0.75)
    expected = moved + (kept.diff(prepend=torch.zeros(1)) * ordered).sum()
    _, robust = constraint.robust_probability(x)
    assert robust.value.item() == pytest.approx(expected.item(), abs=1e-6)
    listed = constraint.probability(x.unsqueeze(0))
    assert listed.item() == pytest.approx(expected.item(), abs=1e-6)


def test_a_decision_that_was_tried_but_is_not_allowed_is_not_recommended() -> None:
    """It has the best outcome by far, meets the limits surely, and breaks the space."""
    X = torch.cat([HISTORY.X, torch.full((3, 2), 0.1).double()])
    C = torch.cat([HISTORY.C, torch.tensor([[0.2], [0.5], [0.8]]).double()])
    Y = torch.cat([HISTORY.Y, torch.full((3, 1), 9.0).double()])
    G = torch.cat([HISTORY.constraints.G, torch.full((3, 1), 1.0).double()])
    at_least = (torch.tensor([0, 1]), torch.ones(2).double(), 0.4)  # x1 + x2 >= .4
    spaces = [
        replace(SPACE, inequality_constraints=(at_least,)),
        replace(SPACE, nonlinear_inequality_constraints=(lambda x: x.sum(-1) - 0.4,)),
    ]
    for known in (None, ConstraintData(X, C, G)):
        data = History(X=X, C=C, Y=Y, contexts=C, constraints=known)
        assert recipe().recommend(data, SPACE).x.sum() < 0.4  # without the limit
        for allowed in spaces:
            assert recipe().recommend(data, allowed).x.sum() >= 0.4 - 1e-5


TAKE = [name for name, made in RECIPES.items() if made.takes_constraints]
SLOW = ("drbo_mmd_minimax", "ts_drbo_mmd", "drbo_mmd", "ei_drbo_kde")


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKE)
@pytest.mark.filterwarnings("ignore:No decision was found")
def test_every_model_based_recipe_heeds_them(name: str) -> None:
    options = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 5}
    made = make_recipe(name, feasibility=LEVEL, **options)
    x = made.propose(HISTORY, SPACE)
    best = made.recommend(HISTORY, SPACE)
    assert x.shape == (1, 2) and best.x.shape == (2,)
    assert best.feasibility is not None
    assert best.feasible == (best.feasibility >= LEVEL)
    plain = History(X=HISTORY.X, C=HISTORY.C, Y=HISTORY.Y, contexts=HISTORY.C)
    if best.feasible:
        assert best.objective <= made.recommend(plain, SPACE).objective + 1e-3
    if name != "random":
        assert not torch.equal(x, made.propose(plain, SPACE))


def test_recipes_that_would_not_heed_them_say_so() -> None:
    assert set(RECIPES) - set(TAKE) == {"phased_gp_us", "regret_balancing"}
    for name in ("phased_gp_us", "regret_balancing"):
        with pytest.raises(UnsupportedError, match="support outcome constraints"):
            make_recipe(name).recommend(HISTORY, SPACE)


def test_a_set_that_leaves_nothing_is_as_feasible_as_its_worst_context() -> None:
    made = recipe(ambiguity_set=FullSimplex())
    constraint, _ = chance(made)
    found = constraint.feasibility.probabilities(grid(5)).amin(-1)
    assert torch.allclose(constraint.probability(grid(5)), found, atol=1e-8)


def test_bad_input() -> None:
    for level in (0.0, 1.0, 1.2, -0.5, "high"):
        with pytest.raises(InputDataError, match="feasibility"):
            recipe(feasibility=level)
    with pytest.raises(BotorchTensorDimensionError, match="s x k"):
        ConstraintData(HISTORY.X, HISTORY.C, HISTORY.X[:3])
    with pytest.raises(InputDataError, match="NaN"):
        ConstraintData(HISTORY.X, HISTORY.C, HISTORY.Y / 0 * 0)
