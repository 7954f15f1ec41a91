"""GP-prior samples: the covariance over seeds, and the expansion against the kernel."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from scipy import stats

from benchmarks.problems.gp_prior import GPPriorSample, _features
from botorch_drbo.test_functions.base import normal_law


def se_kernel(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Lengthscale .1, variance 1, by a loop over coordinates."""
    total = np.zeros((len(first), len(second)))
    for j in range(first.shape[1]):
        total += np.subtract.outer(first[:, j], second[:, j]) ** 2
    return np.exp(-50 * total)


def probes() -> torch.Tensor:
    """Points close together and far apart, inside and at corners: ``9 x 4``."""
    centre = torch.tensor([0.4, 0.55, 0.5, 0.7]).double()
    step = 0.07 * torch.eye(4).double()
    corners = torch.tensor(
        [[0.0, 0, 0, 0], [0.0, 0, 0, 0.1], [1, 1, 1, 1], [1, 0, 1, 0]]
    )
    return torch.cat([centre[None], centre + step, corners.double()])


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    """1,000 samples at the probes, ``1000 x 9``."""
    z = probes()
    values = [GPPriorSample(s).evaluate(z[:, :2], z[:, 2:]) for s in range(1000)]
    return torch.stack(values).numpy()


def test_moments_over_seeds(samples: np.ndarray) -> None:
    """Mean, covariance and fourth moment, at 4 standard errors."""
    num = len(samples)
    kernel = se_kernel(probes().numpy(), probes().numpy())
    products = np.einsum("si,sj->sij", samples, samples)
    # Of a Gaussian: Var(f_i f_j) = k_ii k_jj + k_ij^2, Var(f^4) = 105 - 9.
    error = np.sqrt((1 + kernel**2) / num)
    assert (np.abs(products.mean(0) - kernel) < 4 * error).all()
    assert (np.abs(samples.mean(0)) < 4 / np.sqrt(num)).all()
    assert (np.abs((samples**4).mean(0) - 3) < 4 * np.sqrt(96 / num)).all()
    # The test must be able to see a wrong lengthscale.
    wrong = kernel ** ((0.1 / 0.16) ** 2)
    assert (np.abs(products.mean(0) - wrong) > 4 * error).any()


def test_each_value_is_normal(samples: np.ndarray) -> None:
    for column in samples.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3


def test_expansion_is_as_near_to_the_kernel_as_stated() -> None:
    axis = torch.linspace(0, 1, 41).double()
    points = torch.cartesian_prod(axis, axis)
    features = _features(points)
    assert features.shape[1] == 279
    half = (features @ features.T).numpy()  # of one pair of coordinates
    exact = se_kernel(points.numpy(), points.numpy())
    largest = np.abs(half - exact).max()
    # k - k' is positive semi-definite, so its largest entry is on the diagonal; the
    # covariance in four dimensions is a product of two such, each at most 1.
    assert 2 * largest < 1e-5
    missing = 1 - np.square(features.numpy()).sum(1)
    assert missing.min() > -1e-12
    assert 1 - (1 - missing.mean()) ** 2 == pytest.approx(5.7e-6, rel=0.1)


def test_seed_decides() -> None:
    z = torch.rand(50, 4).double()
    state = torch.get_rng_state()
    first = GPPriorSample(3).evaluate(z[:, :2], z[:, 2:])
    assert torch.equal(state, torch.get_rng_state())
    torch.manual_seed(99)
    again = GPPriorSample(3).evaluate(z[:, :2], z[:, 2:])
    assert torch.equal(first, again)
    other = GPPriorSample(4).evaluate(z[:, :2], z[:, 2:])
    assert abs(np.corrcoef(first.numpy(), other.numpy())[0, 1]) < 0.6
    # A version that draws or orders its numbers in another way is another problem.
    centre = torch.full((2,), 0.5).double()
    known = [GPPriorSample(seed).evaluate(centre, centre).item() for seed in (0, 1)]
    np.testing.assert_allclose(known, [-0.303840, 0.653307], atol=1e-5)
    with pytest.raises(InputDataError, match="seed"):
        GPPriorSample(-1)


def test_copies_are_the_same_function() -> None:
    function = GPPriorSample(2)
    x, c = torch.rand(2, 5, 2).double()
    for twin in (copy.deepcopy(function), pickle.loads(pickle.dumps(function))):
        assert torch.equal(twin.evaluate(x, c), function.evaluate(x, c))


def test_stored_optimum_by_a_product_rule() -> None:
    """Gauss-Legendre in both contexts, a grid of decisions, and a finer one."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    nodes, weights = (nodes + 1) / 2, weights / 2
    contexts = torch.tensor([[a, b] for a in nodes for b in nodes])
    mass = torch.tensor(np.outer(weights, weights).ravel())
    function = GPPriorSample()

    def mean(x: torch.Tensor) -> torch.Tensor:
        return function.table(x, contexts) @ mass

    axis = torch.linspace(0, 1, 101).double()
    coarse = torch.cartesian_prod(axis, axis)
    best = coarse[mean(coarse).argmax()]
    assert (best - function.optimal_decision).abs().max() < 0.01
    step = torch.linspace(-0.01, 0.01, 41).double()
    fine = (best + torch.cartesian_prod(step, step)).clamp(0, 1)
    assert mean(fine).max().item() == pytest.approx(function.optimal_value, abs=5e-5)


def test_other_seeds_and_laws_are_searched_on_demand() -> None:
    seed = GPPriorSample(5)
    axis = torch.linspace(0, 1, 51).double()
    grid = torch.cartesian_prod(axis, axis)
    assert seed.optimal_value >= seed.expected_value(grid).max().item()
    own = GPPriorSample(context_law=normal_law(0.2, 0.05, 2))
    assert own.optimal_value >= own.expected_value(grid).max().item()
    assert own.optimal_value != GPPriorSample().optimal_value


def test_expected_value_is_the_mean_over_its_contexts() -> None:
    """The separated form against the definition."""
    function = GPPriorSample(1)
    x = torch.rand(6, 2).double()
    contexts = function.true_contexts(300)
    mean = function.evaluate(x[:, None], contexts).mean(-1)
    torch.testing.assert_close(function.expected_value(x, num=300), mean)


def test_gradients() -> None:
    function = GPPriorSample(1)
    x, c = torch.rand(2, 4, 2).double().requires_grad_(True)
    assert torch.autograd.gradcheck(function.evaluate, (x, c))
    assert torch.autograd.gradcheck(lambda x: function.expected_value(x, num=16), x)
