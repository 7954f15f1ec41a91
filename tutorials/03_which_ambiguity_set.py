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
# from the one in the data. What "far" means decides what you are protected from;
# [how far](03b_the_radius_in_your_units.ipynb) is another question.
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
# If in doubt: `Wasserstein` for contexts with units, `TotalVariation` for others. The
# rest is the reason ([all classes](../docs/api/ambiguity.md)).
#
# ## An ice cream van
#
# A van loads cones (the *decision*); then comes the temperature (the *context*). A cone
# costs 1 coin and sells for 3. The warmer the better, until at about 33 degrees the
# cooler fails, and nine tenths of the cones melt unpaid. So hot bad days are close to
# the best ones; cold ones are far from them, and worse. There is a list of 60 days.

# %%
import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import Tensor

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
from botorch_drbo.plotting import COLOURS, DASHES

plt.rcParams.update({"figure.dpi": 100, "font.size": 10})

degrees = torch.arange(41).double()  # the contexts: 0, 1, ..., 40


def profit(cones: Tensor, degrees: Tensor) -> Tensor:
    """Coins a day."""
    demand = 300 * torch.sigmoid((degrees - 18) / 3)
    sold = cones * (1 - torch.exp(-demand / cones))
    melted = 0.9 * torch.sigmoid((degrees - 33) / 0.5)
    return 3 * sold * (1 - melted) - cones


f = profit(torch.tensor(200.0).double(), degrees)  # 41 scores, one per temperature
edges = torch.arange(42).double() - 0.5
edges[0], edges[-1] = -torch.inf, torch.inf
law = torch.distributions.Normal(22.0, 5.0).cdf(edges).diff()  # of all days
days = law.multinomial(60, True, generator=torch.Generator().manual_seed(0))
p = days.bincount(minlength=41) / 60  # the reference distribution
p, seen = p.double(), p > 0
mean = p @ f

# %% [markdown]
# ## Seven sets, made comparable
#
# Each set measures distance in a unit of its own. The radii below make every adversary
# do the *same damage* to a plan of 200 cones: the worst-case mean is four fifths of the
# mean. `Wasserstein` takes the cost of moving a day to another temperature, here the
# degrees; `MaximumMeanDiscrepancy` a kernel, here a bell curve three degrees wide.

# %%
cost = (degrees[:, None] - degrees).abs()  # 41 x 41, in degrees
SETS: dict[str, AmbiguitySet] = {
    "TotalVariation": TotalVariation(0.0),
    "KullbackLeibler": KullbackLeibler(0.0),
    "ModifiedChiSquared": ModifiedChiSquared(0.0),
    "ChiSquared": ChiSquared(0.0),
    "ConditionalValueAtRisk": ConditionalValueAtRisk(0.0),
    "Wasserstein": Wasserstein(0.0, cost),
    "MaximumMeanDiscrepancy": MaximumMeanDiscrepancy(
        0.0, torch.exp(-0.5 * (cost / 3).square())
    ),
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
fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(6.6, 6), sharex=True, height_ratios=(2, 3), layout="constrained"
)
top.plot(degrees, f, color="black")
top.set_ylabel("profit (coins)")
shares = top.twinx()
shares.bar(degrees, 100 * p, color="0.8")
shares.set_ylim(0, 30)
shares.set_ylabel("60 days (%)")
change = 100 * torch.stack([found.weights - p for found in worst.values()])  # 7 x 41
shown = bottom.pcolormesh(degrees, range(7), change, cmap="RdBu_r", vmin=-10, vmax=10)
labels = [f"{name}\nradius {each.radius:.2g}" for name, each in SETS.items()]
bottom.set_yticks(range(7), labels, fontsize=7)
bottom.invert_yaxis()
bottom.set_xlabel("temperature (degrees)")
where = {"ax": bottom, "location": "bottom", "extend": "max", "aspect": 40}
fig.colorbar(shown, label="change of the share of days (points)", **where)
plt.show()
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
# Red: what the worst distribution of a set makes more frequent; blue: less.
#
# - **`TotalVariation`** moves some of the best days to the worst temperature, however
#   far, seen or not.
# - **`KullbackLeibler`**, **`ModifiedChiSquared`** make bad days more frequent and good
#   ones rarer, and never add an unseen one.
# - **`ChiSquared`** never removes a temperature, but may add an unseen one: the worst.
# - **`ConditionalValueAtRisk`** drops the best days; all others grow by one factor.
# - **`Wasserstein`** moves warm days a few degrees, to where the cooler fails.
# - **`MaximumMeanDiscrepancy`** moves the most days, between temperatures that look
#   alike to its kernel, and a few to several bad ones.
#
# ## The worst case as the radius grows
#
# `worst_case` takes many radii at once.

# %%
multiples = torch.logspace(-2, 4, 41).double()
fig, ax = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
for i, (name, ambiguity) in enumerate(SETS.items()):
    value = ambiguity.worst_case(f, p, radius=multiples * ambiguity.radius).value
    style = {"color": COLOURS[i], "linestyle": DASHES[i], "marker": "os^Dv*X"[i]}
    ax.plot(
        multiples, value, label=name, markersize=4, markevery=(2 + i % 3, 3), **style
    )
ax.axhline(f.min(), color="0.6", zorder=0)
ax.annotate("worst temperature of all", (0.011, f.min() + 3))
ax.axhline(f[seen].min(), color="0.6", zorder=0)
ax.annotate("worst temperature seen", (0.011, f[seen].min() + 3))
ax.set_xscale("log")
ax.set_xlabel("radius, in multiples of the comparable one")
ax.set_ylabel("worst-case mean (coins)")
ax.legend(frameon=False, fontsize=8, loc="center left")
ax.margins(x=0)
plt.show()

# %% [markdown]
# The floor of the three sets that stay within the list is the worst day *in the list*.
# For the others it is frost every day; `ChiSquared` only approaches it. Near zero the
# divergences (`KullbackLeibler`, both chi-squared) behave like a *squared* distance: to
# halve the damage, quarter the radius.
#
# ## Does it change the decision?
#
# The best load in the worst case, at those radii:

# %%
loads = torch.linspace(20, 300, 141).double()
scores = profit(loads[:, None], degrees)  # 141 x 41
best = {"no ambiguity": scores @ p} | {
    name: ambiguity.worst_case(scores, p).value for name, ambiguity in SETS.items()
}
pd.DataFrame(
    {
        name: {
            "cones": loads[value.argmax()].item(),
            "worst-case mean": value.max().item(),
            "mean": (scores @ p)[value.argmax()].item(),
        }
        for name, value in best.items()
    }
).T.round(0).astype(int)

# %% [markdown]
# Every set advises fewer cones than the list, and at equal damage about as many: choose
# the set whose radius you can name. This is one example. The
# [recipe](../docs/methods.md) `dro` takes any set.
#
# ## The same in symbols
#
# With scores $f_i = f(x, c_i)$, reference weights $p$ and the simplex $\Delta$, the
# worst case is $\min \{ q^\top f : q \in \Delta,\ d(p, q) \le \varepsilon \}$. It is
# convex in $\varepsilon$; its gradient in the scores is the worst-case distribution.
#
# <!-- numbers: not measured: formulas -->
# | set | $d(p, q)$ |
# |---|---|
# | `TotalVariation` | $\sum_i \lvert p_i - q_i \rvert$ (no factor 1/2) |
# | `KullbackLeibler` | $\sum_i q_i \log (q_i / p_i)$ |
# | `ModifiedChiSquared` | $\sum_i (q_i - p_i)^2 / p_i$ |
# | `ChiSquared` | $\sum_i (q_i - p_i)^2 / q_i$ |
# | `ConditionalValueAtRisk` | $\max_i q_i / p_i - 1$ |
# | `Wasserstein` | $\min_\pi \sum_{ij} \pi_{ij} C_{ij}$, $\pi$ a plan from $p$ to $q$ |
# | `MaximumMeanDiscrepancy` | $\sqrt{(p - q)^\top K (p - q)}$ |
