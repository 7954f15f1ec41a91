"""One climb: the parabola that a cross of slopes tells, and what is done with it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from botorch_drbo.lipschitz import sampled
from botorch_drbo.lipschitz.sampled import LogLength, SlopeClimb


def score(c: Tensor) -> Tensor:
    """Of any number of columns, with third derivatives of all kinds."""
    rates = torch.arange(1.0, c.shape[-1] + 1).to(c)
    return (c * rates).sin().sum(-1) + c.cos().prod(-1) + 0.3 * c.sum(-1).square()


def slope(c: Tensor) -> Tensor:
    with torch.enable_grad():
        leaf = c.detach().requires_grad_()
        return torch.autograd.grad(score(leaf).sum(), leaf)[0]


def log_length(c: Tensor) -> Tensor:
    (g,) = torch.autograd.grad(score(c).sum(), c, create_graph=True)
    return 0.5 * g.square().sum(-1).log()


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("edge", [False, True])
def test_the_parabola_is_autograds(d: int, edge: bool) -> None:
    """At a face of the box the cross lies inside, and the parabola about the face."""
    point = torch.linspace(0.3, 0.6, d, dtype=torch.double)
    if edge:
        point[0] = 1.0
    width = torch.finfo(torch.double).eps ** 0.25
    here = SlopeClimb(d)._quadratic_model(slope, point[None, None], width)
    leaf = point.clone().requires_grad_()
    expected = (
        log_length(leaf),
        torch.autograd.functional.jacobian(log_length, leaf),
        torch.autograd.functional.hessian(log_length, leaf),
    )
    # The second derivatives at a face are those beside it.
    for a, b, error in zip(here[1:], expected, (1e-9, 1e-5, 1e-2), strict=True):
        torch.testing.assert_close(a[0, 0], b.detach(), rtol=error, atol=error)


def parabola(point, gradient, hessian) -> LogLength:
    tensors = [torch.tensor(part).double() for part in (point, gradient, hessian)]
    point, gradient, hessian = (part[None] for part in tensors)
    return LogLength(point, point.new_zeros(1), gradient, hessian)


WIDE = torch.full((1,), 10.0, dtype=torch.double)


@pytest.mark.parametrize(
    ("gradient", "hessian", "radius", "expected"),
    [
        # Newton's step; with an axis that opens upwards; and one that is too long.
        ([0.4, 0.2], [[-4.0, 0.0], [0.0, -2.0]], 10.0, [0.6, 0.6]),
        ([0.4, 0.2], [[-4.0, 0.0], [0.0, 2.0]], 10.0, [0.6, 0.6]),
        ([0.3, 0.4], [[-1.0, 0.0], [0.0, -1.0]], 0.1, [0.56, 0.58]),
        # Never out of the box.
        ([4.0, 0.0], [[-4.0, 0.0], [0.0, -2.0]], 10.0, [1.0, 0.5]),
    ],
)
def test_tops(gradient, hessian, radius: float, expected) -> None:
    here = parabola([0.5, 0.5], gradient, hessian)
    top = here.trust_region_step(torch.tensor([radius]).double(), 1e-4)
    torch.testing.assert_close(top[0], torch.tensor(expected).double())


def test_along_a_face() -> None:
    """From near a face uphill it goes there; the rest of the step knows of it."""
    hessian = [[-4.0, 2.0], [2.0, -2.0]]
    here = parabola([0.9999, 0.5], [3.0, 0.1], hessian)
    top = here.trust_region_step(WIDE, 1e-3)
    along = (0.1 + 2.0 * 1e-4) / 2.0
    torch.testing.assert_close(top[0], torch.tensor([1.0, 0.5 + along]).double())
    away = parabola([1.0, 0.5], [-0.4, 0.0], [[-4.0, 0.0], [0.0, -2.0]])
    torch.testing.assert_close(
        away.trust_region_step(WIDE, 1e-3)[0], torch.tensor([0.9, 0.5]).double()
    )


def test_a_climb_ends_where_the_length_is_stationary() -> None:
    starts = torch.rand(4, 6, 3, dtype=torch.double)
    ends, best, highest = SlopeClimb(3)(slope, starts, 40, 0.1)
    assert ends.shape == (4, 2, 3)
    leaf = ends.clone().requires_grad_()
    (uphill,) = torch.autograd.grad(log_length(leaf).sum(), leaf)
    inside = (ends > 0) & (ends < 1)
    winners = log_length(leaf).argmax(-1)
    for row, winner in enumerate(winners):
        free = inside[row, winner]
        assert uphill[row, winner][free].abs().sum() < 1e-5
        out = torch.where(ends[row, winner] == 1.0, 1.0, -1.0) * uphill[row, winner]
        assert (out[~free] >= 0).all()  # uphill lies outside
    torch.testing.assert_close(highest, slope(best).norm(dim=-1))
    assert (highest >= slope(starts).norm(dim=-1).amax(-1, keepdim=True) - 1e-9).all()


def test_a_step_that_led_downwards_is_taken_back() -> None:
    """Far from its top a bell of slopes opens upwards: the first step goes too far."""

    def bells(c: Tensor) -> Tensor:  # a gradient of length exp(-(30 (c - .5))^2 / 2)
        return (-0.5 * (30 * (c - 0.5)).square()).exp()

    start = torch.tensor([[[0.46]]], dtype=torch.double)
    ends, _, highest = SlopeClimb(1)(bells, start, 12, 0.5)
    torch.testing.assert_close(ends.item(), 0.5, rtol=0, atol=1e-6)
    torch.testing.assert_close(highest.item(), 1.0)
    heights = []
    for steps in range(1, 8):
        _, _, highest = SlopeClimb(1)(bells, start, steps, 0.5)
        heights.append(highest.item())
    assert heights == sorted(heights)


def test_climbs_to_one_peak_are_one() -> None:
    ends = torch.tensor([[0.1], [0.9], [0.12], [0.5]], dtype=torch.double)
    expected = torch.tensor([2.0, 1.0, 1.9, 0.5], dtype=torch.double)
    height = expected - 0.5
    assert sampled._survivors(height, ends, expected).tolist() == [0, 1]


def test_the_climb_that_leads_is_not_given_up() -> None:
    """However much more is expected of others, which may be wrong."""
    ends = torch.tensor([[0.1], [0.9], [0.3], [0.5]], dtype=torch.double)
    expected = torch.tensor([2.0, 1.0, 1.9, 1.5], dtype=torch.double)
    height = torch.tensor([0.2, 0.9, 0.3, 0.1], dtype=torch.double)
    assert sampled._survivors(height, ends, expected).tolist() == [1, 0]


def test_arrived_is_who_can_win() -> None:
    point = torch.tensor([[0.1], [0.9]], dtype=torch.double)
    for ends, expected, arrived in (
        ([[0.1001], [0.9]], [1.0, 1.0], True),
        ([[0.2], [0.9]], [1.0, 1.0], False),
        ([[0.2], [0.9]], [0.9, 1.0], True),  # it will not win
        ([[0.2], [0.9]], [1.1, 1.0], False),
        ([[0.89], [0.9]], [0.99, 1.0], True),  # it goes where the other is
    ):
        here = torch.tensor(ends).double(), torch.tensor(expected).double()
        assert sampled._converged(point, *here) == arrived


def test_nothing_is_lost_where_there_is_no_slope() -> None:
    for slopes in (torch.zeros_like, lambda c: c - 0.5):  # flat; zero in the middle
        start = torch.full((1, 1, 2), 0.5, dtype=torch.double)
        ends, best, highest = SlopeClimb(2)(slopes, start, 5, 0.2)
        assert ends.isfinite().all() and best.isfinite().all()
        assert highest.isfinite().all()
