"""Transport along a line against brute force and linear programming."""

from __future__ import annotations

import pytest
import torch

from botorch_drbo.ambiguity import SolverStatus, Wasserstein
from botorch_drbo.ambiguity._transport import Line
from tests.ambiguity.test_wasserstein import by_linear_programming


def on_a_line(n: int, m: int, kind: str) -> torch.Tensor:
    """Distances of ``n`` atoms to themselves and ``m - n`` others, shuffled."""
    generator = torch.Generator().manual_seed(n + m)
    atoms = torch.rand(n, 1, generator=generator, dtype=torch.double)
    others = 3 * torch.rand(m - n, 1, generator=generator, dtype=torch.double) - 1
    if kind == "duplicates":
        atoms[::2] = atoms[0].item()
    if kind == "one place":
        atoms[:] = atoms[0].item()
    candidates = torch.cat([atoms, others])
    if m > n:
        candidates = candidates[torch.randperm(m, generator=generator)]
    return (1e3 if kind == "far" else 1.0) * (atoms - candidates.mT).abs()


@pytest.mark.parametrize("kind", ["plain", "duplicates", "one place", "far"])
@pytest.mark.parametrize("n, m", [(1, 1), (1, 4), (2, 2), (6, 6), (7, 25), (40, 40)])
def test_targets_are_the_cheapest(n, m, kind):
    cost = on_a_line(n, m, kind)
    line = Line.of(cost)
    assert line is not None
    f = torch.randn(5, m, dtype=torch.double)
    lam = torch.tensor([0.0, 0.1, 1.0, 5.0, 30.0], dtype=torch.double)
    worth = f.unsqueeze(1) + lam[:, None, None] * cost
    found = worth.gather(-1, line.targets(f, lam).unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(found, worth.amin(-1), rtol=0, atol=1e-10)


def test_distances_in_a_plane_are_of_no_line():
    points = torch.rand(6, 2, dtype=torch.double)
    assert Line.of(torch.cdist(points, points)) is None
    bent = on_a_line(6, 6, "plain")
    bent[2, 4] += 1e-9
    assert Line.of(bent) is None


@pytest.mark.parametrize("radius", [0.0, 1e-3, 0.05, 5.0])
@pytest.mark.parametrize("kind", ["plain", "duplicates", "far"])
@pytest.mark.parametrize("n, m", [(1, 4), (6, 6), (7, 25), (40, 40)])
def test_the_worst_case_is_that_of_linear_programming(n, m, kind, radius):
    cost = on_a_line(n, m, kind)
    f = torch.randn(3, m, dtype=torch.double)
    p = torch.rand(n, dtype=torch.double)
    p = p / p.sum()
    robust = Wasserstein(radius * cost.max().item(), cost).worst_case(f, p)
    assert robust.status is SolverStatus.EXACT
    for row in range(3):
        expected = by_linear_programming(
            f[row].numpy(), p.numpy(), cost.numpy() / cost.max().item(), radius
        )
        assert robust.value[row].item() == pytest.approx(expected, abs=1e-8)


def test_a_cliff_between_near_contexts_goes_atom_by_atom():
    """Their distance is a millionth of the line: a slope of a million."""
    x = torch.tensor([0.0, 1e-6, 0.5, 1.0], dtype=torch.double)
    cost = (x[:, None] - x).abs()
    line = Line.of(cost)
    assert line is not None
    f = torch.tensor([[0.0, 1.0, 1.0, 1.0]], dtype=torch.double)
    assert not line.is_safe(f.amax(-1), torch.tensor([1e6])).item()
    p = torch.full((4,), 0.25, dtype=torch.double)
    robust = Wasserstein(1e-7, cost).worst_case(f, p)
    assert robust.status is SolverStatus.EXACT
    assert robust.value.item() == pytest.approx(0.65, abs=1e-12)


def spread_out(kind: str, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions of candidates, the first 9 of them of atoms; scores, ``50 x 24``."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(24, generator=generator, dtype=torch.double)
    if kind == "duplicates":
        x[4], x[20:] = x[2], x[0]
    if kind == "one place":
        x[:] = x[0]
    if kind == "near":
        x[9:18] = x[:9] + 1e-6
    f = torch.randn(50, 24, generator=generator, dtype=torch.double)
    return (1e3 if kind == "far" else 1.0) * x, f


@pytest.mark.parametrize("kind", ["plain", "duplicates", "one place", "far", "near"])
@pytest.mark.parametrize("seed", range(3))
def test_no_slope_exceeds_that_of_neighbours(kind, seed):
    """All slopes one by one; where all have mass one of them is as steep."""
    x, f = spread_out(kind, seed)
    for atoms in (9, 24):
        cost = (x[:atoms, None] - x).abs()
        line = Line.of(cost)
        assert line is not None and line.holds_atoms
        stay, found = line.descent(f)
        here = torch.where(cost.unsqueeze(0) == 0, f.unsqueeze(1), torch.inf).amin(-1)
        torch.testing.assert_close(stay, here, rtol=0, atol=0)
        rise = here.unsqueeze(-1) - f.unsqueeze(1)
        slopes = torch.where(cost > 0, rise / cost, 0.0).flatten(1).amax(-1)
        assert (found >= slopes * (1 - 1e-9)).all()
        if atoms == 24:
            torch.testing.assert_close(found, slopes.clamp_min(0.0))


@pytest.mark.parametrize("kind", ["plain", "duplicates", "one place", "far", "near"])
@pytest.mark.parametrize("radius", [0.0, 0.02, 0.2, 2.0])
def test_the_bound_by_neighbours_is_below_the_value(kind, radius, monkeypatch):
    """And equal to that by all slopes where all have mass; nowhere above it."""
    x, f = spread_out(kind, 7)
    generator = torch.Generator().manual_seed(0)
    for atoms in (9, 24):
        cost = (x[:atoms, None] - x).abs()
        ball = Wasserstein(radius * cost.max().item(), cost)
        p = torch.rand(50, atoms, generator=generator, dtype=torch.double)
        p = p / p.sum(-1, keepdim=True)
        bound, exact = ball.lower_bound(f, p), ball.value(f, p)
        with monkeypatch.context() as patch:
            patch.setattr(Line, "of", lambda cost: None)
            dense = Wasserstein(ball.radius, cost).lower_bound(f, p)
        assert (bound <= exact + 1e-9).all() and (bound <= dense + 1e-9).all()
        assert (bound >= f.amin(-1) - 1e-12).all()
        if atoms == 24:
            torch.testing.assert_close(bound, dense, rtol=0, atol=1e-9)


def test_atoms_between_candidates_stay_at_a_cost():
    cost = torch.tensor([[0.25, 0.75]], dtype=torch.double)
    line = Line.of(cost)
    assert line is None or not line.holds_atoms
    ball = Wasserstein(0.5, cost)
    f, p = torch.tensor([4.0, 0.0]).double(), torch.ones(1).double()
    assert ball.lower_bound(f, p).item() == pytest.approx(2.0)


def test_the_line_is_found_once_and_again_when_the_cost_has_changed(monkeypatch):
    x, f = spread_out("plain", 0)
    ball = Wasserstein(0.1, (x[:, None] - x).abs())
    p = torch.full((24,), 1 / 24).double()
    found: list[int] = []
    of = Line.of

    def counted(cost):
        found.append(len(cost))
        return of(cost)

    monkeypatch.setattr(Line, "of", counted)
    for _ in range(3):
        ball.value(f, p), ball.lower_bound(f, p)
    assert len(found) == 1
    other = Wasserstein(0.1, (x[:, None] - x).abs() * 2.0)
    ball.load_state_dict(other.state_dict())
    torch.testing.assert_close(ball.value(f, p), other.value(f, p))
    plane = torch.rand(24, 2, dtype=torch.double)
    ball.cost = torch.cdist(plane, plane)
    alone = Wasserstein(0.1, ball.cost)
    torch.testing.assert_close(ball.value(f, p), alone.value(f, p))
    with torch.inference_mode():
        inside = Wasserstein(0.1, (x[:, None] - x).abs())
        assert inside.value(f, p).shape == (50,)
