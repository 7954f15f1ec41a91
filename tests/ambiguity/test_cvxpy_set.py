"""Sets of the user's own, against cvxpy itself and against the sets that we have."""

from __future__ import annotations

import copy
import pickle

import cvxpy as cp
import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import (
    CvxpyAmbiguity,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    SolverStatus,
    TotalVariation,
    Wasserstein,
    cvxpy_layer,
    cvxpy_set,
)
from botorch_drbo.objectives import UncertaintyObjective

N = 8
POINTS = torch.linspace(0, 1, N, dtype=torch.double)[:, None]
COST = torch.cdist(POINTS, POINTS, compute_mode="donot_use_mm_for_euclid_dist")
KERNEL = torch.exp(-COST.square() / (2 * 0.2**2)) + 1e-8 * torch.eye(N).double()
FACTOR = torch.linalg.cholesky(KERNEL).numpy()


def ellipsoid_with_moments(q, p, radius):
    """Near the reference in the kernel, and with a bounded mean: no built-in set."""
    points = POINTS.squeeze(-1).numpy()
    return [cp.norm(FACTOR.T @ (q - p)) <= radius, points @ q <= 0.55]


def box(q, p, radius):
    return [cp.norm_inf(q - p) <= radius]


def total_variation(q, p, radius):
    return [cp.norm1(q - p) <= radius]


def kernel_ball(q, p, radius):
    return [cp.norm(FACTOR.T @ (q - p)) <= radius]


def kullback_leibler(q, p, radius):
    return [cp.sum(cp.kl_div(q, p)) <= radius]


def transport(q, p, radius):
    plan = cp.Variable((N, N), nonneg=True)
    cost = cp.sum(cp.multiply(COST.numpy(), plan))
    return [cp.sum(plan, axis=1) == p, cp.sum(plan, axis=0) == q, cost <= radius]


def bounded_mean(q, p, radius):
    """The radius and the reference are ignored."""
    return [POINTS.squeeze(-1).numpy() @ q <= 0.5]


def instance(rows: int = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    f = torch.randn(rows, N, generator=generator, dtype=torch.double)
    p = torch.rand(rows, N, generator=generator, dtype=torch.double) + 0.1
    p[:, -1] = 0.05  # the mean context stays below 0.55
    return f, p / p.sum(-1, keepdim=True)


@pytest.mark.parametrize("builder", [ellipsoid_with_moments, box])
@pytest.mark.parametrize("radius", [0.05, 0.2, 1.0])
def test_value_is_that_of_cvxpy(builder, radius, by_clarabel):
    f, p = instance()
    robust = CvxpyAmbiguity(builder, radius).worst_case(f, p)
    assert robust.status is SolverStatus.EXACT
    expected = [by_clarabel(a, b, radius, builder) for a, b in zip(f, p, strict=True)]
    torch.testing.assert_close(
        robust.value, torch.tensor(expected).double(), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("radius", [0.1, 0.3])
def test_gradients_are_finite_differences(radius):
    f, p = instance()
    ambiguity = CvxpyAmbiguity(ellipsoid_with_moments, radius)
    radii = torch.full((3,), radius).double().requires_grad_()

    def value(f: Tensor, p: Tensor, radius: Tensor) -> Tensor:
        return ambiguity.worst_case(f, p / p.sum(-1, keepdim=True), radius=radius).value

    assert torch.autograd.gradcheck(
        value, (f.requires_grad_(), p.requires_grad_(), radii), eps=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("builder", "builtin"),
    [
        (total_variation, TotalVariation),
        (kullback_leibler, KullbackLeibler),
        (kernel_ball, lambda radius: MaximumMeanDiscrepancy(radius, KERNEL)),
        (transport, lambda radius: Wasserstein(radius, COST)),
    ],
)
@pytest.mark.parametrize("radius", [0.03, 0.3])
def test_a_built_in_set_described_again_agrees(builder, builtin, radius):
    f, p = instance()
    ours, theirs = builtin(radius), CvxpyAmbiguity(builder, radius)
    answers = []
    for ambiguity in (ours, theirs):
        inputs = [x.clone().requires_grad_() for x in (f, p)]
        robust = ambiguity.worst_case(*inputs)
        slope, kind = torch.autograd.grad(robust.value.sum(), inputs)
        answers.append((robust.value, slope, kind - (p * kind).sum(-1, keepdim=True)))
    for a, b, atol in zip(*answers, (1e-6, 1e-4, 1e-4), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=atol)
    torch.testing.assert_close(
        theirs.sensitivity(f, p), ours.sensitivity(f, p), rtol=0.05, atol=1e-3
    )
    mixed = 0.5 * (p + p.roll(1, 0))
    torch.testing.assert_close(
        theirs.distance(p, mixed), ours.distance(p, mixed), rtol=0, atol=1e-6
    )


def test_both_constraints_of_the_example_count():
    f, p = instance()
    both = CvxpyAmbiguity(ellipsoid_with_moments, 0.2).worst_case(f, p).value
    for other in (kernel_ball, bounded_mean):
        assert (both - CvxpyAmbiguity(other, 0.2).worst_case(f, p).value).max() > 1e-3


def test_both_solvers_are_the_same():
    f, p = instance()
    ambiguity = CvxpyAmbiguity(box, 0.1)
    a, b = (ambiguity.worst_case(f, p, s).value for s in ("exact", "cvxpylayers"))
    assert torch.equal(a, b)


def test_sensitivity_is_a_right_difference_with_its_gradient(monkeypatch):
    monkeypatch.setattr(cvxpy_set, "_STEP", 1e-2)  # of less rounding
    f, p = instance()
    ambiguity = CvxpyAmbiguity(kernel_ball, 0.1)
    radii = torch.tensor([[0.1], [0.11]]).double()
    low, high = ambiguity.worst_case(f, p, radius=radii).value
    sensitivity = ambiguity.sensitivity(f.requires_grad_(), p)
    torch.testing.assert_close(sensitivity, (high - low) / 1e-2, rtol=0, atol=1e-6)
    assert torch.autograd.gradcheck(
        lambda f: ambiguity.sensitivity(f, p), f, eps=1e-3, atol=1e-3
    )


def test_constraints_that_ignore_the_radius(by_clarabel):
    f, p = instance()
    ambiguity = CvxpyAmbiguity(bounded_mean, 0.3)
    ambiguity.radius.requires_grad_()
    robust = ambiguity.worst_case(f, p)
    expected = [by_clarabel(a, b, 0.3, bounded_mean) for a, b in zip(f, p, strict=True)]
    torch.testing.assert_close(
        robust.value.detach(), torch.tensor(expected).double(), rtol=0, atol=1e-7
    )
    assert (robust.multiplier == 0).all()
    (slope,) = torch.autograd.grad(robust.value.sum(), ambiguity.radius)
    assert slope == 0
    assert (ambiguity.sensitivity(f, p) == 0).all()
    inside, outside = torch.eye(N).double()[[0, -1]]
    torch.testing.assert_close(
        ambiguity.distance(p[0], inside), torch.zeros(()).double()
    )
    assert ambiguity.distance(p[0], outside) == torch.inf


def test_distance_of_every_row():
    _, p = instance()
    ambiguity = CvxpyAmbiguity(box, 0.1)
    q = torch.eye(N).double()[:3]
    expected = (p - q).abs().amax(-1)
    torch.testing.assert_close(ambiguity.distance(p, q), expected, rtol=0, atol=1e-7)
    one = ambiguity.distance(p[0], q[0])
    assert one.shape == ()
    many = ambiguity.distance(p[0], q[:, None])
    assert many.shape == (3, 1)


def test_distance_needs_a_radius_that_enters_convexly():
    _, p = instance()

    def scaled(q, p, radius):  # a product of the radius and a variable
        slack = cp.Variable(nonneg=True)
        return [slack <= 1, cp.norm1(q - p) <= radius * slack]

    ambiguity = CvxpyAmbiguity(scaled, 0.1)
    f, _ = instance()
    same = TotalVariation(0.1).worst_case(f, p).value
    torch.testing.assert_close(
        ambiguity.worst_case(f, p).value, same, rtol=0, atol=1e-6
    )
    with pytest.raises(UnsupportedError, match="not convex in the radius"):
        ambiguity.distance(p, p)


@pytest.mark.parametrize(
    ("builder", "message"),
    [
        (lambda q, p, r: cp.norm1(q - p) <= r, "list of cvxpy constraints, got Ineq"),
        (lambda q, p, r: None, "list of cvxpy constraints, got None"),
        (lambda q, p, r: [True], "got bool in it"),
        (lambda q, p, r: [cp.norm1(q - p) >= r], "not convex.*DCP"),
        (lambda q, p, r: [cp.norm1(q - p) <= r**2], "radius, 2.*parameters.*DPP"),
        (lambda q, p, r: [q <= r * p], "DPP.*affinely"),
        (lambda q, p, r: [q <= cp.Parameter(N)], "1 parameter.* Make them constants"),
        (lambda q, p, r: [q <= cp.Variable(N, boolean=True)], "integer variable"),
    ],
)
def test_bad_descriptions(builder, message):
    f, p = instance()
    with pytest.raises(InputDataError, match=f"(?s){message}"):
        CvxpyAmbiguity(builder, 0.1).worst_case(f, p)


def test_bad_arguments():
    with pytest.raises(InputDataError, match=r"function of .q, p, radius."):
        CvxpyAmbiguity([1], 0.1)
    with pytest.raises(InputDataError, match="radius"):
        CvxpyAmbiguity(box, -0.1)


def test_an_empty_set_is_an_error_that_names_the_radius():
    f, p = instance()
    p = torch.arange(1, N + 1).double().expand(3, N) / (N * (N + 1) / 2)
    assert (p @ POINTS > 0.6).all()  # a small ball cannot bring it down to 0.55
    with pytest.raises(
        InputDataError, match=r"CvxpyAmbiguity of radius 0.001 is empty"
    ):
        CvxpyAmbiguity(ellipsoid_with_moments, 0.001).worst_case(f, p)
    CvxpyAmbiguity(ellipsoid_with_moments, 1.0).worst_case(f, p)


def test_an_early_stop_warns(monkeypatch):
    f, p = instance()
    ambiguity = CvxpyAmbiguity(box, 0.1)
    exact = ambiguity.worst_case(f, p).value
    monkeypatch.setitem(cvxpy_layer.SETTINGS, "max_iter", 3)
    with pytest.warns(BotorchWarning, match="CvxpyAmbiguity of radius 0.1 did not"):
        robust = ambiguity.worst_case(f, p)
    assert robust.status is SolverStatus.LOWER_BOUND
    assert (robust.value <= exact + 1e-7).all()
    with pytest.warns(BotorchWarning, match="its sensitivity may be off by"):
        ambiguity.sensitivity(f, p)


def test_copies_and_numbers_of_contexts():
    f, p = instance()
    ambiguity = CvxpyAmbiguity(box, 0.1)
    value = ambiguity.worst_case(f, p).value
    assert list(ambiguity.state_dict()) == ["radius"]
    for twin in (copy.deepcopy(ambiguity), pickle.loads(pickle.dumps(ambiguity))):
        assert torch.equal(twin.worst_case(f, p).value, value)
    few = p[:, :3] / p[:, :3].sum(-1, keepdim=True)
    assert ambiguity.worst_case(f[:, :3], few).weights.shape == (3, 3)
    assert torch.equal(ambiguity.worst_case(f, p).value, value)


def acquisition_function(radius: float = 0.2) -> AcquisitionFunction:
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(12, 2, generator=generator, dtype=torch.double)
    Y = torch.sin(5 * X[:, :1]) - (X[:, :1] - X[:, 1:]).square()
    contexts = ContextSet(POINTS, instance(1)[1][0])
    objective = UncertaintyObjective(CvxpyAmbiguity(ellipsoid_with_moments, radius))
    return DistributionallyRobustUCB(SingleTaskGP(X, Y), 2.25, contexts, objective)


def test_optimize_acqf_end_to_end(by_clarabel):
    acqf = acquisition_function()
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    x, value = optimize_acqf(acqf, bounds, q=1, num_restarts=2, raw_samples=16)
    assert x.shape == (1, 1)
    with torch.no_grad():
        grid = acqf(torch.linspace(0, 1, 41).double()[:, None, None])
    assert value >= grid.max() - 1e-3
    # The same number without a layer: scores from the model, the worst case from cvxpy.
    z = torch.cat([x.expand(N, 1), POINTS], dim=-1)
    posterior = acqf.model.posterior(z)
    scores = (posterior.mean + 1.5 * posterior.variance.sqrt()).squeeze(-1).detach()
    expected = by_clarabel(scores, instance(1)[1][0], 0.2, ellipsoid_with_moments)
    assert value.item() == pytest.approx(expected, abs=1e-5)


def test_the_acquisition_function_has_the_right_gradient():
    acqf = acquisition_function()
    X = torch.tensor([[[0.3]], [[0.71]]], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(acqf, X, eps=1e-4, atol=1e-4)
