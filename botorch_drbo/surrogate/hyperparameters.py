"""Hyper-parameters that are known, so that nothing is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.models import SingleTaskGP
from gpytorch.constraints import Positive
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from botorch_drbo._validation import check_positive, option
from botorch_drbo.problem.search_space import Categories
from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.model_inputs import model_inputs, num_columns
from botorch_drbo.surrogate.outcome_units import scaled_model


@final
@dataclass(frozen=True)
class FixedHyperparameters(Surrogate):
    r"""A Gaussian process prior that is known: zero mean, Gaussian kernel.

    .. math:: k(z, z') = s \exp\big( -\tfrac12 \sum_j (u_j - u'_j)^2 / \ell_j^2 \big)

    with ``u`` the joint input scaled to the unit cube by its bounds. A recipe with this
    option neither fits hyper-parameters nor standardises outcomes. Use it for
    experiments on samples of a known prior: results then do not depend on the fit, and
    a step takes less time.

    Args:
        lengthscale: ``l``, in sides of the boxes: one number, or one for each decision
            and context variable, decisions first.
        noise_variance: The variance of the observation noise, in squared units of y,
            of outcomes that came without a variance of their own.
        outputscale: ``s``, the prior variance of the outcome, in squared units of y.

    Raises:
        InputDataError: A value that is not a positive finite number.

    Example:
        >>> from botorch_drbo.surrogate import FixedHyperparameters
        >>> FixedHyperparameters(lengthscale=[0.1, 0.3], noise_variance=0.01)
        FixedHyperparameters(lengthscale=(0.1, 0.3), noise_variance=0.01, ...)
    """

    lengthscale: float | tuple[float, ...]
    noise_variance: float
    outputscale: float = option(1.0, check_positive)

    def __post_init__(self) -> None:
        """Check the numbers."""
        if isinstance(self.lengthscale, (tuple, list)):
            lengthscales = tuple(self.lengthscale)
            # JSON makes a list of it, which would leave the object mutable.
            object.__setattr__(self, "lengthscale", lengthscales)
        else:
            lengthscales = (self.lengthscale,)
        if not lengthscales:
            raise InputDataError("`lengthscale` must have at least one number.")
        super().__post_init__()
        for lengthscale in lengthscales:
            check_positive(lengthscale, "lengthscale")
        check_positive(self.noise_variance, "noise_variance")

    @property
    def is_refitted(self) -> bool:
        """False: nothing is fitted."""
        return False

    def fit(self, data: ModelData) -> SingleTaskGP:
        r"""Condition the prior on data; nothing is fitted."""
        return self.model(
            data.inputs,
            data.outcomes,
            data.bounds,
            data.inputs.shape[-1] if data.num_joint is None else data.num_joint,
            data.Yvar,
            data.categories,
        )

    def model(
        self,
        inputs: Tensor,
        outcomes: Tensor,
        bounds: Tensor,
        num_joint: int,
        Yvar: Tensor | None = None,
        categories: Categories | None = None,
    ) -> SingleTaskGP:
        r"""Condition the prior on data.

        Args:
            inputs: ``t x d``: ``[x, c]``, or decisions alone.
            outcomes: ``t x 1``.
            bounds: What is scaled to the unit cube, ``2 x d``.
            num_joint: How many decision and context variables there are. A model of
                decisions alone takes the first lengthscales.
            Yvar: The variances of the noise in the outcomes, ``t x 1``, in place of
                ``noise_variance``; None for that.
            categories: Inputs that are categories, and how many there are; each of
                the one-hot columns of one has its lengthscale.

        Returns:
            The model, in the dtype of the inputs.

        Raises:
            BotorchTensorDimensionError: Another number of lengthscales.
        """
        lengthscale = torch.tensor(self.lengthscale, dtype=torch.double)
        if lengthscale.ndim and len(lengthscale) != num_joint:
            raise BotorchTensorDimensionError(
                f"`lengthscale` has {len(lengthscale)} numbers for {num_joint} "
                "decision and context variables. Give one number, or one for each."
            )
        d, categories = inputs.shape[-1], categories or {}
        widths = num_columns(d, categories)
        kernel = RBFKernel(ard_num_dims=int(widths.sum()))
        likelihood = None  # one for the given variances
        if Yvar is None:
            # The default constraint would not let the noise below 1e-4.
            likelihood = GaussianLikelihood(noise_constraint=Positive())
        size = torch.tensor(self.outputscale, dtype=torch.double).sqrt().to(outcomes)
        # In units of the prior: GPyTorch's absolute tolerances expect order one.
        model = scaled_model(
            inputs,
            outcomes,
            torch.zeros_like(size),
            size,
            Yvar,
            likelihood=likelihood,
            covar_module=kernel,
            input_transform=model_inputs(bounds, categories),
        ).to(inputs)
        each = lengthscale.expand(num_joint)[:d].repeat_interleave(widths)
        kernel.lengthscale = each.to(inputs)
        if likelihood is not None:
            ratio = self.noise_variance / self.outputscale
            likelihood.noise = torch.tensor(ratio, dtype=torch.double).to(inputs)
        return model.eval()
