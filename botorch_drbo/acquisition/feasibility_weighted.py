"""Any acquisition function, weighted by the probability of feasibility."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.utils.safe_math import log_fatplus
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_drbo._validation import check_finite, check_positive, check_scalar
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.acquisition.feasibility import RobustFeasibility
from botorch_drbo.posterior.freshness import Snapshot
from botorch_drbo.posterior.models import some_inputs
from botorch_drbo.posterior.prior import prior_variance

_POWER = 20.0  # of a share of the level: nine tenths of it count a tenth
_SMOOTHING = 1e-6  # in prior standard deviations: BoTorch's TAU_RELU


class FeasibilityWeighted(DecisionAcquisitionFunction):
    r"""An acquisition function, weighted by the robust probability of being feasible.

    .. math::
        \alpha_w(x) = \log \pi(x) + \begin{cases}
            \alpha(x) & \text{if } \alpha \text{ is a logarithm} \\
            \log \big( \alpha(x) - r \big)_+ & \text{otherwise}
        \end{cases}

    with ``pi`` from ``RobustFeasibility`` and a reference ``r``, the value of an
    infeasible outcome. The positive part is BoTorch's smooth ``fatplus``
    [Ament2023logei]_, increasing and positive everywhere.

    *Why not the product with the value.* A confidence bound may be negative, and
    ``alpha pi`` would then be larger for less feasible decisions. A probability should
    weight a gain. If infeasible outcomes are worth ``r``, a decision is worth ``pi
    alpha + (1 - pi) r = r + pi (alpha - r)``, and ``alpha_w`` is the logarithm of its
    gain over ``r``, as the expected improvement over an incumbent ``r`` is weighted in
    [Gardner2014constraints]_. With ``h`` the smooth positive part, the slopes of ``log
    pi + log h(alpha - r)`` are ``1 / pi > 0`` in ``pi`` and ``h' / h > 0`` in
    ``alpha``, whatever the signs of ``alpha`` and ``alpha - r``. So

    - of two decisions with equal values, the more feasible one is better;
    - of two equally feasible decisions, the one with the larger value is better; if all
      are certainly feasible, the maximiser is that of ``alpha``;
    - in other units, ``a alpha + b`` and ``a r + b``, the maximiser is the same.

    If the base function is the logarithm of an expected improvement, it already
    contains ``r``.

    *Which reference.* The best robust value among decisions known to be feasible; if
    there is none yet, the lowest value of any decision tried, so that every other
    decision is a gain and feasibility decides.

    *With a level*, that of a chance constraint ``pi(x) >= level``, the weight is

    .. math:: \min\{ \pi(x) / \ell,\ 1 \}^{20}

    instead of ``pi``. If a decision is known to be feasible with probability .6 and .8
    is required, it is useless however large its gain, and trying it teaches nothing;
    the plain weight would still favour it. A decision whose feasibility is uncertain,
    and whose probability is therefore intermediate, keeps a weight on a logarithmic
    scale. Above the level the order is that of ``alpha``.

    To find the best decision that meets a chance constraint, see ``RobustFeasibility``.

    Args:
        acq_function: An acquisition function of decisions, ``b x 1 x d_x``: ours, or
            any of a model of decisions alone. Its pending decisions stay.
        feasibility: The robust probability of being feasible.
        reference: ``r``, in the units of the values; None for a logarithm.
        level: The probability that is required; None to weight by the probability
            itself.

    Raises:
        InputDataError: Arguments of other types, a level that is not a probability, a
            reference for a logarithm, or no reference for another function.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import (
        ...     DistributionallyRobustUCB,
        ...     FeasibilityWeighted,
        ...     RobustFeasibility,
        ... )
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> contexts, ball = ContextSet.empirical(Z[:, 1:]), TotalVariation(0.2)
        >>> feasible = RobustFeasibility(
        ...     SingleTaskGP(Z, 1 - Z.sum(dim=-1, keepdim=True)), contexts, ball
        ... )
        >>> ucb = DistributionallyRobustUCB(
        ...     SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True)),
        ...     2.25,
        ...     contexts,
        ...     UncertaintyObjective(ball),
        ... )
        >>> acqf = FeasibilityWeighted(ucb, feasible, reference=0.3)
        >>> acqf(torch.rand(5, 1, 1, dtype=torch.double)).shape
        torch.Size([5])
    """

    _log = True
    reference: Tensor | None

    def __init__(
        self,
        acq_function: AcquisitionFunction,
        feasibility: RobustFeasibility,
        *,
        reference: float | Tensor | None = None,
        level: float | None = None,
    ) -> None:
        if not isinstance(acq_function, AcquisitionFunction):
            raise InputDataError(
                "`acq_function` must be an AcquisitionFunction, got "
                f"{type(acq_function).__name__}."
            )
        if not isinstance(feasibility, RobustFeasibility):
            raise InputDataError(
                "`feasibility` must be a RobustFeasibility, got "
                f"{type(feasibility).__name__}."
            )
        super().__init__(
            feasibility.model,
            feasibility.context_set,
            context_indices=feasibility.context_indices,
            posterior_transform=None,
            num_inputs=feasibility.num_joint,
        )
        self.acq_function, self.feasibility = acq_function, feasibility
        self.register_buffer("reference", _as_reference(acq_function, reference))
        if level is not None and not 0.0 < check_positive(level, "level") <= 1.0:
            raise InputDataError(
                f"`level` must be a probability in (0, 1], got {level!r}."
            )
        self.level = level
        self._find_smoothing()
        self._X_pending = getattr(acq_function, "X_pending", None)

    def _find_smoothing(self) -> None:
        """The width of the smooth positive part, in units of the outcome."""
        model = self.acq_function.model
        known = some_inputs(model) is not None
        variance = prior_variance(model) if known else 0.0
        # A function that is certain has no scale of its own.
        self.smoothing = _SMOOTHING * (math.sqrt(variance) if variance > 0.0 else 1.0)
        self._made_of = Snapshot(model)

    def _condition(self, pending: Tensor | None) -> None:
        self.acq_function.set_X_pending(pending)

    # BoTorch types its decorator for the base class only.
    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate the weighted acquisition function.

        Args:
            X: Decisions, ``b x 1 x d_x``; a batch of several is chosen one by one
                (``sequential=True``).

        Returns:
            One value per decision, ``b``; higher is better.

        Raises:
            BotorchTensorDimensionError: Other columns.
            UnsupportedError: Several decisions in a batch.
        """
        self._check_single(X)
        return self._weighted(X, self.acq_function, self.feasibility)

    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def ranking(self, X: Tensor) -> Tensor:
        r"""Evaluate a cheap ranking of decisions, used to choose starting points.

        Args:
            X: Decisions, ``b x 1 x d_x``.

        Returns:
            Numbers in nearly the order of the values, ``b``, without a gradient.
        """
        self._check_single(X)
        base = self.acq_function
        if isinstance(base, DecisionAcquisitionFunction):
            base = base.ranking
        with torch.no_grad():
            return self._weighted(X, base, self.feasibility.ranking)

    def _weighted(
        self,
        X: Tensor,
        value: Callable[[Tensor], Tensor],
        log_probability: Callable[[Tensor], Tensor],
    ) -> Tensor:
        found = value(X)
        if self.reference is not None:
            if not self._made_of.same():
                self._find_smoothing()
            found = log_fatplus(found - self.reference.to(found), tau=self.smoothing)
        log = log_probability(X).to(found)
        if self.level is not None:
            log = _POWER * (log - math.log(self.level)).clamp_max(0.0)
        return found + log


def _as_reference(
    acq_function: AcquisitionFunction, reference: float | Tensor | None
) -> Tensor | None:
    name = type(acq_function).__name__
    if acq_function._log:
        if reference is not None:
            raise InputDataError(
                f"The values of {name} are logarithms, which need no `reference`, got "
                f"{reference}. Leave it out."
            )
        return None
    if reference is None:
        raise InputDataError(
            f"The values of {name} may be negative, and a probability weighs gains. "
            "Pass `reference`, what an infeasible outcome is worth: the best value "
            "among decisions known to be feasible, or a low one while there is none."
        )
    if not isinstance(reference, Tensor):
        reference = torch.tensor(float(reference), dtype=torch.double)
    return check_scalar(check_finite(reference, "reference"), "reference")
