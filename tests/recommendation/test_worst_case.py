"""The worst case of a recommendation, against programs on dense grids of contexts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.adversaries import WorstCaseProblem
from botorch_drbo.adversaries.base import filling
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    ConditionalValueAtRisk,
    CvxpyAmbiguity,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    ModifiedChiSquared,
    NoAmbiguity,
    SolverStatus,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.policies import POLICIES
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RECIPES, make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.recommendation.worst_case import (
    _descend,
    _distinct,
    worst_case,
)
from botorch_drbo.surrogate import FixedHyperparameters
from botorch_drbo.test_functions import make_test_function
from botorch_drbo.testing.fixtures import nothing_fitted
from tests.models import UNIT

# Short lengthscales in the context: valleys that no context seen lies in.
LENGTHSCALES = {1: (0.5, 0.15), 2: (0.5, 0.25, 0.35)}
BOX = torch.tensor([[-3.0, 100.0], [7.0, 160.0]], dtype=torch.double)
TOLERANCE = 1e-3  # of the range of the scores


def space(d_c: int) -> SearchSpace:
    return SearchSpace(UNIT, BOX[:, :d_c])


def history(d_c: int, t: int = 12, seed: int = 0) -> History:
    """Contexts in the middle of the box; outcomes with hills and valleys around."""
    generator = torch.Generator().manual_seed(seed)
    X, u, v = (
        torch.rand(t, k, generator=generator, dtype=torch.double) for k in (1, d_c, 1)
    )
    C = BOX[0, :d_c] + (0.25 + 0.5 * u) * (BOX[1, :d_c] - BOX[0, :d_c])
    Y = torch.sin(9 * u).sum(-1, True) + 0.5 * X + 0.3 * v
    return History(X=X, C=C, Y=Y, contexts=C)


def prior(d_c: int) -> FixedHyperparameters:
    return FixedHyperparameters(lengthscale=LENGTHSCALES[d_c], noise_variance=1e-3)


ANYWHERE = {"contexts_complete": False}  # not by their paper
SETS: dict[str, tuple[str, dict]] = {
    "wdrbo": ("transport", {"radius": 0.1}),
    "ec_wdrbo": ("transport", {"radius": 0.1}),
    "wdrbo_exact": ("transport", {"radius": 0.1}),
    "dro": ("tv", {"ambiguity_set": TotalVariation(0.3)}),
    "ts_bocu": ("tv", {"ambiguity_set": TotalVariation(0.3), **ANYWHERE}),
    "ucb_bocu_1": ("tv", {"ambiguity_set": TotalVariation(0.3), **ANYWHERE}),
    "ucb_bocu_2": (
        "tv",
        {"ambiguity_set": MinimaxApproximation(TotalVariation(0.3)), **ANYWHERE},
    ),
    "drbo_kde": ("tv", {"radius": 0.3, "num_contexts": 32, "num_outside": 8}),
    "drbo_mmd": ("mmd", {"radius": 0.3, "num_contexts": 16}),
    "drbo_mmd_minimax": ("mmd", {"radius": 0.3, "num_contexts": 16}),
    "ts_wdrbo": ("transport", {"radius": 0.1}),
    "ei_wdrbo": ("transport", {"radius": 0.1}),
    "ts_drbo_kde": ("tv", {"radius": 0.3, "num_contexts": 32, "num_outside": 8}),
    "ei_drbo_kde": ("tv", {"radius": 0.3, "num_contexts": 32, "num_outside": 8}),
    "ts_drbo_mmd": ("mmd", {"radius": 0.3, "num_contexts": 16}),
}


def recipe(name: str, d_c: int, **changes: object) -> ModelBasedRecipe:
    options = {"hyperparameters": prior(d_c), **SETS[name][1], **changes}
    algorithm = make_recipe(name, **options)
    assert isinstance(algorithm, ModelBasedRecipe)
    return algorithm


X_HERE = torch.tensor([[0.6]], dtype=torch.double)


@cache
def recommended(name: str, d_c: int) -> Recommendation:
    return recipe(name, d_c).recommend(history(d_c), space(d_c), candidates=X_HERE)


def model_mean(d_c: int, contexts: Tensor, data: History | None = None) -> np.ndarray:
    """BoTorch's own posterior mean at the decision."""
    data = history(d_c) if data is None else data
    Z = torch.cat([data.X, data.C], dim=-1)
    model = prior(d_c).model(Z, data.Y, space(d_c).joint_bounds, 1 + d_c)
    z = torch.cat([X_HERE.expand(len(contexts), -1), contexts], dim=-1)
    with torch.no_grad():
        return model.posterior(z.unsqueeze(-2)).mean.flatten().numpy()


def unit(contexts: Tensor) -> np.ndarray:
    lower, upper = BOX[:, : contexts.shape[-1]]
    return ((contexts - lower) / (upper - lower)).numpy()


def dense(d_c: int, per_side: int) -> Tensor:
    side = torch.linspace(0.0, 1.0, per_side, dtype=torch.double)
    grid = torch.cartesian_prod(*[side] * d_c).reshape(-1, d_c)
    return BOX[0, :d_c] + grid * (BOX[1, :d_c] - BOX[0, :d_c])


# ------------------------------------------------------------------ the oracles


def transport(p: np.ndarray, cost: np.ndarray, f: np.ndarray, radius: float) -> float:
    """The Wasserstein ball, by its linear program in the plan (HiGHS)."""
    n, m = cost.shape
    from_atom = np.kron(np.eye(n), np.ones(m))
    found = linprog(
        np.tile(f, n),
        A_ub=cost.reshape(1, -1),
        b_ub=[radius],
        A_eq=from_atom,
        b_eq=p,
        method="highs",
    )
    return found.fun


def total_variation(p: np.ndarray, f: np.ndarray, radius: float) -> float:
    """Take ``a`` from the atoms and give ``b``: the first ``len(p)`` contexts."""
    n, m = len(p), len(f)
    found = linprog(
        np.concatenate([-f[:n], f]),
        A_eq=np.concatenate([np.ones(n), -np.ones(m)])[None],
        b_eq=[0.0],
        A_ub=np.concatenate([np.ones(n), np.zeros(m)])[None],
        b_ub=[radius / 2],
        bounds=[(0.0, mass) for mass in p] + [(0.0, None)] * m,
        method="highs",
    )
    return p @ f[:n] + found.fun


def rbf(first: np.ndarray, second: np.ndarray, d_c: int) -> np.ndarray:
    gaps = (first[:, None] - second[None]) / np.array(LENGTHSCALES[d_c][1:])
    return np.exp(-0.5 * (gaps**2).sum(-1))


def kernel_ball(p: np.ndarray, K: np.ndarray, f: np.ndarray, radius: float) -> float:
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(values.clip(0.0))
    q = cp.Variable(len(f), nonneg=True)
    ball = [cp.sum(q) == 1, cp.norm(root.T @ (q - p)) <= radius]
    return cp.Problem(cp.Minimize(f @ q), ball).solve(solver=cp.CLARABEL)


def oracle(name: str, d_c: int, best: Recommendation) -> tuple[float, float]:
    """The worst case on a dense grid, and the range of the scores on it."""
    kind, options = SETS[name]
    radius = options.get("radius", 0.3)
    carried = best.context_set.weights > 0
    atoms, p = best.context_set.points[carried], best.context_set.weights[carried]
    sizes = {"transport": (401, 31), "tv": (4001, 101), "mmd": (101, 14)}
    grid = dense(d_c, sizes[kind][d_c - 1])
    everywhere = torch.cat([atoms, grid])
    f, p = model_mean(d_c, everywhere), p.numpy()
    if kind == "transport":
        gaps = unit(atoms)[:, None] - unit(everywhere)[None]
        value = transport(p, np.linalg.norm(gaps, axis=-1), f, radius)
    elif kind == "tv":
        value = total_variation(p, f, radius)
    else:
        K = rbf(unit(everywhere), unit(everywhere), d_c)
        value = kernel_ball(np.pad(p, (0, len(grid))), K, f, radius)
    return value, np.ptp(f)


# ------------------------------------------------------------- what must hold


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("name", SETS)
def test_no_distribution_on_a_dense_grid_is_worse(name: str, d_c: int) -> None:
    best = recommended(name, d_c)
    value, span = oracle(name, d_c, best)
    assert best.worst_case_value <= value + TOLERANCE * span
    assert best.worst_case_box is not None
    assert torch.equal(best.worst_case_box, BOX[:, :d_c])


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("name", SETS)
def test_the_worst_case_is_attained_inside_the_ball(name: str, d_c: int) -> None:
    best = recommended(name, d_c)
    p, q = best.context_set.weights.numpy(), best.worst_case_weights.numpy()
    points = best.context_set.points
    assert best.worst_case_status is SolverStatus.EXACT
    assert (q >= 0).all() and q.sum() == pytest.approx(1.0)
    assert (points >= BOX[0, :d_c]).all() and (points <= BOX[1, :d_c]).all()
    f = model_mean(d_c, points)
    assert q @ f == pytest.approx(best.worst_case_value, rel=1e-6, abs=1e-7)
    assert p @ f == pytest.approx(best.expected_value, rel=1e-6, abs=1e-7)
    kind, options = SETS[name]
    radius = options.get("radius", 0.3)
    if kind == "tv":
        distance = np.abs(p - q).sum()
    elif kind == "mmd":
        moved = (p - q) @ rbf(unit(points), unit(points), d_c) @ (p - q)
        distance = max(moved, 0.0) ** 0.5
    else:
        gaps = unit(points)[:, None] - unit(points)[None]
        cost = torch.tensor(np.linalg.norm(gaps, axis=-1))
        distance = Wasserstein(1.0, cost).distance(*map(torch.tensor, (p, q))).item()
    assert distance <= radius * (1 + 1e-6) + 1e-8


@pytest.mark.parametrize("name", SETS)
def test_it_falls_as_the_radius_grows(name: str) -> None:
    values = []
    for radius in (0.0, 0.02, 0.1, 0.3, 0.9, 2.0):
        changes: dict = {"radius": radius}
        best = recipe(name, 1, **changes).recommend(
            history(1), space(1), candidates=X_HERE
        )
        values.append(best.worst_case_value)
    assert values[0] == pytest.approx(best.expected_value, rel=1e-6, abs=1e-6)
    f = model_mean(1, dense(1, 2001))
    falls = -np.diff(values)
    assert (falls >= -TOLERANCE * np.ptp(f)).all()
    assert values[-1] == pytest.approx(f.min(), abs=TOLERANCE * np.ptp(f))


@pytest.mark.parametrize("name", SETS)
def test_neither_order_nor_units_of_the_data_matter(name: str) -> None:
    data, best = history(2), recommended(name, 2)
    span = np.ptp(model_mean(2, dense(2, 41)))
    order = torch.randperm(12, generator=torch.Generator().manual_seed(3))
    shuffled = History(
        X=data.X[order], C=data.C[order], Y=data.Y[order], contexts=data.C[order]
    )
    if not name.endswith("drbo_kde"):  # it is drawn anew for another order
        again = recipe(name, 2).recommend(shuffled, space(2), candidates=X_HERE)
        assert again.worst_case_value == pytest.approx(
            best.worst_case_value, abs=TOLERANCE * span
        )
    scale, shift = torch.tensor([1e-6, 1e5]).double(), torch.tensor([40.0, -3e6])
    C = data.C * scale + shift
    other = SearchSpace(UNIT, BOX * scale + shift)
    scaled = recipe(name, 2).recommend(
        replace(data, C=C, contexts=C), other, candidates=X_HERE
    )
    assert scaled.worst_case_value == pytest.approx(
        best.worst_case_value, abs=TOLERANCE * span
    )


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("t", [1, 2, 20])  # one atom, which has to split; and many
@pytest.mark.parametrize("seed", range(3))
def test_other_histories(d_c: int, t: int, seed: int) -> None:
    data = history(d_c, t, seed)
    algorithm = recipe("wdrbo", d_c, radius=0.15)
    best = algorithm.recommend(data, space(d_c), candidates=X_HERE)
    everywhere = torch.cat([data.C, dense(d_c, (401, 31)[d_c - 1])])
    f = model_mean(d_c, everywhere, data)
    gaps = unit(data.C)[:, None] - unit(everywhere)[None]
    value = transport(np.full(t, 1 / t), np.linalg.norm(gaps, axis=-1), f, 0.15)
    assert best.worst_case_value <= value + TOLERANCE * np.ptp(f)
    if d_c == 1:  # a grid in two dimensions is too coarse to be the truth
        assert best.worst_case_value >= value - TOLERANCE * np.ptp(f)


# ------------------------------------------------------------ who may go where


@pytest.mark.parametrize(
    "ambiguity",
    [
        NoAmbiguity(),
        KullbackLeibler(0.5),
        ModifiedChiSquared(0.5),
        ConditionalValueAtRisk(0.7),
        FullSimplex(),
        CvxpyAmbiguity(lambda q, p, radius: [cp.norm(q - p) <= radius], 0.3),
    ],
    ids=lambda ambiguity: type(ambiguity).__name__,
)
def test_sets_on_a_list_stay_on_it(ambiguity: AmbiguitySet) -> None:
    data = history(1)
    algorithm = recipe("dro", 1, ambiguity_set=ambiguity)
    best = algorithm.recommend(data, space(1), candidates=X_HERE)
    f = torch.tensor(model_mean(1, data.C))
    p = torch.full((12,), 1 / 12, dtype=torch.double)
    expected = ambiguity.worst_case(f, p).value.item()
    assert best.worst_case_box is None
    assert torch.equal(best.context_set.points, data.C)
    assert best.worst_case_value == pytest.approx(expected, rel=1e-6)


def test_a_matrix_of_the_users_says_nothing_about_other_contexts() -> None:
    data = history(1)
    reference = ContextSet(data.C)
    cost = (data.C - data.C.mT).abs()
    for ambiguity in (
        Wasserstein(1.0, cost),
        MaximumMeanDiscrepancy(0.3, torch.exp(-cost.square())),
    ):
        algorithm = recipe("dro", 1, ambiguity_set=ambiguity, reference=reference)
        best = algorithm.recommend(data, space(1), candidates=X_HERE)
        f = torch.tensor(model_mean(1, data.C))
        expected = ambiguity.worst_case(f, reference.weights).value.item()
        assert best.worst_case_box is None
        assert best.context_set.num_points == 12
        assert best.worst_case_value == pytest.approx(expected, rel=1e-6)


def test_neyman_chi_squared_reaches_contexts_that_were_not_seen() -> None:
    data = history(1, seed=3)
    algorithm = recipe("dro", 1, ambiguity_set=ChiSquared(3.0))
    best = algorithm.recommend(data, space(1), candidates=X_HERE)
    everywhere = torch.cat([data.C, dense(1, 401)])
    f = model_mean(1, everywhere, data)
    q = cp.Variable(len(f), nonneg=True)
    spread = cp.sum(cp.multiply((1 / 12) ** 2, cp.inv_pos(q[:12])))
    problem = cp.Problem(cp.Minimize(f @ q), [cp.sum(q) == 1, spread <= 4.0])
    value = problem.solve(solver=cp.CLARABEL)
    assert abs(best.worst_case_value - value) <= TOLERANCE * np.ptp(f)
    p = torch.full((12,), 1 / 12, dtype=torch.double)
    seen = ChiSquared(3.0).worst_case(torch.tensor(f[:12]), p).value.item()
    assert best.worst_case_value < seen - 0.01 * np.ptp(f)


def test_stable_opt_is_judged_on_its_own_box() -> None:
    data = history(2)
    algorithm = make_recipe("stable_opt", hyperparameters=prior(2))
    best = algorithm.recommend(data, space(2), candidates=X_HERE)
    mean, std = data.C.mean(0), data.C.std(0, correction=0)
    box = torch.stack([mean - std, mean + std])
    assert best.worst_case_box is not None
    torch.testing.assert_close(best.worst_case_box, box)
    side = torch.linspace(0, 1, 101, dtype=torch.double)
    grid = box[0] + torch.cartesian_prod(side, side) * (box[1] - box[0])
    f = model_mean(2, grid)
    assert abs(best.worst_case_value - f.min()) <= TOLERANCE * np.ptp(f)


def test_every_recipe_says_where_its_worst_case_lives() -> None:
    listed = {
        "erbo", "sbo_kde", "gp_ucb", "ec_gp_ucb", "ucb_so", "ucb_ro", "random",
        "phased_gp_us", "regret_balancing", "ts_erbo", "ei_erbo",
        "ei_integral", "edrbo",
    }  # fmt: skip
    dangers = {"mean_shift", "contamination"}  # judged in tests/adversaries
    assert set(RECIPES) == listed | dangers | set(SETS) | {"stable_opt"}
    for name in sorted(listed):
        options: dict = {"hyperparameters": prior(1)}
        if name == "edrbo":
            options = nothing_fitted(POLICIES["disagreement_penalty"], prior(1))
        if name == "regret_balancing":
            options["reward_range"] = (-9.0, 9.0)
        best = make_recipe(name, **options).recommend(
            history(1), space(1), candidates=X_HERE
        )
        assert best.worst_case_box is None
        assert best.worst_case_status is SolverStatus.EXACT


def test_a_floor_is_kept_beside_the_box() -> None:
    data = history(1)
    low, high = (
        recipe("dro", 1, ambiguity_set=TotalVariation(0.3, floor=floor)).recommend(
            data, space(1), candidates=X_HERE
        )
        for floor in (-50.0, 50.0)
    )
    assert high.worst_case_value == recommended("dro", 1).worst_case_value
    left = low.worst_case_weights.sum().item()
    assert left == pytest.approx(0.85)
    f = model_mean(1, low.context_set.points)
    value = low.worst_case_weights.numpy() @ f - 50.0 * (1 - left)
    assert low.worst_case_value == pytest.approx(value)


def test_costs_are_maximised_by_the_adversary() -> None:
    data = history(1)
    up, down = (
        RobustOptimizer(
            "dro",
            UNIT,
            BOX[:, :1],
            maximize=maximize,
            ambiguity_set=TotalVariation(0.3),
            hyperparameters=prior(1),
        )
        for maximize in (True, False)
    )
    up.tell(data.X, data.C, data.Y)
    down.tell(data.X, data.C, -data.Y)
    best, least = up.recommend(X_HERE), down.recommend(X_HERE)
    assert least.worst_case_value == -best.worst_case_value
    expected = recommended("dro", 1).worst_case_value
    assert best.worst_case_value == pytest.approx(expected, rel=1e-6)


# --------------------------------------------------------------- the newsvendor


def test_the_newsvendor_is_not_promised_what_a_shift_in_the_ball_breaks() -> None:
    """Quiet days that were never seen are as near as others: they count."""
    shop = make_test_function("newsvendor")
    demands = shop.sample_contexts(20, seed=0)
    generator = torch.Generator().manual_seed(0)
    orders = 0.4 * torch.rand(20, 1, generator=generator).double()
    Y = shop.evaluate(orders, demands).unsqueeze(-1)
    data = History(X=orders, C=demands, Y=Y, contexts=demands)
    box = SearchSpace(shop.bounds, shop.context_bounds)
    radius = 0.3 / 20**0.5
    wdrbo = make_recipe("wdrbo", radius=radius, surrogate="botorch")
    x = torch.tensor([[0.15]], dtype=torch.double)
    best = wdrbo.recommend(data, box, candidates=x)
    assert isinstance(wdrbo, ModelBasedRecipe)
    model = wdrbo.fitted(data, box, uses_contexts=True)
    grid = torch.cat([demands, torch.linspace(0, 1, 2001).double().unsqueeze(-1)])
    with torch.no_grad():
        f = model.posterior(torch.cat([x.expand(len(grid), 1), grid], -1)).mean
    f = f.squeeze(-1).numpy()
    p, cost = np.full(20, 0.05), (demands - grid.mT).abs().numpy()
    everywhere = transport(p, cost, f, radius)
    on_days = transport(p, cost[:, :20], f[:20], radius)
    assert on_days - everywhere > 0.02 * np.ptp(f)  # what was promised too much
    assert best.worst_case_value <= everywhere + 1e-4 * np.ptp(f)
    assert best.worst_case_value >= everywhere - TOLERANCE * np.ptp(f)


# ------------------------------------------------- the search, on plain functions


def bowl(centre: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda contexts: ((contexts - centre) / (BOX[1] - BOX[0])).square().sum(-1)


@pytest.mark.parametrize("d_c", [1, 2, 5])
def test_a_narrow_hole_far_from_the_data_is_found(d_c: int) -> None:
    lower, upper = torch.zeros(d_c).double(), torch.ones(d_c).double()
    hole = torch.full((d_c,), 0.83, dtype=torch.double)

    def score(contexts: Tensor) -> Tensor:
        return -torch.exp(-(contexts - hole).square().sum(-1) / 0.1**2 / d_c)

    problem = WorstCaseProblem(
        contexts=ContextSet(torch.full((3, d_c), 0.2, dtype=torch.double)),
        ball=lambda points: TotalVariation(0.5),
        box=torch.stack([lower, upper]),
    )
    contexts, robust = worst_case(problem, score, seed=0)
    assert robust.value.item() == pytest.approx(-0.25, abs=2e-3)
    assert contexts.num_points == 4 and contexts.weights[3] == 0
    assert torch.allclose(contexts.points[3], hole, atol=0.02)


@pytest.mark.parametrize("corner", [(0.0,) * 5, (1.0,) * 5, (1.0, 0.0, 1.0, 1.0, 0.0)])
def test_a_spike_in_a_corner_is_found(corner: tuple[float, ...]) -> None:
    """Narrower than the gaps of the sample in five dimensions, and flat around."""
    spike = torch.tensor(corner, dtype=torch.double)

    def score(contexts: Tensor) -> Tensor:
        return -torch.exp(-(contexts - spike).square().sum(-1) / 0.02**2)

    problem = WorstCaseProblem(
        contexts=ContextSet(torch.full((3, 5), 0.5, dtype=torch.double)),
        ball=lambda points: TotalVariation(0.5),
        box=torch.stack([torch.zeros(5), torch.ones(5)]).double(),
    )
    contexts, robust = worst_case(problem, score, seed=0)
    assert robust.value.item() == pytest.approx(-0.25, abs=1e-9)
    assert torch.equal(contexts.points[3], spike)


def test_what_fills_a_box_has_its_corners_and_each_combination_of_values() -> None:
    box = torch.tensor([[2.0, 0.0, -1.0, 10.0], [4.0, 2.0, 1.0, 30.0]]).double()
    values = {1: (0.0, 1.0, 2.0), 3: (10.0, 30.0)}
    points = filling(box, values, seed=0)
    rows = {tuple(row) for row in points.tolist()}
    assert rows >= set(product((2.0, 4.0), values[1], (-1.0, 1.0), values[3]))
    free: dict[tuple[float, float], set[tuple[float, float]]] = {}
    for a, b, c, d in rows:
        free.setdefault((b, d), set()).add((a, c))
    assert set(free) == set(product(values[1], values[3]))
    (same,) = {frozenset(found) for found in free.values()}  # for each combination
    assert len(same) == 64 * 4 + 4
    assert (points >= box[0]).all() and (points <= box[1]).all()
    for d_c in (1, 6):
        cube = torch.stack([torch.zeros(d_c), torch.ones(d_c)]).double()
        rows = {tuple(row) for row in filling(cube, {}, seed=0).tolist()}
        assert rows >= set(product((0.0, 1.0), repeat=d_c))


@pytest.mark.parametrize("wall", [0.0, 1.0])
@pytest.mark.parametrize("steep", [0.0, 1e4])
def test_a_descent_along_a_wall_does_not_stop_there(wall: float, steep: float) -> None:
    """The steepest way goes through the wall; along it the lowest point is at 0.7."""

    def evaluate(unit: Tensor) -> tuple[Tensor, Tensor]:
        outwards, gap = steep * (1 - 2 * wall), unit[..., 1] - 0.7
        costs = outwards * unit[..., 0] + gap.square()
        return costs, torch.stack([torch.full_like(gap, outwards), 2 * gap], dim=-1)

    start = torch.tensor([[[wall, 0.1], [wall, 0.95]]], dtype=torch.double)
    end, costs = _descend(evaluate, start, 0.1)
    assert (end[..., 0] == wall).all()
    assert (end[..., 1] - 0.7).abs().max() < 0.01
    assert torch.equal(costs, evaluate(end)[0])


def test_a_descent_leaves_a_wall_when_that_is_down() -> None:
    def evaluate(unit: Tensor) -> tuple[Tensor, Tensor]:
        gaps = unit - torch.tensor([0.2, 0.8]).double()
        return gaps.square().sum(-1), 2 * gaps

    corners = torch.tensor([[[0.0, 1.0], [0.0, 0.0], [1.0, 1.0]]], dtype=torch.double)
    end, _ = _descend(evaluate, corners, 0.2)
    assert (end - torch.tensor([0.2, 0.8])).abs().max() < 0.02


def test_a_descent_leaves_categories_where_they_are() -> None:
    """Between two indices of a category the score is far too low, and means nothing."""
    names = SearchSpace(
        UNIT,
        torch.tensor([[0.0, 0.0], [2.0, 1.0]]).double(),
        context_categories={0: 3},
    )

    def score(contexts: Tensor) -> Tensor:
        index = contexts[:, 0].round().detach()
        between = contexts[:, 0] - index  # not zero between two indices
        valley = (contexts[:, 1] - 0.3777).square() / 0.01**2
        return 1 - (index == 1) * torch.exp(-valley) - 100 * between

    reference = ContextSet(torch.tensor([[0.0, 0.9], [2.0, 0.1]]).double())
    problem = WorstCaseProblem.of(reference, TotalVariation(2.0), names)
    _, robust = worst_case(problem, score, seed=0)
    assert robust.value.item() == pytest.approx(0.0, abs=1e-3)


def test_all_combinations_of_few_values_are_looked_at() -> None:
    values = {0: tuple(map(float, range(40))), 1: tuple(map(float, range(30)))}
    box = torch.tensor([[0.0, 0.0], [39.0, 29.0]]).double()
    points = filling(box, values, seed=0)
    assert {tuple(row) for row in points.tolist()} == set(product(*values.values()))
    many = {0: tuple(map(float, range(70))), 1: tuple(map(float, range(70)))}
    box = torch.tensor([[0.0, 0.0], [69.0, 69.0]]).double()
    assert len(filling(box, many, seed=0)) < 1000  # 4,900 are too many


def test_a_box_without_spread_in_one_column_is_searched_in_the_other() -> None:
    box = torch.tensor([[1.0, 0.0], [1.0, 1.0]]).double()
    sampled = filling(box, {}, seed=0)[:, 1].sort().values
    gap = sampled.diff().argmax()  # the valley is between two contexts of the sample
    low, width = sampled[gap : gap + 2].mean(), sampled.diff().max()

    def score(contexts: Tensor) -> Tensor:
        return -torch.exp(-((contexts[:, 1] - low) / width).square())

    problem = WorstCaseProblem(
        contexts=ContextSet(torch.tensor([[1.0, 0.9]]).double()),
        ball=lambda points: FullSimplex(),
        box=box,
    )
    contexts, robust = worst_case(problem, score, seed=0)
    assert robust.value.item() == pytest.approx(-1.0, abs=1e-3)
    assert (contexts.points[:, 0] == 1.0).all()


def test_contexts_on_a_face_do_not_leave_the_box_by_rounding() -> None:
    ends = [(0.24, 2.94), (0.31, 2.07), (0.7, 1.3), (0.11, 1.6)]
    over = 0
    for lower, upper in ends:
        box = torch.tensor([[lower, 0.0], [upper, 1.0]], dtype=torch.double)
        over += int(box[0, 0] + (box[1, 0] - box[0, 0]) > box[1, 0])

        def score(contexts: Tensor) -> Tensor:
            return 1e-3 * (contexts[:, 1] - 0.3777).square() - contexts[:, 0]

        problem = WorstCaseProblem(
            contexts=ContextSet(box.mean(0, keepdim=True)),
            ball=lambda points: FullSimplex(),
            box=box,
        )
        contexts, robust = worst_case(problem, score, seed=0)
        assert robust.value.item() == pytest.approx(-upper, abs=1e-4)
        assert (contexts.points <= box[1]).all() and (contexts.points >= box[0]).all()
    assert over


def test_descents_begin_where_the_score_is_low() -> None:
    """From nearly everywhere the way down leads into the broad valley."""
    centre = torch.tensor([0.8137, 0.4321, 0.77, 0.3]).double()

    def score(contexts: Tensor) -> Tensor:
        broad = (contexts - 0.2).square().sum(-1) / 0.35**2
        deep = (contexts - centre).square().sum(-1) / 0.08**2
        return -0.5 * torch.exp(-broad) - torch.exp(-deep)

    problem = WorstCaseProblem(
        contexts=ContextSet(torch.full((1, 4), 0.5).double()),
        ball=lambda points: FullSimplex(),
        box=torch.stack([torch.zeros(4), torch.ones(4)]).double(),
    )
    _, robust = worst_case(problem, score, seed=0)
    assert robust.value <= score(centre.unsqueeze(0)) + 1e-3


def test_contexts_nearer_than_a_cell_are_one_and_the_first_stays() -> None:
    unit = torch.tensor([[0.5], [0.1], [0.5 + 3e-6], [0.5 + 3e-5], [0.1 - 4e-6], [0.9]])
    kept = _distinct(unit.double())
    expected = unit.double()[[0, 1, 3, 5]]
    assert torch.equal(kept, expected)


def test_a_reference_without_spread() -> None:
    point = torch.tensor([[1.0, 120.0]], dtype=torch.double)
    problem = WorstCaseProblem(
        contexts=ContextSet(point.repeat(4, 1)),
        ball=lambda points: FullSimplex(),
        box=point.repeat(2, 1),
    )
    _, robust = worst_case(problem, bowl(torch.zeros(2).double()), seed=0)
    assert robust.value.item() == pytest.approx(0.1**2 + 2.0**2)


def test_a_set_on_the_full_list_is_made_once_for_search_and_worst_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same worst case as with a set of its own, and none that is made again."""
    points = torch.tensor([[0.3], [0.4], [1.0]], dtype=torch.double)
    made: list[int] = []

    def ball(contexts: Tensor) -> Wasserstein:
        made.append(len(contexts))
        return Wasserstein(0.1, torch.cdist(points, contexts))

    problem = WorstCaseProblem(
        contexts=ContextSet(points), ball=ball, between=torch.cdist, box=UNIT
    )

    def score(contexts: Tensor) -> Tensor:
        return contexts.squeeze(-1).square() - contexts.squeeze(-1)

    full = problem.on_a_full_list(0)
    # Corners that were given are not listed again.
    assert len(full[0].points.unique()) == full[0].num_points
    longest = full[0].num_points
    assert made == [longest]
    shared = worst_case(problem, score, seed=0, full=full)
    assert made.count(longest) == 1
    alone = worst_case(problem, score, seed=0)
    assert made.count(longest) == 2
    assert torch.equal(shared[0].points, alone[0].points)
    assert torch.equal(shared[1].weights, alone[1].weights)
    # By a grid: mass from .4 goes to the bottom at .5 first.
    grid = torch.linspace(0.0, 1.0, 2001, dtype=torch.double).unsqueeze(-1)
    at = torch.cat([points, grid])
    dense = Wasserstein(0.1, torch.cdist(points, at))
    weights = torch.cat([torch.full((3,), 1 / 3), torch.zeros(2001)]).double()
    expected = dense.worst_case(score(at), weights).value
    assert shared[1].value.item() == pytest.approx(expected.item(), abs=1e-5)
    recipe = make_recipe("wdrbo_exact", surrogate=prior(1), radius=0.1)
    built: list[int] = []
    ours = Wasserstein.__init__

    def counted(self: Wasserstein, radius: float, cost: Tensor | None = None) -> None:
        built.append(0 if cost is None else cost.shape[-1])
        ours(self, radius, cost)

    monkeypatch.setattr(Wasserstein, "__init__", counted)
    recipe.recommend(history(1), space(1), seed=0)
    wide = [width for width in built if width > 64]
    assert wide and len(wide) == len({*wide})
