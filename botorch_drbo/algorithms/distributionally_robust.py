"""The generic recipe: any ambiguity set around the contexts seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from botorch_drbo.algorithms.robust_set import AmbiguityOptions, RobustSetAlgorithm


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DistributionallyRobust(AmbiguityOptions, RobustSetAlgorithm):
    r"""``dro``: the worst case over any ambiguity set around the contexts seen.

    .. math:: \min \{ E_q[\mathrm{ucb}(x, c)] : d(p, q) \le \epsilon_s \}

    with ``p`` the empirical distribution of the ``s`` contexts seen so far, or
    ``reference``. A set that knows its contexts (the kernel matrix of
    ``MaximumMeanDiscrepancy``, the cost of ``Wasserstein``, most descriptions in
    cvxpy) needs a ``reference`` on those contexts: for data that grow there are
    ``drbo_mmd`` and ``wdrbo_exact``.

    Search and recommendation have one adversary. If the set lets mass go anywhere
    (``TotalVariation``, ``ChiSquared``) it may use the whole box of contexts: a Sobol
    set and the corners beside the contexts of ``p`` in the search, and in a
    recommendation also those that hurt more, which are added until none does. With
    ``contexts_complete=True`` the contexts of ``p`` are all there are. Where each
    context column takes some values only, there are no contexts but these. For all
    other sets the contexts of ``p`` are part of the definition (see
    ``Recommendation``).

    Example:
        >>> import torch
        >>> from botorch_drbo.algorithms import History, SearchSpace
        >>> from botorch_drbo.ambiguity import KullbackLeibler
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> dro = DistributionallyRobust(
        ...     ambiguity_set=KullbackLeibler(0.1), num_restarts=1, raw_samples=8
        ... )
        >>> dro.propose(history, SearchSpace(unit, unit)).shape
        torch.Size([1, 1])
    """

    name: ClassVar[str] = "dro"
