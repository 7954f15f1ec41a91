"""A member of EDRBO's ensemble: a kernel without priors, fitted by a few steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import final

import torch
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.optim.core import torch_minimize
from botorch.optim.stopping import ExpMAStoppingCriterion
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import softplus
from torch.optim import AdamW
from torch.optim.lr_scheduler import CyclicLR

from botorch_drbo._validation import check_choice, check_count
from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.correlations import (
    RBF,
    Correlation,
    RadialMatern,
    RationalQuadratic,
)
from botorch_drbo.surrogate.evidence import Family, LogPosterior
from botorch_drbo.surrogate.gaussian_process import model_with
from botorch_drbo.surrogate.hyperpriors import Flat, LogNormal
from botorch_drbo.surrogate.inducing_points import MAX_EXACT, fit_rows

KERNELS: dict[str, Correlation] = {
    "rbf": RBF(),
    "rational_quadratic": RationalQuadratic(),
    "matern32": RadialMatern(1.5),
    "matern52": RadialMatern(2.5),
}
_NOISE = LogNormal(-4.0, 1.0)
_LEAST_NOISE, _FIRST_NOISE = 1e-4, math.exp(-5.0)  # the prior's mode
_STEPS = 110


@final
@dataclass(frozen=True)
class EdrboKernel(Surrogate):
    r"""The models of EDRBO: mean zero, variance one, few fitting steps.

    Only the noise has a prior. Lengthscales start at ``ln 2`` of a side of the box and
    stay short, because 110 steps of AdamW with a cyclic learning rate between 1e-4 and
    1e-2 cannot change them much. This follows the public code of [Ramazyan2026edrbo]_,
    except that inputs are scaled by the box and not by their own range.

    Args:
        kernel: "rbf", "rational_quadratic", "matern32" or "matern52", radial.
        max_exact: With more outcomes the model uses inducing points: see
            ``inducing_points.fit_rows``.

    Raises:
        InputDataError: An unknown kernel, or a ``max_exact`` that is not a positive
            integer.

    Example:
        >>> from botorch_drbo.surrogate import EdrboKernel
        >>> EdrboKernel("rational_quadratic")
        EdrboKernel(kernel='rational_quadratic', max_exact=3000)
    """

    kernel: str = "rbf"
    max_exact: int = MAX_EXACT

    def __post_init__(self) -> None:
        """Check the options."""
        check_choice(self.kernel, "kernel", sorted(KERNELS))
        check_count(self.max_exact, "max_exact")

    def fit(self, data: ModelData) -> Model:
        r"""Take the steps."""
        return fit_rows(data, self.max_exact, self._fit)

    def _fit(self, data: ModelData) -> SingleTaskGP:
        family = Family(
            KERNELS[self.kernel], Flat(), None, _NOISE, shape=Flat(), has_mean=False
        )
        posterior = LogPosterior(family, data)
        learns_noise, t = data.Yvar is None, len(data.outcomes)
        raw = Parameter(torch.zeros(posterior.size - learns_noise, dtype=torch.double))
        parameters: dict[str, Tensor] = {"raw": raw}
        if learns_noise:
            first = torch.tensor([_FIRST_NOISE], dtype=torch.double)
            parameters["noise"] = Parameter(first)

        def positive() -> Tensor:
            noise = [parameters["noise"].detach()] if learns_noise else []
            return torch.cat([softplus(raw.detach()), *noise])

        def loss() -> tuple[Tensor, list[Tensor | None]]:
            found = posterior(positive().log().numpy())
            in_numbers = torch.from_numpy(found.gradient) / positive()
            raw.grad = -(in_numbers[: len(raw)] * raw.detach().sigmoid()) / t
            if learns_noise:
                parameters["noise"].grad = -in_numbers[len(raw) :] / t
            value = torch.tensor(-found.log_density / t, dtype=torch.double)
            return value, [parameter.grad for parameter in parameters.values()]

        torch_minimize(
            loss,
            parameters,
            {"noise": (_LEAST_NOISE, None)},
            optimizer=partial(AdamW, lr=1e-2),
            scheduler=partial(
                CyclicLR, base_lr=1e-4, max_lr=1e-2, step_size_up=10, step_size_down=20
            ),
            step_limit=_STEPS,
            stopping_criterion=ExpMAStoppingCriterion(),
        )
        return model_with(data, posterior, positive().log().numpy())
