"""A fit that begins with some of the rows, against one that does not."""

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_drbo.surrogate import GaussianProcess, ModelData, Surrogate
from botorch_drbo.surrogate import gaussian_process as of_own
from botorch_drbo.surrogate.botorch_default import BoTorchDefault

pytestmark = pytest.mark.usefixtures("each_fit_is_made")


def rows(t: int, *, known_noise: bool) -> ModelData:
    generator = torch.Generator().manual_seed(0)
    Z = torch.rand(t, 3, generator=generator).double()
    Y = 1e3 * ((4.0 * Z[:, :1]).sin() + Z[:, 1:2] * Z[:, 2:])
    Y = Y + 100.0 * torch.randn(t, 1, generator=generator).double()
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double).expand(2, 3)
    return ModelData(Z, Y, unit, torch.full_like(Y, 1e4) if known_noise else None)


def density(model: SingleTaskGP) -> float:
    """The log density of hyper-parameters by GPyTorch, up to a constant."""
    model.train()
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    with torch.no_grad():
        value = mll(model(*model.train_inputs), model.train_targets)
    return value.item() * len(model.train_targets)


@pytest.mark.parametrize("known_noise", [False, True])
@pytest.mark.parametrize("surrogate", [BoTorchDefault(), GaussianProcess("matern32")])
def test_the_end_is_as_likely_as_that_of_the_fit_to_all(
    surrogate: Surrogate, known_noise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = rows(120, known_noise=known_noise)
    full = density(surrogate.fit(data))
    monkeypatch.setattr(of_own, "FEW_ROWS", 100)
    monkeypatch.setattr(of_own, "_FIRST_ROWS", (30, 30))
    found = surrogate.fit(data)
    assert len(found.train_targets) == 120
    assert density(found) > full - 0.02  # nats
    # Not where the first rows ended: the test could not fail otherwise.
    first = surrogate.fit(data.sample(30))
    of_all = data.model(
        covar_module=first.covar_module,
        mean_module=first.mean_module,
        likelihood=None if known_noise else first.likelihood,
    )
    assert density(of_all) < full - 0.1


def test_the_order_of_the_rows_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_own, "FEW_ROWS", 100)
    monkeypatch.setattr(of_own, "_FIRST_ROWS", (30, 30))
    data = rows(120, known_noise=True)
    other = data.of_rows(
        torch.randperm(120, generator=torch.Generator().manual_seed(3))
    )
    first, second = data.sample(30), other.sample(30)
    assert sorted(first.inputs.tolist()) == sorted(second.inputs.tolist())
    at = data.inputs[:9]
    fitted = [BoTorchDefault().fit(each).posterior(at).mean for each in (data, other)]
    torch.testing.assert_close(*fitted, rtol=1e-6, atol=1e-6)


def test_the_same_rows_are_drawn_in_the_units_of_all() -> None:
    data = rows(50, known_noise=True)
    few = data.sample(20)
    assert torch.equal(few.inputs, data.sample(20).inputs)
    assert few.inputs.shape == (20, 3)
    assert few.units == data.units
    place = [int((data.inputs == row).all(-1).nonzero()) for row in few.inputs]
    assert place == sorted(place)
    assert torch.equal(few.outcomes, data.outcomes[place])
