"""The distributionally robust recipes against convex programs."""

from __future__ import annotations

import json
import math
from functools import partial

import cvxpy as cp
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from gpytorch.kernels import ScaleKernel
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import (
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import RobustRecipe, recipe_from_dict
from botorch_drbo.schedules import InverseSquareRoot
from tests.products import exploring, product, robust_set

SPACE = SearchSpace(
    bounds=torch.tensor([[0.0], [1.0]], dtype=torch.double),
    context_bounds=torch.tensor([[0.0, 0.0], [1.0, 100.0]], dtype=torch.double),
)
LENGTHSCALES = (0.4, 0.3, 0.6)
BETA = 2.0
X_TEST = torch.linspace(0.05, 0.95, 4, dtype=torch.double).unsqueeze(-1)


def history(t: int = 9) -> History:
    generator = torch.Generator().manual_seed(5)
    X = torch.rand(t, 1, generator=generator, dtype=torch.double)
    C = torch.rand(t, 2, generator=generator, dtype=torch.double)
    C[:, 1] *= 100.0
    Y = torch.sin(4 * X) + X * C[:, :1] - 0.01 * C[:, 1:]
    return History(X=X, C=C, Y=Y, contexts=C)


def joint_model(data: History) -> SingleTaskGP:
    inputs = torch.cat([data.X, data.C], dim=-1)
    transform = Normalize(3, bounds=SPACE.joint_bounds)
    model = SingleTaskGP(inputs, data.Y, input_transform=transform)
    model.covar_module.lengthscale = torch.tensor(LENGTHSCALES)
    return model.eval()


def ucb(model: SingleTaskGP, contexts: Tensor) -> Tensor:
    """``b x n`` upper confidence bounds by BoTorch."""
    rows = []
    for x in X_TEST:
        z = torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)
        posterior = model.posterior(z.unsqueeze(-2))
        rows.append((posterior.mean + (BETA * posterior.variance).sqrt()).flatten())
    return torch.stack(rows).detach()


def values(algorithm: RobustRecipe, data: History) -> Tensor:
    acqf = exploring(algorithm, joint_model(data), data, SPACE, beta=BETA, seed=4)
    return acqf(X_TEST.unsqueeze(-2)).detach()


def test_drbo_kde_is_the_two_dimensional_dual_of_the_paper() -> None:
    """Proposition 2 as the paper solves it, but by cvxpy and with the exact floor."""
    data = history()
    algorithm = product("drbo_kde", num_contexts=32, num_outside=16)
    contexts, ball = robust_set(algorithm, joint_model(data), data, SPACE, 4)
    assert contexts.points.shape == (48, 2)
    assert isinstance(ball, TotalVariation)
    assert ball.radius.item() == pytest.approx(9 ** (-2 / 6))
    scores = ucb(joint_model(data), contexts.points)
    expected = []
    for f in scores.numpy():
        level, price = cp.Variable(), cp.Variable(nonneg=True)
        # q >= 0 and sum q = 1 leave: on the support min(f, level + price) pays, and
        # outside no score may lie below level - price.
        inside = cp.sum(cp.minimum(f[:32], level + price)) / 32
        problem = cp.Problem(
            cp.Maximize(inside - price * ball.radius.item()),
            [level - price <= f.min()],
        )
        expected.append(problem.solve(solver=cp.CLARABEL))
    found = values(algorithm, data)
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-6, atol=1e-7)


def test_drbo_kde_with_radius_zero_is_sbo_kde() -> None:
    data = history()
    torch.testing.assert_close(
        values(product("drbo_kde", radius=0.0, num_contexts=64), data),
        values(product("sbo_kde", num_contexts=64), data),
    )


def test_drbo_kde_gradient_follows_the_lowest_context() -> None:
    data = history()
    recipe = product("drbo_kde", radius=1.5, num_contexts=16, num_outside=64)
    acqf = exploring(recipe, joint_model(data), data, SPACE, beta=BETA, seed=4)
    X = X_TEST.unsqueeze(-2).clone().requires_grad_()
    assert torch.autograd.gradcheck(acqf, X)


def test_drbo_mmd_solves_the_quadratic_program_on_the_product_grid() -> None:
    data = history()
    algorithm = product("drbo_mmd", radius=0.3, num_contexts=20)
    contexts, ball = robust_set(algorithm, joint_model(data), data, SPACE, 4)
    # ceil(20 ** (1/2)) = 5 per side: the whole grid, not its diagonal.
    side = torch.linspace(0, 1, 5, dtype=torch.double)
    grid = torch.cartesian_prod(side, 100 * side)
    torch.testing.assert_close(contexts.points, grid)
    nearest = torch.cdist(
        data.C / SPACE.context_bounds[1], grid / SPACE.context_bounds[1]
    ).argmin(-1)
    histogram = torch.bincount(nearest, minlength=25) / 9
    torch.testing.assert_close(contexts.weights, histogram.double())
    # The model's kernel in c: its last two lengthscales, on normalised contexts.
    unit = grid / SPACE.context_bounds[1] / torch.tensor(LENGTHSCALES[1:]).double()
    kernel = torch.exp(-0.5 * torch.cdist(unit, unit).square())
    assert isinstance(ball, MaximumMeanDiscrepancy)
    centred = torch.eye(25, dtype=torch.double) - 1 / 25
    torch.testing.assert_close(
        ball.factor @ ball.factor.mT, centred @ kernel @ centred, atol=1e-9, rtol=0
    )
    root = torch.linalg.cholesky(kernel + 1e-12 * torch.eye(25)).numpy()
    expected = []
    for f in ucb(joint_model(data), grid).numpy():
        q = cp.Variable(25, nonneg=True)
        moved = root.T @ (q - contexts.weights.numpy())
        problem = cp.Problem(
            cp.Minimize(q @ f), [cp.sum(q) == 1, cp.norm(moved) <= 0.3]
        )
        expected.append(problem.solve(solver=cp.CLARABEL))
    torch.testing.assert_close(
        values(algorithm, data), torch.tensor(expected), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(("d_c", "num", "size"), [(1, 100, 100), (2, 100, 100)])
@pytest.mark.parametrize(
    "recipe", [partial(product, "drbo_mmd"), partial(product, "drbo_mmd_minimax")]
)
def test_drbo_mmd_grid_sizes(recipe, d_c: int, num: int, size: int) -> None:
    C = torch.rand(4, d_c, dtype=torch.double)
    X = torch.rand(4, 1, dtype=torch.double)
    data = History(X=X, C=C, Y=X, contexts=C)
    box = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    space = SearchSpace(box, box.expand(2, d_c))
    model = SingleTaskGP(torch.cat([X, C], -1), X)
    contexts, ball = robust_set(recipe(num_contexts=num), model, data, space, 0)
    assert contexts.num_points == size
    assert ball.radius.item() == pytest.approx((2 + (2 * 2.302585093) ** 0.5) / 2)


def test_the_grid_is_rounded_up_and_follows_a_reference() -> None:
    reference = ContextSet(
        torch.tensor([[0.0, 0.0], [1.0, 100.0]], dtype=torch.double),
        torch.tensor([0.25, 0.75], dtype=torch.double),
    )
    data = history()
    for num, per_side in ((1000, 32), (64, 8), (65, 9)):
        algorithm = product("drbo_mmd", reference=reference, num_contexts=num)
        contexts, _ = robust_set(algorithm, joint_model(data), data, SPACE, 0)
        assert contexts.num_points == per_side**2
        assert contexts.weights[0] == 0.25 and contexts.weights[-1] == 0.75


@pytest.mark.parametrize(("d_c", "per_side"), [(1, 1024), (2, 32), (3, 11), (4, 6)])
def test_grids_and_boxes_have_the_sizes_of_the_papers(d_c: int, per_side: int) -> None:
    unit = torch.tensor([[0.0] * d_c, [1.0] * d_c], dtype=torch.double)
    C = torch.rand(5, d_c, dtype=torch.double)
    data = History(X=C, C=C, Y=C[:, :1], contexts=C)
    space = SearchSpace(unit, unit)
    fitted = SingleTaskGP(torch.cat([C, C], dim=-1), data.Y)
    minimax = robust_set(product("drbo_mmd_minimax"), fitted, data, space, 0)[0]
    assert minimax.num_points == per_side**d_c
    exact = robust_set(product("drbo_mmd"), fitted, data, space, 0)[0]
    assert exact.num_points == math.ceil(100 ** (1 / d_c)) ** d_c
    stable = robust_set(product("stable_opt"), fitted, data, space, 0)[0]
    assert stable.num_points == 1024


def test_drbo_mmd_minimax_searches_with_the_approximation() -> None:
    data = history()
    algorithm = product("drbo_mmd_minimax", radius=0.3, num_contexts=20)
    contexts, lines = robust_set(algorithm, joint_model(data), data, SPACE, 4)
    scores = ucb(joint_model(data), contexts.points)
    assert isinstance(lines, MinimaxApproximation)
    ball = lines.original()
    assert isinstance(ball, MaximumMeanDiscrepancy)
    expected = MinimaxApproximation(ball).worst_case(scores, contexts.weights).value
    torch.testing.assert_close(values(algorithm, data), expected, rtol=1e-5, atol=1e-6)


def test_wdrbo_exact_is_the_transport_problem() -> None:
    data = history()
    algorithm = product("wdrbo_exact", radius=0.1, num_candidates=12)
    contexts, ball = robust_set(algorithm, joint_model(data), data, SPACE, 4)
    assert isinstance(ball, Wasserstein)
    assert torch.equal(contexts.points[:9], data.C)
    assert (contexts.weights[9:] == 0).all() and contexts.num_points == 21
    unit = contexts.points / SPACE.context_bounds[1]
    cost = torch.cdist(unit[:9], unit).numpy()
    expected = []
    for f in ucb(joint_model(data), contexts.points).numpy():
        plan = cp.Variable((9, 21), nonneg=True)
        problem = cp.Problem(
            cp.Minimize(cp.sum(plan @ f)),
            [cp.sum(plan, 1) == 1 / 9, cp.sum(cp.multiply(plan, cost)) <= 0.1],
        )
        expected.append(problem.solve(solver=cp.CLARABEL))
    torch.testing.assert_close(
        values(algorithm, data), torch.tensor(expected), rtol=1e-6, atol=1e-7
    )


def test_wdrbo_bounds_wdrbo_exact_from_below() -> None:
    data = history()
    bound = values(product("wdrbo", radius=0.05), data)
    exact = values(product("wdrbo_exact", radius=0.05, num_candidates=256), data)
    expectation = values(product("erbo"), data)
    assert (bound <= exact + 1e-6).all() and (exact < expectation).all()
    torch.testing.assert_close(
        values(product("wdrbo_exact", radius=0.0), data), expectation
    )


def test_dro_takes_any_set_and_schedule() -> None:
    data = history()
    scores = ucb(joint_model(data), data.C)
    uniform = torch.full((9,), 1 / 9, dtype=torch.double)
    for ambiguity, radius, size in (
        (KullbackLeibler(0.3), None, 0.3),
        (KullbackLeibler(0.3), InverseSquareRoot(0.6), 0.2),
        (TotalVariation(0.1), 0.4, 0.4),
    ):
        algorithm = product(
            "dro", ambiguity_set=ambiguity, radius=radius, contexts_complete=True
        )
        expected = ambiguity.with_radius(size).worst_case(scores, uniform).value
        torch.testing.assert_close(values(algorithm, data), expected)
    everything = product("dro", ambiguity_set=FullSimplex())
    torch.testing.assert_close(values(everything, data), scores.amin(-1))


@pytest.mark.parametrize(
    "recipe",
    [
        partial(product, "drbo_kde"),
        partial(product, "drbo_mmd"),
        partial(product, "drbo_mmd_minimax"),
        partial(product, "wdrbo_exact"),
    ],
)
def test_radii_count_contexts_not_outcomes(recipe) -> None:
    """A context is seen before its outcome, and tells of the distribution at once."""
    data = history()
    more = torch.cat([data.C, data.C[:7]])  # 16 contexts, 9 outcomes
    waiting = History(X=data.X, C=data.C, Y=data.Y, contexts=more)
    algorithm = recipe(radius=InverseSquareRoot(0.8))
    _contexts, ball = robust_set(algorithm, joint_model(data), waiting, SPACE, 4)
    assert ball.radius.item() == pytest.approx(0.2)
    other = product("dro", radius=InverseSquareRoot(0.8))
    _, ball = robust_set(other, joint_model(data), waiting, SPACE, 4)
    assert ball.radius.item() == pytest.approx(0.2)


def test_the_kernel_matrix_has_variance_one_whatever_the_output_scale() -> None:
    data = history()
    model = joint_model(data)
    plain, jittered = (
        product("drbo_mmd", num_contexts=9),
        product("drbo_mmd_minimax", num_contexts=9),
    )

    def gram(algorithm) -> Tensor:
        ball = robust_set(algorithm, model, data, SPACE, 0)[1].original()
        assert isinstance(ball, MaximumMeanDiscrepancy)
        return ball.factor @ ball.factor.mT

    before = gram(plain)
    centred = torch.eye(9, dtype=torch.double) - 1 / 9
    torch.testing.assert_close(
        gram(jittered), before + 1e-3 * centred, rtol=0.0, atol=1e-9
    )
    model.covar_module = ScaleKernel(model.covar_module).double()
    model.covar_module.outputscale = 5.0
    torch.testing.assert_close(gram(plain), before, rtol=0.0, atol=1e-9)


def test_sobol_contexts_follow_the_seed() -> None:
    data, model = history(), joint_model(history())
    for algorithm in (product("drbo_kde", num_contexts=4), product("wdrbo_exact")):
        one, same, other = (
            robust_set(algorithm, model, data, SPACE, seed)[0].points
            for seed in (0, 0, 1)
        )
        assert torch.equal(one, same)
        assert not torch.equal(one[-100:], other[-100:])


@pytest.mark.parametrize(
    "recipe",
    [
        partial(product, "drbo_kde"),
        partial(product, "drbo_mmd"),
        partial(product, "drbo_mmd_minimax"),
        partial(product, "wdrbo_exact"),
    ],
)
def test_pending_decisions_lower_the_acquisition_function(recipe) -> None:
    data = history()
    free, pending = (
        exploring(
            recipe(radius=0.1),
            joint_model(data),
            data,
            SPACE,
            beta=BETA,
            X_pending=X,
            seed=4,
        )(X_TEST.unsqueeze(-2))
        for X in (None, X_TEST)
    )
    assert (pending < free - 1e-4).all()


def test_dro_with_a_geometry_needs_a_reference() -> None:
    data = history()
    points = torch.tensor([[0.2, 30.0], [0.8, 60.0]], dtype=torch.double)
    ball = Wasserstein(0.1, torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double())
    fixed = product("dro", ambiguity_set=ball, reference=ContextSet(points))
    assert values(fixed, data).shape == (4,)
    with pytest.raises(BotorchTensorDimensionError, match="atoms"):
        values(product("dro", ambiguity_set=ball), data)


def test_dro_resumes_with_its_set(tmp_path) -> None:
    """The journal keeps the set exactly."""
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    path = tmp_path / "run.jsonl"
    opt = RobustOptimizer(
        "dro",
        unit,
        unit,
        journal=path,
        num_initial=2,
        ambiguity_set=KullbackLeibler(0.1),
        num_restarts=1,
        raw_samples=4,
    )
    for _ in range(3):
        x = opt.ask()
        opt.tell(x, x / 2, x.item())
    opt.close()
    resumed = RobustOptimizer.resume(path)
    ambiguity = resumed.algorithm.options["ambiguity_set"]
    assert isinstance(ambiguity, KullbackLeibler)
    assert ambiguity.radius.item() == 0.1
    again = recipe_from_dict(json.loads(json.dumps(resumed.algorithm.to_dict())))
    assert again.name == "dro"
    resumed.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: product("drbo_kde", num_contexts=0),
        lambda: product("drbo_kde", num_outside=0),
        lambda: product("drbo_kde", radius=-1.0),
        lambda: product("drbo_mmd", num_contexts=0),
        lambda: product("drbo_mmd", radius=-1.0),
        lambda: product("drbo_mmd_minimax", num_contexts=-1),
        lambda: product("drbo_mmd_minimax", radius=float("nan")),
        lambda: product("wdrbo_exact", num_candidates=-1),
        lambda: product("wdrbo_exact", radius=-0.1),
        lambda: product("dro", ambiguity_set="total_variation"),
        lambda: product("dro", radius=-1.0),
    ],
)
def test_bad_options(make) -> None:
    with pytest.raises(InputDataError):
        make()
