"""The second way to every worst case: cvxpylayers, checked, against the exact one."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor

from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    ConditionalValueAtRisk,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    ModifiedChiSquared,
    NoAmbiguity,
    SolverStatus,
    TotalVariation,
    Wasserstein,
    cvxpy_layer,
)

N = 9


def line_cost(n: int) -> Tensor:
    points = torch.linspace(0, 1, n, dtype=torch.double)[:, None]
    return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")


KERNEL = torch.exp(-line_cost(N).square() / (2 * 0.2**2))
MAKERS: dict[str, Callable[[float], AmbiguitySet]] = {
    "no_ambiguity": lambda radius: NoAmbiguity(),
    "full_simplex": lambda radius: FullSimplex(),
    "cvar": lambda radius: ConditionalValueAtRisk(radius / (1 + radius)),
    "total_variation": TotalVariation,
    "with_floor": lambda radius: TotalVariation(radius, floor=-2.5),
    "modified_chi_squared": ModifiedChiSquared,
    "chi_squared": ChiSquared,
    "kullback_leibler": KullbackLeibler,
    "mmd": lambda radius: MaximumMeanDiscrepancy(radius, KERNEL),
    "wasserstein": lambda radius: Wasserstein(radius, line_cost(N)),
}
every = pytest.mark.parametrize("name", MAKERS)


def both_ways(ambiguity: AmbiguitySet, f: Tensor, p: Tensor, radius: float):
    """Exact and by cvxpylayers: the answer, and gradients in f, p and the radius."""
    answers = []
    for solver in ("exact", "cvxpylayers"):
        inputs = [x.clone().requires_grad_() for x in (f, p)]
        inputs.append(torch.full(f.shape[:-1], radius).double().requires_grad_())
        robust = ambiguity.worst_case(*inputs[:2], solver, radius=inputs[2])
        answers.append((robust, torch.autograd.grad(robust.value.sum(), inputs)))
    return answers


def scale(ambiguity: AmbiguitySet, f: Tensor) -> Tensor:
    """The range of what the solver sees, ``rows``."""
    atoms, _ = ambiguity._with_outside(f, f)
    span = atoms.amax(-1) - atoms.amin(-1)
    return torch.where(span > 0, span, 1.0)


@every
def test_same_values_as_exact(name, kind, make_instance):
    f, p = make_instance(kind, N)
    if kind == "skewed":  # down to 1e-4: beyond 1e-6 Clarabel does not prove the value
        p = p.sqrt() / p.sqrt().sum(-1, keepdim=True)
    for radius in (1e-3, 0.13, 0.7, 5.0):
        ambiguity = MAKERS[name](radius)
        exact = ambiguity.worst_case(f, p)
        robust = ambiguity.worst_case(f, p, "cvxpylayers")
        error = (robust.value - exact.value).abs() / scale(ambiguity, f)
        assert (error <= 1e-6).all()
        assert robust.status is SolverStatus.EXACT
        # Not unique under ties: then it has to be another worst case.
        assert (robust.weights >= 0).all()
        attained = (robust.weights * f).sum(-1)
        if name == "with_floor":
            attained = attained - 2.5 * (1 - robust.weights.sum(-1))
        torch.testing.assert_close(attained, robust.value.detach())
        if name != "no_ambiguity":
            distance = ambiguity.distance(p, robust.weights)
            assert (distance <= ambiguity.radius * (1 + 1e-4) + 1e-6).all()


@every
@pytest.mark.parametrize("kind", ["plain", "zeros", "offset", "huge", "tiny"])
def test_same_gradients_as_exact(name, kind, make_instance):
    f, p = make_instance(kind, N)
    if kind == "tiny" and name == "with_floor":
        f = f * 1e6  # the floor is far away: nothing else can be seen beside it
    for radius in (0.02, 0.13, 0.7, 5.0):
        ambiguity = MAKERS[name](radius)
        exact, layer = both_ways(ambiguity, f, p, radius)
        span = scale(ambiguity, f)
        torch.testing.assert_close(layer[1][0], exact[1][0], rtol=0, atol=1e-4)
        torch.testing.assert_close(
            layer[1][2] / span, exact[1][2] / span, rtol=1e-4, atol=1e-4
        )
        torch.testing.assert_close(layer[0].multiplier, -layer[1][2])
        # Along the simplex: only differences between atoms count.
        off = (layer[1][1] - exact[1][1]) / span[:, None]
        off = off - (p * torch.where(p > 0, off, 0.0)).sum(-1, keepdim=True)
        assert (off[p > 0].abs() <= 1e-4).all()
        # At weight zero v has a kink. Exact is the slope to its one side, and that is
        # the greatest of all; unless the other way leaves such atoms out.
        if radius < 1 and not ambiguity.keeps_support:
            assert (off[p == 0] <= 1e-4).all()


@every
@pytest.mark.filterwarnings("ignore:.* of radius 0.0 did not converge")
def test_radius_zero(name, make_instance):
    f, p = make_instance("zeros", N)
    ambiguity = MAKERS[name](0.0)
    robust = ambiguity.worst_case(f, p, "cvxpylayers")
    exact = ambiguity.worst_case(f, p)
    error = (exact.value - robust.value) / scale(ambiguity, f)
    steep = name in ("modified_chi_squared", "chi_squared", "kullback_leibler")
    if steep and robust.status is SolverStatus.LOWER_BOUND:
        # Their slope is infinite there: a proof is not asked for, but a lower bound is.
        assert ((error >= 0) & (error <= 1e-4)).all()
        return
    assert robust.status is SolverStatus.EXACT
    assert (error.abs() <= 1e-6).all()


@every
def test_shapes_and_dtype(name, make_instance):
    f, p = make_instance("plain", N, 4)
    ambiguity = MAKERS[name](0.2)

    def value(f: Tensor, p: Tensor) -> Tensor:
        return ambiguity.worst_case(f, p, solver="cvxpylayers").value

    batched = value(f, p)
    one = ambiguity.worst_case(f[2], p[2], "cvxpylayers")
    assert one.value.shape == one.multiplier.shape == ()
    assert one.weights.shape == (N,)
    torch.testing.assert_close(one.value, batched[2])
    torch.testing.assert_close(value(f, p[0])[0], batched[0])
    deep = value(f.reshape(2, 2, N), p.reshape(2, 2, N))
    torch.testing.assert_close(deep, batched.reshape(2, 2))
    single = value(f.float(), p.float())
    assert single.dtype == torch.float
    torch.testing.assert_close(single.double(), batched, rtol=1e-5, atol=1e-5)
    empty = ambiguity.worst_case(f[:0], p[:0], "cvxpylayers")
    assert empty.value.shape == (0,) and empty.weights.shape == (0, N)


def test_one_radius_per_row(make_instance):
    f, p = make_instance("plain", N, 3)
    radii = torch.tensor([0.1, 0.5, 3.0], dtype=torch.double, requires_grad=True)
    ball = TotalVariation(1.0)
    together = ball.worst_case(f, p, "cvxpylayers", radius=radii)
    exact = ball.worst_case(f, p, radius=radii)
    torch.testing.assert_close(together.value, exact.value, rtol=0, atol=1e-6)
    (slopes,) = torch.autograd.grad(together.value.sum(), radii)
    torch.testing.assert_close(slopes, -exact.multiplier, rtol=0, atol=1e-6)


def test_one_context():
    f, p = torch.tensor([[3.0]]).double(), torch.ones(1).double()
    for ball in (TotalVariation(0.1), ChiSquared(0.1), KullbackLeibler(0.1)):
        robust = ball.worst_case(f, p, "cvxpylayers")
        torch.testing.assert_close(robust.value, f[:, 0])


def test_transport_to_candidates(make_instance):
    f, _ = make_instance("plain", 7)
    _, p = make_instance("plain", 4)
    generator = torch.Generator().manual_seed(0)
    cost = torch.rand(4, 7, generator=generator, dtype=torch.double)
    least = (p * cost.amin(-1)).sum(-1).max().item()
    ball = Wasserstein(least + 0.1, cost)
    exact, layer = both_ways(ball, f, p, least + 0.1)
    torch.testing.assert_close(layer[0].value, exact[0].value, rtol=0, atol=1e-6)
    assert layer[0].weights.shape == f.shape
    with pytest.raises(InputDataError, match=r"Wasserstein of radius .* is empty"):
        Wasserstein(0.5 * least, cost).worst_case(f, p, "cvxpylayers")


@pytest.mark.parametrize("name", ["total_variation", "kullback_leibler", "mmd"])
@pytest.mark.parametrize("steps", [0, 2, 5])
def test_an_early_stop_gives_a_lower_bound(name, steps, make_instance, monkeypatch):
    f, p = make_instance("huge", N)
    ambiguity = MAKERS[name](0.2)
    monkeypatch.setitem(cvxpy_layer.SETTINGS, "max_iter", steps)
    with pytest.warns(BotorchWarning, match=r"of radius 0.2 did not.* a gap of up to"):
        robust = ambiguity.worst_case(f, p, "cvxpylayers")
    assert robust.status is SolverStatus.LOWER_BOUND
    assert (robust.value <= ambiguity.worst_case(f, p).value).all()
    assert (robust.value >= f.amin(-1) - 1e-3).all()
    torch.testing.assert_close(robust.weights.sum(-1), torch.ones(3).double())


def test_the_lower_bound_is_not_only_the_least_score(make_instance, monkeypatch):
    """Close to the end the dual variables prove more."""
    f, p = make_instance("plain", N)
    ball = TotalVariation(0.2)
    monkeypatch.setattr(cvxpy_layer, "_PROVED", -1.0)
    with pytest.warns(BotorchWarning):
        value = ball.worst_case(f, p, "cvxpylayers").value
    exact = ball.worst_case(f, p).value
    assert (value <= exact + 1e-12).all()
    torch.testing.assert_close(value, exact, rtol=0, atol=1e-8)


def test_a_second_derivative_is_an_error_not_zero(make_instance):
    f, p = make_instance("plain", N)
    f.requires_grad_()
    value = TotalVariation(0.2).worst_case(f, p, "cvxpylayers").value.square().sum()
    (gradient,) = torch.autograd.grad(value, f, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


def test_bad_input(make_instance):
    f, p = make_instance("plain", N)
    with pytest.raises(InputDataError, match=r"exact.*cvxpylayers"):
        TotalVariation(0.1).worst_case(f, p, "scs")
    for bad in (torch.nan, torch.inf):
        f[1, 2] = bad
        with pytest.raises(InputDataError, match="finite scores"):
            TotalVariation(0.1).worst_case(f, p, "cvxpylayers")


def test_a_set_that_is_not_convex_says_so(make_instance):
    class Odd(AmbiguitySet):
        def solve(self, values, weights, radius):
            raise AssertionError

        def distance(self, p, q):
            raise AssertionError

    f, p = make_instance("plain", N)
    with pytest.raises(UnsupportedError, match="Odd is not a convex program"):
        Odd(0.1).worst_case(f, p, "cvxpylayers")


def test_layers_leave_no_trace_in_a_set(make_instance):
    f, p = make_instance("plain", N)
    ball = MaximumMeanDiscrepancy(0.1, KERNEL)
    before = list(ball.state_dict())
    value = ball.worst_case(f, p, "cvxpylayers").value
    assert list(ball.state_dict()) == before
    for twin in (copy.deepcopy(ball), pickle.loads(pickle.dumps(ball))):
        again = twin.worst_case(f, p, "cvxpylayers").value
        torch.testing.assert_close(again, value, rtol=0, atol=1e-12)


def test_layers_live_no_longer_than_their_set(make_instance):
    f, p = make_instance("plain", N)
    ball = TotalVariation(0.1)
    ball.worst_case(f, p, "cvxpylayers")
    ((_, layer),) = cvxpy_layer._LAYERS[ball].values()
    gone = weakref.ref(layer)
    del ball, layer
    gc.collect()
    assert gone() is None


def test_layers_are_built_once_and_again_when_constants_change(
    make_instance, monkeypatch
):
    f, p = make_instance("plain", N)
    built = []
    original = cvxpy_layer._WorstCase.__init__

    def counting(self, *arguments):
        built.append(arguments)
        original(self, *arguments)

    monkeypatch.setattr(cvxpy_layer._WorstCase, "__init__", counting)
    ball = Wasserstein(0.1, line_cost(N))
    for radius in (0.1, 0.2, 0.1):  # the radius is no constant
        ball.radius.fill_(radius)
        ball.worst_case(f, p, "cvxpylayers")
    assert len(built) == 1
    ball.load_state_dict(Wasserstein(0.3, 2 * line_cost(N)).state_dict())
    changed = ball.worst_case(f, p, "cvxpylayers").value
    assert len(built) == 2
    torch.testing.assert_close(changed, ball.worst_case(f, p).value, rtol=0, atol=1e-6)
    ball.cost = line_cost(N)  # another tensor in the buffer's place
    ball.worst_case(f, p, "cvxpylayers")
    assert len(built) == 3


def test_cvxpy_is_imported_only_when_used():
    code = """
import sys, torch
import botorch_drbo, botorch_drbo.ambiguity as a, botorch_drbo.acquisition
f, p = torch.tensor([0.0, 1.0]).double(), torch.tensor([0.5, 0.5]).double()
a.KullbackLeibler(0.1).worst_case(f, p)
found = {"cvxpy", "cvxpylayers", "diffcp", "clarabel"} & set(sys.modules)
assert not found, found
a.KullbackLeibler(0.1).worst_case(f, p, "cvxpylayers")
assert "cvxpylayers" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_one_set_serves_many_threads():
    """Its layer is shared, and its certificates belong to one call."""
    ambiguity = TotalVariation(0.3)
    p = torch.full((N,), 1 / N, dtype=torch.double)
    batches = [torch.randn(2 + rows, N, dtype=torch.double) for rows in range(4)]

    def worst(f: Tensor) -> Tensor:
        return ambiguity.worst_case(f, p, solver="cvxpylayers").value

    worst(batches[0])  # builds the layer
    with ThreadPoolExecutor(4) as pool:
        for f, value in zip(5 * batches, pool.map(worst, 5 * batches), strict=True):
            expected = ambiguity.worst_case(f, p).value
            torch.testing.assert_close(value, expected, rtol=0.0, atol=1e-5)
