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
# # Which ambiguity set?
#
# *Intermediate, ten minutes: no mathematics but in the last section.*
#
# A robust method prepares for every distribution of the context that is *not too far*
# from the one in the data. What "far" means is your choice, and it decides what you are
# protected from. After this page you have seen the worst case of each set of the
# library, on one example and at comparable strength. How large the radius should be is
# the subject of [the next tutorial](03b_the_radius_in_your_units.ipynb).
#
# ## The answer first
#
# <!-- numbers: not measured: names -->
# | your situation | take |
# |---|---|
# | contexts on a scale; the world may drift a bit | `Wasserstein` |
# | contexts without an order: customers, machines | `TotalVariation` |
# | all cases are known, their frequencies are not | `KullbackLeibler` |
# | the same, and variances are easier to explain | `ModifiedChiSquared` |
# | new cases may come, known ones will not vanish | `ChiSquared` |
# | the worst part of the days is what counts | `ConditionalValueAtRisk` |
# | several context dimensions, on a grid | `MaximumMeanDiscrepancy` |
# | nothing is known about the frequencies | `FullSimplex` |
# | facts (a mean, a bound) | [`CvxpyAmbiguity`](04_your_own_set_in_cvxpy.ipynb) |
#
# If in doubt: contexts with units, `Wasserstein`; contexts without, `TotalVariation`.
# The rest of this page is the reason. [Ambiguity sets](../docs/api/ambiguity.md) has
# each class with its formula.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    ConditionalValueAtRisk,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    ModifiedChiSquared,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.plotting import COLOURS, DASHES

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
ROUNDS = 6 if SMOKE_TEST else 20  # of the optimisation at the end

plt.rcParams.update({"figure.dpi": 110, "font.size": 9})

# %% [markdown]
# ## An ice cream van
#
# Every morning a van loads its cones (the *decision*); then the day shows its
# temperature (the *context*). A cone costs 1 coin and sells for 3. On cold days nobody
# comes. The warmer it is the better, until at about 33 degrees the cooler fails, and
# nine tenths of the cones melt unpaid.
#
# So there are two kinds of bad days. Hot ones are close to the best days. Cold ones
# are far from them, and the worst of all.

# %%
degrees = torch.arange(41).double()  # the contexts: 0, 1, ..., 40


def profit(cones: Tensor, degrees: Tensor) -> Tensor:
    """Coins a day; the two arguments broadcast."""
    demand = 300 * torch.sigmoid((degrees - 18) / 3)
    sold = cones * (1 - torch.exp(-demand / cones))
    melted = 0.9 * torch.sigmoid((degrees - 33) / 0.5)
    return 3 * sold * (1 - melted) - cones


f = profit(torch.tensor(200.0).double(), degrees)  # 41 scores, one per temperature

# %% [markdown]
# The van has a list of 60 days of last summer. We know the law that they came from; the
# van does not.

# %%
DAYS = 60
edges = torch.arange(42).double() - 0.5
edges[0], edges[-1] = -torch.inf, torch.inf
law = torch.distributions.Normal(22.0, 5.0).cdf(edges).diff()  # 41 probabilities


def histogram(days: Tensor) -> Tensor:
    """From days, `... x t`, to the share of each temperature, `... x 41`."""
    counts = torch.nn.functional.one_hot(days, 41).double()
    return counts.mean(dim=-2)


generator = torch.Generator().manual_seed(0)
days = law.multinomial(DAYS, replacement=True, generator=generator)  # t
p = histogram(days)  # the reference distribution
mean, seen = p @ f, p > 0

fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(6.6, 4.6), sharex=True, layout="constrained"
)
top.plot(degrees, f, "o-", color="black", markersize=3, linewidth=1)
top.axhline(mean, color="0.5", linewidth=1, linestyle=":")
top.annotate("mean over the 60 days", (0.3, mean + 8), color="0.3")
top.set_ylabel("profit with 200 cones\n(coins)")
bottom.bar(degrees, 100 * p, width=0.9, color="0.75", label="60 days")
bottom.plot(degrees, 100 * law, color="black", linewidth=1, label="the true law")
bottom.set_xlabel("temperature (degrees)")
bottom.set_ylabel("share of days (%)")
bottom.legend(frameon=False)
bottom.margins(x=0.01)
plt.show()
print(f"mean profit {mean:.0f} coins; worst temperature of all {f.min():.0f} coins,")
print(f"worst temperature among the 60 days {f[seen].min():.0f} coins")

# %% [markdown]
# ## Seven sets, made comparable
#
# Each set measures distance in a unit of its own, so equal radii mean nothing. We
# choose the radii so that every adversary does the *same damage* to this plan: the
# worst-case mean is four fifths of the mean.
#
# Two of the sets need a notion of near. `Wasserstein` takes the cost of moving a day
# from one temperature to another: here, the number of degrees. `MaximumMeanDiscrepancy`
# takes a kernel: how similar two temperatures are, here a bell curve three degrees
# wide.

# %%
cost = (degrees[:, None] - degrees).abs()  # 41 x 41, in degrees
kernel_matrix = torch.exp(-0.5 * (cost / 3).square())

SETS: dict[str, AmbiguitySet] = {
    "TotalVariation": TotalVariation(0.0),
    "KullbackLeibler": KullbackLeibler(0.0),
    "ModifiedChiSquared": ModifiedChiSquared(0.0),
    "ChiSquared": ChiSquared(0.0),
    "ConditionalValueAtRisk": ConditionalValueAtRisk(0.0),
    "Wasserstein": Wasserstein(0.0, cost),
    "MaximumMeanDiscrepancy": MaximumMeanDiscrepancy(0.0, kernel_matrix),
}


def radius_for(ambiguity: AmbiguitySet, target: Tensor) -> float:
    """The radius at which the worst case falls to the target, by bisection."""
    low, high = 0.0, 64.0
    for _ in range(30):
        middle = torch.tensor((low + high) / 2).double()
        value = ambiguity.worst_case(f, p, radius=middle).value
        low, high = (middle.item(), high) if value > target else (low, middle.item())
    return high


for name, ambiguity in SETS.items():
    SETS[name] = ambiguity.with_radius(radius_for(ambiguity, 0.8 * mean))
worst = {name: ambiguity.worst_case(f, p) for name, ambiguity in SETS.items()}

# %% tags=["thumbnail"]
highest = 100 * max(found.weights.max().item() for found in worst.values())
fig, axes = plt.subplots(4, 2, figsize=(9.4, 8.4), sharex=True, layout="constrained")
for i, (ax, (name, found)) in enumerate(zip(axes.flat, worst.items(), strict=False)):
    ax.bar(degrees, 100 * p, width=0.95, color="0.8")
    ax.bar(degrees, 100 * found.weights, width=0.45, color=COLOURS[i])
    ax.set_title(f"{name}, radius {SETS[name].radius:.3g}", fontsize=9)
    ax.set_ylabel("share of days (%)")
    ax.margins(x=0.01)
for ax in axes.flat[:-1]:
    ax.set_ylim(0, 1.05 * highest)
axes[3, 1].plot(degrees, f, color="black")
axes[3, 1].set_title("for comparison: the profit", fontsize=9)
axes[3, 1].set_ylabel("coins")
for ax in axes[3]:
    ax.set_xlabel("temperature (degrees)")
plt.show()

# %% [markdown]
# Grey: the 60 days. In colour: the worst distribution in the set. All panels have one
# scale. Every set costs the van the same, each in its own way.
#
# - **`TotalVariation`** takes some of the best days away and puts all of them on the
#   single worst temperature. The distance does not matter, nor whether that temperature
#   was ever seen.
# - **`KullbackLeibler`** makes every bad day more frequent and every good day rarer, by
#   a factor that falls exponentially with the profit. A temperature that was never seen
#   gets no weight.
# - **`ModifiedChiSquared`** does the same with a factor that falls on a straight line.
# - **`ChiSquared`** has the roles of the two distributions swapped. It never removes a
#   temperature completely, but it may add an unseen one: the worst.
# - **`ConditionalValueAtRisk`** drops the best days, and the weights of all others grow
#   by the same factor. It is the mean over the worst part of the list.
# - **`Wasserstein`** moves days for which a short distance does much damage: the hot
#   ones move just above the temperature at which the cooler fails. Frost is too far
#   away.
# - **`MaximumMeanDiscrepancy`** makes changes that the kernel hardly distinguishes.
#   Days of nearby temperatures are put together, because they are nearly the same for
#   the kernel, and a few days move to each of several bad temperatures.
#
# The same in numbers: how many days (in %) moved at all, how far they had to move on
# average over all days, and how many now lie on a temperature that was never seen.

# %%
rows = {
    name: {
        "days moved, %": 100 * (found.weights - p).abs().sum().item() / 2,
        "degrees, on average": SETS["Wasserstein"].distance(p, found.weights).item(),
        "never seen, %": 100 * found.weights[~seen].sum().item(),
    }
    for name, found in worst.items()
}
pd.DataFrame(rows).T.round(2)

# %% [markdown]
# ### How far does each set find the others' worst case?
#
# `distance` measures any distribution. Each row is the worst case of one set; each
# column measures it with another, as a multiple of that set's own radius above. So 1 is
# on the boundary, and more than 1 means that the set of this column does *not* protect
# from that row.

# %%
table = {
    name: {
        other: (ambiguity.distance(p, found.weights) / ambiguity.radius).item()
        for other, ambiguity in SETS.items()
    }
    for name, found in worst.items()
}
short = {
    "TotalVariation": "TV",
    "KullbackLeibler": "KL",
    "ModifiedChiSquared": "mod. chi2",
    "ChiSquared": "chi2",
    "ConditionalValueAtRisk": "CVaR",
    "Wasserstein": "W",
    "MaximumMeanDiscrepancy": "MMD",
}
pd.DataFrame(table).T.rename(columns=short).map(
    lambda v: f"{v:.1f}" if v < 1000 else "inf" if v == torch.inf else "> 1000"
)

# %% [markdown]
# Note the infinite entries. `KullbackLeibler`, `ModifiedChiSquared` and
# `ConditionalValueAtRisk` give no weight to a temperature that is not in the list,
# whatever the radius. `ChiSquared` never takes all weight from one that is.
#
# ## The worst case as the radius grows
#
# Write $v(\varepsilon)$ for the worst-case mean at the radius $\varepsilon$. It starts
# at the mean and never rises; it is convex, so the first bit of radius costs most. One
# batched call solves a whole curve: `worst_case` takes one radius per row.
#
# The dashed line is the tangent at radius zero, from `sensitivity`. The dot is the
# radius of the pictures above.

# %%
steps = torch.linspace(0, 4, 9 if SMOKE_TEST else 41).double()
fig, axes = plt.subplots(2, 4, figsize=(9.4, 4.4), sharey=True, layout="constrained")
for i, (ax, (name, ambiguity)) in enumerate(zip(axes.flat, SETS.items(), strict=False)):
    radii = steps * ambiguity.radius
    value = ambiguity.worst_case(f, p, radius=radii).value  # one row per radius
    slope = ambiguity.with_radius(0.0).sensitivity(f, p)
    ax.plot(radii, value, color=COLOURS[i], linewidth=2)
    if slope.isfinite():
        ax.plot(radii, mean + slope * radii, "--", color="0.4", linewidth=1)
    else:
        ax.annotate("infinitely steep\nat zero", (0.1, 0.1), xycoords="axes fraction")
    ax.plot(ambiguity.radius, 0.8 * mean, "o", color=COLOURS[i])
    ax.set_title(name, fontsize=9)
    ax.set_xlabel("radius")
    ax.set_ylim(20, mean + 10)
axes[0, 0].set_ylabel("worst-case mean (coins)")
axes[1, 0].set_ylabel("worst-case mean (coins)")
axes[1, 3].axis("off")
plt.show()

# %% [markdown]
# Two families. The divergences (`KullbackLeibler` and both chi-squared) behave like a
# *squared* distance: their radius counts like a variance, and the loss grows with its
# square root. To halve the damage of a small radius, quarter it. For the other four a
# small enough radius costs in proportion to it. How small that is differs. Total
# variation stays on its tangent for a long time. MMD leaves it at once: with a wide
# kernel a tiny radius does much damage, but more radius adds little.
#
# How low can it fall? Below, the radius is in multiples of the dot, on a logarithmic
# scale.

# %%
multiples = torch.logspace(-2, 4, 9 if SMOKE_TEST else 41).double()
fig, ax = plt.subplots(figsize=(6.6, 4.0), layout="constrained")
for i, (name, ambiguity) in enumerate(SETS.items()):
    value = ambiguity.worst_case(f, p, radius=multiples * ambiguity.radius).value
    ax.plot(
        multiples,
        value,
        color=COLOURS[i],
        linestyle=DASHES[i],
        marker="os^Dv*X"[i],
        markersize=4,
        markevery=(2 + i % 3, 3),
        label=name,
    )
for floor, text in (
    (f.min(), "worst temperature of all"),
    (f[seen].min(), "worst temperature seen"),
):
    ax.axhline(floor, color="0.6", linewidth=0.8, zorder=0)
    ax.annotate(text, (0.011, floor + 3), fontsize=8, color="0.3")
ax.set_xscale("log")
ax.set_xlabel("radius, in multiples of the comparable one")
ax.set_ylabel("worst-case mean (coins)")
ax.legend(frameon=False, fontsize=8, loc="center left")
ax.margins(x=0)
plt.show()

# %% [markdown]
# The floor of the three sets that stay within the list is the worst day *in the list*.
# For the others it is the worst day of all: from some radius on, the worst case is
# frost every day. `ChiSquared` approaches that value and never reaches it.
#
# ## Does it change the decision?
#
# At the same damage to the plan of 200 cones, which load is best in the worst case?
# (All loads times all temperatures, one call per set.)

# %%
loads = torch.linspace(20, 300, 141).double()
scores = profit(loads[:, None], degrees)  # 141 x 41
best = {"no ambiguity": (scores @ p)} | {
    name: ambiguity.worst_case(scores, p).value for name, ambiguity in SETS.items()
}
pd.DataFrame(
    {
        name: {
            "cones": loads[value.argmax()].item(),
            "worst-case mean": value.max().item(),
            "mean": (scores @ p)[value.argmax()].item(),
            "mean under the true law": (scores @ law)[value.argmax()].item(),
        }
        for name, value in best.items()
    }
).T.round(0).astype(int)

# %% [markdown]
# Every set advises fewer cones than the list does, and at equal damage they advise
# nearly the same number here. This is one example with one decision; check it on your
# own problem.
#
# ## Why each of them?
#
# - `Wasserstein`: its radius has the units of the context ("half a degree"). It reaches
#   places never seen, but only near ones.
# - `TotalVariation`: "up to so many percent of the days may be anything" needs no
#   notion of near. Often it is too pessimistic.
# - `KullbackLeibler`, `ModifiedChiSquared`: they reweight the list and add nothing. A
#   small radius means "the mean less so many standard deviations".
# - `ConditionalValueAtRisk`: one number to explain, the level; no distance to choose.
# - `MaximumMeanDiscrepancy`: the radius that $t$ data need does not grow with the
#   dimension, and it compares contexts as the model's kernel does. It is the slowest of
#   the built-in sets.
#
# ## Put to work
#
# The [recipe](../docs/methods.md) `dro` takes any set. The sets that know their
# contexts (a cost, a kernel) need the reference on the same contexts. Here: half a
# degree, on average, of error of the list.

# %%
bounds = torch.tensor([[20.0], [300.0]]).double()
context_bounds = torch.tensor([[0.0], [40.0]]).double()
reference = ContextSet(degrees.unsqueeze(-1), p)
options = {"reference": reference, "num_restarts": 4, "raw_samples": 128}

# %%
van = RobustOptimizer(
    "dro", bounds, context_bounds, ambiguity_set=Wasserstein(0.5, cost), **options
)
for today in law.multinomial(ROUNDS, True, generator=torch.Generator().manual_seed(1)):
    x, c = van.ask(), degrees[today].reshape(1, 1)
    van.tell(x, c, profit(x, c))
robust = van.recommend()

# %%
ball = Wasserstein(0.5, cost)
exact = ball.worst_case(scores, p).value
truly = profit(robust.x, degrees)  # 41 scores of the recommended load
print(f"recommended: {robust.x.item():.0f} cones, in coins")
print(f"  by the model   mean {robust.expected_value:.0f}, ", end="")
print(f"worst case {robust.worst_case_value:.0f}")
print(f"  in truth       mean {p @ truly:.0f}, ", end="")
print(f"worst case {ball.worst_case(truly, p).value:.0f}")
print(f"best, if the profit were known: {loads[exact.argmax()]:.0f} cones, ", end="")
print(f"worst case {exact.max():.0f}")
hot = (van.history.C > 33).sum().item()
print(f"days above 33 degrees among the {ROUNDS} so far: {hot}")

# %% [markdown]
# What counts is the worst case in truth, next to the best possible one. The line "by
# the model" is the van's prediction; with so few hot days it has hardly any data of a
# broken cooler. An ambiguity set guards against wrong *frequencies* of the contexts.
# The outcome in each of them still comes from the model.

# %% [markdown]
# ## The same in symbols
#
# With scores $f_i = f(x, c_i)$, reference weights $p$ and the simplex $\Delta$,
#
# $$v(\varepsilon) = \min \{ q^\top f : q \in \Delta,\ d(p, q) \le \varepsilon \}.$$
#
# <!-- numbers: not measured: formulas -->
# | set | $d(p, q)$ |
# |---|---|
# | `TotalVariation` | $\sum_i \lvert p_i - q_i \rvert$ (no factor 1/2) |
# | `KullbackLeibler` | $\sum_i q_i \log (q_i / p_i)$ |
# | `ModifiedChiSquared` | $\sum_i (q_i - p_i)^2 / p_i$ |
# | `ChiSquared` | $\sum_i (q_i - p_i)^2 / q_i$ |
# | `ConditionalValueAtRisk` | $\max_i q_i / p_i - 1$ |
# | `Wasserstein` | $\min_\pi \sum_{ij} \pi_{ij} C_{ij}$ |
# | `MaximumMeanDiscrepancy` | $\sqrt{(p - q)^\top K (p - q)}$ |
#
# CVaR at the level $\alpha$ has the radius $\alpha / (1 - \alpha)$. The minimum in
# Wasserstein's distance runs over all plans $\pi \ge 0$ that turn $p$ into $q$.
#
# The gradient of $v$ in the scores is the worst-case distribution itself, and its
# derivative in the radius is `-multiplier`: `worst_case` returns both.
