"""Which models an acquisition function takes, and which it refuses when it is made."""

from __future__ import annotations

import math

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import (
    HigherOrderGP,
    KroneckerMultiTaskGP,
    ModelListGP,
    SingleTaskGP,
)
from botorch.models.deterministic import (
    AffineDeterministicModel,
    FixedSingleSampleModel,
    GenericDeterministicModel,
    MatheronPathModel,
    PosteriorMeanModel,
)
from botorch.models.model import ModelList
from botorch.models.transforms.outcome import (
    Bilog,
    ChainedOutcomeTransform,
    Log,
    Power,
    Standardize,
)
from botorch.optim import optimize_acqf

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    LipschitzPenalizedUCB,
    OverJointInputs,
    RobustThompsonSampling,
    best_robust_value,
    qDistributionallyRobustUCB,
)
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import UNIT, known_model, uniform, variational_model

BETA = 2.25
SO, RO = UncertaintyObjective.so(), UncertaintyObjective.ro()
X_BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)


X = uniform(4, 1, 2, seed=3)
Z = uniform(12, 3, seed=1)


def f(z: torch.Tensor) -> torch.Tensor:
    return 2 + (3 * z[..., 1:2]).sin() * z[..., 2:] + z[..., :1]


def gp(**options) -> SingleTaskGP:
    return known_model(Z, f(Z), noise=1e-2, normalise=False, **options)


def contexts(n: int = 5) -> ContextSet:
    return ContextSet.empirical(uniform(n, 1, seed=2))


def joint(points: torch.Tensor) -> torch.Tensor:
    b, n = len(X), len(points)
    return torch.cat([X.expand(b, n, 2), points.expand(b, n, 1)], dim=-1)  # b x n x d


def weight(value: float, number: int = 1) -> ScalarizedPosteriorTransform:
    weights = torch.full((number,), value, dtype=torch.double)
    return ScalarizedPosteriorTransform(weights, offset=0.5)


@pytest.mark.parametrize("scale", [None, -2.0])
def test_a_variational_model_goes_by_its_posterior(scale):
    model = variational_model(Z)
    options = {} if scale is None else {"posterior_transform": weight(scale)}
    acqf = DistributionallyRobustUCB(model, BETA, contexts(), RO, **options)

    def expected():
        posterior = variational_copy(model).posterior(
            joint(contexts().points).unsqueeze(-2)
        )
        mean, sigma = posterior.mean.flatten(1), posterior.variance.sqrt().flatten(1)
        if scale is not None:
            mean, sigma = 0.5 + scale * mean, abs(scale) * sigma
        return (mean + math.sqrt(BETA) * sigma).amin(-1)

    torch.testing.assert_close(acqf(X), expected(), rtol=1e-6, atol=1e-8)
    strategy = model.model.variational_strategy
    with torch.no_grad():
        strategy._variational_distribution.variational_mean.mul_(2.0)
        strategy.inducing_points.mul_(0.7)
    torch.testing.assert_close(acqf(X), expected(), rtol=1e-6, atol=1e-8)
    assert torch.autograd.gradcheck(acqf, X[:2].clone().requires_grad_(), atol=1e-4)


def variational_copy(model):
    copied = variational_model(Z)
    copied.load_state_dict(model.state_dict(), keep_transforms=False)
    return copied


def test_a_variational_model_in_every_analytic_class():
    model, transform = (
        variational_model(Z),
        UncertaintyObjective.gen(TotalVariation(0.3)),
    )
    for acqf in (
        LipschitzPenalizedUCB(model, BETA, contexts(), 0.1, UNIT),
        FiniteDifferenceUCB(model, BETA, contexts(), transform, step=0.1),
        EnlargedConfidenceUCB(model, BETA, 0.0, contexts(), RO),
    ):
        before = acqf(X)
        acqf.X_pending = X[0]
        assert acqf(X)[0] < before[0]
    best = best_robust_value(model, X.squeeze(1), contexts(), RO)
    mean = model.posterior(joint(contexts().points).unsqueeze(-2)).mean.flatten(1)
    torch.testing.assert_close(best, mean.amin(-1).amax())


DETERMINISTIC = {
    "generic": (lambda: GenericDeterministicModel(f), {"num_inputs": 3}),
    "affine": (lambda: AffineDeterministicModel(uniform(3, 1, seed=4)), {}),
    "posterior mean": (lambda: PosteriorMeanModel(gp()), {}),
    "one sample": (
        lambda: FixedSingleSampleModel(gp(), w=torch.ones(1, dtype=torch.double)),
        {},
    ),
    "path": (lambda: MatheronPathModel(gp(), seed=0), {}),
}


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("case", DETERMINISTIC)
def test_a_deterministic_model_has_its_value(case, sign):
    make, options = DETERMINISTIC[case]
    model = make()
    values = model(joint(contexts().points)).squeeze(-1)  # b x n
    if sign < 0:
        options, values = options | {"posterior_transform": weight(-1.0)}, 0.5 - values
    acqf = DistributionallyRobustUCB(model, BETA, contexts(), RO, **options)
    torch.testing.assert_close(acqf(X), values.amin(-1), atol=1e-5, rtol=0.0)
    acqf.X_pending = X[0]  # nothing can be learned from it
    torch.testing.assert_close(acqf(X), values.amin(-1), atol=1e-5, rtol=0.0)
    best = best_robust_value(model, X.squeeze(1), contexts(), RO, **options)
    torch.testing.assert_close(best, values.amin(-1).amax())


@pytest.mark.parametrize(
    "make",
    [
        lambda m, **o: LipschitzPenalizedUCB(m, BETA, contexts(), 0.1, UNIT, **o),
        lambda m, **o: EnlargedConfidenceUCB(m, BETA, 0.0, contexts(), RO, **o),
        lambda m, **o: FiniteDifferenceUCB(m, BETA, contexts(), SO, **o),
    ],
)
def test_the_number_of_inputs_can_be_given(make):
    model = GenericDeterministicModel(f)
    with pytest.raises(UnsupportedError, match="Pass `num_inputs`"):
        make(model)
    acqf = make(model, num_inputs=3)
    x, _ = optimize_acqf(acqf, X_BOUNDS, q=1, num_restarts=2, raw_samples=8)
    assert x.shape == (1, 2)
    z = torch.cat([x, x[:, :1]], dim=-1)
    assert torch.equal(OverJointInputs(acqf)(z), acqf(x))


def test_a_number_of_inputs_that_is_none():
    with pytest.raises(BotorchTensorDimensionError, match="4, but the model has 3"):
        DistributionallyRobustUCB(gp(), BETA, contexts(), RO, num_inputs=4)
    with pytest.raises(InputDataError, match="num_inputs"):
        DistributionallyRobustUCB(gp(), BETA, contexts(), RO, num_inputs=0)


@pytest.mark.parametrize("n", [5, 200])
@pytest.mark.parametrize("listed", [ModelListGP, ModelList])
def test_a_list_of_one_model_counts_as_that_model(listed, n):
    common = BETA, contexts(n)
    for make in (
        lambda m: DistributionallyRobustUCB(m, *common, RO, X_pending=X[0]),
        lambda m: LipschitzPenalizedUCB(m, *common, 0.1, UNIT),
        lambda m: EnlargedConfidenceUCB(m, BETA, 0.1, contexts(n), RO),
        lambda m: qDistributionallyRobustUCB(m, *common, RO, num_paths=8, seed=0),
        lambda m: RobustThompsonSampling(m, contexts(n), RO, seed=0),
    ):
        plain, acqf = make(gp()), make(listed(gp()))
        assert torch.equal(acqf(X), plain(X))
        assert isinstance(acqf.model, SingleTaskGP)
    view = DistributionallyRobustUCB(listed(gp()), *common, RO).view
    assert view.method == ("product" if n > 100 else "exact")
    tried = X.squeeze(1)
    assert torch.equal(
        best_robust_value(listed(gp()), tried, contexts(n), RO),
        best_robust_value(gp(), tried, contexts(n), RO),
    )


@pytest.mark.parametrize("scale", [None, -2.0])
def test_a_log_transform_goes_by_its_moments(scale):
    model = gp(outcome_transform=Log())
    options = {} if scale is None else {"posterior_transform": weight(scale)}
    acqf = DistributionallyRobustUCB(model, BETA, contexts(), RO, **options)
    posterior = model.posterior(joint(contexts().points).unsqueeze(-2))
    mean, sigma = posterior.mean.flatten(1), posterior.variance.sqrt().flatten(1)
    if scale is not None:
        mean, sigma = 0.5 + scale * mean, abs(scale) * sigma
    expected = (mean + math.sqrt(BETA) * sigma).amin(-1)
    torch.testing.assert_close(acqf(X), expected, rtol=1e-6, atol=1e-8)
    with pytest.raises(UnsupportedError, match=r"TransformedPosterior.*one decision"):
        acqf.X_pending = X[0]


def chained() -> ChainedOutcomeTransform:
    return ChainedOutcomeTransform(first=Standardize(1), second=Bilog())


def two_paths() -> MatheronPathModel:
    return MatheronPathModel(gp(), sample_shape=torch.Size([2]))


REFUSED = {
    "power": (lambda: gp(outcome_transform=Power(0.5)), None, "no mean.*Power"),
    "bilog": (lambda: gp(outcome_transform=Bilog()), None, "no mean.*Bilog"),
    "chained": (lambda: gp(outcome_transform=chained()), None, "no mean.*Chained"),
    "higher order": (
        lambda: HigherOrderGP(Z, torch.cat([f(Z), f(Z)], -1)),
        None,
        "HigherOrderGP.*shape",
    ),
    "kronecker": (
        lambda: KroneckerMultiTaskGP(Z, torch.cat([f(Z), -f(Z)], -1)),
        weight(1.0, 2),
        "KroneckerMultiTaskGP",
    ),
    "two functions": (
        lambda: GenericDeterministicModel(lambda z: z[..., :2], 2),
        weight(1.0, 2),
        "return one output",
    ),
    "two paths": (two_paths, None, "several functions"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_evaluated_is_refused_when_it_is_made(case):
    make, transform, text = REFUSED[case]
    options = {"num_inputs": 3, "posterior_transform": transform}
    with pytest.raises(UnsupportedError, match=text):
        DistributionallyRobustUCB(make(), BETA, contexts(), RO, **options)
