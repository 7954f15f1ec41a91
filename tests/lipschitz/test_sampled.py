"""L(x): against closed forms, dense grids, and finite differences of itself."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import MaternKernel
from torch import Tensor

from botorch_drbo.lipschitz.sampled import LipschitzConstant
from tests.lipschitz.scores import (
    box,
    grid_maximum,
    make_score,
    observed_contexts,
    polished_maximum,
    slopes_of,
    steepest,
)
from tests.models import UNIT, uniform


def wave(X: Tensor, c: Tensor) -> Tensor:
    """``|d/dc sin(9 c + x)| <= 9``, with the top inside."""
    return (9 * c.squeeze(-1) + X).sin()


def test_closed_form_with_an_interior_maximum() -> None:
    """|d/dc sin(a c + x)| = a |cos|: the maximum a lies inside, off every sample."""
    bounds = torch.tensor([[0.0], [2.0]], dtype=torch.double)
    X = torch.tensor([[0.7], [0.1]], dtype=torch.double)
    search = LipschitzConstant(bounds, num_sobol=32)
    value = steepest(lambda X, c: (3 * c.squeeze(-1) + X).sin(), search, X)
    torch.testing.assert_close(value, torch.full((2,), 6.0, dtype=torch.double))


def test_one_step_on_the_grid_finds_the_top() -> None:
    """Where the norm is smooth: the sampled maximum is short of it, one step is not."""
    X = torch.tensor([[0.7], [0.1], [0.35]], dtype=torch.double)
    sampled, stepped = (
        9.0
        - steepest(
            wave, LipschitzConstant(UNIT, num_starts=1, num_ascent_steps=steps), X
        )
        for steps in (0, 1)
    )
    assert sampled.max() > 1e-3
    assert stepped.abs().max() < 1e-9


def test_from_an_atom_beside_the_grid_too() -> None:
    """The best sample is an atom; the top lies between it and the grid."""
    X = torch.full((1, 1), 0.7, dtype=torch.double)
    top = (math.pi - 0.7) / 9
    atom = torch.tensor([[top + 3e-4]], dtype=torch.double)
    search = LipschitzConstant(UNIT, atom, num_starts=1, num_ascent_steps=1)
    samples = 9 * (9 * search.candidates + 0.7).cos().abs()
    assert samples.argmax() == search.num_sobol
    assert 9.0 - samples.max() > 1e-5
    assert 9.0 - steepest(wave, search, X).item() < 1e-9


def test_ascent_only_improves() -> None:
    score, X = make_score(2), uniform(6, 1)
    sampled = steepest(score, LipschitzConstant(box(2), num_ascent_steps=0), X)
    climbed = steepest(score, LipschitzConstant(box(2)), X)
    assert (climbed >= sampled).all()
    assert (climbed > sampled + 1e-6).any()


def test_corner_maximum() -> None:
    """|d/dc c^2| grows to the corner, which no Sobol point hits."""
    bounds = torch.tensor([[-1.0, -1.0], [1.0, 2.0]], dtype=torch.double)
    X = torch.ones(1, 1, dtype=torch.double)
    search = LipschitzConstant(bounds, num_sobol=4, num_ascent_steps=0)
    value = steepest(lambda X, c: X * c.square().sum(-1), search, X)
    expected = math.sqrt((2 * 1 * 2) ** 2 + (2 * 2 * 3) ** 2)  # slopes times widths
    torch.testing.assert_close(value, torch.tensor([expected], dtype=torch.double))


def test_support_is_looked_at() -> None:
    """A spike of slope at one known context, too narrow for the Sobol set."""
    spike = torch.tensor([[0.3701]], dtype=torch.double)
    X = torch.ones(1, 1, dtype=torch.double)
    search = LipschitzConstant(UNIT, support=spike, num_sobol=8)
    found = steepest(
        lambda X, c: X * (1e4 * (c.squeeze(-1) - 0.3701)).tanh(), search, X
    )
    torch.testing.assert_close(found, torch.tensor([1e4], dtype=torch.double))


@pytest.mark.parametrize(("d_c", "per_side"), [(1, 2001), (2, 101), (3, 21)])
def test_matches_brute_force(d_c: int, per_side: int) -> None:
    score, X = make_score(d_c), uniform(10, 1)
    found = steepest(score, LipschitzConstant(box(d_c)), X)
    expected = grid_maximum(score, X, d_c, per_side)
    assert (found >= expected * (1 - 1e-6)).all()
    assert (found <= expected * (1.1 if d_c == 3 else 1.02)).all()


HARD = [
    (1, None, 501),
    (2, None, 61),
    (2, MaternKernel(nu=2.5, ard_num_dims=3), 61),
    (3, None, 15),
]


@pytest.mark.parametrize(("d_c", "kernel", "per_side"), HARD)
def test_finds_the_highest_of_many_hills(d_c, kernel, per_side) -> None:
    """Short lengthscales: dozens of hills for each of 20 decisions."""
    score, X = make_score(d_c, kernel, lengthscale=0.2), uniform(20, 1)
    search = LipschitzConstant(box(d_c), support=observed_contexts(score))
    found = steepest(score, search, X)
    expected = polished_maximum(score, X, d_c, per_side)
    assert (found >= expected * (1 - 1e-6)).all()


@pytest.mark.parametrize(("d_c", "kernel", "per_side"), HARD)
def test_gradients_are_those_of_the_value(d_c, kernel, per_side) -> None:
    """By the envelope theorem, which asks for a climb to a stationary point."""
    score = make_score(d_c, kernel, lengthscale=0.2)
    search = LipschitzConstant(box(d_c), support=observed_contexts(score))
    X = uniform(20, 1).requires_grad_()
    (gradient,) = torch.autograd.grad(steepest(score, search, X).sum(), X)
    h = 1e-5
    with torch.no_grad():
        up, down = (steepest(score, search, X + e) for e in (h, -h))
    expected = (up - down) / (2 * h)
    error = (gradient.squeeze(-1) - expected).abs()
    assert (error <= 1e-3 * expected.abs().clamp_min(0.1)).all()


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_gradcheck(d_c: int, kernel: str) -> None:
    covar = None if kernel == "rbf" else MaternKernel(nu=2.5, ard_num_dims=1 + d_c)
    score, search = make_score(d_c, covar), LipschitzConstant(box(d_c))
    X = torch.tensor([[0.21], [0.52], [0.83]], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda X: steepest(score, search, X), X, atol=1e-4)


def test_gradcheck_without_ascent_is_sharp() -> None:
    score, search = make_score(1), LipschitzConstant(UNIT, num_ascent_steps=0)
    X = torch.tensor([[0.21], [0.52], [0.83]], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda X: steepest(score, search, X), X)


def test_no_grad_and_rows_are_independent() -> None:
    score, search, X = make_score(2), LipschitzConstant(box(2)), uniform(7, 1)
    with torch.no_grad():
        together = steepest(score, search, X)
        alone = torch.cat([steepest(score, search, x[None]) for x in X])
    assert not together.requires_grad
    torch.testing.assert_close(together, alone, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("d_c", [1, 2])
def test_units_of_the_context_do_not_matter(d_c: int) -> None:
    """The same function with the context in other units has the same L."""
    X, shift = uniform(3, 1), torch.tensor([10.0, -3.0]).double()[:d_c]
    width = torch.tensor([40.0, 0.01]).double()[:d_c]

    def score(X: Tensor, c: Tensor) -> Tensor:
        return (5 * c.prod(-1) * (1 + X)).sin()

    narrow = steepest(score, LipschitzConstant(box(d_c)), X)
    search = LipschitzConstant(shift + width * box(d_c))
    scaled = steepest(lambda X, c: score(X, (c - shift) / width), search, X)
    torch.testing.assert_close(narrow, scaled, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("d_c", [1, 2])
@pytest.mark.parametrize("unit", [1e-40, 1e-20, 1e-9, 1e9])
def test_units_of_the_score_do_not_matter(d_c: int, unit: float) -> None:
    score, search = make_score(d_c), LipschitzConstant(box(d_c))
    X = uniform(4, 1).requires_grad_()
    slopes = slopes_of(score, search, X)
    L = search(slopes)
    scaled = search(lambda contexts: unit * slopes(contexts)) / unit
    torch.testing.assert_close(scaled, L, rtol=1e-10, atol=0)
    gradients = [torch.autograd.grad(value.sum(), X)[0] for value in (scaled, L)]
    # The top is flat: what rounding moves in c is its root, and dL/dx moves with c.
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("d_c", [1, 2])
def test_ensemble_members_are_searched_apart(d_c: int) -> None:
    X, search = uniform(4, 1), LipschitzConstant(box(d_c))
    rates = (2.0, 5.0, 9.0)

    def member(
        k: float, contexts: Tensor
    ) -> Tensor:  # b x M x d_c, of sin(k s (1 + x))
        points = contexts.sum(-1, keepdim=True)
        rate = k * (1 + X).unsqueeze(-1)
        return (rate * (rate * points).cos()).expand_as(contexts)

    def ensemble(contexts: Tensor | None = None) -> Tensor:
        if contexts is None:
            contexts = search.candidates.expand(4, 3, -1, -1)
        parts = [member(k, contexts[:, s]) for s, k in enumerate(rates)]
        return torch.stack(parts, 1)

    found = search(ensemble)
    assert found.shape == (4, 3)
    for s, k in enumerate(rates):

        def alone(contexts: Tensor | None = None, k: float = k) -> Tensor:
            shared = search.candidates.expand(4, -1, -1)
            return member(k, shared if contexts is None else contexts)

        torch.testing.assert_close(found[:, s], search(alone), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("d_c", [1, 2])
def test_constant_score_has_zero_slope_and_no_nan(d_c: int) -> None:
    X = uniform(3, 1).requires_grad_()
    search = LipschitzConstant(box(d_c))
    value = steepest(lambda X, c: X + 0 * X * c.square().sum(-1), search, X)
    (gradient,) = torch.autograd.grad((X.squeeze(-1) - value).sum(), X)
    assert (value == 0).all()
    assert torch.equal(gradient, torch.ones_like(gradient))


def test_a_large_support_does_not_blunt_the_search() -> None:
    """An interior maximum between Sobol points, with 8000 atoms elsewhere."""
    support = torch.full((8000, 1), 0.9, dtype=torch.double)
    X = torch.linspace(0.2, 0.6, 40, dtype=torch.double)[:, None]

    def score(X: Tensor, c: Tensor) -> Tensor:  # a bump of width .008 at c = x
        return ((c.squeeze(-1) - X) / 0.008).tanh()

    alone = steepest(score, LipschitzConstant(UNIT), X)
    crowded = steepest(score, LipschitzConstant(UNIT, support=support), X)
    torch.testing.assert_close(crowded, alone, rtol=1e-2, atol=0)


@pytest.mark.parametrize("d_c", [1, 2, 3])
def test_the_search_stays_inside_the_box(d_c: int) -> None:
    """Steeper and steeper towards the far corner, steepest just outside."""
    bounds = torch.tensor([[0.1], [0.7]], dtype=torch.double).repeat(1, d_c)
    search = LipschitzConstant(bounds)
    inside: list[bool] = []

    def score(X: Tensor, c: Tensor) -> Tensor:
        inside.append(bool(((c >= bounds[0]) & (c <= bounds[1])).all()))
        return X * (3 * c.sum(-1)).exp()

    value = steepest(score, search, torch.ones(1, 1).double())
    expected = 3 * 0.6 * math.sqrt(d_c) * math.exp(3 * 0.7 * d_c)
    torch.testing.assert_close(value.item(), expected)
    assert all(inside)


def hill(c: Tensor, height: float, top: float, width: float) -> Tensor:
    """A score on a line whose slope is a bell of that height and width."""
    return height * width * math.sqrt(math.pi) / 2 * ((c - top) / width).erf()


def test_starts_climb_different_hills() -> None:
    """The best samples all lie on a broad hill; a narrow one is higher in between."""

    def score(X: Tensor, c: Tensor) -> Tensor:
        c = c.squeeze(-1)
        return X * (hill(c, 1.0, 0.3, 0.25) + hill(c, 1.04, 24.5 / 31, 0.03))

    X = torch.ones(1, 1, dtype=torch.double)
    points = torch.linspace(0, 1, 3101, dtype=torch.double)[:, None].requires_grad_()
    (slopes,) = torch.autograd.grad(score(X, points).sum(), points)
    assert slopes[::100].argmax() == 9 and slopes.argmax() == 2450
    one, two = (
        steepest(
            score, LipschitzConstant(UNIT, num_sobol=32, num_starts=starts), X
        ).item()
        for starts in (1, 2)
    )
    assert one == pytest.approx(slopes[:1500].max().item(), abs=1e-4)
    assert two == pytest.approx(slopes.max().item(), abs=1e-4)


def test_the_steepest_place_seen_is_kept() -> None:
    """A spike at a known context; the climb leaves it, and goes up elsewhere."""
    spike = torch.tensor([[0.3701]], dtype=torch.double)

    def score(X: Tensor, c: Tensor) -> Tensor:
        c = c.squeeze(-1)
        return X * (hill(c, 10.0, 0.3701, 1e-6) + 2.5 * c.square())

    X = torch.ones(1, 1, dtype=torch.double)
    search = LipschitzConstant(UNIT, support=spike, num_sobol=8, num_starts=1)
    found = steepest(score, search, X).item()
    assert found == pytest.approx(10 + 5 * 0.3701, rel=1e-9)


def test_float32() -> None:
    score, X = make_score(2), uniform(5, 1)
    double = LipschitzConstant(box(2))
    single = LipschitzConstant(box(2).float())
    found = steepest(score, single, X.float())
    assert found.dtype == torch.float
    torch.testing.assert_close(
        found.double(), steepest(score, double, X), rtol=1e-3, atol=0
    )


def test_num_starts_and_steps_are_what_is_spent() -> None:
    score, X = make_score(2), uniform(5, 1)
    search = LipschitzConstant(box(2), num_starts=5, num_ascent_steps=3)
    slopes, looks = slopes_of(score, search, X), []

    def spy(contexts: Tensor | None = None) -> Tensor:
        looks.append(0 if contexts is None else contexts.shape[-2])
        return slopes(contexts)

    search(spy)
    # The candidates; crosses of five about 5, 3 and 2 places; the best, and the ends.
    assert looks == [0, 25, 15, 10, 3]


def test_bad_input() -> None:
    with pytest.raises(InputDataError, match="lower bounds"):
        LipschitzConstant(UNIT.flip(0))
    with pytest.raises(InputDataError, match="outside"):
        LipschitzConstant(UNIT, support=torch.tensor([[2.0]]).double())


@pytest.mark.parametrize(
    "options", [{"num_starts": 0}, {"num_sobol": 0}, {"num_ascent_steps": -1}]
)
def test_search_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InputDataError, match=next(iter(options))):
        LipschitzConstant(UNIT, **options)


@pytest.mark.parametrize("scales", [(0.3, 0.05), (0.02, 0.4), (0.2, 0.0)])
def test_slopes_per_radius_are_steepest_where_a_formula_says(
    scales: tuple[float, float],
) -> None:
    """Of a bump of width s, in a box with sides 2 and 10: ``max(r) exp(-1/2) / s``."""
    box = torch.tensor([[1.0, -4.0], [3.0, 6.0]], dtype=torch.double)
    widths, centre, width = box[1] - box[0], torch.tensor([0.37, 0.61]).double(), 0.15
    made = LipschitzConstant(box, scales=torch.tensor(scales).double())

    def slopes(contexts: Tensor | None = None) -> Tensor:
        c = made.candidates if contexts is None else contexts
        z = ((c - box[0]) / widths - centre) / width
        return -z / width * (-0.5 * z.square().sum(-1, keepdim=True)).exp() / widths

    largest = max(scales) * math.exp(-0.5) / width
    assert made(slopes).item() == pytest.approx(largest, rel=1e-6)
