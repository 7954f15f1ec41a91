r"""The recipes that are a product: a name, an adversary, a policy, a paper's values.

A row is a whole method. Where the paper and its public code disagree, the parts say
which one is followed.
"""

from __future__ import annotations

from botorch_drbo.adversaries import Adversary
from botorch_drbo.adversaries.dangers import MeanShift
from botorch_drbo.adversaries.empirical import (
    AroundContexts,
    Empirical,
    EveryDistribution,
    StandardDeviationBox,
)
from botorch_drbo.adversaries.kernels import (
    KernelDensity,
    KernelDensityBall,
    MinimaxMMDBall,
    MMDBall,
)
from botorch_drbo.adversaries.scenarios import Mixture
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.policies import Policy
from botorch_drbo.policies.bounds import (
    ConfidenceBound,
    DecisionBound,
    DisagreementPenalty,
    FiniteDifference,
    LipschitzPenalty,
)
from botorch_drbo.policies.sampled import (
    ExpectedImprovement,
    IntegralImprovement,
    Thompson,
)
from botorch_drbo.recipes.description import Description
from botorch_drbo.recipes.robust_recipe import RobustRecipe

TABLE: dict[str, RobustRecipe] = {}
"""The rows by name."""

_BOCU_BETA = 2.0  # of the experiments of [Tay2024bocu]_: 1.414 standard deviations


def _row(
    name: str,
    adversary: Adversary,
    policy: Policy,
    summary: str,
    formula: str = "",
    *,
    remarks: str = "",
    source: str = "",
) -> None:
    description = Description(
        summary=summary, formula=formula, remarks=remarks, source=source
    )
    TABLE[name] = RobustRecipe(
        name=name, adversary=adversary, policy=policy, description=description
    )


_row(
    "gp_ucb",
    Empirical(),
    DecisionBound(),
    "The upper confidence bound of a model of the decision alone.",
    r"\mu(x) + \sqrt{\beta}\, \sigma(x)",
    source="[Srinivas2010gpucb]_",
)
_row(
    "erbo",
    Empirical(),
    ConfidenceBound(),
    "The expectation over the contexts seen so far.",
    r"\sum_i p_i \, \mathrm{ucb}(x, c_i)",
    remarks="It is ``wdrbo`` with radius 0.",
    source="The baseline called ERBO in [Micheli2025wdrbo]_",
)
_row(
    "edrbo",
    Empirical(),
    DisagreementPenalty(),
    "``erbo`` with an ensemble of kernels, minus a penalty for their disagreement.",
    r"\bar\mu(x) + \sqrt{\beta}\, \bar\sigma(x) - \kappa\, \epsilon(x), \qquad"
    r" \epsilon(x) = \max_m \sqrt{(\bar\mu_m - \bar\mu)^2"
    r" + (\bar\sigma_m - \bar\sigma)^2}",
    remarks="Averages over the contexts seen of mean and deviation, of each of four "
    "models, and their means over the models. The surrogate is the paper's, "
    "``kernels``; any other ensemble will do. The public code takes the maximum over "
    'the whole batch of the optimiser too: ``penalty_over="batch"``.',
    source="[Ramazyan2026edrbo]_",
)
_row(
    "sbo_kde",
    KernelDensity(),
    ConfidenceBound(),
    "The expectation over a kernel density estimate of the contexts.",
    r"\frac{1}{n} \sum_{i=1}^n \mathrm{ucb}(x, \tilde c_i), \qquad"
    r" \tilde c_i \sim \hat p_{\mathrm{KDE}}",
    source="[Huang2024sbokde]_",
)
_row(
    "stable_opt",
    StandardDeviationBox(),
    ConfidenceBound(),
    "The worst context within one standard deviation of the mean.",
    r"\min \{ \mathrm{ucb}(x, c) : m - s \le c \le m + s \}",
    source="In the spirit of [Bogunovic2018stableopt]_, as set up by "
    "[Huang2024sbokde]_",
)
_row(
    "wdrbo",
    WassersteinBall(),
    LipschitzPenalty(),
    "The expectation minus a Lipschitz penalty for a shifted distribution.",
    r"\sum_i p_i \, \mathrm{ucb}(x, c_i) - \epsilon_s \max_c \| \partial_c\,"
    r" \mathrm{ucb}(x, c) \|_2",
    remarks="The paper's experiments use ``InverseSquareRoot(0.3)`` for a distribution "
    "that is learnt from data; give a number together with ``reference``.",
    source="[Micheli2025wdrbo]_, eq. 13",
)
_row(
    "wdrbo_exact",
    WassersteinBall(num_candidates=128),
    ConfidenceBound(),
    "The exact worst case over the Wasserstein ball.",
    r"\min \{ E_q[\mathrm{ucb}(x, c)] : W_1(p, q) \le \epsilon_s \}",
    remarks="``wdrbo`` replaces this minimum by a lower bound, which assumes the "
    "steepest slope everywhere; this recipe uses the scores themselves and needs no "
    "slope.",
    source="[Micheli2025wdrbo]_ maximise a lower bound of this minimum; here it is "
    "solved",
)
_row(
    "drbo_kde",
    KernelDensityBall(),
    ConfidenceBound(),
    "The worst case over a total variation ball around a density estimate.",
    r"\min \{ E_q[\mathrm{ucb}(x, c)] :"
    r" \| q - \hat p_{\mathrm{KDE}} \|_1 \le \epsilon_s \}",
    remarks="One sort solves what the paper solves as a two-dimensional convex program "
    "per decision (its Proposition 2 is the dual). Its code looks for the lowest score "
    "outside the bounds, and ignores it in the gradient.",
    source="[Huang2024sbokde]_",
)
_row(
    "drbo_mmd",
    MMDBall(),
    ConfidenceBound(),
    "The worst case over a maximum-mean-discrepancy ball on a grid.",
    r"\min \{ q^\top \mathrm{ucb}(x, C) :"
    r" \sqrt{(p - q)^\top K (p - q)} \le \epsilon_s \}",
    source="[Kirschner2020drbo]_. Their code takes the diagonal of the grid if "
    "``d_c > 1``",
)
_row(
    "drbo_mmd_minimax",
    MinimaxMMDBall(),
    ConfidenceBound(),
    "``drbo_mmd`` with an approximation of the worst case by two lines.",
    source="[Tay2022minimax]_",
)
_row(
    "dro",
    AroundContexts(),
    ConfidenceBound(),
    "The worst case over any ambiguity set around the contexts seen.",
    r"\min \{ E_q[\mathrm{ucb}(x, c)] : d(p, q) \le \epsilon_s \}",
    remarks="Search and recommendation have the same adversary. If the set allows mass "
    "anywhere, it may use the whole box of contexts; with ``contexts_complete=True``, "
    "only the contexts of ``p``. A set made for certain contexts needs a ``reference`` "
    "on these; for growing data use ``drbo_mmd`` or ``wdrbo_exact``.",
)
_row(
    "mean_shift",
    MeanShift(clip=1.0),
    ConfidenceBound(),
    "The worst of the contexts seen and of the same moved by a deviation.",
    r"\min \{ E_p[\mathrm{ucb}(x, c + t)] : t = 0, \pm s_j e_j, \pm s \}",
    remarks="A location family: ``s`` are the deviations, or ``shift`` in units. What "
    "would leave the bounds stops there. ``erbo`` with ``against=MeanShift(1.0)`` "
    "learns for the mean and decides against the same.",
)
_row(
    "contamination",
    Mixture(),
    ConfidenceBound(),
    "The expectation if a tenth of the cases came from elsewhere.",
    r"\min \{ E_q[\mathrm{ucb}(x, c)] : q = p \text{ or }"
    r" (1 - \epsilon) p + \epsilon\, r \}",
    remarks="A contamination neighbourhood of one distribution ``r``: the box, or what "
    "``other`` names.",
    source="[Huber1964]_",
)
_row(
    "ts_bocu",
    AroundContexts(contexts_complete=True),  # the paper's are a finite list
    Thompson(),
    "The decision that is best for one posterior sample path.",
    r"\arg\max_x g\big( f(x, c_1), \dots, f(x, c_n);\ p \big), \qquad"
    r" f \sim \text{posterior}",
    source="TS-BOCU [Tay2024bocu]_, Algorithm 1",
)
_row(
    "ts_erbo",
    Empirical(),
    Thompson(),
    "The decision with the best expectation on one sample path.",
    r"\arg\max_x \sum_i p_i f(x, c_i), \qquad f \sim \text{posterior}",
)
_row(
    "ts_wdrbo",
    WassersteinBall(),
    Thompson(),
    "The decision with the best exact worst case on one sample path.",
    r"\arg\max_x \min \{ E_q[f(x, c)] : W_1(p, q) \le \epsilon_s \}, \qquad"
    r" f \sim \text{posterior}",
    remarks="The adversary moves the contexts seen to each other; with "
    "``num_candidates`` also to a Sobol set in the context bounds, as in "
    "``wdrbo_exact``.",
)
_row(
    "ts_drbo_kde",
    KernelDensityBall(),
    Thompson(),
    "The worst case of ``drbo_kde`` on one sample path.",
)
_row(
    "ts_drbo_mmd",
    MMDBall(),
    Thompson(),
    "The worst case of ``drbo_mmd`` on one sample path.",
    remarks="There is no recipe for its expected improvement: a worst case over a "
    "kernel ball takes a millisecond, so a decision would take ten to thirty seconds.",
)
_row(
    "ei_erbo",
    Empirical(),
    ExpectedImprovement(),
    "The expected improvement of the expectation, over sample paths.",
    r"E_f\Big[ \Big( \sum_i p_i f(x, c_i) - \max_{s \le t} \sum_i p_i f(x_s, c_i)"
    r" \Big)_+ \Big]",
)
_row(
    "ei_integral",
    Empirical(),
    IntegralImprovement(),
    "The expected improvement of the expectation over the contexts, in closed form.",
    r"E\Big[ \Big( g(x) - \max_{s \le t} E[g(x_s)] \Big)_+ \Big], \qquad"
    r" g(x) = \sum_i p_i f(x, c_i) \sim N(w' \mu, w' \Sigma w)",
    remarks="``ei_erbo`` has the same objective on sample paths, each with its own "
    "best value so far; this recipe needs no samples and has a single best value.",
    source="[Williams2000integrated]_",
)
_row(
    "ei_wdrbo",
    WassersteinBall(),
    ExpectedImprovement(),
    "The expected improvement of the exact worst case, over sample paths.",
    r"E_f\Big[ \Big( v_f(x) - \max_{s \le t} v_f(x_s) \Big)_+ \Big], \qquad"
    r" v_f(x) = \min \{ E_q[f(x, c)] : W_1(p, q) \le \epsilon_s \}",
    remarks="The adversary moves the contexts seen to each other; with "
    "``num_candidates`` also to a Sobol set in the context bounds, as in "
    "``wdrbo_exact``.",
)
_row(
    "ei_drbo_kde",
    KernelDensityBall(num_contexts=64, num_outside=64),
    ExpectedImprovement(),
    "The expected improvement of the worst case of ``drbo_kde``, over sample paths.",
    remarks="It uses fewer contexts than ``drbo_kde``, because each path evaluates and "
    "sorts all of them.",
)
_row(
    "ucb_bocu_1",
    AroundContexts(contexts_complete=True),  # the paper's are a finite list
    FiniteDifference(beta=_BOCU_BETA),
    "An upper bound of the general objective.",
    r"a\, v(u; \epsilon) + b\, \frac{v(u; \epsilon + h) - v(l; \epsilon)}{h}",
    source="[Tay2024bocu]_, Appendix C.2, version 1",
)
_row(
    "ucb_bocu_2",
    AroundContexts(contexts_complete=True),  # the paper's are a finite list
    ConfidenceBound(beta=_BOCU_BETA),
    "The general objective of the upper confidence bound.",
    r"a\, v(u; \epsilon) + b\, \delta(u; \epsilon)",
    remarks="It is optimistic about the value only: the sensitivity of ``u`` is not a "
    "bound.",
    source="[Tay2024bocu]_, Appendix C.2, version 2",
)
_row(
    "ucb_so",
    Empirical(),
    ConfidenceBound(beta=_BOCU_BETA),
    "The expected upper confidence bound: ``erbo`` with a ``beta`` of 2.",
    r"\sum_i p_i u(x, c_i)",
    source="[Tay2024bocu]_, Appendix C.2",
)
_row(
    "ucb_ro",
    EveryDistribution(),
    ConfidenceBound(beta=_BOCU_BETA),
    "The lowest upper confidence bound of the contexts seen.",
    r"\min_i u(x, c_i)",
    source="[Tay2024bocu]_, Appendix C.2",
)
_row(
    "ec_gp_ucb",
    Empirical(),
    DecisionBound(misspecification=0.1),
    "``gp_ucb`` with a confidence bound that allows for a wrong model.",
    r"\mu(x) + \Big(\sqrt{\beta} + \frac{\epsilon \sqrt t}{\sqrt\lambda}\Big)"
    r" \sigma(x)",
    remarks="You must choose ``misspecification``: the default suits outcomes that "
    "vary by about one.",
    source="[Bogunovic2021misspecified]_, Algorithm 1",
)
_row(
    "ec_wdrbo",
    WassersteinBall(),
    LipschitzPenalty(misspecification=0.1),
    "``wdrbo`` with a confidence bound that allows for a wrong model.",
    r"\sum_i p_i \, s(x, c_i) - \epsilon_s \max_c \| \partial_c\, s(x, c) \|_2,"
    r" \qquad s = \mu + \Big(\sqrt{\beta} + \frac{\epsilon \sqrt t}{\sqrt\lambda}"
    r"\Big) \sigma",
    remarks="``radius`` allows for a wrong distribution of the context, and "
    "``misspecification`` for a wrong model. You must choose the latter: the default "
    "suits outcomes that vary by about one.",
    source="[Micheli2025wdrbo]_, eq. 13, with the score of "
    "[Bogunovic2021misspecified]_, eq. 14",
)
