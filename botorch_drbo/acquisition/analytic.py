"""The base of acquisition functions on a posterior over contexts; confidence scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast, get_args

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import is_ensemble, t_batch_mode_transform
from torch import Tensor
from torch.nn import Module

from botorch_drbo import _device
from botorch_drbo._device import beside
from botorch_drbo._validation import (
    check_choice,
    check_count,
    check_nonnegative,
    check_scalar,
)
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.confidence.information_gain import noise_precision
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior import (
    LocalMoments,
    MarginalPosterior,
    MomentSlopes,
    View,
    marginal_posterior,
)
from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET, in_blocks
from botorch_drbo.posterior.factory import Method
from botorch_drbo.posterior.freshness import Snapshot
from botorch_drbo.posterior.models import prior_variance, some_inputs

_MOST_PENDING = 128  # joint inputs that stand for all pending decisions
_NEGLIGIBLE = 1e-12  # of the prior variance: less counts as this, without slope
_TEMPORARIES, _WITHOUT_GRAPH = 16, 4  # of b x n, forward and backward or forward alone


class PosteriorAcquisitionFunction(DecisionAcquisitionFunction, ABC):
    r"""A number per decision from the posterior over the contexts, in closed form.

    ``optimize_acqf`` sees decisions only: ``X`` is ``b x 1 x d_x``.

    *Pending decisions.* Their contexts have not come yet. Each is joined with
    ``num_pending_contexts`` contexts that represent the context set, and these joint
    inputs are hallucinated: the posterior mean stays as it is, the posterior variance
    becomes what it would be had they been observed [Desautels2014bucb]_.

    *Batches* are chosen one decision at a time, each with the earlier ones pending
    (``optimize_acqf(..., q=q, sequential=True)``). So the value of a batch is

    .. math:: \alpha(x_1, \dots, x_q) = \sum_{j=1}^q
        \alpha(x_j \mid x_1, \dots, x_{j-1} \text{ pending}),

    the sum of what sequential maximisation makes large, and it depends on the order.

    *What is noticed.* At the start of each call the training data, all parameters and
    buffers of the model and of the posterior transform, and given noise are compared
    with what the cached factors were made of; if any was replaced
    (``set_train_data``), trained, loaded from a file or filled in place, the factors
    are computed again. Not noticed are an ``offset`` of the transform that is a plain
    number, and whatever a model keeps as a plain number. The context set is copied: for
    other contexts make a new acquisition function. On a GPU values are not compared,
    because that would wait for the device at each call: there a change made through
    ``.data``, as GPyTorch's ``initialize`` makes it, is not noticed.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        context_set: The reference distribution of the context.
        options: The options of functions of posterior moments; see ``MomentOptions``.

    Raises:
        InputDataError: A context set that is not one, or an option outside its range.
        BotorchTensorDimensionError: Context columns that do not fit the model.
        UnsupportedError: A model that is not single-output.
    """

    def __init__(
        self,
        model: Model,
        context_set: ContextSet,
        *,
        context_indices: Sequence[int] | None = None,
        posterior_transform: PosteriorTransform | None = None,
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
        check_choice(method, "method", get_args(Method))
        self.num_pending_contexts = check_count(
            num_pending_contexts, "num_pending_contexts"
        )
        self.method: Method = method
        self.memory_budget = check_count(memory_budget, "memory_budget")
        self.ensemble = is_ensemble(self.model)
        self._made_of: Snapshot | None = None

    def _condition(self, pending: Tensor | None) -> None:
        # What is cached is compared at each call: a user may refit the model in place.
        if self._made_of is None or not self._made_of.same():
            self._observe()
        # Two posteriors: of what was observed, and with pending decisions hallucinated
        # at representative contexts (their outcomes do not matter for variances).
        self.posterior, joint = self.observed, None
        if pending is not None:
            self._pending_at = self._pending_contexts(len(pending)).to(pending)
            joint = self.observed.join(pending, self._pending_at).flatten(0, 1)
            self.posterior = self.observed.hallucinating(joint)
        self._prepare(joint)

    def _observe(self) -> None:
        """Compute what follows from the model without pending decisions."""
        made_of: list[Module] = [self.model]
        if self.posterior_transform is not None:
            made_of.append(self.posterior_transform)
        self.observed = marginal_posterior(
            self.model,
            self.context_indices,
            posterior_transform=self.posterior_transform,
            method=self.method,
            memory_budget=self.memory_budget,
        )
        self.min_variance = self._find_min_variance()
        self._made_of = Snapshot(*made_of)

    @abstractmethod
    def _prepare(self, joint: Tensor | None) -> None:
        """Compute what depends on the model beside the posterior.

        Shapes: ``joint``: ``m * k x d``.
        """

    def _pending_contexts(self, num_pending: int) -> Tensor:
        """Those that stand for the contexts of each pending decision, ``k x d_c``.

        Fewer of each if there are many decisions: a plate of 96 has 96 joint inputs.
        """
        most = max(1, _MOST_PENDING // num_pending)
        return self.context_set.representatives(min(self.num_pending_contexts, most))

    def _contexts(self) -> Tensor:
        """All contexts that a value needs, those of the context set first."""
        return self.context_set.points

    def _find_min_variance(self) -> float:
        """Below it variances are rounding errors, whatever the units of y."""
        # A share of the prior variance: a constant would depend on the units of y.
        dtypes = (parameter.dtype for parameter in self.model.parameters())
        dtype = next(dtypes, torch.double)
        at = None
        if some_inputs(self.model) is None:
            at = torch.zeros(1, self.num_joint, dtype=dtype)
        scale = prior_variance(self.model, self.posterior_transform, at=at)
        # A certain model has no scale.
        return max(_NEGLIGIBLE * scale, torch.finfo(dtype).tiny)

    def _refresh(self) -> None:
        """Recompute what depends on tensors that have changed."""
        if self._made_of is None or not self._made_of.same():
            self._condition(self.X_pending)

    # BoTorch types its decorator for the base class only.
    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate the acquisition function.

        Args:
            X: Decisions, ``b x 1 x d_x``; or one batch of several, ``1 x q x d_x``,
                without a gradient.

        Returns:
            One value per decision, ``b``; higher is better. For a batch, the sum of the
            values of its decisions, each with the earlier ones pending.

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
        r"""Evaluate a cheap ranking of decisions, used to choose starting points.

        The order is nearly that of the values, which may be far more expensive: a
        cheaper bound if there is one, otherwise the values themselves.

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
        if self.context_set.points.device != X.device:
            self.to(X.device)
        self._refresh()
        # The penalty of pending decisions is a number per decision, and is computed in
        # the same blocks.
        found = self._in_blocks(lambda rows: values(rows) + self._repulsion(rows), X)
        found = self._over_models(found) if self.ensemble else found
        return (found - self._paid_by_all(X)).to(X)

    def _in_blocks(self, function: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
        """A function of ``b x d_x`` at ``b x 1 x d_x``, in the dtype of the model."""
        dtype, num_contexts = self.posterior.dtype, len(self._contexts())
        graph = torch.is_grad_enabled() and X.requires_grad
        # A graph keeps every intermediate result of b x n numbers until the gradient is
        # taken.
        copies = _TEMPORARIES if graph else _WITHOUT_GRAPH
        (found,) = in_blocks(
            lambda rows: (function(rows),),
            X.squeeze(-2).to(dtype),
            copies * dtype.itemsize * num_contexts,
            self.memory_budget,
        )
        return found

    def _paid_by_all(self, X: Tensor) -> Tensor:
        """The part of the cost of ``b x 1 x d_x`` decisions that all of them share."""
        return X.new_zeros(())

    def _repulsion(self, X: Tensor) -> Tensor:
        """The penalty for being near a pending decision: ``b``, or ``b x S``."""
        return X.new_zeros(())

    def _over_models(self, values: Tensor) -> Tensor:
        """Combine the values of an ensemble's models, ``b x S`` to ``b``."""
        return values.mean(-1)

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
        # The value of a batch in BoTorch's sequential sense: each decision beside those
        # before it as pending.
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
        r"""The value of each decision; a subclass must implement this.

        ``forward`` calls it in blocks of decisions, and takes the mean over the models
        of an ensemble.

        Args:
            X: Decisions, ``b x d_x``.

        Returns:
            One value per decision, ``b``; for an ensemble ``b x S``. Higher is better.
        """

    def _ranking(self, X: Tensor) -> Tensor:
        """A cheaper score with nearly the same ranking, without a graph."""
        return self.values(X)


class ConfidenceScore(NamedTuple):
    r"""An upper confidence bound, and its slope in the context.

    .. math:: s = \mu + w \sigma, \qquad
        \nabla s = \nabla \mu + \frac{w}{2 \sigma} \nabla \sigma^2
    """

    # ``w``: a scalar, or one for each model of an ensemble, ``S``.
    width: Tensor
    # Variances below it count as this, and have no slope.
    min_variance: float

    def __call__(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Evaluate the upper bound.

        Shapes: ``mean``: ``... x n``.
        """
        return mean + self._half(variance)

    def lower(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Evaluate the lower bound.

        Shapes: ``mean``: ``... x n``.
        """
        return mean - self._half(variance)

    def slope(self, at: MomentSlopes) -> Tensor:
        """Evaluate the slope of the upper bound in the context.

        Shapes: ``at``: ``... x k``, returns ``... x k x d_c``.
        """
        sigma = at.variance.clamp_min(self.min_variance).sqrt()
        share = 0.5 * self.widths(sigma) * (at.variance > self.min_variance) / sigma
        return at.mean_slope + share.unsqueeze(-1) * at.variance_slope

    def _half(self, variance: Tensor) -> Tensor:
        """Half the interval, ``w sigma``."""
        return self.widths(variance) * variance.clamp_min(self.min_variance).sqrt()

    def widths(self, like: Tensor) -> Tensor:
        """The width beside moments ``... (x S) x n``."""
        width = beside(self.width, like)
        return width.unsqueeze(-1) if width.ndim else width  # S x 1 beside S x n


# Of so many searched contexts one does, to rank decisions by. Odd: of a Sobol set each
# second or fourth point lies in the same half or quarter of the box.
COARSER = 3
_NEARLY_NO_NOISE = 1e-8  # as a share of the model's; with none matrices are singular


class RobustAcquisitionFunction(PosteriorAcquisitionFunction, ABC):
    r"""A base class: scores of decision and context, combined into one number each.

    The score is the upper confidence bound ``mu + w sigma`` at each context, of the
    width ``w = sqrt(beta)``; with ``misspecification`` it is enlarged, see
    ``confidence_width``.
    ``X`` contains decisions only, ``b x 1 x d_x``. ``OverJointInputs`` turns it into a
    function of ``[x, c]``.

    *Ensembles.* The robust value is computed for each model first, and the mean over
    models last, because the minimum over an ambiguity set and the mean do not commute.

    *Pending decisions.* Their contexts are not known yet. Each is joined with
    ``num_pending_contexts`` contexts that represent the context set, fewer where all
    would have more than 128 together, and these joint inputs are hallucinated: the
    posterior mean does not change, and the posterior variance becomes what it would be
    if they had been observed [Desautels2014bucb]_.
    The confidence bound then shrinks around a pending decision for all contexts, and
    the next decision is a different one. If the noise is large compared with the
    remaining uncertainty, one more observation hardly shrinks the bound, and the next
    decision would be the pending one again. Therefore, if decisions are pending, this
    term is added:

    .. math:: \kappa\, w\, \bar\sigma(x)\, \big( 1 + \ln s(x) - s(x) \big), \qquad
        s(x) = \frac{\bar\sigma(x \mid f \text{ at the pending inputs})}{\bar\sigma(x)}

    with :math:`\bar\sigma` the root mean square of the posterior deviation at the
    representative contexts, and :math:`s` the share of it that would remain if ``f``
    itself were known at the pending inputs, without noise. The term decreases
    logarithmically towards a pending decision (down to a share of about 1e-4), is of
    second order far from it (:math:`s \to 1`), and has the units of the score. The
    attribute ``repulsion`` is :math:`\kappa`; 0 disables the term. It spreads batches
    but did not lower the regret in our measurements. Without exploration (``beta``
    zero) it vanishes. It is not from the literature.

    For batches and for changes of the model see ``PosteriorAcquisitionFunction``.
    ``beta`` and ``misspecification`` are read at each call.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution of the context.
        options: The options of every confidence bound:
            ``botorch_drbo.acquisition.inputs.ConfidenceBoundOptions``.

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
            num_pending_contexts=num_pending_contexts,
            num_inputs=num_inputs,
            method=method,
            memory_budget=memory_budget,
        )
        beta = check_scalar(check_nonnegative(beta, "beta"), "beta")
        misspecification = check_scalar(
            check_nonnegative(misspecification, "misspecification"), "misspecification"
        )
        self.register_buffer("beta", beta)
        self.register_buffer("misspecification", misspecification)
        if self.misspecification != 0.0:
            self._find_precision()  # first of all: a model whose noise is not known
        self._views: dict[MarginalPosterior, View] = {}
        self._before: tuple[MarginalPosterior, View] | None = None
        self.set_X_pending(X_pending)

    def _prepare(self, joint: Tensor | None) -> None:
        self._precision: Tensor | None = None
        if self.misspecification != 0.0:  # otherwise no model is refused
            self._precision = self._find_precision()
        if joint is not None:
            contexts = self._pending_at
            resolved = self.observed.hallucinating(joint, _NEARLY_NO_NOISE)
            self._repelled = self._observed_at(contexts), resolved.over(contexts)
        # What was observed stays where others become pending.
        kept = self._views.get(self.observed)
        self._views = {} if kept is None else {self.observed: kept}

    def _observed_at(self, contexts: Tensor) -> View:
        """What was observed, over ``k x d_c`` contexts, most often those of before."""
        known = self._before
        if (
            known is None
            or known[0] is not self.observed
            or not known[1].contexts.equal(contexts.to(known[1].contexts))
        ):
            self._before = known = self.observed, self.observed.over(contexts)
        return known[1]

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
        return self._view_of(self.posterior)

    @property
    def _observed_view(self) -> View:
        return self._view_of(self.observed)

    @property
    def _bound(self) -> ConfidenceScore:
        return ConfidenceScore(self._width(), self.min_variance)

    def _view_of(self, posterior: MarginalPosterior) -> View:
        if posterior not in self._views:
            means = self._has_no_width
            self._views[posterior] = posterior.over(self._contexts(), means=means)
        return self._views[posterior]

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

    def _at_contexts(self, here: LocalMoments, part: slice) -> Tensor:
        """The scores at some of a view's contexts, ``... (x S) x n``."""
        if self._has_no_width:
            return here.means(part)
        return self._bound(*here.moments(part))

    def _slopes_at(self, here: LocalMoments, contexts: slice | Tensor) -> Tensor:
        """The slopes of the scores in the context, ``... (x S) x k x d_c``."""
        if self._has_no_width:
            return here.mean_slopes(contexts)
        return self._bound.slope(here.slopes(contexts))

    @property
    def _has_no_width(self) -> bool:
        """Whether the bound is known to be the mean, without reading from the
        device."""
        return bool(
            _device.on_cpu(self.beta) and not self.beta and not self.misspecification
        )

    def confidence_width(self) -> Tensor:
        r"""The number of standard deviations that the score adds to the mean.

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

    def _width(self) -> Tensor:
        if (
            self._precision is None
            and _device.on_cpu(self.misspecification)  # else a look would wait for it
            and self.misspecification != 0.0
        ):
            self._precision = self._find_precision()
        if self._precision is None:
            return self.beta.sqrt()
        precision = self._precision
        enlargement = _device.beside(self.misspecification, precision)
        return _device.beside(self.beta, precision).sqrt() + (
            enlargement * precision.sqrt()
        )

    def _find_precision(self) -> Tensor:
        """The noise precision of the model: a scalar, or one for each model, ``S``."""
        precision = noise_precision(self.model)  # m, or S of an ensemble
        if not self.ensemble:
            precision = precision[_used_outputs(self.posterior_transform)].sum()
        return precision.detach()

    def _repulsion(self, X: Tensor) -> Tensor:
        if self.X_pending is None:
            return X.new_zeros(())
        before, after = (
            view.at(X).moments()[1].mean(-1).clamp_min(torch.finfo(X.dtype).tiny)
            for view in self._repelled
        )
        share = (after / before).clamp(_NEARLY_NO_NOISE, 1.0).sqrt()
        bonus = _device.beside(self._width(), X) * before.sqrt()
        return self.repulsion * bonus * (1.0 + share.log() - share)


def _used_outputs(transform: PosteriorTransform | None) -> Tensor | slice:
    """The outputs that a linear transform uses."""
    if transform is None:
        return slice(None)
    if isinstance(transform, ScalarizedPosteriorTransform):
        return cast(Tensor, transform.weights) != 0
    raise UnsupportedError(
        "`misspecification` needs a ScalarizedPosteriorTransform or none, got "
        f"{type(transform).__name__}: only a weighted sum of outputs has a noise that "
        "follows from theirs."
    )
