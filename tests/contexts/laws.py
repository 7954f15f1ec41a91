"""Laws of contexts: some that are inverted, some that are sampled."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import distributions as td

F64 = torch.tensor([0.5, -1.0, 3.0], dtype=torch.double)
SCALE = torch.tensor([0.2, 1.0, 0.1], dtype=torch.double)
COVARIANCE = torch.tensor([[1.0, 0.6], [0.6, 0.5]], dtype=torch.double)

QUANTILE_LAWS: list[Callable[[], td.Distribution]] = [
    lambda: td.Normal(F64[0], SCALE[0]),
    lambda: td.Normal(F64, SCALE),
    lambda: td.Independent(td.Normal(F64, SCALE), 1),
    lambda: td.Uniform(F64, F64 + SCALE),
    lambda: td.Laplace(F64[:1], SCALE[:1]),
    lambda: td.Gumbel(F64[0], SCALE[0]),
    lambda: td.LogNormal(F64[0], SCALE[0]),
    lambda: td.MultivariateNormal(F64[:2], COVARIANCE),
]
SAMPLED_LAWS: list[Callable[[], td.Distribution]] = [
    lambda: td.Gamma(torch.tensor(2.0).double(), torch.tensor(4.0).double()),
    lambda: td.Independent(td.Beta(F64[[0, 2]], F64[[2, 0]]), 1),
    lambda: td.Dirichlet(torch.tensor([1.0, 2.0, 3.0], dtype=torch.double)),
    lambda: td.LowRankMultivariateNormal(F64[:2], F64[:2, None], SCALE[:2]),
    lambda: td.MixtureSameFamily(
        td.Categorical(torch.tensor([0.5, 0.5], dtype=torch.double)),
        td.Normal(F64[:2], SCALE[:2]),
    ),
]
