"""The generic recipe: any ambiguity set around the contexts seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, final

from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP

from botorch_drbo.algorithms.data import History, SearchSpace
from botorch_drbo.algorithms.model_based import RobustSetAlgorithm
from botorch_drbo.ambiguity import AmbiguitySet, TotalVariation
from botorch_drbo.contexts import ContextSet
from botorch_drbo.schedules import Schedule, as_schedule


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DistributionallyRobust(RobustSetAlgorithm):
    r"""``dro``: the worst case over any ambiguity set around the contexts seen.

    .. math:: \min \{ E_q[\mathrm{ucb}(x, c)] : d(p, q) \le \epsilon_s \}

    with ``p`` the empirical distribution of the ``s`` contexts seen so far, or
    ``reference``. A set that knows its contexts (the kernel matrix of
    ``MaximumMeanDiscrepancy``, the cost of ``Wasserstein``, most descriptions in
    cvxpy) needs a ``reference`` on those contexts: for data that grow there are
    ``drbo_mmd`` and ``wdrbo_exact``.

    Args:
        ambiguity_set: The set; a copy is made for each radius.
        radius: A number, or a schedule in the number of contexts seen; None for the
            radius of the set.

    Example:
        >>> import torch
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

    ambiguity_set: AmbiguitySet = field(default_factory=lambda: TotalVariation(0.2))
    radius: Schedule | float | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if not isinstance(self.ambiguity_set, AmbiguitySet):
            raise InputDataError(
                "`ambiguity_set` must be an AmbiguitySet, got "
                f"{type(self.ambiguity_set).__name__}. For example TotalVariation(0.2)."
            )
        if self.radius is not None:
            as_schedule(self.radius)

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The contexts seen, or the reference, and the set."""
        ambiguity = self.ambiguity_set
        if self.radius is not None:
            radius = as_schedule(self.radius)(len(history.contexts))
            ambiguity = ambiguity.with_radius(radius)
        return self.data_contexts(history, space), ambiguity
