"""What all robust acquisition functions share: the checks, the posterior, pending."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, cast, get_args

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
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

from botorch_drbo import _arrays
from botorch_drbo._validation import check_count, check_nonnegative, check_points
from botorch_drbo.acquisition.inputs import (
    check_context_set,
    check_decision_columns,
    context_columns,
    num_inputs,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior import (
    DEFAULT_MEMORY_BUDGET,
    ContextInterpolant,
    Path,
    ProductPosterior,
    marginal_posterior,
    noise_precision,
)
from botorch_drbo.posterior.hand import HandInterpolant
from botorch_drbo.posterior.interpolant import Seen, version_of

MIN_VARIANCE = 1e-12
# Of pending inputs, as a share of the model's noise: with none matrices are singular.
_NEARLY_NO_NOISE = 1e-8


class RobustAcquisitionFunction(AcquisitionFunction, ABC):
    r"""A score of decision and context, collapsed to one number per decision.

    The score is the upper confidence bound ``mu + w sigma`` at each context, of the
    width ``w = sqrt(beta)``; with ``misspecification`` it is enlarged, see
    ``confidence_width``.
    ``optimize_acqf`` sees decisions only: ``X`` is ``b x 1 x d_x``.

    *Ensembles.* The robust value is taken for each model first, the mean over models
    last: the minimum over an ambiguity set and the mean do not commute.

    *Pending decisions.* Their contexts have not come yet. Each is joined with
    ``num_pending_contexts`` contexts that represent the context set, and these joint
    inputs are hallucinated: the posterior mean stays as it is, the posterior variance
    becomes what it would be had they been observed [Desautels2014bucb]_. So the
    confidence bound shrinks around a pending decision, for all contexts, and the next
    decision goes elsewhere. But where the noise is large against what is still unknown,
    one more observation hardly shrinks it, and the next decision would be the pending
    one again. It is worth nothing then: the same value cannot be found twice. So with
    decisions pending there is added

    .. math:: \kappa\, w\, \bar\sigma(x)\, \big( 1 + \ln s(x) - s(x) \big), \qquad
        s(x) = \frac{\bar\sigma(x \mid f \text{ at the pending inputs})}{\bar\sigma(x)}

    with :math:`\bar\sigma` the root mean square of the posterior deviation at the
    representative contexts, and :math:`s` the share of it that would be left if ``f``
    itself were known at the pending inputs, without noise. It falls to minus infinity
    at a pending decision, is of second order away from them (:math:`s \to 1`), and
    knows no units but those of the score; ``repulsion`` is :math:`\kappa`. Without
    exploration (``beta`` zero) there is no repulsion.

    New hyper-parameters of the model (trained, or loaded from a file) are noticed at
    the next call, and the cached factors computed again; for new training data make a
    new acquisition function. On a GPU values are not compared, because that would wait
    for the device at each call: there a change made through ``.data``, as GPyTorch's
    ``initialize`` makes it, is not noticed.

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
        path: How the posterior is computed; see ``marginal_posterior``.
        memory_budget: Bytes for the temporaries of the posterior.
    """

    beta: Tensor
    misspecification: Tensor
    repulsion: float = 0.05
    """The weight of what repels from pending decisions where the bonus does not."""

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
            path: How the posterior is computed; see ``marginal_posterior``.
            memory_budget: Bytes for the temporaries of the posterior.

        Raises:
            InputDataError: A negative beta or misspecification, or a context set that
                is not one.
            BotorchTensorDimensionError: Context columns that do not fit the model.
            UnsupportedError: A model that is not single-output, or misspecification
                with a model or a transform whose noise is not known.
        """
        super().__init__(model=model)
        check_context_set(context_set)
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
        self.context_set = context_set
        self.num_joint = num_inputs(model)
        self.context_indices = context_columns(
            context_indices, self.num_joint, context_set.dim
        )
        self.posterior_transform = posterior_transform
        self.num_pending_contexts = num_pending_contexts
        self.path = path
        self.memory_budget = memory_budget
        self.ensemble = is_ensemble(model)
        self._joined: Joined | None = None
        self._number: tuple[tuple[float, float], float] | None = None
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        r"""Tell the acquisition function which decisions are being evaluated.

        Args:
            X_pending: Decisions ``m x d_x``, or None for none.

        Raises:
            BotorchTensorDimensionError: A wrong number of columns.
            InputDataError: NaN, infinite or integer entries.
        """
        if isinstance(X_pending, Tensor) and X_pending.numel() == 0:
            X_pending = None
        if X_pending is not None:
            d_x = self.num_joint - len(self.context_indices)
            check_points(X_pending, "X_pending", num_columns=d_x)
        super().set_X_pending(X_pending)
        options = {
            "posterior_transform": self.posterior_transform,
            "path": self.path,
            "memory_budget": self.memory_budget,
        }
        self.observed = marginal_posterior(self.model, self.context_indices, **options)
        self.posterior = self._resolved = self.observed
        if self.X_pending is not None:
            contexts = self._representatives().to(self.X_pending)
            pending = self.observed.join(self.X_pending, contexts)
            self.posterior, self._resolved = (
                marginal_posterior(
                    self.model,
                    self.context_indices,
                    pending=pending.flatten(0, 1),  # m * k x d
                    pending_noise=noise,
                    **options,
                )
                for noise in (1.0, _NEARLY_NO_NOISE)
            )
        self._enlargement = self._find_enlargement()
        self._seen = _Hyperparameters(self.model)

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
        contexts = self.context_set.points if contexts is None else contexts
        local = self._interpolant(X, contexts, pending=pending)
        if local is not None:
            width = self._width_for(local)
            return local.confidence_bounds(width, MIN_VARIANCE).to(X)
        mean, width = self._mean_and_width(X, contexts, pending=pending)
        return mean + width

    def _expected_score(self, X: Tensor) -> Tensor:
        """The reference distribution's mean of ``scores``, ``...`` or ``... x S``."""
        weights = self.context_set.weights.to(X)
        local = self._interpolant(X, self.context_set.points)
        if local is None:
            return self.scores(X) @ weights
        return self._expected_bound(local, weights)

    def _expected_bound(self, local: ContextInterpolant, weights: Tensor) -> Tensor:
        inner = weights.to(local.at_skeleton)
        found = local.expected_bound(inner, self._width_for(local), MIN_VARIANCE)
        return found.to(weights)

    def _width_for(self, local: ContextInterpolant) -> float | Tensor:
        """The confidence width as a number, unless that would wait for a device."""
        number = self._number_width()
        return number.to(local.at_skeleton) if isinstance(number, Tensor) else number

    def _number_width(self) -> float | Tensor:
        if not _arrays.on_cpu(self.beta):
            return self.confidence_width()
        parts = self.beta.item(), self._enlargement.item()
        if self._number is None or self._number[0] != parts:
            self._number = parts, self.confidence_width().item()
        return self._number[1]

    def _width_has_graph(self) -> bool:
        """Whether gradients in the width are wanted: only autograd finds these."""
        differentiable = self.beta.requires_grad or self._enlargement.requires_grad
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
        self._refresh()
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
        self._refresh()
        posterior = self.posterior if pending else self.observed
        inner = self._in_model_dtype(X)
        moments = posterior(inner, contexts.to(inner))
        mean, variance = (moment.to(X) for moment in moments)
        return mean, self._width(variance)

    def _in_model_dtype(self, X: Tensor) -> Tensor:
        """Casting the module instead would round the user's model for good."""
        parameters = self._seen.parameters
        return X.to(parameters[0].dtype) if parameters else X

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
        self._refresh()
        if not isinstance(self.posterior, ProductPosterior) or self._width_has_graph():
            return None
        return self.posterior.rows_by_hand(X, contexts)

    def _hand_interpolant(
        self, x: Any, contexts: Tensor, *, wanted: bool
    ) -> HandInterpolant:
        assert isinstance(self.posterior, ProductPosterior)
        width = float(self._number_width())
        return self.posterior.by_hand(
            x, contexts, wanted=wanted, width=width, min_variance=MIN_VARIANCE
        )

    def _refresh(self) -> None:
        """Compute the posterior again when the model was trained or loaded."""
        if not self._seen.same():
            with torch.inference_mode(False):  # it is kept
                self.set_X_pending(self.X_pending)

    def _width(self, variance: Tensor) -> Tensor:
        """Half the interval, ``w sigma``; tiny variances have no gradient."""
        factor = self.confidence_width().to(variance)
        if self.ensemble:
            factor = factor.unsqueeze(-1)  # (S) x 1
        return factor * variance.clamp_min(MIN_VARIANCE).sqrt()

    def _repulsion(self, X: Tensor) -> Tensor:
        """What keeps ``b x d_x`` decisions from pending ones: ``b``, or ``b x S``."""
        contexts = self._representatives().to(X)
        before, after = (
            posterior(X, contexts)[1].mean(-1).clamp_min(torch.finfo(X.dtype).tiny)
            for posterior in (self.observed, self._resolved)
        )
        share = (after / before).clamp(_NEARLY_NO_NOISE, 1.0).sqrt()
        bonus = self.confidence_width().to(X) * before.sqrt()
        return self.repulsion * bonus * (1.0 + share.log() - share)

    def _representatives(self) -> Tensor:
        """The contexts that stand for those of a pending decision, ``k x d_c``."""
        return self.context_set.representatives(self.num_pending_contexts)

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
        return self.beta.sqrt() + self._enlargement.to(self.beta)

    def _find_enlargement(self) -> Tensor:
        """What misspecification adds to the width, a scalar or ``S``."""
        if self.misspecification == 0.0:  # then no model is refused
            return torch.zeros_like(self.misspecification)
        precision = noise_precision(self.model)  # m, or S of an ensemble
        if not self.ensemble:
            precision = precision[_used_outputs(self.posterior_transform)].sum()
        return self.misspecification.to(precision) * precision.sqrt()

    # BoTorch types its decorator for the base class only.
    @t_batch_mode_transform(expected_q=1)  # pyright: ignore[reportArgumentType]
    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate the acquisition function.

        Args:
            X: Decisions, ``b x 1 x d_x``.

        Returns:
            One value per decision, ``b``; higher is better.
        """
        check_decision_columns(X, self.num_joint - len(self.context_indices))
        if self.beta.device != X.device:
            self.to(X.device)
        inner = self._in_model_dtype(X.squeeze(-2))
        values = self._values(inner).to(X)  # b (x S)
        if self.X_pending is not None:
            values = values + self._repulsion(inner).to(X)
        return values.mean(-1) if self.ensemble else values

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


class _Hyperparameters:
    """All hyper-parameters of a model, to find out whether they have changed."""

    def __init__(self, model: Model) -> None:
        # Where each parameter and each part of the model is looked up. To go through
        # these is faster than through the model, by far.
        self.places = [
            (members, name, member)
            for part in model.modules()
            for members in (part._parameters, part._modules)
            for name, member in members.items()
        ]
        self.parameters = list(model.parameters())
        self.versions = [version_of(parameter) for parameter in self.parameters]
        self.addresses = [parameter.data_ptr() for parameter in self.parameters]
        self.values = _in_one_vector(self.parameters)

    def same(self) -> bool:
        """Values on the CPU, where GPyTorch's changes behind autograd's back show."""
        if not all(places.get(name) is member for places, name, member in self.places):
            return False
        if all(map(_arrays.on_cpu, [self.values, *self.parameters])):
            return torch.equal(self.values, _in_one_vector(self.parameters))
        return self.versions == [
            version_of(parameter) for parameter in self.parameters
        ] and self.addresses == [parameter.data_ptr() for parameter in self.parameters]


def _in_one_vector(parameters: Sequence[Tensor]) -> Tensor:
    flat = [parameter.detach().flatten() for parameter in parameters]
    return torch.cat(flat) if flat else torch.empty(0)
