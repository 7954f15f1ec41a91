"""L(x): against closed forms, dense grids, finite differences and the upper bound."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize
from gpytorch.kernels import (
    AdditiveKernel,
    LinearKernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)

from botorch_drbo.lipschitz import (
    LipschitzConstant,
    kernel_lipschitz_constant,
    lipschitz_upper_bound,
)
from botorch_drbo.posterior import marginal_posterior

UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)


def make_score(d_c: int, *, kernel=None, t: int = 20, beta: float = 2.25, **kw):
    generator = torch.Generator().manual_seed(3)
    Z = torch.rand(t, 1 + d_c, generator=generator, dtype=torch.double)
    Y = (6 * Z).sin().sum(-1, keepdim=True) + Z[:, :1] * (9 * Z[:, -1:]).cos()
    model = SingleTaskGP(Z, Y, covar_module=kernel, **kw)
    if kernel is None:
        model.covar_module.lengthscale = 0.35
    posterior = marginal_posterior(model, list(range(1, 1 + d_c)))

    def score(X, contexts):
        mean, variance = posterior(X, contexts)
        return mean + math.sqrt(beta) * variance.clamp_min(1e-12).sqrt()

    return score, model


def test_closed_form_with_an_interior_maximum():
    """|d/dc sin(a c + x)| = a |cos|: the maximum a lies inside, off every sample."""
    bounds = torch.tensor([[0.0], [2.0]], dtype=torch.double)
    X = torch.tensor([[0.7], [0.1]], dtype=torch.double)
    lipschitz = LipschitzConstant(bounds, num_sobol=32)
    value = lipschitz(lambda X, c: (3 * c.squeeze(-1) + X).sin(), X)
    torch.testing.assert_close(value, torch.full((2,), 6.0, dtype=torch.double))


def test_one_step_on_the_grid_finds_the_top():
    """Where the norm is smooth: the sampled maximum is short of it, one step is not."""
    X = torch.tensor([[0.7], [0.1], [0.35]], dtype=torch.double)

    def score(X, c):
        return (9 * c.squeeze(-1) + X).sin()

    sampled, stepped = (
        9.0 - LipschitzConstant(UNIT, num_starts=1, num_ascent_steps=steps)(score, X)
        for steps in (0, 1)
    )
    assert sampled.max() > 1e-3
    assert stepped.abs().max() < 1e-9


def test_ascent_only_improves():
    score, _ = make_score(2)
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    X = torch.rand(6, 1, dtype=torch.double)
    sampled = LipschitzConstant(bounds, num_ascent_steps=0)(score, X)
    climbed = LipschitzConstant(bounds)(score, X)
    assert (climbed >= sampled).all()
    assert (climbed > sampled + 1e-6).any()


def test_corner_maximum():
    """|d/dc c^2| grows to the corner, which no Sobol point hits."""
    bounds = torch.tensor([[-1.0, -1.0], [1.0, 2.0]], dtype=torch.double)
    X = torch.ones(1, 1, dtype=torch.double)
    lipschitz = LipschitzConstant(bounds, num_sobol=4, num_ascent_steps=0)
    value = lipschitz(lambda X, c: c.square().sum(-1), X)
    expected = math.sqrt((2 * 1 * 2) ** 2 + (2 * 2 * 3) ** 2)  # slopes times widths
    torch.testing.assert_close(value, torch.tensor([expected], dtype=torch.double))


def test_support_is_looked_at():
    """A spike of slope at one known context, too narrow for the Sobol set."""
    spike = torch.tensor([[0.3701]], dtype=torch.double)
    X = torch.ones(1, 1, dtype=torch.double)

    def score(X, c):
        return (1e4 * (c.squeeze(-1) - 0.3701)).tanh()

    found = LipschitzConstant(UNIT, support=spike, num_sobol=8)(score, X)
    torch.testing.assert_close(found, torch.tensor([1e4], dtype=torch.double))


def dense_maximum(score, X, d_c: int, per_side: int) -> torch.Tensor:
    """Brute force on a dense product grid, by central differences of the score."""
    side = torch.linspace(0, 1, per_side, dtype=torch.double)
    grid = torch.cartesian_prod(*[side] * d_c).reshape(-1, d_c)
    h = 1e-5
    slopes = [
        (score(X, grid + h * e) - score(X, grid - h * e)) / (2 * h)
        for e in torch.eye(d_c, dtype=torch.double)
    ]
    return torch.stack(slopes).norm(dim=0).amax(-1)


@pytest.mark.parametrize("d_c, per_side", [(1, 2001), (2, 101)])
def test_matches_brute_force(d_c, per_side):
    score, _ = make_score(d_c)
    bounds = torch.stack([torch.zeros(d_c), torch.ones(d_c)]).double()
    X = torch.rand(10, 1, dtype=torch.double)
    with torch.no_grad():
        expected = dense_maximum(score, X, d_c, per_side)
        found = LipschitzConstant(bounds)(score, X)
    assert ((found - expected).abs() <= 0.02 * expected).all()
    assert (found >= expected - 1e-3 * expected).all()


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_gradcheck(d_c, kernel):
    covar = None if kernel == "rbf" else MaternKernel(nu=2.5, ard_num_dims=1 + d_c)
    if covar is not None:
        covar.lengthscale = 0.5
    score, _ = make_score(d_c, kernel=covar)
    bounds = torch.stack([torch.zeros(d_c), torch.ones(d_c)]).double()
    lipschitz = LipschitzConstant(bounds, num_ascent_steps=40)
    X = torch.tensor([[0.21], [0.52], [0.83]], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda X: lipschitz(score, X), X, atol=1e-4)


def test_gradcheck_without_ascent_is_sharp():
    score, _ = make_score(1)
    lipschitz = LipschitzConstant(UNIT, num_ascent_steps=0)
    X = torch.tensor([[0.21], [0.52], [0.83]], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda X: lipschitz(score, X), X)


def test_the_gradient_is_that_of_the_penalty_not_zero():
    score, _ = make_score(1)
    X = torch.tensor([[0.3]], dtype=torch.double, requires_grad=True)
    value = LipschitzConstant(UNIT)(score, X).sum()
    (gradient,) = torch.autograd.grad(value, X)
    assert gradient.abs() > 1e-3


def test_no_grad_and_rows_are_independent():
    score, _ = make_score(1)
    lipschitz = LipschitzConstant(UNIT)
    X = torch.rand(7, 1, dtype=torch.double)
    with torch.no_grad():
        together = lipschitz(score, X)
        alone = torch.cat([lipschitz(score, x[None]) for x in X])
    assert not together.requires_grad
    torch.testing.assert_close(together, alone, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("d_c", [1, 2])
def test_constant_score_has_zero_slope_and_no_nan(d_c):
    X = torch.rand(3, 1, dtype=torch.double, requires_grad=True)
    search = LipschitzConstant(torch.cat([UNIT] * d_c, dim=-1))
    value = search(lambda X, c: X + 0 * X * c.sum(-1), X)
    (gradient,) = torch.autograd.grad((X.squeeze(-1) - value).sum(), X)
    assert (value <= 1e-14).all()
    torch.testing.assert_close(gradient, torch.ones_like(gradient))


def test_units_of_the_context_do_not_matter():
    """The same function with the context in other units has the same L."""
    X = torch.rand(3, 1, dtype=torch.double)
    wide = torch.tensor([[10.0], [50.0]], dtype=torch.double)

    def score(X, c):
        return (5 * c.squeeze(-1) * (1 + X)).sin()

    narrow = LipschitzConstant(UNIT)(score, X)
    scaled = LipschitzConstant(wide)(lambda X, c: score(X, (c - 10) / 40), X)
    torch.testing.assert_close(narrow, scaled, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("d_c", [1, 2])
def test_units_of_the_score_do_not_matter(d_c):
    score, _ = make_score(d_c)
    search = LipschitzConstant(torch.cat([UNIT] * d_c, dim=-1))
    X = torch.rand(4, 1, dtype=torch.double).requires_grad_()

    def steepest(unit):
        L = search(lambda X, contexts: unit * score(X, contexts), X)
        return L.detach(), torch.autograd.grad(L.sum(), X)[0]

    L, slope = steepest(1.0)
    for unit in (1e-40, 1e-9, 1e9):
        same, other = steepest(unit)
        torch.testing.assert_close(same / unit, L, rtol=1e-10, atol=0)
        torch.testing.assert_close(other / unit, slope, rtol=1e-8, atol=1e-10)


def test_ensemble_members_are_searched_apart():
    def member(X, c, k):
        return (k * c.squeeze(-1) * (1 + X)).sin()

    def ensemble(X, c):
        return torch.stack([member(X, c, k) for k in (2.0, 5.0, 9.0)], dim=-2)

    X = torch.rand(4, 1, dtype=torch.double)
    lipschitz = LipschitzConstant(UNIT)
    found = lipschitz(ensemble, X)
    assert found.shape == (4, 3)
    for i, k in enumerate((2.0, 5.0, 9.0)):
        alone = lipschitz(lambda X, c, k=k: member(X, c, k), X)
        torch.testing.assert_close(found[:, i], alone, rtol=1e-6, atol=1e-8)


class TestUpperBound:
    def test_lies_above_the_maximum(self):
        for kernel in (
            None,
            ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)),
            ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=2)),
        ):
            score, model = make_score(1, kernel=kernel)
            with torch.no_grad():
                X = torch.linspace(0, 1, 25, dtype=torch.double)[:, None]
                steepest = dense_maximum(score, X, 1, 801).max()
            bound = lipschitz_upper_bound(model, 2.25, [1], UNIT)
            assert bound >= steepest
            assert bound <= 50 * steepest  # a bound, not just a large number

    @pytest.mark.parametrize(
        "kernel",
        [
            RBFKernel(ard_num_dims=2),
            ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)),
            ScaleKernel(MaternKernel(nu=1.5)),
            AdditiveKernel(
                RBFKernel(active_dims=[0]), ScaleKernel(RBFKernel(active_dims=[1]))
            ),
            ProductKernel(
                ScaleKernel(RBFKernel(active_dims=[0, 1])),
                ScaleKernel(MaternKernel(nu=2.5, active_dims=[1])),
            ),
        ],
    )
    def test_kernel_constant_is_the_limit_of_difference_quotients(self, kernel):
        Z = torch.rand(5, 2, dtype=torch.double)
        model = SingleTaskGP(Z, Z[:, :1], covar_module=kernel, outcome_transform=None)
        constant = kernel_lipschitz_constant(model, [1], UNIT)
        h = 1e-3
        a = torch.tensor([[0.4, 0.3]], dtype=torch.double)
        b = a + torch.tensor([[0.0, h]], dtype=torch.double)
        with torch.no_grad():
            k = model.covar_module(torch.cat([a, b])).to_dense()
        quotient = (k[0, 0] + k[1, 1] - 2 * k[0, 1]).clamp_min(0).sqrt() / h
        torch.testing.assert_close(quotient, constant, rtol=1e-2, atol=0)

    def test_units(self):
        Z = torch.rand(9, 2, dtype=torch.double)
        Y = (4 * Z[:, 1:]).sin()
        wide = Z * torch.tensor([1.0, 20.0]).double()
        bounds = torch.tensor([[0.0], [20.0]], dtype=torch.double)
        unit = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
        box = torch.tensor([[0.0, 0.0], [1.0, 20.0]], dtype=torch.double)
        narrow = SingleTaskGP(Z, Y, input_transform=Normalize(2, bounds=unit))
        scaled = SingleTaskGP(wide, Y, input_transform=Normalize(2, bounds=box))
        torch.testing.assert_close(
            lipschitz_upper_bound(narrow, 1.0, [1], UNIT),
            lipschitz_upper_bound(scaled, 1.0, [1], bounds),
        )
        lemma = lipschitz_upper_bound(narrow, 1.0, [1], UNIT, norm_bound=3.0)
        torch.testing.assert_close(
            lemma,
            2
            * 3.0
            * kernel_lipschitz_constant(narrow, [1], UNIT)
            * narrow.outcome_transform.stdvs.squeeze(),
        )

    @pytest.mark.parametrize(
        "kernel", [MaternKernel(nu=0.5, ard_num_dims=2), LinearKernel()]
    )
    def test_unknown_kernels_are_refused(self, kernel):
        Z = torch.rand(5, 2, dtype=torch.double)
        model = SingleTaskGP(Z, Z[:, :1], covar_module=kernel)
        with pytest.raises(UnsupportedError, match="sampled"):
            lipschitz_upper_bound(model, 1.0, [1], UNIT)


def test_bad_input():
    with pytest.raises(InputDataError, match="lower bounds"):
        LipschitzConstant(UNIT.flip(0))
    with pytest.raises(InputDataError, match="outside"):
        LipschitzConstant(UNIT, support=torch.tensor([[2.0]]).double())


def test_a_large_support_does_not_blunt_the_search():
    """An interior maximum between Sobol points, with 8000 atoms elsewhere."""
    support = torch.full((8000, 1), 0.9, dtype=torch.double)
    X = torch.zeros(40, 1, dtype=torch.double) + torch.linspace(0.2, 0.6, 40)[:, None]

    def score(X, c):  # slope is a bump of width .008 at c = x
        return ((c.squeeze(-1) - X) / 0.008).tanh()

    alone = LipschitzConstant(UNIT)(score, X)
    crowded = LipschitzConstant(UNIT, support=support)(score, X)
    torch.testing.assert_close(crowded, alone, rtol=1e-2, atol=0)


@pytest.mark.parametrize(
    "options", [{"num_starts": 0}, {"num_sobol": 0}, {"num_ascent_steps": -1}]
)
def test_search_options_are_checked(options):
    with pytest.raises(InputDataError, match=next(iter(options))):
        LipschitzConstant(UNIT, **options)


def test_the_search_stays_inside_the_box():
    """Steeper and steeper towards the edge, steepest just outside."""
    X = torch.ones(1, 1, dtype=torch.double)
    value = LipschitzConstant(UNIT)(lambda X, c: (3 * c.squeeze(-1)).exp(), X)
    torch.testing.assert_close(value.item(), 3 * math.exp(3.0))


@pytest.mark.parametrize("d_c", [1, 2])
def test_a_flat_score_with_a_graph_gives_no_nan(d_c):
    box = UNIT.expand(2, d_c)
    X = torch.rand(3, 1, dtype=torch.double, requires_grad=True)
    value = LipschitzConstant(box)(lambda X, c: 0 * X * c.square().sum(-1), X)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    assert (value == 0).all() and (gradient == 0).all()


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("scale", [1e-20, 1e-8, 1e8])
def test_units_of_the_score_scale_its_slope(scale, d_c):
    box = UNIT.expand(2, d_c)
    X = torch.tensor([[0.2], [0.9]], dtype=torch.double)

    def score(X, c):
        return (5 * c.prod(-1) * (1 + X)).sin()

    lipschitz = LipschitzConstant(box)
    plain = lipschitz(score, X)
    scaled = lipschitz(lambda X, c: scale * (score(X, c) + 3.0), X)
    torch.testing.assert_close(scaled, scale * plain, rtol=1e-9, atol=0.0)


def hill(c: torch.Tensor, height: float, top: float, width: float) -> torch.Tensor:
    """A score on a line whose slope is a bell of that height and width."""
    return height * width * math.sqrt(math.pi) / 2 * ((c - top) / width).erf()


def test_starts_climb_different_hills():
    """The best samples all lie on a broad hill; a narrow one is higher in between."""

    def score(X, c):
        c = c.squeeze(-1)
        return X * (hill(c, 1.0, 0.3, 0.25) + hill(c, 1.04, 24.5 / 31, 0.03))

    X = torch.ones(1, 1, dtype=torch.double)
    places = torch.linspace(0, 1, 3101, dtype=torch.double)[:, None].requires_grad_()
    (slopes,) = torch.autograd.grad(score(X, places).sum(), places)
    assert slopes[::100].argmax() == 9 and slopes.argmax() == 2450
    one, two = (
        LipschitzConstant(UNIT, num_sobol=32, num_starts=starts)(score, X).item()
        for starts in (1, 2)
    )
    assert one == pytest.approx(slopes[:1500].max().item(), abs=1e-4)
    assert two == pytest.approx(slopes.max().item(), abs=1e-4)


def test_the_steepest_place_seen_is_kept():
    """A spike at a known context; the climb leaves it, and goes up elsewhere."""
    spike = torch.tensor([[0.3701]], dtype=torch.double)

    def score(X, c):
        c = c.squeeze(-1)
        return X * (hill(c, 10.0, 0.3701, 1e-6) + 2.5 * c.square())

    X = torch.ones(1, 1, dtype=torch.double)
    lipschitz = LipschitzConstant(UNIT, support=spike, num_sobol=8, num_starts=1)
    found = lipschitz(score, X).item()
    assert found == pytest.approx(10 + 5 * 0.3701, rel=1e-9)
