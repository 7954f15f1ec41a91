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
# # Your own set, in cvxpy
#
# *Advanced, fifteen minutes: you know some convex optimisation.*
#
# Sometimes you know more about the future than "it is near the data": the weather
# service names a range for the mean, an engineer a limit for the spread. No built-in
# set holds such facts. After this page you can write them down in cvxpy, a language
# for convex problems, and use the result like any other set: worst cases, gradients,
# acquisition functions. You know the one rule to obey, the errors you get when you do
# not, how to check what you wrote, and what it costs.
#
# (The set-up is the ice cream van of [which ambiguity
# set?](03_which_ambiguity_set.ipynb); you need not have read it.)

# %%
import os
import textwrap
import time
import warnings

import cvxpy as cp
import matplotlib.pyplot as plt
import pandas as pd
import torch
from botorch.exceptions.errors import InputDataError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    CvxpyAmbiguity,
    KullbackLeibler,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.plotting import COLOURS

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
ROWS = 8 if SMOKE_TEST else 64  # in the measurements

plt.rcParams.update({"figure.dpi": 110, "font.size": 9})

# %% [markdown]
# ## What the van knows
#
# A van loads its cones (the *decision*), then the day shows its temperature (the
# *context*). Cold days sell nothing, and above 33 degrees the cooler fails. There is a
# list of 60 days of last summer.

# %%
degrees = torch.arange(41).double()  # the contexts: 0, 1, ..., 40
DAYS = 60


def profit(cones: Tensor, degrees: Tensor) -> Tensor:
    """Coins a day; the two arguments broadcast."""
    demand = 300 * torch.sigmoid((degrees - 18) / 3)
    sold = cones * (1 - torch.exp(-demand / cones))
    melted = 0.9 * torch.sigmoid((degrees - 33) / 0.5)
    return 3 * sold * (1 - melted) - cones


bell = torch.exp(-0.5 * ((degrees - 22) / 5).square())
days = bell.multinomial(
    DAYS, replacement=True, generator=torch.Generator().manual_seed(0)
)
p = torch.bincount(days, minlength=41).double() / DAYS  # the reference distribution
f = profit(torch.tensor(200.0).double(), degrees)  # 41 scores: 200 cones
center = (p @ degrees).item()
spread = (p @ (degrees - center).square()).sqrt().item()
print(f"mean of the list {center:.1f} degrees, standard deviation {spread:.1f}")

# %% [markdown]
# For next summer we are willing to believe three things of the distribution $q$ of the
# temperature:
#
# 1. **An ellipsoid.** The shares differ from the list by chance. Each difference is
#    counted in standard errors; their root sum of squares is at most the *radius*. (One
#    day is added to each count, or a temperature never seen would have no error.)
# 2. **The mean** moves by at most one degree.
# 3. **The spread** around the old mean grows by at most a tenth.
#
# A set is a function. It gets the distribution `q`, which cvxpy may choose, and two
# placeholders, the reference weights `p` and the `radius`; it returns a list of
# constraints. That `q` is a distribution is added automatically. Everything else must
# be numbers.

# %%
c = degrees.numpy()
standard_error = ((p + 1 / DAYS) / DAYS).sqrt().numpy()
from_center = (c - center) ** 2  # 41 squared distances


def ellipsoid(q, p, radius):
    return [cp.norm((q - p) / standard_error) <= radius]


def facts(q, p, radius):
    return [cp.abs(c @ q - c @ p) <= 1.0, from_center @ q <= (1.1 * spread) ** 2]


def both(q, p, radius):
    return ellipsoid(q, p, radius) + facts(q, p, radius)


RADIUS = 4.0
ambiguity = CvxpyAmbiguity(both, radius=RADIUS)
robust = ambiguity.worst_case(f, p)
print(f"mean {p @ f:.1f} coins, worst case {robust.value:.1f} ({robust.status.value})")

# %% [markdown]
# What does each part contribute? Take them one at a time.

# %%
parts = {
    "ellipsoid": CvxpyAmbiguity(ellipsoid, RADIUS),
    "mean and spread": CvxpyAmbiguity(facts, RADIUS),
    "both": ambiguity,
}
fig, axes = plt.subplots(
    3, 1, figsize=(6.6, 6), sharex=True, sharey=True, layout="constrained"
)
for ax, (name, part) in zip(axes, parts.items(), strict=True):
    found = part.worst_case(f, p)
    ax.bar(degrees, 100 * found.weights, color=COLOURS[0], label="worst case")
    ax.stairs(100 * p, torch.arange(42) - 0.5, color="black", label="the list")
    ax.set_title(f"{name}: {found.value:.0f} coins")
    ax.set_ylabel("share of days (%)")
    ax.set_ylim(0, 25)
    for tall in (found.weights > 0.25).nonzero().flatten():
        share = f"{100 * found.weights[tall]:.0f}% "
        ax.annotate(share, (degrees[tall] - 0.5, 18), ha="right", color=COLOURS[0])
axes[0].legend(frameon=False, loc="upper left")
axes[2].set_xlabel("temperature (degrees)")
plt.show()

# %% [markdown]
# The ellipsoid alone moves the mean and fattens both tails. The facts alone allow a
# distribution that looks like nothing that was ever seen: a few temperatures take all
# the days. Together they leave a plausible distribution, and it costs least.
#
# ## The rule: DPP
#
# `worst_case` solves the same problem over and over: for each decision, each restart,
# each step. Your description is translated for a solver only *once*. That works if the
# placeholders `p` and `radius` enter linearly: each new problem then only inserts new
# numbers. cvxpy calls this *disciplined parametrized programming*, DPP. In practice:
#
# - `p` and `radius` may be added, and multiplied by numbers or by variables;
# - they must not be squared, multiplied by each other, or divided by.
#
# The rule concerns the way the set is written, not the set. These two are the same set:


# %%
def squared(q, p, radius):  # not DPP: the radius is squared
    return [cp.sum_squares(q - p) <= radius**2]


def not_squared(q, p, radius):
    return [cp.norm(q - p) <= radius]


def attempt(problem_builder, radius: float) -> None:
    """Print the worst case, or the error."""
    print(f"{problem_builder.__name__}:")
    try:
        found = CvxpyAmbiguity(problem_builder, radius).worst_case(f, p)
        print(f"  fine, the worst case is {found.value:.3f}\n")
    except InputDataError as error:
        print(textwrap.indent(textwrap.fill(str(error), 80), "  ") + "\n")


attempt(squared, radius=0.1)
attempt(not_squared, radius=0.1)

# %% [markdown]
# The usual ways out. A *number* is computed once, before the set is made, from the
# reference weights that you have (as `center` and `from_center` above); it does not
# follow when the reference changes, so make the set again then.
#
# | not DPP | why | write |
# |---|---|---|
# | `sum_squares(q - p) <= radius**2` | `radius` squared | `norm(q - p) <= radius` |
# | `cp.square(c - c @ p) @ q <= s` | `p` squared | `from_center @ q <= s`, a number |
# | `quad_form(q - p, A) <= radius**2` | the same | `norm(L.T @ (q - p)) <= radius` |
# | `q <= radius * p` | `radius` times `p` | `q <= radius * shares`, numbers |
# | `q / p <= 2` | divided by `p` | `q <= 2 * p` |
#
# (In the third row $A = L L^\top$.) Other mistakes have messages too: a set that is not
# convex, a function that returns no list, and facts that contradict each other.


# %%
def far_away(q, p, radius):  # at LEAST as far as the radius: not convex
    return [cp.norm(q - p) >= radius]


def no_list(q, p, radius):
    return cp.norm(q - p) <= radius


def contradiction(q, p, radius):
    return [c @ q >= 30, cp.abs(c @ q - c @ p) <= radius]


attempt(far_away, radius=0.1)
attempt(no_list, radius=0.1)
attempt(contradiction, radius=1.0)

# %% [markdown]
# ## Check it
#
# **Against cvxpy itself.** The same problem, stated in full and solved directly:

# %%
q = cp.Variable(41, nonneg=True)
direct = cp.Problem(
    cp.Minimize(f.numpy() @ q), [cp.sum(q) == 1, *both(q, p.numpy(), RADIUS)]
)
direct.solve(solver=cp.CLARABEL)
print(f"direct {direct.value:.6f}, ours {robust.value:.6f}")
gap = abs(q.value - robust.weights.numpy()).max()
print(f"largest difference of the weights {gap:.1e}")

# %% [markdown]
# **With `distance`.** It returns the smallest radius whose set contains a distribution.
# The worst case lies on the boundary. A distribution that breaks a fact lies in no set,
# however large:

# %%
hotter = torch.roll(p, 2)  # the list, two degrees warmer
print(f"worst case: {ambiguity.distance(p, robust.weights):.4f}")
print(f"two degrees warmer: {ambiguity.distance(p, hotter):.4f}")

# %% [markdown]
# **The gradients.** The value is differentiable in the scores, in the radius and in the
# reference weights. That is what an acquisition function needs. Compare with small
# steps:

# %%
scores = f.clone().requires_grad_()
radius = torch.tensor(RADIUS).double().requires_grad_()
ambiguity.worst_case(scores, p, radius=radius).value.backward()


def value(scores: Tensor, radius: float) -> float:
    """The worst case, as a number."""
    return ambiguity.worst_case(scores, p, radius=torch.tensor(radius).double()).value


h = 1e-2
by_steps = (value(f, RADIUS + h) - value(f, RADIUS - h)) / (2 * h)
print(f"d value / d radius     {radius.grad:.4f}, by steps {by_steps:.4f}")
for i in (10, 20, 34):
    step = torch.zeros_like(f)
    step[i] = 1.0  # one coin more at this temperature
    by_steps = (value(f + step, RADIUS) - value(f - step, RADIUS)) / 2
    print(f"d value / d score {i:2d}   {scores.grad[i]:.4f}, by steps {by_steps:.4f}")
same = torch.equal(scores.grad, robust.weights)
print(f"the gradient in the scores is the worst-case distribution: {same}")

# %% [markdown]
# ## What it costs
#
# Every row of scores is one convex problem, solved on the CPU. The built-in sets have
# solvers of their own that treat all rows at once. Here are both, for the same rows.
# "First call" includes the translation, once for each number of contexts.
#
# We describe three built-in sets *again* in cvxpy, which also shows that the
# descriptions agree. The last needs variables of its own: a plan that says how much
# moves from where to where.

# %%
cost = (degrees[:, None] - degrees).abs()  # 41 x 41


def total_variation(q, p, radius):
    return [cp.norm1(q - p) <= radius]


def kullback_leibler(q, p, radius):
    return [cp.sum(cp.rel_entr(q, p)) <= radius]


def wasserstein(q, p, radius):
    plan = cp.Variable((41, 41), nonneg=True)  # from row to column
    return [
        cp.sum(plan, axis=1) == p,
        cp.sum(plan, axis=0) == q,
        cp.sum(cp.multiply(cost.numpy(), plan)) <= radius,
    ]


def seconds(ambiguity: AmbiguitySet, scores: Tensor, repeats: int = 3) -> float:
    """How long the worst cases of all rows take, the best of some repeats."""
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        ambiguity.worst_case(scores, p)
        took.append(time.perf_counter() - start)
    return min(took)


# %%
loads = torch.linspace(20, 300, ROWS).double()
many = profit(loads[:, None], degrees)  # rows x 41
pairs = {
    "TotalVariation": (TotalVariation(0.2), total_variation),
    "KullbackLeibler": (KullbackLeibler(0.05), kullback_leibler),
    "Wasserstein": (Wasserstein(0.5, cost), wasserstein),
    "ellipsoid and facts": (None, both),
}
rows = {}
for name, (built_in, problem_builder) in pairs.items():
    own = CvxpyAmbiguity(problem_builder, built_in.radius if built_in else RADIUS)
    first = seconds(own, many[:1], repeats=1)
    row = {
        "first call, s": f"{first:.2f}",
        "cvxpy, ms a row": f"{1e3 * seconds(own, many) / ROWS:.2f}",
    }
    if built_in:
        gap = own.worst_case(many, p).value - built_in.worst_case(many, p).value
        row["built in, ms a row"] = f"{1e3 * seconds(built_in, many) / ROWS:.4f}"
        row["largest difference, coins"] = f"{gap.abs().max():.0e}"
    rows[name] = row
pd.DataFrame(rows).T.fillna("")

# %% [markdown]
# So use a built-in set if one fits. (And each convex built-in set brings its own
# description: `worst_case(..., solver="cvxpylayers")` uses that, to check with.) The
# price of a description grows with what it adds: the plan of `wasserstein` has 41 times
# 41 variables.
#
# ## In an acquisition function
#
# Nothing changes. Below are a model of the profit from 24 trial days, a context set,
# and the set (in an [`UncertaintyObjective`](../docs/api/objectives.md)):

# %%
bounds = torch.tensor([[20.0], [300.0]]).double()
box = torch.tensor([[20.0, 0.0], [300.0, 40.0]]).double()
Z = draw_sobol_samples(box, n=24, q=1, seed=0).squeeze(1)  # [x, c]
Y = profit(Z[:, :1], Z[:, 1:])
model = SingleTaskGP(Z, Y, input_transform=Normalize(2, bounds=box))
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))


def robust_ucb(objective: UncertaintyObjective) -> DistributionallyRobustUCB:
    """An upper confidence bound of the profit, collapsed over the temperatures."""
    context_set = ContextSet(degrees.unsqueeze(-1), p)
    return DistributionallyRobustUCB(model, 2.25, context_set, objective)


def optimise(ambiguity: AmbiguitySet, **budget: int) -> tuple[float, float, float]:
    """The best decision, its acquisition value, and the seconds it took."""
    acqf = robust_ucb(UncertaintyObjective.dro(ambiguity))
    torch.manual_seed(0)  # optimize_acqf draws its starting points
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # line searches may give up
        x, best = optimize_acqf(
            acqf, bounds, q=1, retry_on_optimization_warning=False, **budget
        )
    return x.item(), best.item(), time.perf_counter() - start


budgets = {
    "small": {"num_restarts": 2, "raw_samples": 16},
    "usual": {"num_restarts": 4, "raw_samples": 64}
    if SMOKE_TEST
    else {"num_restarts": 10, "raw_samples": 512},
}
sets = {"ellipsoid and facts": ambiguity, "TotalVariation": TotalVariation(0.2)}
for size, budget in budgets.items():
    for name, choice in sets.items():
        x, best, took = optimise(choice, **budget)
        print(
            f"{size} budget, {name:20s} {x:.1f} cones, "
            f"value {best:.1f} coins, {took:.2f} s"
        )

# %% [markdown]
# A small budget (few restarts, few raw samples) keeps a set of your own quick. With one
# decision and a smooth model that is enough here: a grid finds the same place. With
# many decisions, search with a built-in set that is near what you mean, and use your
# own for the last step.

# %%
grid = torch.linspace(20, 300, 57).double().reshape(-1, 1, 1)
with torch.no_grad():
    curve = robust_ucb(UncertaintyObjective.dro(ambiguity))(grid)
    plain = robust_ucb(UncertaintyObjective.so())(grid)
x, best, _ = optimise(ambiguity, **budgets["small"])

fig, ax = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
ax.plot(grid.flatten(), plain, "--", color=COLOURS[1], label="no ambiguity")
ax.plot(grid.flatten(), curve, color=COLOURS[0], label="ellipsoid and facts")
ax.plot(x, best, "o", color=COLOURS[0], label="found by optimize_acqf")
ax.set_xlabel("cones loaded")
ax.set_ylabel("acquisition value (coins)")
ax.legend(frameon=False)
ax.margins(x=0)
plt.show()

# %% [markdown]
# ## To take with you
#
# ```python
# def my_set(q, p, radius):              # cvxpy: a variable and two parameters
#     return [cp.norm((q - p) / s) <= radius, A @ q <= b]
#
# ambiguity = CvxpyAmbiguity(my_set, radius=4.0)
# UncertaintyObjective.dro(ambiguity)    # into any acquisition function
# RobustOptimizer("dro", ..., ambiguity_set=ambiguity, reference=context_set)
# ```
#
# - Everything but `q`, `p` and `radius` is a constant, fixed at the first call. Do not
#   change it afterwards; make a new set.
# - A set of your own is a Python function, so it cannot be written to a journal: run
#   `RobustOptimizer` without one.
# - A value that cannot be proved comes with a warning, and is a lower bound.
#
# [Your own set](../docs/extending.md) says what else can be added and tested,
# [ambiguity sets](../docs/api/ambiguity.md) has `CvxpyAmbiguity` with all options, and
# [which ambiguity set?](03_which_ambiguity_set.ipynb) the built-in sets.
