# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # WDRBO in your own BoTorch loop
#
# *Fifteen minutes; for users of BoTorch.*
#
# After this page you can make a BoTorch loop of your own distributionally robust: it
# takes one acquisition function, which goes into `optimize_acqf` like any other. You
# have seen what it adds to an ordinary upper confidence bound, a penalty on decisions
# whose outcome depends steeply on the context, and how large that penalty is. And you
# know how to use it with pending decisions, for minimisation, and when you need a
# slope that is certified rather than found.

# %% [markdown]
# ## Words
#
# The model's input is $z = [x, c]$. The *decision* $x$ is chosen. The *context* $c$ is
# chosen by nobody and seen only afterwards, together with the outcome $y = f(x, c)$.
# BoTorch calls $c$ an **environmental variable** and writes $w$, for instance in its
# risk measures. It is *not* the "context" of BoTorch's LCE-A and LCE-M models: there a
# context names a population, and each population gets parameters of its own to choose.
#
# `optimize_acqf` sees decisions only. Contexts enter through a `ContextSet`, a weighted
# set of points that describes their distribution.

# %%
import os

import matplotlib.pyplot as plt
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB, LipschitzPenalizedUCB
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.plotting import COLOURS, plot_context_set, plot_regret
from botorch_drbo.test_functions import make_test_function

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
NUM_INITIAL = 10
NUM_ROUNDS = 12 if SMOKE_TEST else 30  # the initial ones included

plt.rcParams.update({"figure.dpi": 110, "font.size": 10})

problem = make_test_function("ackley_2_1")  # two decisions, one context
x_bounds, c_bounds = problem.bounds, problem.context_bounds  # 2 x 2 and 2 x 1
print(f"best expected value {problem.optimal_value:.2f} at {problem.optimal_decision}")

# %% [markdown]
# The world will show these contexts, one a round. We draw all of them now, so that two
# methods can meet the same ones. The first ten rounds use a Sobol design.

# %%
C_world = problem.sample_contexts(NUM_ROUNDS, seed=0)  # rounds x 1
X_design = draw_sobol_samples(x_bounds, n=NUM_INITIAL, q=1, seed=0).squeeze(1)

# %% [markdown]
# ## One round, by hand
#
# **The model** is a plain `SingleTaskGP` on $[x, c]$.


# %%
def fit_model(X: Tensor, C: Tensor, Y: Tensor) -> SingleTaskGP:
    """A Gaussian process of decision and context; both live in the unit cube here."""
    model = SingleTaskGP(torch.cat([X, C], dim=-1), Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


X, C = X_design, C_world[:NUM_INITIAL]
Y = problem.evaluate(X, C).unsqueeze(-1)  # t x 1
model = fit_model(X, C, Y)

# %% [markdown]
# **The contexts**: those seen so far, with equal weights. `ContextSet` has other
# builders, for instance `kernel_density` to smooth them and `from_distribution` for a
# law that you know.
#
# **The radius**: how far the true distribution may be from them, as a share of the
# width of the context box. The paper lowers it as contexts come in,
# $\varepsilon_t = 0.3 / \sqrt t$.
#
# **The acquisition function** is the expected upper confidence bound minus the penalty,
#
# $$\alpha(x) = \sum_i w_i \, \mathrm{ucb}(x, c_i) - \varepsilon_t \, L(x), \qquad
#   L(x) = \max_c \left\| \frac{\partial\, \mathrm{ucb}(x, c)}{\partial c} \right\|,$$
#
# with $\mathrm{ucb} = \mu + \sqrt\beta\, \sigma$ in BoTorch's convention.


# %%
def robust_ucb(
    model: SingleTaskGP, C: Tensor, *, beta: float = 2.25, scale: float = 0.3
) -> LipschitzPenalizedUCB:
    """WDRBO after the contexts `C`; with `scale=0` there is no penalty."""
    return LipschitzPenalizedUCB(
        model,
        beta=beta,
        context_set=ContextSet.empirical(C),
        radius=scale / len(C) ** 0.5,
        context_bounds=c_bounds,
    )


torch.manual_seed(0)
acqf = robust_ucb(model, C)
x, value = optimize_acqf(
    acqf,
    bounds=x_bounds,
    q=1,
    num_restarts=4,
    raw_samples=128,
    retry_on_optimization_warning=False,
)
print(f"next decision {x.squeeze(0).tolist()}, acquisition value {value.item():.2f}")

# %% [markdown]
# Why `retry_on_optimization_warning=False`? $L(x)$ is a maximum, so it has kinks, where
# the line search of L-BFGS may give up. The point at which it stopped is a candidate
# like any other; without this option BoTorch would warn, and start all over.
#
# **Mind the units.** `optimize_acqf` climbs in the units of `bounds` and of $y$, and
# its L-BFGS-B stops where no partial derivative is above $10^{-5}$, an absolute
# number. With a box in dollars or metres and outcomes of order one it stops at its
# first point, without a warning; the model's `Normalize` and `Standardize` do not
# help, because they translate back. Here decisions already lie in a box of sides of
# order one. Where yours do not, keep them in the unit cube (`normalize` and
# `unnormalize` of `botorch.utils.transforms`), and fit the model to outcomes of order
# one (`standardize` from there). `RobustOptimizer` and the recipes do both for you.
#
# ## The loop


# %%
def run(scale: float) -> tuple[Tensor, Tensor]:
    """Play all rounds; return the decisions and the outcomes."""
    torch.manual_seed(0)  # optimize_acqf draws its starting points
    X, Y = X_design, problem.evaluate(X_design, C_world[:NUM_INITIAL]).unsqueeze(-1)
    for t in range(NUM_INITIAL, NUM_ROUNDS):
        C = C_world[:t]
        x, _ = optimize_acqf(
            robust_ucb(fit_model(X, C, Y), C, scale=scale),
            bounds=x_bounds,
            q=1,
            num_restarts=4,
            raw_samples=128,
            retry_on_optimization_warning=False,
        )
        y = problem.evaluate(x, C_world[t])  # the world shows its context: 1
        X, Y = torch.cat([X, x]), torch.cat([Y, y.unsqueeze(-1)])
    return X, Y


X, Y = run(scale=0.3)
C = C_world
model = fit_model(X, C, Y)
acqf = robust_ucb(model, C)

# %%
ax = plot_context_set(
    acqf.context_set, bounds=c_bounds, names=["context c (box scaled to [0, 1])"]
)
ax.set_ylabel("density (per unit of c)")
ax.set_title(f"The {len(C)} contexts seen so far", fontsize=10)
plt.show()

# %% [markdown]
# ## $L(x)$, made visible
#
# Take two decisions and draw their upper confidence bound over all contexts. The
# straight line is the tangent at the context where the curve is steepest: its slope is
# $L(x)$. If the contexts of the future move by $\varepsilon$ on average, then the
# expected score can fall by at most $\varepsilon L(x)$: much for the steep curve, less
# for the flatter one.

# %%
grid = torch.linspace(0, 1, 301).double().unsqueeze(-1)  # 301 x 1
pair = torch.tensor([[0.5, 0.5], [0.2, 0.2]]).double()  # 2 x d_x
with torch.no_grad():
    curves = acqf.scores(pair, grid)  # 2 x 301
steepness = acqf.lipschitz_constant(pair).detach()
rises = curves.diff(dim=-1) / grid.squeeze(-1).diff()  # slopes between grid points
steepest = rises.abs().argmax(-1)  # 2

fig, ax = plt.subplots(figsize=(6.6, 4.0), layout="constrained")
for i, x in enumerate(pair):
    name = f"x = ({x[0]:.1f}, {x[1]:.1f}), L = {steepness[i]:.0f}"
    ax.plot(grid, curves[i], color=COLOURS[i], linewidth=2, label=name)
    k = steepest[i]
    at, height, slope = grid[k].item(), curves[i, k].item(), rises[i, k].item()
    reach = torch.tensor([-0.06, 0.06]).double()
    ax.plot(
        at + reach,
        height + slope * reach,
        color=COLOURS[i],
        linewidth=6,
        alpha=0.4,
        solid_capstyle="butt",
    )
    ax.plot(at, height, "o", color=COLOURS[i], markersize=6)
ax.plot(
    C,
    torch.full_like(C, 0.02),
    "|",
    color="black",
    markersize=8,
    transform=ax.get_xaxis_transform(),
    label="contexts seen",
)
ax.set_xlabel("context c (box scaled to [0, 1])")
ax.set_ylabel("upper confidence bound of f(x, c)")
ax.legend(frameon=False)
ax.margins(x=0)
plt.show()

# %% [markdown]
# Now walk along the diagonal $x = (s, s)$. Above: $L(x)$. Below: the acquisition
# function with and without its penalty.

# %%
s = torch.linspace(0, 1, 41 if SMOKE_TEST else 161).double()
line = torch.stack([s, s], dim=-1)  # m x d_x
plain = robust_ucb(model, C, scale=0.0)
with torch.no_grad():
    slopes = acqf.lipschitz_constant(line)
    penalised, unpenalised = acqf(line.unsqueeze(1)), plain(line.unsqueeze(1))

fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(6.6, 5.4), sharex=True, layout="constrained"
)
top.plot(s, slopes, color=COLOURS[2], linewidth=2)
for i, x in enumerate(pair):
    top.plot(x[0], steepness[i], "o", color=COLOURS[i], markersize=7)
top.set_ylabel("L(x)\n(units of f per width of the box)")
top.set_ylim(bottom=0)
bottom.plot(s, unpenalised, "--", color=COLOURS[1], linewidth=2, label="expected UCB")
bottom.plot(s, penalised, color=COLOURS[0], linewidth=2, label="with the penalty")
bottom.fill_between(
    s, penalised, unpenalised, color="0.88", label=r"penalty $\varepsilon_t L(x)$"
)
bottom.set_xlabel("s, for the decision x = (s, s)")
bottom.set_ylabel("acquisition value")
bottom.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
bottom.margins(x=0)
plt.show()

# %% [markdown]
# Without the penalty the next decision would be near the middle of this line, where the
# expected score peaks. But the middle is also where the outcome hangs on the context
# most, and the penalty takes the peak away. The kinks of $L(x)$ are where one context
# takes over from another as the steepest.

# %% [markdown]
# ## Found, and certified
#
# `lipschitz_constant` *finds* $L(x)$: it looks at the contexts seen and at a set that
# fills the box, and goes uphill from the best. That is attained, so never too large,
# but it could in principle miss a steeper spot. `lipschitz_upper_bound` *proves* a
# number from the kernel (in the manner of Lemma 3 of the paper). It holds for every
# decision at once, and that makes it large.

# %%
certified = acqf.lipschitz_upper_bound().item()
print(f"steepest slope found on the diagonal  {slopes.max():6.1f}")
print(f"certified for every decision          {certified:6.1f}")

# %% [markdown]
# And the penalty itself is a bound: if $L(x)$ was found, no distribution within the
# radius can push the expected score below the acquisition value. The exact worst case
# over the contexts seen lies between the two. `DistributionallyRobustUCB` computes it
# for any ambiguity set:

# %%
unit = acqf.context_set.normalised(c_bounds)  # n x 1
ball = Wasserstein(acqf.radius, (unit - unit.mT).abs())
exact = DistributionallyRobustUCB(
    model, 2.25, acqf.context_set, UncertaintyObjective(ball)
)
with torch.no_grad():
    for x in pair:
        values = [a(x.reshape(1, 1, -1)).item() for a in (plain, exact, acqf)]
        print(
            f"x = ({x[0]:.1f}, {x[1]:.1f})   expected {values[0]:6.2f}   "
            f"worst case {values[1]:6.2f}   with the penalty {values[2]:6.2f}"
        )

# %% [markdown]
# ## Did it help?
#
# Setting `scale=0` gives the same loop without a penalty, which the paper calls ERBO.
# Same design, same contexts. The expected regret is measured under the true law.

# %%
X_plain, Y_plain = run(scale=0.0)
regret = {
    name: (problem.optimal_value - problem.expected_value(decisions)).cumsum(0)[None]
    for name, decisions in {"WDRBO": X, "no penalty (ERBO)": X_plain}.items()
}
ax = plot_regret(regret, ylabel="cumulative expected regret (units of f)")
ax.axvline(NUM_INITIAL, color="0.5", linewidth=1, linestyle=":")
ax.annotate(
    "design ends",
    xy=(NUM_INITIAL, 0.02),
    xycoords=("data", "axes fraction"),
    xytext=(4, 0),
    textcoords="offset points",
)
ax.set_xlabel("round")
plt.show()

# %% [markdown]
# And the recommendations? They maximise the same functions with `beta=0`, on the
# posterior mean. We judge them with everything known: under the true law, and under the
# worst law within the last radius of it.

# %%
truth = problem.true_contexts(256)  # n x 1
true_ball = Wasserstein(acqf.radius, (truth - truth.mT).abs())
equal = torch.full((len(truth),), 1 / len(truth)).double()


def judge(x: Tensor) -> str:
    """Expected and worst-case value of a decision (1 x d_x), by the true f."""
    worst = true_ball.worst_case(problem.evaluate(x, truth), equal).value.item()
    return f"true law {problem.expected_value(x).item():6.2f}   worst {worst:6.2f}"


for name, (decisions, outcomes, scale) in {
    "WDRBO": (X, Y, 0.3),
    "no penalty (ERBO)": (X_plain, Y_plain, 0.0),
}.items():
    x, _ = optimize_acqf(
        robust_ucb(fit_model(decisions, C, outcomes), C, beta=0.0, scale=scale),
        bounds=x_bounds,
        q=1,
        num_restarts=4,
        raw_samples=128,
        retry_on_optimization_warning=False,
    )
    print(f"{name:18s} x = ({x[0, 0]:.2f}, {x[0, 1]:.2f})   {judge(x)}")

side = torch.linspace(0, 1, 21).double()
lattice = torch.cartesian_prod(side, side)  # 441 x d_x
worst = true_ball.worst_case(problem.evaluate(lattice.unsqueeze(1), truth), equal).value
for name, x in {
    "best on average": problem.optimal_decision.unsqueeze(0),
    "best in worst case": lattice[worst.argmax()].unsqueeze(0),
}.items():
    print(f"{name:18s} x = ({x[0, 0]:.2f}, {x[0, 1]:.2f})   {judge(x)}")

# %% [markdown]
# On this problem the penalty does not pay. While it searched, WDRBO collected more
# regret, and what it recommends at the end is worse under both laws. The last two lines
# say why there was nothing to gain: the decision that is best on average is best in the
# worst case too, because away from its peak Ackley's function is flatter, but bad
# everywhere. On the diagonal above, $L(x)$ is large near the peak, so the penalty holds
# the search back from the very place to be. Nor did the law shift: regret is measured
# under the law of the data.
#
# There is something to gain only where the best decision on average is fragile and
# another one, nearly as good, is not, and where the law of the future is not the law of
# the data. So run `scale=0` beside it: it is one argument away. (This is one run of
# each, no measurement; the page *Benchmarks* of the documentation has those.)

# %% [markdown]
# ## Several decisions at a time
#
# `sequential=True` picks them one by one, each knowing those before it as pending. A
# pending decision has no context yet; the acquisition function pairs it with contexts
# that represent the set, and takes the model's own mean for its outcomes. So the
# uncertainty shrinks there, and the next decision looks elsewhere. Where little is left
# to shrink, pending decisions push the next one away all the same, by a little.

# %%
batch, _ = optimize_acqf(
    acqf,
    bounds=x_bounds,
    q=3,
    num_restarts=4,
    raw_samples=128,
    sequential=True,
    retry_on_optimization_warning=False,
)
for x in batch:
    print(f"({x[0]:.3f}, {x[1]:.3f})")
print(f"smallest distance between two of them: {torch.pdist(batch).min():.3f}")

# %% [markdown]
# Decisions that are already out there go in as `X_pending=...` at construction, or with
# `acqf.set_X_pending(...)`.
#
# ## Minimisation
#
# If low outcomes are good, fit the model to the outcomes as they are and turn the sign
# with a `posterior_transform`. Here we minimise $-f$, which must give the same
# acquisition function as maximising $f$, up to the accuracy of the fit:

# %%
cost_model = fit_model(X, C, -Y)
to_minimise = LipschitzPenalizedUCB(
    cost_model,
    beta=2.25,
    context_set=acqf.context_set,
    radius=acqf.radius,
    context_bounds=c_bounds,
    posterior_transform=ScalarizedPosteriorTransform(torch.tensor([-1.0]).double()),
)
with torch.no_grad():
    gap = (to_minimise(line.unsqueeze(1)) - penalised).abs().max()
print(f"largest difference on the diagonal: {gap:.1e}")

# %% [markdown]
# ## To take with you
#
# ```python
# acqf = LipschitzPenalizedUCB(
#     model,                                   # SingleTaskGP on [x, c]
#     beta=2.25,
#     context_set=ContextSet.empirical(C),
#     radius=0.3 / len(C) ** 0.5,
#     context_bounds=c_bounds,
# )
# x, value = optimize_acqf(acqf, bounds=x_bounds, q=1, num_restarts=10, raw_samples=512)
# ```
#
# Method: Micheli, Balta, Tsiamis and Lygeros, *Wasserstein Distributionally Robust
# Bayesian Optimization with Continuous Context*, AISTATS 2025.
