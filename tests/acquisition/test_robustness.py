"""Uses that once gave a silent wrong value, and what must happen instead."""

from __future__ import annotations

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import MultiTaskGP, SingleTaskGP
from botorch.models.transforms.input import Normalize

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB, LipschitzPenalizedUCB
from botorch_drbo.ambiguity import NoAmbiguity
from botorch_drbo.lipschitz.sampled import LipschitzConstant
from botorch_drbo.objectives import UncertaintyObjective
from tests.models import UNIT


def model() -> SingleTaskGP:
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(12, 3, generator=generator, dtype=torch.double)
    return SingleTaskGP(Z, (5 * Z).sin().sum(-1, True), input_transform=Normalize(3))


def expectation(gp, **options):
    contexts = ContextSet(torch.linspace(0, 1, 5, dtype=torch.double)[:, None])
    objective = UncertaintyObjective(NoAmbiguity())
    return DistributionallyRobustUCB(gp, 2.25, contexts, objective, **options)


def test_train_mode_changes_neither_value_nor_model():
    gp = model()
    acqf = expectation(gp)
    X = torch.rand(4, 1, 2, dtype=torch.double)
    value, bounds = acqf(X), gp.input_transform.bounds.clone()
    acqf.train()
    torch.testing.assert_close(acqf(X), value)
    assert torch.equal(gp.input_transform.bounds, bounds)


def test_float32_contexts_on_a_float64_bound():
    contexts = ContextSet(torch.tensor([[0.1], [0.05]]))
    bounds = torch.tensor([[0.0], [0.1]], dtype=torch.double)
    LipschitzPenalizedUCB(model(), 2.25, contexts, 0.1, bounds)


def test_a_radius_loaded_from_a_state_dict_counts():
    contexts = ContextSet(UNIT)
    gp, X = model(), torch.rand(3, 1, 2, dtype=torch.double)
    erbo = LipschitzPenalizedUCB(gp, 2.25, contexts, 0.0, UNIT)
    wdrbo = LipschitzPenalizedUCB(gp, 2.25, contexts, 0.3, UNIT)
    erbo.load_state_dict(wdrbo.state_dict())
    torch.testing.assert_close(erbo(X), wdrbo(X))


def test_lipschitz_of_another_box_is_refused():
    other = LipschitzConstant(0.1 * UNIT)
    with pytest.raises(InputDataError, match="context_bounds"):
        LipschitzPenalizedUCB(
            model(), 2.25, ContextSet(UNIT), 0.1, UNIT, lipschitz=other
        )


@pytest.mark.parametrize(
    "options", [{"method": "exat"}, {"memory_budget": 0}, {"context_indices": [2.0]}]
)
def test_options_of_the_acquisition_are_checked(options):
    with pytest.raises(InputDataError, match=next(iter(options))):
        expectation(model(), **options)


def test_the_model_is_followed():
    """New hyper-parameters count, set by hand or loaded from a file."""
    gp, X = model(), torch.rand(3, 1, 2, dtype=torch.double)
    acqf = expectation(gp)
    before = acqf(X)
    gp.covar_module.lengthscale = 0.2
    torch.testing.assert_close(acqf(X), expectation(gp)(X))
    assert (acqf(X) - before).abs().max() > 1e-2
    other = expectation(model())
    other.load_state_dict(acqf.state_dict())
    torch.testing.assert_close(other(X), acqf(X))


def test_multi_task_models_are_refused():
    Z = torch.cat([torch.rand(6, 2), torch.tensor([[0.0], [1.0]]).repeat(3, 1)], -1)
    gp = MultiTaskGP(Z.double(), Z[:, :1].double(), task_feature=-1)
    with pytest.raises(UnsupportedError, match="task"):
        expectation(gp)


def test_heteroskedastic_noise_of_pending_inputs():
    """Both paths take the mean noise, as BoTorch does for new inputs."""
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(12, 3, generator=generator, dtype=torch.double)
    Y = (5 * Z).sin().sum(-1, True)
    gp = SingleTaskGP(Z, Y, train_Yvar=0.01 + 0.2 * Z[:, :1])
    X, pending = torch.rand(5, 1, 2).double(), torch.rand(2, 2).double()
    torch.testing.assert_close(
        expectation(gp, X_pending=pending, method="exact")(X),
        expectation(gp, X_pending=pending, method="generic")(X),
    )


def test_no_nan_where_nothing_is_uncertain():
    """Variance zero to rounding, at a training input without noise."""
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(9, 3, generator=generator, dtype=torch.double)
    gp = SingleTaskGP(Z, Z.sum(-1, True), train_Yvar=torch.full((9, 1), 1e-10).double())
    for method in ("exact", "generic"):
        acqf = DistributionallyRobustUCB(
            gp,
            2.25,
            ContextSet(Z[:, 2:]),
            UncertaintyObjective(NoAmbiguity()),
            method=method,
        )
        X = Z[:, None, :2].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(acqf(X).sum(), X)
        assert torch.isfinite(gradient).all()


def test_the_support_is_searched_for_the_steepest_context():
    contexts = ContextSet(torch.tensor([[0.3], [0.7]], dtype=torch.double))
    acqf = LipschitzPenalizedUCB(model(), 2.25, contexts, 0.1, UNIT)
    near = torch.cdist(contexts.points, acqf.lipschitz.candidates).amin(-1)
    assert (near == 0).all()
