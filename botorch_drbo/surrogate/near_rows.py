"""The noise, estimated from outcomes of rows that are nearly the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from botorch.models.model import Model
from scipy.stats import chi2

from botorch_drbo.posterior.ensemble import members_of
from botorch_drbo.posterior.models import only_model
from botorch_drbo.posterior.training import training_system
from botorch_drbo.surrogate.leave_one_out import closed_form, unit_of

_SIGNIFICANCE = 0.05


@final
@dataclass(frozen=True)
class NearRows:
    r"""How far outcomes of near rows differ, against what the model expects.

    Attributes:
        num_pairs: How many pairs were compared.
        ratio: The root mean square of their differences, in modelled deviations.
        probability: That of differences so large, if the model is right.
    """

    num_pairs: int
    ratio: float
    probability: float

    @property
    def noisier(self) -> bool:
        """Whether the outcomes are noisier than modelled, beyond luck."""
        return self.probability < _SIGNIFICANCE


def near_rows(model: Model) -> NearRows | None:
    r"""Compare outcomes whose difference is, by the model, mostly noise.

    .. math:: \sum_{(i, j)} \frac{(r_i - r_j)^2}
        {k_{ii} + k_{jj} - 2 k_{ij} + \sigma_i^2 + \sigma_j^2} \sim \chi^2_m

    over ``m`` pairs of rows, each row in one pair at most, nearest pairs first, where
    the noise :math:`\sigma_i^2 + \sigma_j^2` is at least half of the denominator:
    repeated trials, above all. For an ensemble the covariances are averaged.

    Args:
        model: A model as ``leave_one_out`` takes it.

    Returns:
        None if there is no such pair.

    Raises:
        UnsupportedError: A model without a closed form.
    """
    kernels, noises, residuals = [], [], []
    for member in members_of(only_model(model)):
        exact = closed_form(member)
        system, unit = training_system(exact), unit_of(exact)
        kernel = system.covariance - torch.diag_embed(system.noise)
        kernels.append(unit.square().unsqueeze(-1) * kernel)
        noises.append(unit.square() * system.noise)
        residuals.append(unit * system.residual.squeeze(-1))
    kernel, noise, residual = (
        torch.cat(parts).mean(0) for parts in (kernels, noises, residuals)
    )
    prior = kernel.diagonal()
    modelled = (prior.unsqueeze(-1) + prior - 2.0 * kernel).clamp_min(0.0)
    noisy = noise.unsqueeze(-1) + noise
    t = len(noise)
    twice = torch.ones_like(noisy, dtype=torch.bool).tril()
    shares = (modelled / noisy).masked_fill(twice, torch.inf)
    rows, columns = (shares <= 1.0).nonzero(as_tuple=True)
    order = shares[rows, columns].argsort(stable=True)
    free, pairs = set(range(t)), []
    for i, j in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if i in free and j in free:
            free -= {i, j}
            pairs.append((i, j))
    if not pairs:
        return None
    first, second = torch.tensor(pairs).T
    gaps = (residual[first] - residual[second]).square()
    total = (gaps / (modelled + noisy)[first, second]).sum().item()
    num = len(pairs)
    return NearRows(num, (total / num) ** 0.5, float(chi2.sf(total, num)))
