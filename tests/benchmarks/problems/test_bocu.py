"""The finite setting of the BOCU paper, and regret for any objective."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.problems import BOCUProblem, make, objective_regret
from benchmarks.problems.laws import discretised_normal, grid_side
from botorch_drbo.ambiguity import MaximumMeanDiscrepancy, TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.test_functions.base import normal_law
from botorch_drbo.test_functions.closed_form import (
    ClosedForm,
    Problem,
    ackley,
)
from tests.data import with_data
from tests.models import UNIT

hartmann = partial(make, "hartmann_2_1")
PRESETS = ["gp_prior_2_2", "hartmann_2_1"]


@pytest.mark.parametrize("name", with_data([*PRESETS, "plant_growth", "covid_testing"]))
def test_setting_of_the_paper(name: str) -> None:
    problem = BOCUProblem.preset(name, seed=1)
    function = problem.function
    assert problem.candidates.shape == (1024, function.d_x)
    assert problem.contexts.shape == (64, function.d_c)
    assert problem.table.shape == (1024, 64)
    torch.testing.assert_close(
        problem.table[5:9],
        function.evaluate(problem.candidates[5:9, None], problem.contexts),
    )
    assert problem.noise_std == 0.01 and problem.num_initial == 5
    low, high = function.bounds
    assert ((problem.candidates >= low) & (problem.candidates <= high)).all()
    torch.testing.assert_close(problem.true_weights, torch.full((64,), 1 / 64).double())
    # The values are in units of about one, to which noise of .01 is small.
    assert 0.3 < problem.table.std() < 1.5


@pytest.mark.parametrize(("dim", "side"), [(1, 64), (2, 8), (3, 4)])
def test_reference_and_radius(dim: int, side: int) -> None:
    """Against loops in numpy: .2 is a variance, and the grid has the box's ends."""
    law = normal_law(0.5, 0.2, dim)
    function = ClosedForm(
        Problem("ackley", ackley, UNIT.expand(2, 2), UNIT.expand(2, dim), law)
    )
    problem = BOCUProblem(function)
    axis = [i / (side - 1) for i in range(side)]
    points = np.array(np.meshgrid(*[axis] * dim, indexing="ij")).reshape(dim, -1).T
    np.testing.assert_allclose(problem.contexts, points, atol=1e-12)
    density = np.prod(np.exp(-((points - 0.5) ** 2) / (2 * 0.2)), axis=1)
    p, q = density / density.sum(), np.full(64, 1 / 64)
    np.testing.assert_allclose(problem.context_set.weights, p, atol=1e-12)
    distance = np.abs(p - q).sum()
    assert problem.radius(TotalVariation(0.0).distance) == pytest.approx(distance)
    kernel = np.array(
        [[np.exp(-50 * np.sum((a - b) ** 2)) for b in points] for a in points]
    )
    np.testing.assert_allclose(problem.kernel_matrix, kernel, atol=1e-12)
    ball = MaximumMeanDiscrepancy(0.0, problem.kernel_matrix)
    distance = np.sqrt((p - q) @ kernel @ (p - q))
    assert problem.radius(ball.distance) == pytest.approx(distance, rel=1e-6)


def test_contexts_are_scaled_to_their_box() -> None:
    box = torch.tensor([[-3.0, 0.0], [1.0, 30_000.0]]).double()
    unit = torch.tensor([[0.0, 0.0], [1.0, 1.0]]).double()
    wide, narrow = discretised_normal(box), discretised_normal(unit)
    torch.testing.assert_close(wide.weights, narrow.weights)
    torch.testing.assert_close(wide.normalised(box), narrow.points)


@given(st.integers(1, 5), st.integers(1, 12))
def test_grid_side_is_the_rounded_up_root(dim: int, side: int) -> None:
    assert grid_side(side**dim, dim) == side
    assert grid_side(side**dim + 1, dim) == side + 1


def test_decisions() -> None:
    sobol, other = (
        BOCUProblem(hartmann(), 0),
        BOCUProblem(hartmann(), 1),
    )
    assert not torch.equal(sobol.candidates, other.candidates)
    # Sobol: every cell of an 8 x 8 partition has its share of 16.
    cells = (sobol.candidates * 8).long().clamp_max(7)
    counts = torch.bincount(cells[:, 0] * 8 + cells[:, 1], minlength=64)
    assert (counts == 16).all()
    grid = BOCUProblem(hartmann(), decisions="grid").candidates
    assert torch.equal(grid, BOCUProblem(hartmann(), 1, decisions="grid").candidates)
    axis = torch.linspace(0, 1, 32).double()
    torch.testing.assert_close(grid, torch.cartesian_prod(axis, axis))
    line = BOCUProblem(make("newsvendor")).candidates
    torch.testing.assert_close(line[:, 0], torch.linspace(0, 1, 1024).double())


def test_contexts_and_noise_are_paired() -> None:
    problem, twin = (BOCUProblem.preset("hartmann_2_1", 4) for _ in range(2))
    torch.manual_seed(5)
    state = torch.get_rng_state()
    contexts = problem.sample_contexts(30)
    assert torch.equal(contexts[:10], twin.sample_contexts(10))
    assert not torch.equal(contexts, problem.sample_contexts(30, seed=1))
    assert not torch.equal(contexts, BOCUProblem(hartmann(), 5).sample_contexts(30))
    x, other = problem.candidates[:30], problem.candidates[30:60]
    noise = problem.observe(x, contexts, step=2).squeeze(-1)
    noise = noise - problem.function.evaluate(x, contexts)
    again = twin.observe(other, contexts, step=2).squeeze(-1)
    again = again - problem.function.evaluate(other, contexts)
    torch.testing.assert_close(noise, again)  # whatever was decided
    late = problem.observe(x, contexts, step=3).squeeze(-1)
    assert not torch.allclose(late - problem.function.evaluate(x, contexts), noise)
    for first, second in zip(problem.initial(), twin.initial(), strict=True):
        assert torch.equal(first, second)
    assert torch.equal(state, torch.get_rng_state())


def test_contexts_follow_the_truth() -> None:
    """64 cells of equal probability: a chi-squared statistic of 63 degrees."""
    problem = BOCUProblem.preset("gp_prior_2_2")
    drawn = problem.sample_contexts(6400)
    counts = (drawn[:, None] == problem.contexts).all(-1).sum(0)
    assert counts.sum() == 6400
    assert ((counts - 100.0) ** 2 / 100).sum() < 63 + 4 * 126**0.5


def test_noise_has_the_stated_deviation() -> None:
    problem = BOCUProblem(hartmann(), noise_std=0.5)
    x, c = problem.candidates, problem.sample_contexts(1024)
    noise = problem.observe(x, c, step=0).squeeze(-1) - problem.function.evaluate(x, c)
    assert noise.std().item() == pytest.approx(0.5, abs=4 * 0.5 / 2048**0.5)
    steps = torch.cat([problem.observe(x[:1], c[:1], step=t) for t in range(400)])
    assert steps.std().item() == pytest.approx(0.5, abs=4 * 0.5 / 800**0.5)


def test_observe_takes_positions_or_decisions() -> None:
    problem = BOCUProblem(hartmann())
    c = problem.sample_contexts(3)
    indices = torch.tensor([4, 0, 1023])
    by_index = problem.observe(indices, c, step=7)
    assert by_index.shape == (3, 1)
    assert torch.equal(
        by_index, problem.observe(problem.candidates[indices], c, step=7)
    )


def test_initial_data() -> None:
    x, c, y = BOCUProblem(hartmann(), num_initial=6).initial()
    assert (x.shape, c.shape, y.shape) == ((6, 2), (6, 1), (6, 1))
    value = hartmann().evaluate(x, c)
    assert 0 < (y.squeeze(-1) - value).abs().max() < 0.06
    # Without replacement: all pairs of a tiny problem, each once.
    tiny = BOCUProblem(hartmann(), num_decisions=4, num_contexts=3, num_initial=12)
    x, c, _ = tiny.initial()
    assert len(torch.cat([x, c], -1).unique(dim=0)) == 12


# -- regret ----------------------------------------------------------------------------


def objectives(problem: BOCUProblem) -> dict[str, UncertaintyObjective]:
    ball = TotalVariation(problem.radius(TotalVariation(0.0).distance))
    return {
        "so": UncertaintyObjective.so(),
        "ro": UncertaintyObjective.ro(),
        "dro": UncertaintyObjective.dro(ball),
        "wcs": UncertaintyObjective.wcs(ball),
        "gen": UncertaintyObjective.gen(ball),
    }


@pytest.mark.parametrize("kind", ["so", "ro", "dro", "wcs", "gen"])
def test_regret_of_objectives_by_a_loop(kind: str) -> None:
    problem = BOCUProblem(hartmann(), num_decisions=40, num_contexts=9)
    objective = objectives(problem)[kind]
    weights = problem.context_set.weights
    one_by_one = np.array([objective(row, weights).item() for row in problem.table])
    expected = one_by_one.max() - one_by_one
    np.testing.assert_allclose(problem.regret(objective), expected, atol=1e-12)
    indices = torch.tensor([[3, 5], [39, 3]])
    regret = problem.regret(objective, indices)
    np.testing.assert_allclose(regret, expected[indices.numpy()], atol=1e-12)
    decisions = problem.regret(objective, problem.candidates[indices])
    np.testing.assert_allclose(decisions, expected[indices.numpy()], atol=1e-9)


def test_regret_of_known_objectives() -> None:
    """Expectation and worst case, by hand; decisions off the set may do better."""
    problem = BOCUProblem(hartmann(), num_decisions=16)
    table, p = problem.table.numpy(), problem.context_set.weights.numpy()
    mean = problem.regret(UncertaintyObjective.so())
    np.testing.assert_allclose(mean, (table @ p).max() - table @ p, atol=1e-12)
    worst = problem.regret(UncertaintyObjective.ro())
    np.testing.assert_allclose(worst, table.min(1).max() - table.min(1), atol=1e-12)
    best = hartmann().optimal_decision
    assert problem.regret(UncertaintyObjective.so(), best).shape == ()
    assert problem.regret(UncertaintyObjective.so(), best).item() < 0


@given(
    st.integers(0, 10_000),
    st.lists(st.integers(0, 3), max_size=2).map(tuple),
    st.integers(1, 5),
)
def test_objective_regret_is_never_negative_and_batches(
    seed: int, batch: tuple[int, ...], num: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(*batch, num, 4, generator=generator).double()
    weights = torch.full((4,), 0.25).double()

    def median(f: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
        return f.median(-1).values - (f.amax(-1) - f.amin(-1))

    regret = objective_regret(values, weights, median)
    assert regret.shape == (*batch, num)
    assert (regret >= 0).all()
    if regret.numel():
        assert (regret.amin(-1) == 0).all()  # the best decision has none
    chosen = torch.randint(0, num, (*batch, 6), generator=generator)
    picked = objective_regret(values, weights, median, chosen)
    assert torch.equal(picked, regret.gather(-1, chosen))
    shared = objective_regret(values, weights, median, chosen.flatten()[:3])
    assert shared.shape[:-1] == batch


# -- errors ----------------------------------------------------------------------------


def test_errors_name_the_cure() -> None:
    with pytest.raises(InputDataError, match="Choose one of"):
        BOCUProblem.preset("portfolio_normal")
    with pytest.raises(InputDataError, match='"sobol" or "grid"'):
        BOCUProblem(hartmann(), decisions="random")
    with pytest.raises(InputDataError, match="Take 1024"):
        BOCUProblem(hartmann(), num_decisions=1000, decisions="grid")
    with pytest.raises(InputDataError, match="num_contexts"):
        BOCUProblem(hartmann(), num_contexts=0)
    with pytest.raises(InputDataError, match="at most the 6 pairs"):
        BOCUProblem(hartmann(), num_decisions=2, num_contexts=3, num_initial=7)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npz"):
        BOCUProblem.preset("plant_growth", path="nowhere.npz")
    problem = BOCUProblem(hartmann())
    so, c = UncertaintyObjective.so(), problem.sample_contexts(2)
    with pytest.raises(InputDataError, match="from 0 to 1023"):
        problem.observe(torch.tensor([0, 1024]), c, step=0)
    with pytest.raises(InputDataError, match="outside `bounds`"):
        problem.observe(torch.tensor([[0.5, 1.5]]).double(), c[:1], step=0)
    with pytest.raises(BotorchTensorDimensionError, match="one row"):
        problem.observe(torch.tensor([0, 1, 2]), c, step=0)
    with pytest.raises(InputDataError, match="step"):
        problem.observe(torch.tensor([0, 1]), c, step=-1)
    with pytest.raises(InputDataError, match="from 0 to 1023"):
        problem.regret(so, torch.tensor([-1]))
    with pytest.raises(BotorchTensorDimensionError, match="one number for each"):
        problem.regret(lambda f, p: f.sum())
    with pytest.raises(InputDataError, match="integer positions"):
        objective_regret(problem.table, problem.true_weights, so, torch.tensor([0.5]))
    with pytest.raises(BotorchTensorDimensionError, match="at least one decision"):
        objective_regret(torch.ones(0, 3), torch.ones(3) / 3, so)
