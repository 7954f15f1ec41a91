"""The enlarged confidence bound against its formula, written out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms.outcome import Log, Standardize
from botorch.optim import optimize_acqf
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import StudentTLikelihood

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    LipschitzPenalizedUCB,
)
from botorch_drbo.ambiguity import FullSimplex, NoAmbiguity, TotalVariation
from botorch_drbo.confidence.information_gain import noise_precision
from botorch_drbo.objectives import RobustSatisficing, UncertaintyObjective
from tests.models import UNIT

LENGTHSCALE, OUTPUTSCALE, NOISE = 0.4, 1.7, 0.03
NO_AMBIGUITY = UncertaintyObjective(NoAmbiguity())


def data(t: int = 11, d: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    Z = torch.rand(t, d, generator=generator, dtype=torch.double)
    return Z, (5 * Z[:, :1]).sin() + Z[:, 1:2] * (4 * Z[:, -1:]).cos()


def gp(Z, Y, Yvar=None, *, standardize: bool = False, scale: float = 1.0):
    """A GP whose prior is ``scale`` times one fixed prior, in the units of Y."""
    transform = Standardize(1) if standardize else None
    kernel = ScaleKernel(RBFKernel())
    model = SingleTaskGP(Z, Y, Yvar, covar_module=kernel, outcome_transform=transform)
    unit = scale / Y.std().item() if standardize else scale
    kernel.base_kernel.lengthscale = LENGTHSCALE
    kernel.outputscale = OUTPUTSCALE * unit**2
    if Yvar is None:
        model.likelihood.noise = NOISE * unit**2
    return model.eval()


def by_hand(Z, Y, points, beta: float, eps: float) -> np.ndarray:
    """Eq. 14 in the paper's own terms: a kernel of size one, and lambda."""
    Z, Y, points = Z.numpy(), Y.squeeze(-1).numpy(), points.numpy()
    t, lam = len(Z), NOISE / OUTPUTSCALE

    def kernel(a, b):
        return math.exp(-0.5 * sum((a - b) ** 2) / LENGTHSCALE**2)

    K = np.array([[kernel(a, b) for b in Z] for a in Z]) + lam * np.eye(t)
    scores = []
    for z in points:
        k = np.array([kernel(z, a) for a in Z])
        mean = k @ np.linalg.solve(K, Y)
        sigma = math.sqrt(1.0 - k @ np.linalg.solve(K, k))
        # The paper's beta multiplies the sigma of the kernel of size one.
        beta_paper = math.sqrt(beta * OUTPUTSCALE)
        scores.append(mean + (beta_paper + eps * math.sqrt(t / lam)) * sigma)
    return np.array(scores)


X = torch.rand(6, 3, generator=torch.Generator().manual_seed(8), dtype=torch.double)


def test_decisions_alone_by_hand():
    Z, Y = data()
    acqf = EnlargedConfidenceUCB(gp(Z, Y), 2.0, 0.15)
    expected = by_hand(Z, Y, X, beta=2.0, eps=0.15)
    np.testing.assert_allclose(acqf(X.unsqueeze(-2)).detach(), expected, rtol=1e-7)
    width = acqf.confidence_width().item()
    assert width == pytest.approx(math.sqrt(2.0) + 0.15 * math.sqrt(11 / NOISE))


def test_contexts_by_hand():
    Z, Y = data()
    contexts = ContextSet(torch.tensor([[0.1], [0.6], [0.9]]).double())
    acqf = EnlargedConfidenceUCB(
        gp(Z, Y), 2.0, 0.15, contexts, UncertaintyObjective(FullSimplex())
    )
    expected = [
        min(
            by_hand(Z, Y, torch.cat([x, c]).unsqueeze(0), beta=2.0, eps=0.15)[0]
            for c in contexts.points
        )
        for x in X[:, :2]
    ]
    np.testing.assert_allclose(acqf(X[:, None, :2]).detach(), expected, rtol=1e-7)


@pytest.mark.parametrize("method", ["exact", "generic"])
def test_without_misspecification_it_is_botorchs_ucb(method):
    model = gp(*data(), standardize=True)
    acqf = EnlargedConfidenceUCB(model, 2.25, 0.0, method=method)
    expected = UpperConfidenceBound(model, beta=2.25)(X.unsqueeze(-2))
    torch.testing.assert_close(acqf(X.unsqueeze(-2)), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "objective",
    [
        UncertaintyObjective(TotalVariation(0.3)),
        UncertaintyObjective.gen(TotalVariation(0.3)),
        RobustSatisficing(TotalVariation(0.3), 5.0),
    ],
)
def test_without_misspecification_it_is_the_plain_score(objective):
    model, contexts = gp(*data()), ContextSet(torch.rand(4, 1).double())
    enlarged = EnlargedConfidenceUCB(model, 2.25, 0.0, contexts, objective)
    plain = DistributionallyRobustUCB(model, 2.25, contexts, objective)
    assert torch.equal(enlarged(X[:, None, :2]), plain(X[:, None, :2]))
    wider = EnlargedConfidenceUCB(model, 2.25, 0.1, contexts, objective)
    assert not torch.allclose(wider(X[:, None, :2]), plain(X[:, None, :2]))


def test_a_wider_plain_bound_gives_the_same_under_any_objective():
    """With equal noise the enlargement is a larger beta, so that is an oracle."""
    model, contexts = gp(*data()), ContextSet(torch.rand(4, 1).double())
    width = 1.5 + 0.1 * math.sqrt(11 / NOISE)
    objective = RobustSatisficing(TotalVariation(0.3), 5.0)
    enlarged = EnlargedConfidenceUCB(model, 2.25, 0.1, contexts, objective)
    plain = DistributionallyRobustUCB(model, width**2, contexts, objective)
    torch.testing.assert_close(enlarged(X[:, None, :2]), plain(X[:, None, :2]))
    penalized = LipschitzPenalizedUCB(
        model, 2.25, contexts, 0.2, UNIT, misspecification=0.1
    )
    plain = LipschitzPenalizedUCB(model, width**2, contexts, 0.2, UNIT)
    torch.testing.assert_close(penalized(X[:, None, :2]), plain(X[:, None, :2]))
    torch.testing.assert_close(
        penalized.lipschitz_upper_bound(), plain.lipschitz_upper_bound()
    )


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("factor", [0.01, 30.0])
def test_other_units_of_y(standardize, factor):
    """y and epsilon times a factor: the score times the factor."""
    Z, Y = data()
    score = EnlargedConfidenceUCB(gp(Z, Y, standardize=standardize), 2.25, 0.1)
    scaled = EnlargedConfidenceUCB(
        gp(Z, factor * Y, standardize=standardize, scale=factor), 2.25, 0.1 * factor
    )
    torch.testing.assert_close(
        scaled(X.unsqueeze(-2)), factor * score(X.unsqueeze(-2)), rtol=1e-6, atol=0.0
    )
    # Whether outcomes are standardised or not, the width is the same: a number.
    other = EnlargedConfidenceUCB(gp(Z, Y, standardize=not standardize), 2.25, 0.1)
    torch.testing.assert_close(other.confidence_width(), score.confidence_width())


def test_unequal_noise_covers_the_worst_perturbation():
    """Of all perturbations of the outcomes up to epsilon, none moves the mean more."""
    Z, Y = data()
    Yvar = torch.linspace(0.01, 0.5, 11, dtype=torch.double).unsqueeze(-1)
    model = gp(Z, Y, Yvar)
    acqf = EnlargedConfidenceUCB(model, 0.0, 0.2)
    width = acqf.confidence_width().item()
    assert width == pytest.approx(0.2 * math.sqrt(sum(1 / v for v in Yvar.flatten())))
    with torch.no_grad():
        kernel = model.covar_module
        K = kernel(Z).to_dense() + torch.diag(Yvar.squeeze(-1))
        weights = torch.linalg.solve(K, kernel(Z, X).to_dense())  # t x 6
        worst = 0.2 * weights.abs().sum(0)  # attained: the signs of the weights
        sigma = model.posterior(X.unsqueeze(-2)).variance.sqrt().flatten()
    assert (worst <= width * sigma).all()
    assert (worst >= 0.02 * width * sigma).all()  # it is no bound out of proportion


def test_given_equal_noise_is_learned_noise():
    Z, Y = data()
    given = EnlargedConfidenceUCB(gp(Z, Y, torch.full_like(Y, NOISE)), 2.25, 0.1)
    learned = EnlargedConfidenceUCB(gp(Z, Y), 2.25, 0.1)
    torch.testing.assert_close(given(X.unsqueeze(-2)), learned(X.unsqueeze(-2)))


def test_pending_decisions():
    """The variance shrinks as if they were observed; t stays."""
    Z, Y = data()
    model, pending = gp(Z, Y), torch.rand(2, 3).double()
    acqf = EnlargedConfidenceUCB(model, 2.25, 0.1, X_pending=pending)
    acqf.repulsion = 0.0
    with torch.no_grad():
        posterior = model.posterior(X.unsqueeze(-2))
        after = gp(torch.cat([Z, pending]), torch.cat([Y, Y[:2]]))
        sigma = after.posterior(X.unsqueeze(-2)).variance.sqrt().flatten()
    expected = posterior.mean.flatten() + acqf.confidence_width() * sigma
    torch.testing.assert_close(acqf(X.unsqueeze(-2)), expected, rtol=1e-6, atol=1e-8)
    assert acqf.confidence_width() == pytest.approx(1.5 + 0.1 * math.sqrt(11 / NOISE))


def test_gradient_and_optimisation_of_decisions_alone():
    model = gp(*data(), standardize=True).requires_grad_(False)
    acqf = EnlargedConfidenceUCB(model, 2.25, 0.05)
    Z = X[:3, None].clone().requires_grad_()
    assert torch.autograd.gradcheck(acqf, Z)
    unit = torch.tensor([[0.0] * 3, [1.0] * 3], dtype=torch.double)
    _, value = optimize_acqf(acqf, unit, q=1, num_restarts=2, raw_samples=32)
    assert value >= acqf(torch.rand(64, 1, 3).double()).max() - 1e-6


def test_new_noise_is_noticed():
    model = gp(*data())
    acqf = EnlargedConfidenceUCB(model, 2.25, 0.1)
    acqf(X.unsqueeze(-2))
    model.likelihood.noise = 4 * NOISE
    acqf(X.unsqueeze(-2))
    expected = 1.5 + 0.1 * math.sqrt(11 / (4 * NOISE))
    assert acqf.confidence_width().item() == pytest.approx(expected)


def test_weighted_outputs():
    """Perturb each output by epsilon: a weighted sum moves by less than is added."""
    Z, Y = data()
    Y = torch.cat([Y, (3 * Z[:, 1:2]).cos()], dim=-1)
    models = [gp(Z, Y[:, :1]), gp(Z, Y[:, 1:], torch.full_like(Y[:, 1:], 0.2))]
    weights = torch.tensor([0.5, -2.0], dtype=torch.double)
    transform = ScalarizedPosteriorTransform(weights)
    acqf = EnlargedConfidenceUCB(
        ModelListGP(*models), 0.0, 0.1, posterior_transform=transform
    )
    both = 0.1 * math.sqrt(11 / NOISE + 11 / 0.2)
    assert acqf.confidence_width().item() == pytest.approx(both)
    first = ScalarizedPosteriorTransform(torch.tensor([1.0, 0.0]).double())
    acqf = EnlargedConfidenceUCB(
        ModelListGP(*models), 0.0, 0.1, posterior_transform=first
    )
    alone = EnlargedConfidenceUCB(models[0], 0.0, 0.1)
    torch.testing.assert_close(acqf(X.unsqueeze(-2)), alone(X.unsqueeze(-2)))


def test_precision_of_two_outputs_in_one_model():
    Z, Y = data()
    Y = torch.cat([Y, 10 * Y + 3], dim=-1)
    model = SingleTaskGP(Z, Y)
    noise = model.likelihood.noise.detach().squeeze(-1) * Y.var(0)
    torch.testing.assert_close(noise_precision(model), 11 / noise)


Z, Y = data()


def student() -> SingleTaskGP:
    model = gp(Z, Y)
    model.likelihood = StudentTLikelihood()
    return model


CONTEXTS = ContextSet(torch.tensor([[0.1], [0.6]]).double())


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((gp(Z, Y), 2.25, -0.1), InputDataError, "misspecification"),
        ((gp(Z, Y), 2.25, math.inf), InputDataError, "misspecification"),
        ((gp(Z, Y), 2.25, "0.1"), InputDataError, "misspecification"),
        ((gp(Z, Y), 2.25, torch.ones(2)), BotorchTensorDimensionError, "scalar"),
        ((gp(Z, Y), -1.0, 0.1), InputDataError, "beta"),
        ((gp(Z, Y), 2.25, 0.1, CONTEXTS), InputDataError, "without `objective`"),
        (
            (gp(Z, Y), 2.25, 0.1, None, NO_AMBIGUITY),
            InputDataError,
            "without `context_set`",
        ),
        (
            (SingleTaskGP(Z, Y.exp(), outcome_transform=Log()), 2.25, 0.1),
            UnsupportedError,
            "Standardize",
        ),
        (
            (student(), 2.25, 0.1),
            UnsupportedError,
            "GaussianLikelihood",
        ),
    ],
)
def test_bad_input(arguments, error, text):
    with pytest.raises(error, match=text):
        EnlargedConfidenceUCB(*arguments)


class Unchanged(PosteriorTransform):
    scalarize = False

    def evaluate(self, Y):
        return Y

    def forward(self, posterior):
        return posterior


def test_transform_without_known_noise():
    model, transform = gp(Z, Y), Unchanged()
    with pytest.raises(UnsupportedError, match="Scalarized"):
        EnlargedConfidenceUCB(model, 2.25, 0.1, posterior_transform=transform)
    with pytest.raises(BotorchTensorDimensionError, match="3 columns"):
        EnlargedConfidenceUCB(model, 2.25, 0.1)(X[:, None, :2])
