"""How far the contexts may shift before another decision is the better one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from botorch_drbo import ContextSet
from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.problem import ConstraintData, History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recommendation.stability import (
    _most_dangerous,
    against_rivals,
    overtaken,
    rivals_of,
)
from tests.models import UNIT, known_model, uniform
from tests.products import product
from tests.surrogate.test_given_model import ensemble

SMALL = {
    "num_restarts": 2,
    "raw_samples": 32,
    "max_iterations": 20,
    "surrogate": "botorch",
}
HALF = torch.tensor([0.5, 0.5]).double()
BOLD = torch.tensor([10.0, 0.0]).double()
SAFE = torch.tensor([6.0, 3.0]).double()
POOR = torch.tensor([1.0, 1.0]).double()
RIVALS = torch.tensor([[0.1], [0.7]], dtype=torch.double)


def test_two_lines_cross_where_they_cross():
    # 5 - 5 r against 4.5 - 1.5 r: from 1 / 7 on.
    at = overtaken(TotalVariation(0.1), HALF, BOLD, torch.stack([POOR, SAFE]), RIVALS)
    assert at.until == pytest.approx(1 / 7, abs=3e-4)
    assert at.rival.item() == 0.7
    assert (at.radius, at.searched, at.num_rivals) == (0.1, 0.4, 2)


def test_a_rival_that_is_ahead_already_is_named():
    at = overtaken(TotalVariation(0.2), HALF, BOLD, SAFE.unsqueeze(0), RIVALS[1:])
    assert at.until == at.radius == 0.2
    assert at.words("x1 = 0.7") == (
        "by the posterior mean not at radius 0.2 itself: x1 = 0.7 has a better worst "
        "case"
    )


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_several_that_are_ahead_the_best_is_named(order):
    rows = torch.stack([SAFE, SAFE - 0.05])[list(order)]
    at = overtaken(TotalVariation(0.3), HALF, BOLD, rows, RIVALS[list(order)])
    assert at.until == at.radius == 0.3 and at.rival.item() == RIVALS[0]


def test_the_first_of_two_that_overtake_counts():
    # 4.9 - 1.9 r overtakes at 0.1 / 3.1, before the other does.
    early = torch.tensor([6.8, 3.0]).double()
    at = overtaken(TotalVariation(0.02), HALF, BOLD, torch.stack([SAFE, early]), RIVALS)
    assert at.until == pytest.approx(0.1 / 3.1, abs=1e-4)
    assert at.rival.item() == 0.7


def test_a_rival_that_is_the_same_but_for_rounding_does_not_overtake():
    twin = (BOLD + 1e-11).unsqueeze(0)
    at = overtaken(TotalVariation(0.1), HALF, BOLD, twin, RIVALS[1:])
    assert at.until is None


@pytest.mark.parametrize(
    ("values", "twin"),
    [
        (BOLD, BOLD + 1e-6),  # what a solver leaves undecided
        (BOLD + 1e9, BOLD + 1e9 + 1e-6),  # eight units in the last place
        (BOLD.float() + 1e6, BOLD.float() + 1e6 + 0.125),  # the same in float32
    ],
)
def test_a_tie_is_no_overtaking_whatever_the_units_and_the_dtype(values, twin):
    assert (twin > values).all()
    rows = twin.unsqueeze(0)
    at = overtaken(TotalVariation(0.1), HALF, values, rows, RIVALS[1:])
    assert at.until is None
    better = rows + 0.01 if values.dtype == torch.double else rows + 10.0
    at = overtaken(TotalVariation(0.1), HALF, values, better, RIVALS[1:])
    assert at.until == at.radius


def test_none_overtakes_up_to_four_times_the_radius():
    at = overtaken(TotalVariation(0.03), HALF, BOLD, SAFE.unsqueeze(0), RIVALS[1:])
    assert at.until is None and at.rival is None
    assert at.searched == pytest.approx(0.12)


def history(t: int = 14) -> History:
    """The bold decision (1) is best if the context is high, the safe one (0) if low."""
    X, C = uniform(t, 1), 0.4 + 0.6 * uniform(t, 1, seed=1)
    return History(X=X, C=C, Y=X * (4 * C - 1.5), contexts=C)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("dro", {"radius": 0.3}),
        ("wdrbo_exact", {"radius": 0.15}),
        ("drbo_kde", {"radius": 0.3, "num_contexts": 32, "num_outside": 32}),
        ("drbo_mmd", {"radius": 0.3, "num_contexts": 9}),
    ],
)
def test_it_is_where_the_profiles_of_both_decisions_cross(name, options):
    data, space = history(), SearchSpace(UNIT, UNIT)
    recipe = make_recipe(name, **options, **SMALL)
    best = recipe.recommend(data, space)
    at = best.stability
    assert at is not None and at.radius == options["radius"]
    assert at.until is not None and at.radius < at.until < at.searched
    radii = at.until * torch.tensor([0.9, 1.1], dtype=torch.double)
    profile = recipe.profiled(
        FittedState(data, space),
        best.x,
        other=at.rival,
        target=None,
        radii=radii,
        ambiguity_set=None,
    )
    assert profile.falls_behind == pytest.approx(at.until, rel=0.05)
    assert (at.rival == data.X).all(-1).any()


def test_it_says_what_was_compared():
    """A told decision within a hundredth of a side is no rival, one beyond it is."""
    data, space = history(5), SearchSpace(UNIT, UNIT)
    recipe = product("dro", radius=0.3, **SMALL)
    x = recipe.recommend(data, space).x
    near, far = (x + gap if x < 0.5 else x - gap for gap in (0.009, 0.011))
    X = torch.cat([data.X, near.unsqueeze(0), far.unsqueeze(0)])
    for rows, num in ((X[:6], 5), (X, 6)):
        C = data.C[torch.arange(len(rows)) % 5]
        Y = rows * (4 * C - 1.5)
        observed = History(X=rows, C=C, Y=Y, contexts=C)
        model = recipe.fitted_model(observed, space)
        found = against_rivals(
            recipe.worst_case_problem(recipe.state_of(model, observed, space, 0)),
            ContextSet(C),
            model,
            x,
            rivals_of(x, observed.X, space, None, None)[0],
            "told",
            seed=0,
        )
        assert found.num_rivals == num and found.compared == f"{num} decisions told"
    best = recipe.recommend(data, space)
    (line,) = (row for row in str(best).splitlines() if row.startswith("compared"))
    assert line == (
        f"compared with       {best.stability.num_rivals} decisions tried so "
        "far, differing by more than 1% of the range"
    )


def test_a_rival_is_judged_on_contexts_that_hurt_only_it():
    """It is twice as good, but for a pit where neither the world nor we have been."""
    c = torch.linspace(0, 1, 41).double()
    Z = torch.cartesian_prod(torch.tensor([0.0, 1.0]).double(), c)
    pit = 6 * (-(((Z[:, 1] - 0.5) / 0.08) ** 2)).exp()
    Y = torch.where(Z[:, 0] == 1, 1.0 - pit, 0.5).unsqueeze(-1)
    model = known_model(Z, Y, lengthscale=0.1, noise=1e-4, normalise=False)
    space = SearchSpace(UNIT, UNIT)
    contexts = ContextSet(torch.tensor([[0.1], [0.9]]).double())
    for radius, ahead in ((0.4, False), (0.05, True)):
        # .2 of the mass in the pit: .8 - 1, and .025 there: .975 - .125.
        problem = WorstCaseProblem.of(contexts, TotalVariation(radius), space)
        at = against_rivals(
            problem, contexts, model, Z[0, :1], Z[-1:, :1], "told", seed=0
        )
        assert (at.until == radius) == ahead


def test_the_rivals_of_an_ensemble_are_judged_by_its_mean():
    """One member alone would put the rival first."""
    x, c = torch.tensor([0.0, 0.3, 0.5]).double(), torch.linspace(0, 1, 5).double()
    Z = torch.cartesian_prod(x, c)
    model = ensemble(Z, 2 * Z[:, :1] - 0.6, None, UNIT.expand(2, 2))
    scales = torch.tensor([0.8, 0.2, 0.2]).double().reshape(3, 1, 1)
    model.covar_module.base_kernel.lengthscale = scales
    contexts = ContextSet(c.unsqueeze(-1))
    here, there = torch.tensor([[0.5], [1.0]]).double().split(1)
    rows = torch.cat([torch.cartesian_prod(v[0], c) for v in (here, there)])
    means = model.posterior(rows).mean.detach().reshape(3, 2, 5).mean(-1)
    assert means[0, 1] > means[0, 0] + 0.1  # it sees a line go on
    assert means[:, 1].mean() < means[:, 0].mean() - 0.1
    problem = WorstCaseProblem.of(
        contexts, TotalVariation(0.01), SearchSpace(UNIT, UNIT)
    )
    at = against_rivals(problem, contexts, model, here[0], there, "told", seed=0)
    assert at.until is None


def test_the_most_dangerous_are_the_best_expected_and_the_best_at_worst():
    values = uniform(100, 6, seed=4)
    weights = uniform(6, seed=5).softmax(0)
    expected = sorted(range(100), key=lambda i: -float(values[i] @ weights))[:16]
    rest = [i for i in range(100) if i not in expected]
    lowest = sorted(rest, key=lambda i: -float(values[i].min()))[:16]
    chosen = _most_dangerous(values, weights).tolist()
    assert chosen == sorted(expected + lowest) and len(set(chosen)) == 32
    assert _most_dangerous(values[:32], weights).tolist() == list(range(32))


def test_a_radius_of_zero_has_no_stability():
    best = make_recipe("dro", radius=0.0, **SMALL).recommend(
        history(), SearchSpace(UNIT, UNIT)
    )
    assert best.stability is None


def test_a_rival_has_to_be_allowed():
    """Told decisions that break a constraint of the space are not compared."""
    data, space = history(), SearchSpace(UNIT, UNIT)
    below = (torch.tensor([0]), -torch.ones(1).double(), -0.5)  # x <= .5
    allowed = replace(space, inequality_constraints=(below,))
    best = make_recipe("dro", radius=0.3, **SMALL).recommend(data, allowed)
    near = ((data.X - best.x).abs() <= 0.01).sum()
    assert best.stability.num_rivals == (data.X <= 0.5).sum() - near < 14


def test_a_rival_is_apart_in_any_column():
    X = torch.tensor([[0.5, 0.5], [0.5, 0.9], [0.505, 0.505], [0.1, 0.5]]).double()
    found, _ = rivals_of(X[0], X, SearchSpace(UNIT.expand(2, 2), UNIT), None, None)
    rows = {tuple(row) for row in found.tolist()}
    assert rows == {tuple(row) for row in X[[1, 3]].tolist()}


def test_of_many_rivals_it_says_how_many_were_compared():
    listed = torch.linspace(0, 1, 57).double().unsqueeze(-1)
    best = make_recipe("dro", radius=0.3, **SMALL).recommend(
        history(), SearchSpace(UNIT, UNIT), candidates=listed
    )
    assert best.stability.compared == "32 of 56 decisions of the list"
    two = make_recipe("dro", radius=0.3, **SMALL).recommend(
        history(), SearchSpace(UNIT, UNIT), candidates=listed[:2]
    )
    assert two.stability.compared == "1 decision of the list"


def test_rivals_meet_the_constraints_too():
    data = history()
    G = 0.6 - data.X  # x <= .6
    known = replace(data, constraints=ConstraintData(data.X, data.C, G))
    best = make_recipe("dro", radius=0.3, **SMALL).recommend(
        known, SearchSpace(UNIT, UNIT)
    )
    assert best.stability.num_rivals == (data.X < 0.59).sum()
    assert best.stability.compared.startswith(
        f"{best.stability.num_rivals} decisions tried so far"
    )
    assert best.stability.compared.endswith("range, meeting the constraints")


def test_with_a_list_the_rivals_are_of_the_list():
    listed = torch.tensor([[0.0], [0.3], [1.0]], dtype=torch.double)
    best = make_recipe("dro", radius=0.3, **SMALL).recommend(
        history(), SearchSpace(UNIT, UNIT), candidates=listed
    )
    assert best.x.item() == 1.0
    assert best.stability.num_rivals == 2
    assert best.stability.rival.item() in listed.flatten().tolist()


@pytest.mark.parametrize("name", ["erbo", "gp_ucb", "stable_opt", "random"])
def test_a_recipe_without_a_radius_has_none(name):
    best = make_recipe(name, **SMALL).recommend(history(), SearchSpace(UNIT, UNIT))
    assert best.stability is None
    assert "answer holds" not in str(best)


def test_the_report_says_it():
    best = make_recipe("dro", radius=0.3, **SMALL).recommend(
        history(), SearchSpace(UNIT, UNIT)
    )
    (line,) = (x for x in str(best).splitlines() if x.startswith("answer holds"))
    assert " by the posterior mean up to radius " in line
    assert f"up to radius {best.stability.until:.3g} (now 0.3), then x1 = " in line


@pytest.mark.parametrize("seed", range(6))
def test_the_crossing_is_that_of_brute_force(seed):
    """Rivals that a bound leaves out are not better at any radius that is looked at."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(7, generator=generator).double()
    weights = weights / weights.sum()
    rows = torch.rand(13, 7, generator=generator).double()
    rows[0] += 0.2
    ball = TotalVariation(0.15)
    found = overtaken(ball, weights, rows[0], rows[1:], torch.arange(12.0)[:, None])
    radii = torch.linspace(0.15, 0.6, 4001).double()
    worst = ball.worst_case(
        rows.unsqueeze(1).expand(-1, len(radii), -1),
        weights,
        radius=radii.expand(13, -1),
    ).value
    ahead = (worst[1:] > worst[0] + 2e-6).any(0).nonzero()
    if not len(ahead):
        assert found.until is None
        return
    first = radii[ahead[0]].item()
    assert found.until == pytest.approx(first, abs=1e-3)
    at = (radii - found.until).abs().argmin()
    assert found.rival.item() == worst[1:, at].argmax().item()


def test_rivals_out_of_reach_are_not_solved(monkeypatch):
    """Their expectation is below the worst case of the decision."""
    solved = []
    ball = TotalVariation(0.1)
    worst_case = ball.worst_case

    def counted(values, *arguments, **options):
        solved.append(values)
        return worst_case(values, *arguments, **options)

    monkeypatch.setattr(ball, "worst_case", counted)
    at = overtaken(ball, HALF, SAFE, torch.stack([POOR, POOR]), RIVALS)
    assert at.until is None and len(solved) == 1  # at all radii at once
    assert (solved[0] == SAFE).all()
