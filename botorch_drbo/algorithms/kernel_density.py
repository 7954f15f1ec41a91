"""Bayesian optimisation under a kernel density estimate of the context distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.algorithms.data import History, SearchSpace
from botorch_drbo.algorithms.model_based import AcquisitionAlgorithm, check_counts
from botorch_drbo.ambiguity import AmbiguitySet, NoAmbiguity
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class SBOKDE(AcquisitionAlgorithm):
    r"""``sbo_kde``: the expectation over a kernel density estimate of the contexts.

    .. math:: \frac{1}{n} \sum_{i=1}^n \mathrm{ucb}(x, \tilde c_i), \qquad
        \tilde c_i \sim \hat p_{\mathrm{KDE}}

    with Silverman's bandwidth and ``n`` quasi-random draws, made anew at each call.
    With ``reference`` there is nothing to estimate, and the recipe is ``erbo``.

    Args:
        num_contexts: ``n``, the number of draws from the density estimate.

    [Huang2024sbokde]_.
    """

    name: ClassVar[str] = "sbo_kde"

    num_contexts: int = 1024

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        check_counts(num_contexts=self.num_contexts)

    def acquisition(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        beta: float,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""The expected upper confidence bound."""
        contexts, ambiguity = self.robust_set(history, space, seed=seed)
        return DistributionallyRobustUCB(
            model, beta, contexts, UncertaintyObjective(ambiguity), X_pending=X_pending
        )

    def robust_set(
        self, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The density estimate, taken at its word."""
        if self.reference is not None:
            return self.data_contexts(history, space), NoAmbiguity()
        contexts = ContextSet.kernel_density(
            history.contexts,
            num_samples=self.num_contexts,
            bounds=space.context_bounds,
            seed=seed,
        )
        return contexts, NoAmbiguity()
