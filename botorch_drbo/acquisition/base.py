"""What all robust acquisition functions share: the checks, the posterior, pending."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, cast, get_args

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models.model import Model
from botorch.utils.transforms import is_ensemble, t_batch_mode_transform
from torch import Tensor
from torch.nn import Module

from botorch_drbo import _arrays
from botorch_drbo._validation import check_count, check_nonnegative
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.acquisition.freshness import Snapshot
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior import (
    DEFAULT_MEMORY_BUDGET,
    ContextInterpolant,
    Path,
    ProductPosterior,
    marginal_posterior,
    noise_precision,
    prior_variance,
)
from botorch_drbo.posterior.hand import HandInterpolant
from botorch_drbo.posterior.interpolant import Seen
from botorch_drbo.posterior.models import some_inputs

_NEGLIGIBLE = 1e-12  # of the prior variance: less counts as this, without slope


class RobustAcquisitionFunction(DecisionAcquisitionFunction, ABC):
    r"""A score of decision and context, collapsed to one number per decision.

    The score is the upper confidence bound ``mu + w sigma`` at each context, of the
    width ``w = sqrt(beta)``; with ``misspecification`` it is enlarged, see
    ``confidence_width``.
    ``optimize_acqf`` sees decisions only: ``X`` is ``b x 1 x d_x``.
    ``OverJointInputs`` makes a function of ``[x, c]`` of it.

    *Ensembles.* The robust value is taken for each model first, the mean over models
    last: the minimum over an ambiguity set and the mean do not commute.

    *Pending decisions.* Their contexts have not come yet. Each is joined with
    ``num_pending_contexts`` contexts that represent the context set, and these joint
    inputs are hallucinated: the posterior mean stays as it is, the posterior variance
    becomes what it would be had they been observed [Desautels2014bucb]_. So the
    confidence bound shrinks around a pending decision, for all contexts, and the next
    decision goes elsewhere. Where nothing is left to explore (``beta`` zero, or a model
    that is certain) the next decision may lie next to the pending one.

    *Batches* are chosen one decision at a time, each with the earlier ones pending
    (``optimize_acqf(..., q=q, sequential=True)``). So the value of a batch is

    .. math:: \alpha(x_1, \dots, x_q) = \sum_{j=1}^q
        \alpha(x_j \mid x_1, \dots, x_{j-1} \text{ pending}),

    the sum of what sequential maximisation makes large, and it depends on the order.

    *What is noticed.* At the start of each call all parameters and buffers of the model
    and of the posterior transform, given noise, and ``misspecification`` are compared
    with what the cached factors were made of (with pending decisions also the context
    set); if any was trained, loaded from a file or filled in place, the factors are
    computed again. ``beta`` is read at each call. Not noticed are other training data
    (make a new acquisition function), an ``offset`` of the transform that is a plain
    number, and whatever a model keeps as a plain number. On a GPU values are not
    compared, because that would wait for the device at each call: there a change made
    through ``.data``, as GPyTorch's ``initialize`` makes it, is not noticed.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution of the context.
        misspecification: By how much the outcome may differ from every function that
            the model can represent, in the units of y.
        context_indices: The model's input columns that hold the context; by default
            the last ``d_c``.
        posterior_transform: Makes one output of several, or changes the sign.
        X_pending: Decisions ``m x d_x`` whose outcomes are on the way.
        num_pending_contexts: Contexts that stand for each pending decision's own.
        num_inputs: The columns of ``[x, c]``, for a model that does not tell.
        path: How the posterior is computed; see ``marginal_posterior``.
        memory_budget: Bytes for the temporaries of the posterior.
    """

    beta: Tensor
    misspecification: Tensor

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        *,
        misspecification: float | Tensor = 0.0,
        context_indices: Sequence[int] | None = None,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
        num_pending_contexts: int = 8,
        num_inputs: int | None = None,
        path: Path = "auto",
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        r"""Check the arguments and prepare the posterior.

        Args:
            model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
            beta: The squared width of the confidence bound.
            context_set: The reference distribution of the context.
            misspecification: How wrong the model may be, in the units of y.
            context_indices: The model's input columns that hold the context.
            posterior_transform: Makes one output of several, or changes the sign.
            X_pending: Decisions ``m x d_x`` whose outcomes are on the way.
            num_pending_contexts: Contexts that stand for a pending decision's own.
            num_inputs: The columns of ``[x, c]``, for a model that does not tell.
            path: How the posterior is computed; see ``marginal_posterior``.
            memory_budget: Bytes for the temporaries of the posterior.

        Raises:
            InputDataError: A negative beta or misspecification, or a context set that
                is not one.
            BotorchTensorDimensionError: Context columns that do not fit the model.
            UnsupportedError: A model that is not single-output, or misspecification
                with a model or a transform whose noise is not known.
        """
        super().__init__(
            model,
            context_set,
            context_indices=context_indices,
            posterior_transform=posterior_transform,
            num_inputs=num_inputs,
        )
        beta = _check_scalar(beta, "beta")
        misspecification = _check_scalar(misspecification, "misspecification")
        if path not in get_args(Path):
            raise InputDataError(
                f"`path` must be one of {get_args(Path)}, got {path!r}."
            )
        check_count(memory_budget, "memory_budget")
        check_count(num_pending_contexts, "num_pending_contexts")
        self.register_buffer("beta", beta)
        self.register_buffer("misspecification", misspecification)
        self.num_pending_contexts = num_pending_contexts
        self.path = path
        self.memory_budget = memory_budget
        self.ensemble = is_ensemble(self.model)
        self._joined: Joined | None = None
        self._number: tuple[tuple[float, float], float] | None = None
        self.set_X_pending(X_pending)

    def _condition(self, pending: Tensor | None) -> None:
        options = {
            "posterior_transform": self.posterior_transform,
            "path": self.path,
            "memory_budget": self.memory_budget,
        }
        made_of: list[Module] = [self.model]
        if self.posterior_transform is not None:
            made_of.append(self.posterior_transform)
        with torch.inference_mode(False):  # it is kept
            self._find_precision()
            self.observed = self.posterior = marginal_posterior(
                self.model, self.context_indices, **options
            )
            if pending is not None:
                made_of.append(self.context_set)
                contexts = self.context_set.representatives(self.num_pending_contexts)
                joint = self.observed.join(pending, contexts.to(pending))
                self.posterior = marginal_posterior(
                    self.model,
                    self.context_indices,
                    pending=joint.flatten(0, 1),  # m * k x d
                    **options,
                )
            self.min_variance = self._find_min_variance()
            self._made_of = Snapshot(*made_of)

    def _find_precision(self) -> None:
        """Read the model's noise, if misspecification makes it count."""
        self._misspecification = Seen.of(self.misspecification)
        self._precision: Tensor | None = None
        if self.misspecification != 0.0:  # otherwise no model is refused
            precision = noise_precision(self.model)  # m, or S of an ensemble
            if not self.ensemble:
                used = _used_outputs(self.posterior_transform)
                precision = precision[used].sum()
            self._precision = precision.detach()

    def scores(
        self, X: Tensor, contexts: Tensor | None = None, *, pending: bool = True
    ) -> Tensor:
        r"""The upper confidence bound at each decision and context.

        .. math:: s(x, c) = \mu(x, c) + w\, \sigma(x, c)

        with ``w`` the ``confidence_width``.

        Args:
            X: Decisions, ``... x d_x`` (without a q dimension).
            contexts: ``n x d_c`` or ``... x n x d_c``; by default the context set.
            pending: Whether to count the pending decisions as observed.

        Returns:
            Scores ``... x n``; with an ensemble of ``S`` models ``... x S x n``.
        """
        self._refresh()
        contexts = self.context_set.points if contexts is None else contexts
        return self._scores(X, contexts, pending=pending)

    def _scores(self, X: Tensor, contexts: Tensor, *, pending: bool = True) -> Tensor:
        local = self._interpolant(X, contexts, pending=pending)
        if local is not None:
            width = self._width_for(local)
            return local.confidence_bounds(width, self.min_variance).to(X)
        mean, width = self._mean_and_width(X, contexts, pending=pending)
        return mean + width

    def _expected_score(self, X: Tensor) -> Tensor:
        """The reference distribution's mean of ``scores``, ``...`` or ``... x S``."""
        weights = self.context_set.weights.to(X)
        local = self._interpolant(X, self.context_set.points)
        if local is None:
            return self._scores(X, self.context_set.points) @ weights
        return self._expected_bound(local, weights)

    def _expected_bound(self, local: ContextInterpolant, weights: Tensor) -> Tensor:
        inner = weights.to(local.at_skeleton)
        found = local.expected_bound(inner, self._width_for(local), self.min_variance)
        return found.to(weights)

    def _width_for(self, local: ContextInterpolant) -> float | Tensor:
        """The confidence width as a number, unless that would wait for a device."""
        number = self._number_width()
        return number.to(local.at_skeleton) if isinstance(number, Tensor) else number

    def _number_width(self) -> float | Tensor:
        if not _arrays.on_cpu(self.beta):
            return self._confidence_width()
        parts = self.beta.item(), self._enlargement().item()
        if self._number is None or self._number[0] != parts:
            self._number = parts, self._confidence_width().item()
        return self._number[1]

    def _width_has_graph(self) -> bool:
        """Whether gradients in the width are wanted: only autograd finds these."""
        widths = self.beta, self.misspecification
        differentiable = any(width.requires_grad for width in widths)
        return differentiable and torch.is_grad_enabled()

    def _interpolant(
        self, X: Tensor, contexts: Tensor, *, pending: bool = True
    ) -> ContextInterpolant | None:
        """Moments at ``X`` as functions of the context, where there is a product path.

        Args:
            X: Decisions, ``... x d_x``.
            contexts: ``n x d_c``, or ``... x n x d_c``.
            pending: Whether to count the pending decisions as observed.
        """
        posterior = self.posterior if pending else self.observed
        if not isinstance(posterior, ProductPosterior) or self._width_has_graph():
            return None
        inner = self._in_model_dtype(X)
        return posterior.interpolant(inner, contexts.to(inner))

    def _confidence_bounds(
        self, X: Tensor, contexts: Tensor, *, pending: bool = True
    ) -> tuple[Tensor, Tensor]:
        """The lower and the upper bound, each ``... x n`` or ``... x S x n``."""
        mean, width = self._mean_and_width(X, contexts, pending=pending)
        return mean - width, mean + width

    def _mean_and_width(
        self, X: Tensor, contexts: Tensor, *, pending: bool = True
    ) -> tuple[Tensor, Tensor]:
        posterior = self.posterior if pending else self.observed
        inner = self._in_model_dtype(X)
        moments = posterior(inner, contexts.to(inner))
        mean, variance = (moment.to(X) for moment in moments)
        return mean, self._width(variance)

    def _in_model_dtype(self, X: Tensor) -> Tensor:
        """Casting the module instead would round the user's model for good."""
        held = chain(self.model.parameters(), self.model.buffers())
        dtypes = (tensor.dtype for tensor in held if tensor.is_floating_point())
        return X.to(next(dtypes, X.dtype))

    def _with_contexts(self, others: Tensor, X: Tensor) -> Tensor:
        """The context set and others, put together again when one has changed."""
        parts = self.context_set.points, others
        if self._joined is None or not self._joined.holds(*parts):
            with torch.inference_mode(False):  # it is kept
                points = torch.cat([part.to(parts[0]) for part in parts])
            self._joined = Joined.of(parts, points)
        return self._joined.whole.to(X)

    def _rows_by_hand(self, X: Tensor, contexts: Tensor) -> int | None:
        """How many decisions to take at a time by hand; None if autograd has to."""
        if not isinstance(self.posterior, ProductPosterior) or self._width_has_graph():
            return None
        return self.posterior.rows_by_hand(X, contexts)

    def _hand_interpolant(
        self, x: Any, contexts: Tensor, *, wanted: bool
    ) -> HandInterpolant:
        assert isinstance(self.posterior, ProductPosterior)
        width = float(self._number_width())
        return self.posterior.by_hand(
            x, contexts, wanted=wanted, width=width, min_variance=self.min_variance
        )

    def _refresh(self) -> None:
        """Compute again what was made of numbers that have changed since."""
        if not self._made_of.same():
            self._condition(self.X_pending)
        elif not self._misspecification.same(self.misspecification):
            with torch.inference_mode(False):  # it is kept
                self._find_precision()

    def _width(self, variance: Tensor) -> Tensor:
        """Half the interval, ``w sigma``; tiny variances have no gradient."""
        factor = self._confidence_width().to(variance)
        if self.ensemble:
            factor = factor.unsqueeze(-1)  # (S) x 1
        return factor * variance.clamp_min(self.min_variance).sqrt()

    def confidence_width(self) -> Tensor:
        r"""By how many standard deviations the score lies above the mean.

        .. math:: w = \sqrt\beta + \epsilon\, \Big(\sum_{i=1}^t
            \frac{1}{\sigma_i^2}\Big)^{1/2}

        with :math:`\epsilon` the misspecification and :math:`\sigma_i^2` the noise
        variance of outcome ``i`` in the model; see ``EnlargedConfidenceUCB``.

        Returns:
            The width, a scalar; with an ensemble of ``S`` models and misspecification
            one for each model, ``S``.
        """
        self._refresh()
        return self._confidence_width()

    def _find_min_variance(self) -> float:
        """Below it variances are rounding errors, whatever the units of y."""
        dtypes = (parameter.dtype for parameter in self.model.parameters())
        dtype = next(dtypes, torch.double)
        at = None
        if some_inputs(self.model) is None:
            at = torch.zeros(1, self.num_joint, dtype=dtype)
        scale = prior_variance(self.model, self.posterior_transform, at=at)
        # A certain model has no scale.
        return max(_NEGLIGIBLE * scale, torch.finfo(dtype).tiny)

    def _confidence_width(self) -> Tensor:
        return self.beta.sqrt() + self._enlargement().to(self.beta)

    def _enlargement(self) -> Tensor:
        """What misspecification adds to the width, a scalar or ``S``."""
        if self._precision is None:
            return torch.zeros_like(self.misspecification)
        return self.misspecification.to(self._precision) * self._precision.sqrt()

    # BoTorch types its decorator for the base class only.
    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate the acquisition function.

        Args:
            X: Decisions, ``b x 1 x d_x``; or one batch of several, ``1 x q x d_x``,
                without a gradient.

        Returns:
            One value per decision, ``b``; higher is better. Of a batch the sum of what
            each decision was worth when the earlier ones were pending.

        Raises:
            BotorchTensorDimensionError: Other columns.
            UnsupportedError: Several batches, or gradients, of several decisions.
        """
        self._check_decisions(X)
        if X.shape[-2] != 1:
            return self._one_after_another(X)
        if self.beta.device != X.device:
            self.to(X.device)
        self._refresh()
        values = self._values(self._in_model_dtype(X.squeeze(-2))).to(X)  # b (x S)
        return values.mean(-1) if self.ensemble else values

    def _one_after_another(self, X: Tensor) -> Tensor:
        """The value of one batch, ``... x q x d_x`` to ``...``, all ones."""
        wants_gradient = X.requires_grad and torch.is_grad_enabled()
        if X.shape[:-2].numel() != 1 or X.shape[-2] == 0 or wants_gradient:
            raise UnsupportedError(
                f"{type(self).__name__} is maximised one decision at a time, got `X` "
                f"of shape {tuple(X.shape)} with q = {X.shape[-2]}. Pass "
                "`sequential=True` to `optimize_acqf`; only the value of a single "
                "batch can be asked for, without a gradient."
            )
        rows, given = X.reshape(-1, X.shape[-1]), self.X_pending
        earlier = rows[:0] if given is None else given.to(rows)
        try:
            total = X.new_zeros(X.shape[:-2])
            for number, row in enumerate(rows):
                self.set_X_pending(torch.cat([earlier, rows[:number]]))
                total = total + self(row.unsqueeze(0))
        finally:
            self.set_X_pending(given)
        return total

    @abstractmethod
    def _values(self, X: Tensor) -> Tensor:
        """The robust value of decisions ``b x d_x``: ``b``, ensembles ``b x S``."""


def _check_scalar(value: float | Tensor, name: str) -> Tensor:
    tensor = check_nonnegative(value, name)
    if tensor.numel() != 1:
        raise BotorchTensorDimensionError(
            f"`{name}` must be a scalar, got shape {tuple(tensor.shape)}."
        )
    return tensor.detach().clone().reshape(())


def _used_outputs(transform: PosteriorTransform | None) -> Tensor | slice:
    """The outputs that a linear transform looks at."""
    if transform is None:
        return slice(None)
    if isinstance(transform, ScalarizedPosteriorTransform):
        return cast(Tensor, transform.weights) != 0
    raise UnsupportedError(
        "`misspecification` needs a ScalarizedPosteriorTransform or none, got "
        f"{type(transform).__name__}: only a weighted sum of outputs has a noise that "
        "follows from theirs."
    )


class Joined(NamedTuple):
    """Tensors put together, and what they were made of."""

    parts: tuple[Seen, ...]
    whole: Tensor

    @classmethod
    def of(cls, parts: tuple[Tensor, ...], whole: Tensor) -> Joined:
        """Remember what a tensor was made of."""
        return cls(tuple(map(Seen.of, parts)), whole)

    def holds(self, *parts: Tensor) -> bool:
        """Whether it was made of these tensors, unchanged since."""
        return all(map(Seen.same, self.parts, parts))
