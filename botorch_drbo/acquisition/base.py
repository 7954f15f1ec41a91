"""What all confidence-bound acquisition functions share: the view, and pending."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import cast, get_args

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import (
    InputDataError,
    UnsupportedError,
)
from botorch.models.model import Model
from botorch.utils.transforms import is_ensemble, t_batch_mode_transform
from torch import Tensor
from torch.nn import Module

from botorch_drbo import _device
from botorch_drbo._validation import check_count, check_nonnegative, check_scalar
from botorch_drbo.acquisition.confidence_score import ConfidenceScore
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.confidence import noise_precision
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior import (
    DEFAULT_MEMORY_BUDGET,
    MarginalPosterior,
    Method,
    View,
    in_blocks,
    marginal_posterior,
    prior_variance,
)
from botorch_drbo.posterior.freshness import Snapshot
from botorch_drbo.posterior.models import some_inputs

# Of so many searched contexts one does, to rank decisions by. Odd: of a Sobol set each
# second or fourth point lies in the same half or quarter of the box.
COARSER = 3
_NEGLIGIBLE = 1e-12  # of the prior variance: less counts as this, without slope
_TEMPORARIES, _WITHOUT_GRAPH = 16, 4  # of b x n, forward and backward or forward alone
_NEARLY_NO_NOISE = 1e-8  # as a share of the model's; with none matrices are singular


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
    decision goes elsewhere. But where the noise is large against what is still unknown,
    one more observation hardly shrinks it, and the next decision would be the pending
    one again. So with decisions pending there is added

    .. math:: \kappa\, w\, \bar\sigma(x)\, \big( 1 + \ln s(x) - s(x) \big), \qquad
        s(x) = \frac{\bar\sigma(x \mid f \text{ at the pending inputs})}{\bar\sigma(x)}

    with :math:`\bar\sigma` the root mean square of the posterior deviation at the
    representative contexts, and :math:`s` the share of it that would be left if ``f``
    itself were known at the pending inputs, without noise. It falls like a logarithm
    towards a pending decision (down to a share of about 1e-4), is of second order away
    from them (:math:`s \to 1`), and knows no units but those of the score. The
    attribute ``repulsion`` is :math:`\kappa`; 0 leaves the hallucination alone. It
    spreads batches and does not lower the regret that we measured. Without exploration
    (``beta`` zero) nothing is repelled. This term is ours.

    *Batches* are chosen one decision at a time, each with the earlier ones pending
    (``optimize_acqf(..., q=q, sequential=True)``). So the value of a batch is

    .. math:: \alpha(x_1, \dots, x_q) = \sum_{j=1}^q
        \alpha(x_j \mid x_1, \dots, x_{j-1} \text{ pending}),

    the sum of what sequential maximisation makes large, and it depends on the order.

    *What is noticed.* At the start of each call the training data, all parameters and
    buffers of the model and of the posterior transform, and given noise are compared
    with what the cached factors were made of; if any was replaced
    (``set_train_data``), trained, loaded from a file or filled in place, the factors
    are computed again. ``beta`` and ``misspecification`` are read at each call. Not
    noticed are an ``offset`` of the transform that is a plain number, and whatever a
    model keeps as a plain number. The context set is copied: for other contexts make a
    new acquisition function. On a GPU values are not compared, because that would wait
    for the device at each call: there a change made through ``.data``, as GPyTorch's
    ``initialize`` makes it, is not noticed.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution of the context.
        options: Those of every confidence bound; see ``ConfidenceBoundOptions``.

    Raises:
        InputDataError: A negative beta or misspecification, or a context set that is
            not one.
        BotorchTensorDimensionError: Context columns that do not fit the model.
        UnsupportedError: A model that is not single-output, or misspecification with a
            model or a transform whose noise is not known.
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
        num_inputs: int | None = None,
        method: Method = "auto",
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        super().__init__(
            model,
            context_set,
            context_indices=context_indices,
            posterior_transform=posterior_transform,
            num_inputs=num_inputs,
        )
        beta = check_scalar(check_nonnegative(beta, "beta"), "beta")
        misspecification = check_scalar(
            check_nonnegative(misspecification, "misspecification"), "misspecification"
        )
        if method not in get_args(Method):
            raise InputDataError(
                f"`method` must be one of {get_args(Method)}, got {method!r}."
            )
        self.register_buffer("beta", beta)
        self.register_buffer("misspecification", misspecification)
        self.num_pending_contexts = check_count(
            num_pending_contexts, "num_pending_contexts"
        )
        self.method: Method = method
        self.memory_budget = check_count(memory_budget, "memory_budget")
        self.ensemble = is_ensemble(self.model)
        self.set_X_pending(X_pending)

    def _condition(self, pending: Tensor | None) -> None:
        made_of: list[Module] = [self.model]
        if self.posterior_transform is not None:
            made_of.append(self.posterior_transform)
        with torch.inference_mode(False):  # it is kept
            self._precision: Tensor | None = None
            if self.misspecification != 0.0:  # otherwise no model is refused
                self._precision = self._find_precision()
            self.observed = self.posterior = self._posterior(None)
            if pending is not None:
                contexts = self.context_set.representatives(self.num_pending_contexts)
                joint = self.observed.join(pending, contexts.to(pending)).flatten(0, 1)
                self.posterior = self._posterior(joint)  # of m * k x d
                resolved = self._posterior(joint, _NEARLY_NO_NOISE)
                self._repelled = self.observed.over(contexts), resolved.over(contexts)
            self.min_variance = self._find_min_variance()
            self._made_of = Snapshot(*made_of)
        self._views: tuple[View, View] | None = None

    def _posterior(
        self, pending: Tensor | None, pending_noise: float = 1.0
    ) -> MarginalPosterior:
        return marginal_posterior(
            self.model,
            self.context_indices,
            posterior_transform=self.posterior_transform,
            pending=pending,
            pending_noise=pending_noise,
            method=self.method,
            memory_budget=self.memory_budget,
        )

    def _contexts(self) -> Tensor:
        """All contexts that a value needs, those of the context set first."""
        return self.context_set.points

    @property
    def view(self) -> View:
        """The posterior over the contexts, pending decisions counted as observed."""
        self._refresh()
        return self._view

    @property
    def observed_view(self) -> View:
        """The same without the pending decisions."""
        self._refresh()
        return self._observed_view

    @property
    def _view(self) -> View:  # these three for code that has compared already
        return self._both_views()[0]

    @property
    def _observed_view(self) -> View:
        return self._both_views()[1]

    @property
    def _bound(self) -> ConfidenceScore:
        return ConfidenceScore(self._width(), self.min_variance)

    def _both_views(self) -> tuple[View, View]:
        if self._views is None:
            view = observed = self.posterior.over(self._contexts())
            if self.posterior is not self.observed:
                observed = self.observed.over(self._contexts())
            self._views = view, observed
        return self._views

    @property
    def bound(self) -> ConfidenceScore:
        """The score ``mu + w sigma`` as it is now."""
        self._refresh()
        return self._bound

    def scores(
        self, X: Tensor, contexts: Tensor | None = None, *, pending: bool = True
    ) -> Tensor:
        r"""The upper confidence bound at each decision and context.

        .. math:: s(x, c) = \mu(x, c) + w\, \sigma(x, c)

        with ``w`` the ``confidence_width``.

        Args:
            X: Decisions, ``... x d_x`` (without a q dimension).
            contexts: ``n x d_c``; by default the context set.
            pending: Whether to count the pending decisions as observed.

        Returns:
            Scores ``... x n``; with an ensemble of ``S`` models ``... x S x n``.
        """
        self._refresh()
        if contexts is None:
            view = self._view if pending else self._observed_view
            moments = view.at(X).moments(slice(self.context_set.num_points))
        else:
            posterior = self.posterior if pending else self.observed
            moments = posterior.over(contexts).at(X).moments()
        return self._bound(*moments)

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
        return self._width()

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

    def _width(self) -> Tensor:
        if self._precision is None:
            return self.beta.sqrt()
        enlargement = self.misspecification.to(self._precision) * self._precision.sqrt()
        return self.beta.sqrt() + enlargement.to(self.beta)

    def _find_precision(self) -> Tensor:
        """What the model says of its noise: a scalar, or one for each model, ``S``."""
        precision = noise_precision(self.model)  # m, or S of an ensemble
        if not self.ensemble:
            precision = precision[_used_outputs(self.posterior_transform)].sum()
        return precision.detach()

    def _refresh(self) -> None:
        """Compute again what was made of numbers that have changed since."""
        if not self._made_of.same():
            self._condition(self.X_pending)
        elif (
            self._precision is None
            and _device.on_cpu(self.misspecification)  # else a look would wait for it
            and self.misspecification != 0.0
        ):
            with torch.inference_mode(False):  # it is kept
                self._precision = self._find_precision()

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
        return self._evaluate(self.values, X)

    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def ranking(self, X: Tensor) -> Tensor:
        r"""Evaluate what decisions are ranked by before an ascent begins.

        The order is nearly that of the values, which may cost far more: a bound of them
        where there is a cheaper one, else the values themselves.

        Args:
            X: Decisions, ``b x 1 x d_x``.

        Returns:
            One number per decision, ``b``, without a gradient.

        Raises:
            BotorchTensorDimensionError: Other columns.
        """
        self._check_decisions(X)
        with torch.no_grad():
            return self._evaluate(self._ranking, X)

    def _evaluate(self, values: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
        """A function of ``b x d_x`` at ``b x 1 x d_x``, in blocks; ``b``."""
        if self.beta.device != X.device:
            self.to(X.device)
        self._refresh()
        contexts = self._view.contexts
        graph = torch.is_grad_enabled() and X.requires_grad
        copies = _TEMPORARIES if graph else _WITHOUT_GRAPH
        bytes_per_row = copies * contexts.element_size() * len(contexts)
        (found,) = in_blocks(
            lambda rows: (values(rows) + self._repulsion(rows),),
            X.squeeze(-2).to(contexts.dtype),
            bytes_per_row,
            self.memory_budget,
        )  # b (x S)
        return (found.mean(-1) if self.ensemble else found).to(X)

    def _repulsion(self, X: Tensor) -> Tensor:
        """What keeps ``b x d_x`` decisions from pending ones: ``b``, or ``b x S``."""
        if self.X_pending is None:
            return X.new_zeros(())
        before, after = (
            view.at(X).moments()[1].mean(-1).clamp_min(torch.finfo(X.dtype).tiny)
            for view in self._repelled
        )
        share = (after / before).clamp(_NEARLY_NO_NOISE, 1.0).sqrt()
        bonus = self._width().to(X) * before.sqrt()
        return self.repulsion * bonus * (1.0 + share.log() - share)

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
    def values(self, X: Tensor) -> Tensor:
        r"""The robust value of each decision; what a subclass has to say.

        ``forward`` calls it in blocks of decisions, repels from pending ones, and takes
        the mean over the models of an ensemble. ``scores`` has the confidence bound.

        Args:
            X: Decisions, ``b x d_x``.

        Returns:
            One value per decision, ``b``; of an ensemble ``b x S``. Higher is better.
        """

    def _ranking(self, X: Tensor) -> Tensor:
        """Cheaper numbers in nearly the same order, without a graph."""
        return self.values(X)


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
