"""The type-1 ball against linear programming and reference instances."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.exceptions.warnings import BotorchWarning
from scipy.optimize import linprog

from botorch_drbo.ambiguity import (
    MinimaxApproximation,
    SolverStatus,
    Wasserstein,
    _transport,
)
from botorch_drbo.ambiguity import wasserstein as module
from botorch_drbo.ambiguity._transport import Ground
from botorch_drbo.objectives import UncertaintyObjective
from tests.ambiguity.reference import instances, needs_reference


def by_linear_programming(f, p, cost, radius) -> float:
    """Primal over plans pi >= 0: min sum_ij pi_ij f_j, rows p, cost <= radius."""
    n, m = cost.shape
    rows = np.kron(np.eye(n), np.ones((1, m)))
    found = linprog(
        np.tile(f, n),
        A_ub=cost.reshape(1, -1),
        b_ub=[radius],
        A_eq=rows,
        b_eq=p,
        method="highs",
    )
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("n, m", [(1, 1), (6, 6), (20, 20), (7, 25), (80, 80)])
@pytest.mark.parametrize("radius", [0.0, 1e-3, 0.05, 0.3, 5.0])
@pytest.mark.parametrize("kind", ["plain", "ties", "zeros", "huge", "tiny"])
def test_equals_linear_programming(n, m, radius, kind):
    generator = torch.Generator().manual_seed(n + m)
    atoms = torch.rand(n, 2, generator=generator, dtype=torch.double)
    others = torch.rand(m - n, 2, generator=generator, dtype=torch.double)
    cost = torch.cdist(
        atoms,
        torch.cat([atoms, others]),
        compute_mode="donot_use_mm_for_euclid_dist",
    )
    f = torch.randn(3, m, generator=generator, dtype=torch.double)
    p = torch.rand(3, n, generator=generator, dtype=torch.double)
    if kind == "ties":
        f = (2 * f).round()
    if kind == "zeros" and n > 1:
        p[:, ::2] = 0
    scale = {"huge": 1e6, "tiny": 1e-6}.get(kind, 1.0)
    p = p / p.sum(-1, keepdim=True)
    robust = Wasserstein(radius, cost).worst_case(scale * f, p)
    assert robust.status is SolverStatus.EXACT
    for row in range(3):
        expected = by_linear_programming(
            f[row].numpy(), p[row].numpy(), cost.numpy(), radius
        )
        assert abs(robust.value[row] / scale - expected) <= 1e-8 * (1 + abs(expected))


@needs_reference
@pytest.mark.parametrize("distance", ["wasserstein1", "wasserstein1_candidates"])
def test_reference_instances(distance):
    for i in instances(distance):
        robust = Wasserstein(i["eps"], i["cost"]).worst_case(i["f"], i["p"])
        scale = 1 + abs(i["value"])
        assert abs(robust.value - i["value"]) <= 1e-9 * scale
        assert abs(robust.multiplier - i["multiplier"]) <= 1e-6 * (1 + i["multiplier"])
        if i["q_unique"]:
            torch.testing.assert_close(robust.weights, i["q"], rtol=0, atol=1e-8)


def test_permutation_of_atoms():
    f = torch.randn(9, dtype=torch.double)
    points = torch.rand(9, 2, dtype=torch.double)
    p = torch.softmax(torch.randn(9, dtype=torch.double), -1)
    order = torch.randperm(9)
    cost = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    plain = Wasserstein(0.1, cost).worst_case(f, p)
    moved = Wasserstein(0.1, cost[order][:, order]).worst_case(f[order], p[order])
    torch.testing.assert_close(moved.value, plain.value)
    torch.testing.assert_close(moved.weights, plain.weights[order])


def test_radius_on_a_breakpoint_gives_the_right_derivative():
    """Mass 1/2 at distance 1: at radius 1/2 all of it has moved."""
    cost = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.double)
    p = torch.tensor([0.5, 0.5], dtype=torch.double)
    f = torch.tensor([0.0, 4.0], dtype=torch.double)
    for radius, value, multiplier in ((0.0, 2.0, 4.0), (0.25, 1.0, 4.0), (0.5, 0, 0)):
        robust = Wasserstein(radius, cost).worst_case(f, p)
        assert robust.value == pytest.approx(value)
        assert robust.multiplier == pytest.approx(multiplier)


def test_duplicate_atoms_move_for_free():
    cost = torch.zeros(2, 2, dtype=torch.double)
    p = torch.tensor([0.5, 0.5], dtype=torch.double)
    f = torch.tensor([1.0, 3.0], dtype=torch.double)
    assert Wasserstein(0.0, cost).worst_case(f, p).value == 1.0


def on_a_line(x: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
    """The area between the distribution functions, in exact arithmetic."""
    order = np.argsort(x)
    atoms, p, q = ([Fraction(v) for v in values[order]] for values in (x, p, q))
    p, q = ([v / sum(values) for v in values] for values in (p, q))
    ahead, area = Fraction(0), Fraction(0)
    for i in range(len(atoms) - 1):
        ahead += p[i] - q[i]
        area += abs(ahead) * (atoms[i + 1] - atoms[i])
    return float(area)


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_distance_is_optimal_transport_on_a_line(unit):
    """Weights from 1 to 1e-12, some zero, and the two all but equal at times."""
    rng = np.random.default_rng(0)
    for k in range(100):
        n = int(rng.integers(2, 12))
        x, p, q = rng.random(n), 10.0 ** (-12 * rng.random(n)), rng.random(n) ** 9
        if k % 4 == 0:
            q = p * (1 + 1e-9 * rng.standard_normal(n))
        if k % 4 == 1:
            q[1:] = 0.0
        p, q = p / p.sum(), q / q.sum()
        cost = torch.from_numpy(unit * np.abs(x[:, None] - x))
        found = Wasserstein(0.1, cost).distance(*map(torch.from_numpy, (p, q)))
        assert abs(found.item() / unit - on_a_line(x, p, q)) <= 2e-15


def test_distance_is_optimal_transport_in_the_plane():
    """Against cvxpy; batches broadcast, candidates need not be the atoms."""
    import cvxpy as cp

    generator = torch.Generator().manual_seed(0)
    atoms, others = torch.rand(2, 7, 2, generator=generator, dtype=torch.double)
    cost = torch.cdist(atoms, torch.cat([atoms, others[:4]]))
    p = torch.rand(3, 1, 7, generator=generator, dtype=torch.double) ** 9
    q = torch.rand(2, 11, generator=generator, dtype=torch.double) ** 9
    found = Wasserstein(0.1, cost).distance(p, q)
    assert found.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            plan = cp.Variable((7, 11), nonneg=True)
            start, end = ((v / v.sum()).numpy() for v in (p[i, 0], q[j]))
            problem = cp.Problem(
                cp.Minimize(cp.sum(cp.multiply(cost.numpy(), plan))),
                [cp.sum(plan, axis=1) == start, cp.sum(plan, axis=0) == end],
            )
            expected = problem.solve(solver=cp.CLARABEL)
            assert found[i, j].item() == pytest.approx(expected, abs=1e-7)


def test_a_distance_that_is_not_found_is_an_error(monkeypatch):
    gave_up = SimpleNamespace(status=1, message="Time limit", fun=None)
    monkeypatch.setattr(module, "linprog", lambda *_, **__: gave_up)
    p = torch.tensor([0.5, 0.5], dtype=torch.double)
    with pytest.raises(RuntimeError, match="Time limit"):
        Wasserstein(0.1, 1 - torch.eye(2)).distance(p, p)


@pytest.mark.parametrize(
    "cost, error, text",
    [
        (-torch.ones(2, 2), InputDataError, "negative"),
        (torch.ones(2, 2), InputDataError, "diagonal"),
        (torch.full((2, 3), torch.nan), InputDataError, "NaN"),
        (torch.zeros(2), BotorchTensorDimensionError, "matrix"),
        (torch.zeros(2, 2, dtype=torch.long), InputDataError, "floating"),
    ],
)
def test_bad_cost(cost, error, text):
    with pytest.raises(error, match=text):
        Wasserstein(0.1, cost)


def test_candidates_without_the_atoms_need_a_radius():
    cost = torch.tensor([[0.5, 1.0]], dtype=torch.double)
    one = torch.ones(1, dtype=torch.double)
    f = torch.tensor([1.0, 0.0], dtype=torch.double)
    with pytest.raises(InputDataError, match="empty"):
        Wasserstein(0.1, cost).worst_case(f, one)
    assert Wasserstein(0.75, cost).worst_case(f, one).value == pytest.approx(0.5)


def test_an_unfinished_solver_returns_a_lower_bound(monkeypatch):
    x = torch.linspace(0, 1, 60, dtype=torch.double) ** 3
    f, cost = (9 * x).sin() - x, (x[:, None] - x).abs()
    p = torch.full((60,), 1 / 60, dtype=torch.double)
    exact = Wasserstein(0.1, cost).worst_case(f, p).value
    monkeypatch.setattr(module, "_MAX_STEPS", 2)
    with pytest.warns(BotorchWarning, match="lower bound"):
        rough = Wasserstein(0.1, cost).worst_case(f, p)
    assert rough.status is not SolverStatus.EXACT
    assert rough.value <= exact + 1e-12


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_an_offset_of_the_scores_changes_nothing(offset):
    """The certificate must be relative to the range of the scores."""
    generator = torch.Generator().manual_seed(0)
    f = 1e-3 * torch.randn(11, generator=generator, dtype=torch.double)
    x = torch.rand(11, generator=generator, dtype=torch.double)
    ball = Wasserstein(0.1, (x[:, None] - x).abs())
    p = torch.full((11,), 1 / 11, dtype=torch.double)
    plain = ball.worst_case((f + offset) - offset, p)
    moved = ball.worst_case(f + offset, p)
    torch.testing.assert_close(moved.multiplier, plain.multiplier)
    torch.testing.assert_close(moved.weights, plain.weights)


def test_duplicates_at_radius_zero_take_the_lower_score_whatever_the_order():
    cost = torch.zeros(2, 2, dtype=torch.double)
    p = torch.tensor([0.5, 0.5], dtype=torch.double)
    for f in ([1.0, 3.0], [3.0, 1.0]):
        value = Wasserstein(0.0, cost).worst_case(torch.tensor(f).double(), p).value
        assert value == 1.0


def test_many_pieces_with_the_radius_on_each_breakpoint():
    """Equal masses on a line, concave scores: the nearest atom to zero moves first."""
    x = torch.linspace(0, 1, 9, dtype=torch.double)
    f, cost = x ** (1 / 3), (x[:, None] - x).abs()
    p = torch.full((9,), 1 / 9, dtype=torch.double)
    spent = 0.0
    for k in range(1, 9):
        robust = Wasserstein(spent, cost).worst_case(f, p)
        assert robust.value.item() == pytest.approx(f[k:].sum().item() / 9)
        assert robust.multiplier.item() == pytest.approx((f[k] / x[k]).item())
        spent += (x[k] / 9).item()


def test_a_radius_that_just_pays_for_the_cheapest_plan_is_not_too_small():
    """All atoms are .1 from the only candidate; how the sum of n times .1 / n rounds
    is no reason to call the ball empty. Less is."""
    f = torch.ones(1, dtype=torch.double)
    for n in range(2, 60):
        p = torch.full((n,), 1 / n, dtype=torch.double)
        cost = torch.full((n, 1), 0.1, dtype=torch.double)
        assert Wasserstein(0.1, cost).worst_case(f, p).value.item() == pytest.approx(1)
        with pytest.raises(InputDataError, match="empty"):
            Wasserstein(0.1 * (1 - 1e-9), cost).worst_case(f, p)


def test_a_radius_that_just_pays_for_everything_is_saturated():
    """A further bit buys nothing, though .1 + .1 + .1 is more than .3."""
    x = torch.linspace(0, 1, 11, dtype=torch.double)
    f, cost = x.clone(), (x[:, None] - x).abs()
    generator = torch.Generator().manual_seed(0)
    p = torch.rand(200, 11, generator=generator, dtype=torch.double)
    p = p / p.sum(-1, keepdim=True)
    radius = (p * x).flip(-1).cumsum(-1)[:, -1]  # what all moves to zero cost
    robust = Wasserstein(0.1, cost).worst_case(f, p, radius=radius)
    assert (robust.multiplier == 0).all()
    robust = Wasserstein(0.1, cost).worst_case(f, p, radius=radius * (1 - 1e-9))
    torch.testing.assert_close(robust.multiplier, torch.ones(200).double())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("radius", [0.01, 0.1, 0.4])
def test_a_cost_that_is_no_metric(seed, radius):
    """Atoms settle early: that must be right without the triangle inequality."""
    generator = torch.Generator().manual_seed(seed)
    cost = torch.rand(12, 12, generator=generator, dtype=torch.double) ** 2
    cost.fill_diagonal_(0.0)
    f = torch.randn(12, generator=generator, dtype=torch.double)
    p = torch.rand(12, generator=generator, dtype=torch.double) ** 4
    p = p / p.sum()
    expected = by_linear_programming(f.numpy(), p.numpy(), cost.numpy(), radius)
    robust = Wasserstein(radius, cost).worst_case(f, p)
    assert robust.value.item() == pytest.approx(expected, abs=1e-10)


def mixed_batch() -> tuple[torch.Tensor, ...]:
    """Rows that end at once, early and late: scores, weights, radii and the cost."""
    generator = torch.Generator().manual_seed(5)
    points = torch.rand(30, 2, generator=generator, dtype=torch.double)
    cost = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    cost[3, 4] = cost[4, 3] = 0.0  # two atoms in one place
    f = torch.randn(9, 30, generator=generator, dtype=torch.double)
    f[1], f[2] = 2.0, f[2].round()  # constant, tied
    p = torch.rand(9, 30, generator=generator, dtype=torch.double)
    p[3:6, ::3] = 0.0
    radius = torch.tensor([0.0, 0.1, 0.1, 0.0, 9.0, 0.02, 1e-6, 0.2, 0.4]).double()
    return f, p / p.sum(-1, keepdim=True), radius, cost


def test_rows_do_not_depend_on_each_other(monkeypatch):
    f, p, radius, cost = mixed_batch()
    ball = Wasserstein(0.1, cost)
    together = ball.worst_case(f, p, radius=radius)
    for elements in (1, 70, 2**20):  # one pair at a time, a few, all
        monkeypatch.setattr(_transport, "_CHUNK_ELEMENTS", {"cpu": elements})
        for i in range(len(f)):
            alone = ball.worst_case(f[i], p[i], radius=radius[i])
            torch.testing.assert_close(alone.value, together.value[i])
            torch.testing.assert_close(alone.weights, together.weights[i])
            torch.testing.assert_close(alone.multiplier, together.multiplier[i])


def test_gradient_in_the_weights_is_the_price_of_each_atom():
    """Also of atoms without mass, which the search leaves out."""
    f, p, radius, cost = mixed_batch()
    p.requires_grad_(True)
    robust = Wasserstein(0.1, cost).worst_case(f, p, radius=radius)
    (gradient,) = torch.autograd.grad(robust.value.sum(), p)
    lowered = f[:, None, :] + robust.multiplier[:, None, None] * cost
    expected = lowered.amin(-1)
    centred = [g - g.mean(-1, keepdim=True) for g in (gradient, expected)]
    torch.testing.assert_close(*centred)


def test_settled_atoms_are_not_looked_at_again(monkeypatch):
    """At least 10 steps are taken, at the price of at most 5 over all atoms.

    The last ones, of so few rows that all pairs cost less than calls, are not counted.
    """
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(100, 2, generator=generator, dtype=torch.double)
    cost = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    f = torch.randn(16, 100, generator=generator, dtype=torch.double)
    looked: list[int] = []
    best = module.cheapest_target

    def counted(f, cost, lam, row, atom):
        looked.append(len(row))
        return best(f, cost, lam, row, atom)

    for caller in (module, _transport):
        monkeypatch.setattr(caller, "cheapest_target", counted)
    p = torch.full((100,), 0.01, dtype=torch.double)
    robust = Wasserstein(0.05, cost).worst_case(f, p)
    assert robust.status is SolverStatus.EXACT
    assert len(looked) >= 10
    assert sum(looked) <= 5 * f.numel()


@pytest.mark.parametrize("d_c", [1, 2])
def test_few_pairs_are_looked_at_together_with_the_same_result(monkeypatch, d_c):
    """Also of rows that are saturated, of ties, and of atoms without weight."""
    generator = torch.Generator().manual_seed(3)
    points = torch.rand(12, d_c, generator=generator, dtype=torch.double)
    points[5] = points[4]
    cost = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    f = torch.randn(20, 12, generator=generator, dtype=torch.double)
    f[:5] = f[:5].round()
    p = torch.rand(20, 12, generator=generator, dtype=torch.double)
    p[3:9, 2:6] = 0.0
    p = p / p.sum(-1, keepdim=True)
    radius = torch.logspace(-3, 1, 20, dtype=torch.double)
    together = Wasserstein(0.1, cost).worst_case(f, p, radius=radius)
    monkeypatch.setattr(_transport, "_FEW_PAIRS", 0)
    apart = Wasserstein(0.1, cost).worst_case(f, p, radius=radius)
    assert (together.multiplier == 0).any() and (together.multiplier > 0).any()
    for name in ("value", "multiplier"):
        torch.testing.assert_close(
            getattr(together, name), getattr(apart, name), rtol=1e-9, atol=1e-13
        )
    for each in range(0, 20, 4):
        expected = by_linear_programming(
            f[each].numpy(), p[each].numpy(), cost.numpy(), radius[each].item()
        )
        assert together.value[each].item() == pytest.approx(expected, abs=1e-9)


def test_a_mixed_batch_equals_linear_programming():
    f, p, radius, cost = mixed_batch()
    robust = Wasserstein(0.1, cost).worst_case(f, p, radius=radius)
    for i in range(len(f)):
        expected = by_linear_programming(
            f[i].numpy(), p[i].numpy(), cost.numpy(), radius[i].item()
        )
        assert robust.value[i].item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("scores", [[2.0, 1.0, 0.0], [1.0, 2.0, 0.0]])
def test_duplicates_beside_a_lower_score_out_of_reach(scores):
    """At radius zero mass moves within a place only."""
    x = torch.tensor([0.0, 0.0, 1.0], dtype=torch.double)
    p = torch.tensor([0.25, 0.25, 0.5], dtype=torch.double)
    f = torch.tensor(scores, dtype=torch.double)
    robust = Wasserstein(0.0, (x[:, None] - x).abs()).worst_case(f, p)
    assert robust.value.item() == 0.5
    assert robust.weights.tolist() == [0.5 * (s == 1.0) for s in scores[:2]] + [0.5]


@pytest.mark.parametrize("radius", [1.0, 1.5, 5.0])
def test_past_saturation_mass_takes_the_shortest_way(radius):
    x = torch.tensor([0.0, 2.0, 1.0], dtype=torch.double)
    p = torch.tensor([1.0, 0.0, 0.0], dtype=torch.double)
    f = torch.tensor([1.0, 0.0, 0.0], dtype=torch.double)
    robust = Wasserstein(radius, (x[:, None] - x).abs()).worst_case(f, p)
    assert robust.weights.tolist() == [0.0, 0.0, 1.0]
    assert robust.multiplier == 0.0


def sparse(d: int, seed: int) -> tuple[torch.Tensor, ...]:
    """Scores, weights of which those of the last contexts and others are zero, cost."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(50, d, generator=generator, dtype=torch.double)
    points[7], points[31] = points[2], points[3]  # one with weight, and one without
    cost = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    f = torch.randn(6, 50, generator=generator, dtype=torch.double)
    f[1], f[2] = 2.0, f[2].round()
    p = torch.rand(6, 50, generator=generator, dtype=torch.double)
    p[:, 20:], p[:, 4], p[3, ::2] = 0.0, 0.0, 0.0
    return f, p / p.sum(-1, keepdim=True), cost


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_contexts_without_weight_cost_nothing_and_change_nothing(d, seed, monkeypatch):
    """The same values, whether they have a row or not, as with all rows looked at."""
    f, p, cost = sparse(d, seed)
    radius = torch.tensor([0.0, 0.1, 0.2, 0.02, 9.0, 1e-6]).double()
    square, rows = Wasserstein(0.1, cost), Wasserstein(0.1, cost[:20])
    found = [ball.worst_case(f, p, radius=radius) for ball in (square, rows)]
    bounds = [ball.lower_bound(f, p) for ball in (square, rows)]
    moves = [ball.sensitivity(f, p) for ball in (square, rows)]
    everyone = lambda self, p: (p, Ground.of(self.cost))  # noqa: E731
    monkeypatch.setattr(Wasserstein, "_from_mass", everyone)
    dense, bound = square.worst_case(f, p, radius=radius), square.lower_bound(f, p)
    moved = square.sensitivity(f, p)
    for i in range(2):
        close = {"rtol": 0.0, "atol": 1e-12}
        torch.testing.assert_close(found[i].value, dense.value, **close)
        torch.testing.assert_close(found[i].multiplier, dense.multiplier)
        torch.testing.assert_close(found[i].weights, dense.weights)
        torch.testing.assert_close(bounds[i], bound, **close)
        torch.testing.assert_close(moves[i], moved)
    for row in range(6):
        expected = by_linear_programming(
            f[row].numpy(), p[row].numpy(), cost.numpy(), radius[row].item()
        )
        assert dense.value[row].item() == pytest.approx(expected, abs=1e-8)


def test_only_atoms_with_weight_are_looked_at(monkeypatch):
    f, p, cost = sparse(2, 0)
    asked: list[int] = []
    infinity = module.assignment_at_infinity

    def counted(f, ground):
        asked.append(len(ground.cost))
        return infinity(f, ground)

    monkeypatch.setattr(module, "assignment_at_infinity", counted)
    for ball in (Wasserstein(0.1, cost), Wasserstein(0.1, cost[:20])):
        ball.worst_case(f, p)
        ball.lower_bound(f, p)
    assert asked == 4 * [19]  # of 50; the fifth of 20 has no weight


def test_a_cost_with_rows_for_the_first_contexts_alone():
    """By cvxpy, as a distance and as a bound; mass without a row is an error."""
    f, p, cost = sparse(2, 1)
    square, rows = Wasserstein(0.1, cost), Wasserstein(0.1, cost[:20])
    assert rows.holds_reference and not Wasserstein(1.0, cost[1:20]).holds_reference
    solved = rows.worst_case(f[:2], p[:2], solver="cvxpylayers")
    exact = rows.worst_case(f[:2], p[:2])
    torch.testing.assert_close(solved.value, exact.value, rtol=0.0, atol=1e-6)
    torch.testing.assert_close(
        rows.distance(p[0], p[1]), square.distance(p[0], p[1]), rtol=0.0, atol=1e-12
    )
    objective = UncertaintyObjective(rows)
    for weights in (p, p[:, :20]):
        torch.testing.assert_close(objective.upper_bound(f, weights), (p * f).sum(-1))
        torch.testing.assert_close(objective(f, weights), square.value(f, p))
    for call in (rows.worst_case, rows.lower_bound):
        with pytest.raises(InputDataError, match="rows for the first 20 contexts only"):
            call(f, p.roll(10, -1))
    with pytest.raises(InputDataError, match="first 20"):
        rows.distance(p[0].roll(10), p[1])
    for size in (19, 21):
        with pytest.raises(BotorchTensorDimensionError, match="20 weights"):
            rows.worst_case(f, p[:, :size])
    with pytest.raises(UnsupportedError, match="gradient in the reference weights"):
        rows.worst_case(f, p.requires_grad_())
    with pytest.raises(BotorchTensorDimensionError, match="row of `cost`"):
        MinimaxApproximation(rows).worst_case(f, p.detach())


def test_no_row_at_all_is_no_error():
    f, p, cost = sparse(2, 0)
    for rows in (50, 20):
        ball = Wasserstein(0.1, cost[:rows])
        assert ball.worst_case(f[:0], p[:0]).weights.shape == (0, 50)
        assert ball.lower_bound(f[:0], p[:0]).shape == (0,)
        assert ball.lower_bound(f[:0], p[0]).shape == (0,)
    weights = p[:0].clone().requires_grad_()
    Wasserstein(0.1, cost).worst_case(f[:0], weights).value.sum().backward()
    assert weights.grad is not None


def test_what_is_known_of_a_cost_follows_it():
    """Whole numbers, so that many are as near; changed in place, with other atoms."""
    generator = torch.Generator().manual_seed(3)
    points = torch.randint(3, (12, 2), generator=generator).double()
    f = torch.randn(1, 12, generator=generator, dtype=torch.double)
    p = torch.rand(1, 12, generator=generator, dtype=torch.double)
    ball = Wasserstein(0.4, torch.cdist(points, points, p=1.0))
    for change in (1.0, 0.25, 7.0):
        ball.cost.mul_(change)
        for without in (slice(0, 0), slice(3, 9), slice(0, 5)):
            mass = p.clone()
            mass[:, without] = 0.0
            mass /= mass.sum()
            expected = by_linear_programming(
                f[0].numpy(), mass[0].numpy(), ball.cost.numpy(), 0.4
            )
            found = ball.worst_case(f, mass)
            assert found.value.item() == pytest.approx(expected, abs=1e-8)
            assert ball.lower_bound(f, mass).item() <= expected + 1e-9
