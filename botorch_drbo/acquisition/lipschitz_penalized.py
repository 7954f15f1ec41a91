"""WDRBO: an upper confidence bound penalised by its steepness in the context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._by_hand import by_hand
from botorch_drbo._validation import check_bounds, check_inside, check_nonnegative
from botorch_drbo.acquisition.base import RobustAcquisitionFunction
from botorch_drbo.contexts import ContextSet
from botorch_drbo.lipschitz import LipschitzConstant, lipschitz_upper_bound
from botorch_drbo.posterior import (
    DEFAULT_MEMORY_BUDGET,
    ContextInterpolant,
    ExactPosterior,
    Path,
    ProductPosterior,
)
from botorch_drbo.posterior.models import without_inference_tensors

_MAX_SUPPORT = 128  # atoms at which the slope is looked at, besides the Sobol set


class LipschitzPenalizedUCB(RobustAcquisitionFunction):
    r"""Wasserstein distributionally robust upper confidence bound (WDRBO).

    .. math::
        \alpha(x) = \sum_i w_i\, s(x, c_i) - \epsilon\, L(x), \qquad
        s = \mu + \sqrt\beta\,\sigma, \qquad
        L(x) = \max_{c \in C} \lVert \nabla_{\tilde c}\, s(x, c) \rVert_2

    No distribution within type-1 Wasserstein distance ``epsilon`` of the reference can
    push the expected score below this value, because an expectation moves by at most
    ``epsilon`` times the Lipschitz constant. So the value is a lower bound of the worst
    case over the Wasserstein ball; with radius 0 it is the plain expectation (ERBO).

    Distances are measured after ``context_bounds`` has been scaled to the unit cube:
    the radius is a share of the width of the context box.

    ``L(x)`` is searched for (``LipschitzConstant`` says how) and so is a lower bound of
    the true maximum; ``lipschitz_upper_bound`` gives a certified one. The penalty is
    differentiable: the optimiser sees its gradient.

    With ``misspecification`` the score is that of ``EnlargedConfidenceUCB``, and its
    slope enters the penalty: WDRBO for a model that may be wrong.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> model = SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True))
        >>> acqf = LipschitzPenalizedUCB(
        ...     model,
        ...     beta=2.25,
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ...     radius=0.1,
        ...     context_bounds=torch.tensor([[0.0], [1.0]], dtype=torch.double),
        ... )
        >>> acqf(torch.rand(5, 1, 1, dtype=torch.double)).shape
        torch.Size([5])

    [Micheli2025wdrbo]_, eq. 13. There beta multiplies sigma itself (their 1.5 is
    ``beta=2.25`` here), and their code treats ``L`` as a constant in the gradient.
    """

    radius: Tensor
    context_bounds: Tensor

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        radius: float | Tensor,
        context_bounds: Tensor,
        *,
        lipschitz: LipschitzConstant | None = None,
        misspecification: float | Tensor = 0.0,
        context_indices: Sequence[int] | None = None,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
        num_pending_contexts: int = 8,
        num_inputs: int | None = None,
        path: Path = "auto",
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        r"""Join a model, a reference distribution and the radius of the ball.

        Args:
            model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
            beta: The squared width of the confidence bound, BoTorch's convention.
            context_set: The reference distribution, inside ``context_bounds``.
            radius: The Wasserstein radius, in units of the normalised context.
            context_bounds: The box ``C`` of possible contexts, ``2 x d_c``.
            lipschitz: How ``L(x)`` is searched for; by default
                ``LipschitzConstant(context_bounds, support=...)`` with the points of
                the context set, or 128 that represent a larger one; in one context
                column, with a kernel that is RBF in it, one step from one start.
            misspecification: By how much the outcome may differ from every function
                that the model can represent, in the units of y; see
                ``EnlargedConfidenceUCB``.
            context_indices: The model's input columns that hold the context; by
                default the last ``d_c``.
            posterior_transform: Makes one output of several, or changes the sign.
            X_pending: Decisions ``m x d_x`` whose outcomes are on the way.
            num_pending_contexts: Contexts that stand for a pending decision's own.
            num_inputs: The columns of ``[x, c]``, for a model that does not tell.
            path: How the posterior is computed; see ``marginal_posterior``.
            memory_budget: Bytes for the temporaries of the posterior.

        Raises:
            InputDataError: A negative beta, misspecification or radius, bounds
                reversed, contexts outside their bounds.
            BotorchTensorDimensionError: Context columns that do not fit the model.
            UnsupportedError: A model that is not single-output.
        """
        super().__init__(
            model,
            beta,
            context_set,
            misspecification=misspecification,
            context_indices=context_indices,
            posterior_transform=posterior_transform,
            X_pending=X_pending,
            num_pending_contexts=num_pending_contexts,
            num_inputs=num_inputs,
            path=path,
            memory_budget=memory_budget,
        )
        bounds = check_bounds(
            context_bounds, "context_bounds", num_columns=context_set.dim
        )
        check_inside(
            context_set.points.to(bounds.device),
            bounds,
            "context_set",
            "context_bounds",
        )
        radius = check_nonnegative(radius, "radius")
        if radius.numel() != 1:
            raise BotorchTensorDimensionError(
                f"`radius` must be a scalar, got shape {tuple(radius.shape)}."
            )
        if lipschitz is not None and not torch.equal(
            lipschitz.bounds, bounds.to(lipschitz.bounds)
        ):
            raise InputDataError(
                f"`lipschitz` searches the box {lipschitz.bounds.tolist()}, but "
                f"`context_bounds` is {bounds.tolist()}. Build it with the same bounds."
            )
        self.register_buffer("radius", radius.detach().clone().reshape(()))
        self.register_buffer("context_bounds", bounds.detach().clone())
        if lipschitz is None:
            lipschitz = self._search(bounds)
        self.lipschitz = without_inference_tensors(lipschitz)

    def _search(self, bounds: Tensor) -> LipschitzConstant:
        """By default; one step on a grid does for scores without kinks in the slope."""
        components = ProductPosterior.components(
            self.model, self.context_indices, self.posterior_transform
        )
        smooth = components is not None and all(
            math.isinf(factor.smoothness) or not factor.weights.any()
            for component in components
            for factor in component.factors
        )
        once = 1 if smooth and bounds.shape[-1] == 1 else None
        return LipschitzConstant(
            bounds,
            support=self.context_set.representatives(_MAX_SUPPORT),
            num_starts=once,
            num_ascent_steps=once,
        )

    def _values(self, X: Tensor) -> Tensor:
        if self.lipschitz.stays_on_grid and not self.radius.requires_grad:
            joined = self._with_contexts(self.lipschitz.candidates, X)
            rows = self._rows_by_hand(X, joined) if self.X_pending is None else None
            if rows is not None and self.observed.smooth:
                chain = partial(self._penalized, joined)
                return by_hand(chain, self._by_autograd, X, rows)
        return self._by_autograd(X)

    def _penalized(self, contexts: Tensor, x: Any, wanted: bool) -> tuple[Any, Any]:
        """A ``Chain``."""
        local = self._hand_interpolant(x, contexts, wanted=wanted)
        bounds = self.lipschitz.bounds
        side = (bounds[1] - bounds[0]).item()
        slopes = local.slopes(self.lipschitz.candidates.to(contexts))[0]  # b x M
        own = local.own_slopes(self.lipschitz.tops(abs(slopes)))
        norms = side * abs(own.value)  # 1 x b x k
        expected = local.expected_bound(self.context_set.weights.to(contexts).numpy())
        radius = self.radius.item()
        values = expected.value - radius * norms[0].max(-1)
        if not wanted:
            return values, None
        steepest = norms == norms.max(-1, keepdims=True)
        share = np.sign(own.value) * steepest / steepest.sum(-1, keepdims=True)
        gradient = expected.pull(np.ones(len(x), x.dtype))
        gradient -= radius * side * own.pull(share)
        return values, local.pull(gradient)

    def _by_autograd(self, X: Tensor) -> Tensor:
        local = self._slope_interpolant(X)
        if local is None or self.X_pending is not None:
            expected = self._expected_score(X)  # b (x S)
        else:  # the support is the first part of what the interpolant is made for
            expected = self._expected_bound(local, self.context_set.weights.to(X))
        return expected - self.radius.to(X) * self._steepest(X, local)

    def lipschitz_constant(self, X: Tensor) -> Tensor:
        r"""The steepest slope ``L(x)`` that was found, differentiable in ``X``.

        Args:
            X: Decisions, ``... x d_x`` (without a q dimension).

        Returns:
            ``L(x)``, shape ``...`` (ensembles: ``... x S``); a lower bound of the
            maximum over all contexts.
        """
        self._refresh()
        inner = self._in_model_dtype(X)
        return self._steepest(inner, self._slope_interpolant(inner)).to(X)

    def _steepest(self, X: Tensor, local: ContextInterpolant | None) -> Tensor:
        # Of the scores as observed: a hallucinated sigma is flatter than the real one.
        score = partial(self._scores, pending=False)
        return self.lipschitz(score, X, partial(self._gradient, X, local))

    def _slope_interpolant(self, X: Tensor) -> ContextInterpolant | None:
        """Moments at ``X`` over the support and the candidates of ``L``."""
        if not isinstance(self.observed, ProductPosterior) or not self.observed.smooth:
            return None
        joined = self._with_contexts(self.lipschitz.candidates, X)
        return self._interpolant(X, joined, pending=False)

    def _gradient(
        self, X: Tensor, local: ContextInterpolant | None, contexts: Tensor
    ) -> Tensor | None:
        """Of the score in the context; None where autograd has to be asked."""
        own = contexts.ndim > 2
        if local is not None and (local.cheap if own else not torch.is_grad_enabled()):
            width = self._width_for(local)
            return local.bound_slopes(contexts, width, self.min_variance)
        if isinstance(self.observed, (ExactPosterior, ProductPosterior)):
            at = self.observed.slopes(X, contexts)
        else:
            return None
        if at is None:
            return None
        sigma = at.variance.clamp_min(self.min_variance).sqrt()
        share = (at.variance > self.min_variance) / (2 * sigma)
        share = self._confidence_width().to(sigma) * share
        return at.mean_slope + share.unsqueeze(-1) * at.variance_slope

    def lipschitz_upper_bound(self) -> Tensor:
        r"""A certified upper bound of ``L(x)`` for all decisions, a scalar.

        Returns:
            ``(norm of the mean + w) L_k`` with ``w`` the ``confidence_width``; see
            ``lipschitz_upper_bound``.

        Raises:
            UnsupportedError: A model whose mean, kernel or transforms are not covered,
                or a posterior transform.
        """
        if not isinstance(self.model, SingleTaskGP) or self.posterior_transform:
            raise UnsupportedError(
                "The certified bound needs a SingleTaskGP without posterior transform, "
                f"got {type(self.model).__name__} and {self.posterior_transform}."
            )
        return lipschitz_upper_bound(
            self.model,
            self.confidence_width().square(),
            self.context_indices,
            self.context_bounds,
        )
