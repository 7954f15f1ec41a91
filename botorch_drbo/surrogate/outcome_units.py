"""The units in which outcomes are modelled, so that they are of order one."""

from __future__ import annotations

import warnings
from typing import Any, cast

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.settings import validate_input_scaling
from gpytorch.settings import min_fixed_noise
from torch import Tensor

_ROUNDING = 4.0  # spacings of the largest outcome: a smaller range is none


def level_and_unit(Y: Tensor, noun: str = "outcomes") -> tuple[Tensor, Tensor]:
    r"""Mean and standard deviation of outcomes, however small or large their spread.

    BoTorch's own default leaves outcomes of a spread below ``1e-8`` as they are. Here
    only outcomes that are equal up to rounding have no spread. Their own size is the
    unit then (one if they are zero): the model knows nothing but their level, and the
    search is pure exploration.

    Args:
        Y: Outcomes, ``t x 1``.
        noun: What they are, for the messages.

    Returns:
        What becomes zero and what becomes one, scalars.

    Raises:
        InputDataError: Outcomes so large or so small, or of such a spread, that a
            variance in their units is not a floating point number.

    Warns:
        InputDataWarning: All outcomes are equal, and there are several.
    """
    largest, spread = Y.abs().max(), Y.max() - Y.min()
    equal = bool(spread <= _ROUNDING * torch.finfo(Y.dtype).eps * largest)
    size = largest.where(largest > 0, 1.0) if equal else spread
    info = torch.finfo(Y.dtype)
    low, high = (info.tiny / info.eps) ** 0.5, (info.max * info.eps) ** 0.5
    if not low <= size.item() <= high:
        raise InputDataError(
            # Without the sign, which is reversed in a run that minimises.
            f"The {noun} differ by {spread.item()} and are up to {largest.item()} in "
            f"size: their variance is not a number of {Y.dtype}. Measure them in "
            f"another unit, in which they differ by {low:.0e} to {high:.0e}, and look "
            "whether one of them is wrong."
        )
    if not equal:
        return Y.mean(), Y.std()
    if len(Y) > 1:
        warnings.warn(
            f"All {len(Y)} {noun} are equal: there is nothing to learn from them yet, "
            "and decisions are pure exploration. Check that they are what you mean to "
            "tell, and that they are not rounded.",
            InputDataWarning,
            stacklevel=2,
        )
    return Y.mean(), size


def scaled_model(
    inputs: Tensor,
    Y: Tensor,
    level: Tensor,
    unit: Tensor,
    Yvar: Tensor | None = None,
    **options: Any,
) -> SingleTaskGP:
    r"""Make a model that is fitted to ``(y - level) / unit`` and predicts ``y``.

    Args:
        inputs: ``t x d``.
        Y: Outcomes, ``t x 1``.
        level: What becomes zero, a scalar.
        unit: What becomes one, a scalar.
        Yvar: The variances of the noise in the outcomes, ``t x 1``; None to learn one
            for all. A millionth of ``unit^2`` at least is taken, in float64.
        options: Further arguments of ``SingleTaskGP``.

    Returns:
        The model. Its ``Standardize`` has learnt nothing from the outcomes.
    """
    # GPyTorch's, which would warn of it; it has one for each floating point type.
    least = cast(float, min_fixed_noise.value(Y.dtype))
    # BoTorch recommends standardised outcomes; a known prior need not fit the data.
    with validate_input_scaling(False):
        model = SingleTaskGP(
            inputs,
            (Y - level) / unit,
            None if Yvar is None else (Yvar / unit.square()).clamp_min(least),
            outcome_transform=None,
            **options,
        )
    transform = Standardize(m=1).to(Y)
    ones = torch.ones_like(transform.stdvs)
    transform.load_state_dict(
        {
            "means": level * ones,
            "stdvs": unit * ones,
            "_stdvs_sq": unit.square() * ones,
            "_is_trained": torch.tensor(True),
        }
    )
    # Not given to the constructor, which would have it learn.
    model.outcome_transform = transform.eval()
    return model
