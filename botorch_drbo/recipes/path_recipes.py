"""Thompson sampling and expected improvement of the robust objectives, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from botorch_drbo.recipes.baselines import EmpiricalDistribution
from botorch_drbo.recipes.kernel_density import KernelDensityBall
from botorch_drbo.recipes.mmd import MMDBall
from botorch_drbo.recipes.path_search import ImprovementSearch, ThompsonSearch
from botorch_drbo.recipes.wasserstein import WassersteinBall


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ThompsonERBO(EmpiricalDistribution, ThompsonSearch):
    r"""``ts_erbo``: the decision with the best expectation on one sample path.

    .. math:: x = \arg\max_x \sum_i p_i f(x, c_i), \qquad f \sim \text{posterior}

    ``erbo`` with a sample path in place of the confidence bound: ``ts_bocu`` without
    ambiguity.
    """

    name: ClassVar[str] = "ts_erbo"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ImprovementERBO(EmpiricalDistribution, ImprovementSearch):
    r"""``ei_erbo``: the decision whose expectation is expected to improve most.

    .. math:: \max_x E_f\Big[ \Big( \sum_i p_i f(x, c_i)
        - \max_{s \le t} \sum_i p_i f(x_s, c_i) \Big)_+ \Big]

    over posterior sample paths ``f``: ``erbo`` with the improvement in place of the
    confidence bound.
    """

    name: ClassVar[str] = "ei_erbo"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ThompsonWDRBO(WassersteinBall, ThompsonSearch):
    r"""``ts_wdrbo``: the decision with the best exact worst case on one sample path.

    .. math:: x = \arg\max_x \min \{ E_q[f(x, c)] : W_1(p, q) \le \epsilon_s \},
        \qquad f \sim \text{posterior}

    The adversary moves the contexts seen to each other; with ``num_candidates`` also
    to a Sobol set in the context bounds, as in ``wdrbo_exact``.
    """

    name: ClassVar[str] = "ts_wdrbo"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ImprovementWDRBO(WassersteinBall, ImprovementSearch):
    r"""``ei_wdrbo``: the decision whose exact worst case is expected to improve most.

    .. math:: \max_x E_f\Big[ \Big( v_f(x) - \max_{s \le t} v_f(x_s) \Big)_+ \Big],
        \qquad v_f(x) = \min \{ E_q[f(x, c)] : W_1(p, q) \le \epsilon_s \}

    over posterior sample paths ``f``. The adversary moves the contexts seen to each
    other; with ``num_candidates`` also to a Sobol set in the context bounds, as in
    ``wdrbo_exact``.

    *Why not the bound.* Far from data a Gaussian process is flat in the context, and so
    is ``mu + w sigma``: a decision that was never tried pays almost nothing for
    robustness, one that is known to be good pays in full. The penalty of ``wdrbo`` and
    the ball of ``wdrbo_exact`` so act as a second exploration bonus. Sample paths are
    as steep far from data as near them, and their expected improvement has none.

    Example:
        >>> import torch
        >>> from botorch_drbo.problem import History, SearchSpace
        >>> X, C = torch.rand(5, 1).double(), torch.rand(5, 1).double()
        >>> history = History(X=X, C=C, Y=(X - C).square(), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> ei = ImprovementWDRBO(radius=0.1, num_restarts=1, raw_samples=8)
        >>> ei.propose(history, SearchSpace(unit, unit)).shape
        torch.Size([1, 1])
    """

    name: ClassVar[str] = "ei_wdrbo"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ThompsonDRBOKDE(KernelDensityBall, ThompsonSearch):
    r"""``ts_drbo_kde``: the ball of ``drbo_kde``, on one sample path."""

    name: ClassVar[str] = "ts_drbo_kde"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ImprovementDRBOKDE(KernelDensityBall, ImprovementSearch):
    r"""``ei_drbo_kde``: the ball of ``drbo_kde``, and the expected improvement.

    With fewer contexts than ``drbo_kde``, as each path evaluates and sorts them all.
    """

    name: ClassVar[str] = "ei_drbo_kde"

    num_contexts: int = 64
    num_outside: int = 64


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ThompsonDRBOMMD(MMDBall, ThompsonSearch):
    r"""``ts_drbo_mmd``: the ball of ``drbo_mmd``, on one sample path.

    Its expected improvement has no recipe: a worst case over a kernel ball takes a
    millisecond, and one decision would take ten to thirty seconds.
    """

    name: ClassVar[str] = "ts_drbo_mmd"
