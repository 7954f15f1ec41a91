"""The base of all confidence-bound acquisition functions: score, view, repulsion."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import cast

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo import _device
from botorch_drbo._validation import check_nonnegative, check_scalar
from botorch_drbo.acquisition.analytic import PosteriorAcquisitionFunction
from botorch_drbo.acquisition.confidence_score import ConfidenceScore
from botorch_drbo.confidence.noise import noise_precision
from botorch_drbo.contexts import ContextSet
from botorch_drbo.posterior import LocalMoments, View
from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET
from botorch_drbo.posterior.factory import Method

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
    ``num_pending_contexts`` contexts that represent the context set, and these joint
    inputs are hallucinated: the posterior mean does not change, and the posterior
    variance becomes what it would be if they had been observed [Desautels2014bucb]_.
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
            ``botorch_drbo.acquisition.options.ConfidenceBoundOptions``.

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
        self.set_X_pending(X_pending)

    def _prepare(self, joint: Tensor | None) -> None:
        self._precision: Tensor | None = None
        if self.misspecification != 0.0:  # otherwise no model is refused
            self._precision = self._find_precision()
        if joint is not None:
            contexts = self._pending_contexts()
            resolved = self._posterior(joint, _NEARLY_NO_NOISE)
            self._repelled = self.observed.over(contexts), resolved.over(contexts)
        self._views: tuple[View, View] | None = None

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
