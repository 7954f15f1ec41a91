"""GP-UCB and WDRBO for a model that may be wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.acquisition import EnlargedConfidenceUCB, LipschitzPenalizedUCB
from botorch_drbo.problem.history import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recipes.baselines import DecisionModelAlgorithm
from botorch_drbo.recipes.exploration import current_bound
from botorch_drbo.recipes.wasserstein import LipschitzPenaltyAlgorithm


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ECGPUCB(DecisionModelAlgorithm):
    r"""``ec_gp_ucb``: GP-UCB with a confidence bound that allows for a wrong model.

    .. math:: \mu(x) + \Big(\sqrt{\beta} + \frac{\epsilon \sqrt t}{\sqrt\lambda}\Big)
        \sigma(x)

    As ``gp_ucb`` it models the outcome of ``x`` alone, and recommends the best
    posterior mean. ``t`` and :math:`\lambda` are the model's; see
    ``EnlargedConfidenceUCB``. The noise counts: a model that believes its outcomes to
    be nearly exact makes the bound wide.

    Args:
        misspecification: By how much the outcome may differ from every function that
            the model can represent, in the units of y; 0 makes it ``gp_ucb``. It is
            yours to say: the default suits outcomes that vary by about one.

    Example:
        >>> import torch
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> recipe = ECGPUCB(misspecification=0.1, num_restarts=1, raw_samples=8)
        >>> recipe.propose(history, SearchSpace(unit, unit)).shape
        torch.Size([1, 1])

    [Bogunovic2021misspecified]_, Algorithm 1.
    """

    name: ClassVar[str] = "ec_gp_ucb"

    misspecification: float = 0.1

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        _check_misspecification(self.misspecification)

    def exploring(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""The enlarged confidence bound of the model of ``x``."""
        model, beta = current_bound(self.beta, model, history)
        return EnlargedConfidenceUCB(
            model, beta, self.misspecification, X_pending=X_pending
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ECWDRBO(LipschitzPenaltyAlgorithm):
    r"""``ec_wdrbo``: WDRBO with a confidence bound that allows for a wrong model.

    .. math:: \sum_i p_i \, s(x, c_i) - \epsilon_s \max_c \| \partial_c\, s(x, c) \|_2,
        \qquad s = \mu + \Big(\sqrt{\beta} + \frac{\epsilon \sqrt t}{\sqrt\lambda}\Big)
        \sigma

    Two radii: :math:`\epsilon_s` is for a distribution of the context that may be
    wrong, :math:`\epsilon` for a model that may be. Recommendations are those of
    ``wdrbo``. The penalty is taken of the enlarged bound, which is steeper.

    Args:
        misspecification: By how much the outcome may differ from every function that
            the model can represent, in the units of y; 0 makes it ``wdrbo``. It is
            yours to say: the default suits outcomes that vary by about one.

    Example:
        >>> import torch
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> recipe = ECWDRBO(misspecification=0.1, num_restarts=1, raw_samples=8)
        >>> recipe.propose(history, SearchSpace(unit, unit)).shape
        torch.Size([1, 1])

    [Micheli2025wdrbo]_, eq. 13, with the score of [Bogunovic2021misspecified]_, eq. 14.
    """

    name: ClassVar[str] = "ec_wdrbo"

    misspecification: float = 0.1

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        _check_misspecification(self.misspecification)

    def exploring(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""The penalised expectation of the enlarged confidence bound."""
        model, beta = current_bound(self.beta, model, history)
        return LipschitzPenalizedUCB(
            model,
            beta,
            self.data_contexts(history, space),
            self.current_radius(history, space),
            space.context_bounds,
            misspecification=self.misspecification,
            X_pending=X_pending,
        )


def _check_misspecification(value: float) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0.0 <= value < math.inf:
        raise InputDataError(
            "`misspecification` must be a finite number that is not negative, got "
            f"{value!r}."
        )
