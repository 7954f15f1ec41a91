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
# # A newsvendor in five minutes
#
# *Beginner, five minutes: no knowledge of Gaussian processes is needed.*
#
# After this page you know what a *robust* decision is, and you can run the library's
# loop: `ask`, `tell`, `recommend`. You have also seen in numbers what robustness costs
# on ordinary days, what it saves on bad ones, and how sure these numbers are.

# %% [markdown]
# ## Why robust?
#
# Every evening a shop orders newspapers for the next day. Each copy costs 5 coins,
# sells for 9, and brings back 1 if nobody buys it. So a sold copy earns 4 coins and an
# unsold copy loses 4.
#
# How many people will want one? Nobody knows when the order is placed. The shop has a
# notebook with the past days, and nothing else.
#
# The usual plan takes these days as they are, and orders what would have earned most
# *on average*. That plan has a weakness. Twenty days are a small sample: they may have
# been busier than usual. And demand may change: a café opens across the street, and a
# third of the customers read there.
#
# The robust plan considers *every* pattern of demand that is not too different from the
# notebook, and orders what is best **in the worst of them**.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch
from scipy.stats import t as student

from botorch_drbo import Integer, NamedOptimizer, Space
from botorch_drbo.plotting import COLOURS, MARKERS, plot_surface
from botorch_drbo.test_functions import make_test_function

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
DAYS = 6 if SMOKE_TEST else 20
SHOPS = 3 if SMOKE_TEST else 16  # repetitions, each with its own days

plt.rcParams.update({"figure.dpi": 100, "font.size": 10})

# %% [markdown]
# ## The problem
#
# The order is the *decision*, at most 400 copies; the demand is the *context*. How
# demand varies is taken from one of the library's
# [test functions](../docs/api/test_functions.md), which counts in thousands.

# %%
shop = make_test_function("newsvendor")
space = Space({"copies": Integer(0, 400)}, {"demand": (0.0, 1000.0)}, outcome="coins")


def coins(copies, demand):
    """Coins of a day, of numbers or of tensors."""
    sold = torch.minimum(
        *torch.broadcast_tensors(*map(torch.as_tensor, (copies, demand)))
    )
    return 9 * sold + 1 * (copies - sold) - 5 * copies


def demands(days: int, seed: int) -> list[float]:
    """How many copies are asked for."""
    return (1000 * shop.sample_contexts(days, seed=seed)).flatten().round().tolist()


print(f"Order 200 copies, sell 150: {coins(200, 150)} coins (150 x 4 - 50 x 4).")

# %% [markdown]
# The shop does not know this formula. Each day it sees three numbers: what it ordered,
# how many copies were asked for, and what it earned. A Gaussian process, a flexible
# curve with error bars, learns the profit from them.
#
# ## Ask, tell, recommend
#
# `ask` proposes an order, the day shows the demand, `tell` reports what happened. The
# method `wdrbo_exact` is robust. Its **radius** says how different the demand may be
# from the notebook: by 25 copies a day, on average.

# %%
RADIUS = 25  # copies a day
optimizer = NamedOptimizer(
    "wdrbo_exact",
    space,
    radius={"demand": RADIUS},
    seed=0,
    num_initial=4,
    num_restarts=2,  # one number to choose: a small search is enough
    raw_samples=64,
)
for demand in demands(DAYS, seed=0):
    order = optimizer.ask()
    profit = coins(order["copies"].iloc[0], demand).item()
    optimizer.tell(order, {"demand": demand}, profit)

best = optimizer.recommend()
print(best)

# %% [markdown]
# The first lines say how many copies to order, how well the model predicts
# days that it has not seen, what the order earns on average over the days of the
# notebook, and what it earns under the worst pattern of demand within the radius. The
# last line names the days that would hurt. [Certainty](../docs/certainty.md) explains
# every line.
#
# The picture shows the true profit for every order and demand. The shop knows only the
# white dots. Above the diagonal every copy is sold, and a larger order earns more.
# Below it copies are left over, and the profit falls quickly.

# %%
seen = optimizer.history
ax = plot_surface(
    lambda x, c: coins(x, c).squeeze(-1),
    torch.tensor([[0.0], [400.0]]).double(),
    torch.tensor([[0.0], [700.0]]).double(),
    X=torch.tensor(seen[["copies"]].to_numpy()).double(),
    C=torch.tensor(seen[["demand"]].to_numpy()).double(),
    decision=float(best.x["copies"].iloc[0]),
    value_label="profit (coins)",
)
ax.set_xlabel("order (copies)")
ax.set_ylabel("demand (copies)")
plt.show()

# %% [markdown]
# ## Does it pay?
#
# One shop proves nothing. Here are more, each with a notebook of 30 days on which it
# tried random orders. Two decisions come from the same notebook and the same model:
#
# - *trusts the past*: the best order if demand stays as in the notebook (radius 0);
# - *robust*: the best order in the worst case within 25 copies a day.
#
# We, unlike the shops, know the true demand. So we can compute what each order earns if
# demand stays as it was, and if it rises or falls. Neither decision was told of any
# change. (`surrogate="botorch"` is a quicker [model](../docs/surrogates.md) than the
# default; sixteen shops take a few seconds with it.)


# %%
WORLDS = {
    "rises by a third": 4 / 3,
    "stays as it was": 1.0,
    "falls by a third": 2 / 3,
    "halves": 1 / 2,
}
RADII = [0, RADIUS] if SMOKE_TEST else [0, 12, RADIUS, 50, 100]


def decisions(seed: int, days: int = 30) -> dict[int, int]:
    """What a shop with its own notebook would order, for each radius."""
    tried = 400 * torch.rand(days, generator=torch.Generator().manual_seed(seed))
    notebook = pd.DataFrame(
        {"copies": tried.round().int().tolist(), "demand": demands(days, seed)}
    )
    notebook["coins"] = coins(*map(torch.tensor, notebook.to_numpy().T))
    other = NamedOptimizer.from_dataframe(
        notebook,
        decisions=space.decisions,
        contexts=space.contexts,
        outcome="coins",
        algorithm="wdrbo_exact",
        surrogate="botorch",
        seed=seed,
        num_restarts=2,
        raw_samples=64,
    )
    found = {r: other.recommend(radius={"demand": r}).x for r in RADII}
    return {radius: x["copies"].iloc[0] for radius, x in found.items()}


TRUE_DEMAND = 1000 * shop.true_contexts().flatten()


def expected_profit(copies: int, factor: float) -> float:
    """Expected coins a day when every demand is multiplied by a factor."""
    return coins(copies, factor * TRUE_DEMAND).mean().item()


advice = [decisions(seed) for seed in range(SHOPS)]
earned = pd.DataFrame(
    [
        {"shop": seed, "radius": radius, "copies": copies}
        | {world: expected_profit(copies, factor) for world, factor in WORLDS.items()}
        for seed, each in enumerate(advice)
        for radius, copies in each.items()
    ]
).set_index(["radius", "shop"])
earned.loc[[0, RADIUS]].groupby("radius").mean().round().astype(int)

# %% [markdown]
# The shops differ a lot, so each one is compared with itself: how many coins a day does
# its robust order earn more than the order that trusts the past? The table has the mean
# over the shops and a 95% interval.


# %%
def gain(radius: int) -> pd.DataFrame:
    """Coins more than with radius 0, shop by shop: the mean and its 95% interval."""
    more = (earned.loc[radius] - earned.loc[0])[list(WORLDS)]
    half = student.ppf(0.975, SHOPS - 1) * more.sem()
    return pd.DataFrame(
        {"mean": more.mean(), "from": more.mean() - half, "to": more.mean() + half}
    )


gains = {radius: gain(radius) for radius in RADII[1:]}
found = gains[RADIUS]
price, saved = -found["mean"]["stays as it was"], found["mean"]["halves"]
print(f"It costs {price:.0f} coins a day if nothing changes,")
print(f"and saves {saved:.0f} coins a day if demand halves.")
certain = found.index[(found["from"] > 0) | (found["to"] < 0)]
print(f"The interval excludes 0 if demand {', '.join(certain)}.")
found.round().astype(int)

# %% [markdown]
# The row *stays as it was* is the price of robustness. The robust order is smaller on
# average, so if demand *rises*, the shop sells out earlier and earns less. If demand
# *falls*, fewer copies are left over. The next picture shows why. On the left side of
# its top the profit falls slowly; on the right side it falls steeply as soon as fewer
# people come.

# %% tags=["thumbnail"]
grid = torch.arange(301).double()  # copies
fig, (curves, marks) = plt.subplots(
    2,
    1,
    figsize=(6.6, 4.8),
    sharex=True,
    height_ratios=(3, 1),
    layout="constrained",
)
for dash, (world, factor) in zip(("-", "--", ":", "-."), WORLDS.items(), strict=True):
    curve = coins(grid.unsqueeze(1), factor * TRUE_DEMAND).mean(-1)
    curves.plot(grid, curve, color="0.25", linestyle=dash, label=world)
curves.set_ylabel("expected profit (coins a day)")
curves.legend(frameon=False, title="demand ...", loc="lower left")
for row, radius in enumerate((RADIUS, 0)):
    style = {"color": COLOURS[row], "marker": MARKERS[row], "alpha": 0.6}
    marks.plot(earned.loc[radius]["copies"], [row] * SHOPS, linestyle="none", **style)
marks.set_yticks([0, 1], ["robust", "trusts the past"])
marks.set_ylim(1.6, -0.6)
marks.set_xlabel("recommended order (copies), one mark for each shop")
plt.show()

# %% [markdown]
# ## How much insurance?
#
# A larger radius costs more. Here is the gain of the robust order for several radii;
# the bars are 95% intervals.

# %%
fig, ax = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
for i, world in enumerate(WORLDS):
    rows = pd.DataFrame({radius: table.loc[world] for radius, table in gains.items()}).T
    ax.errorbar(
        rows.index + 1.2 * (i - 1.5),
        rows["mean"],
        yerr=[rows["mean"] - rows["from"], rows["to"] - rows["mean"]],
        color=COLOURS[3 + i],
        marker=MARKERS[3 + i],
        capsize=3,
        linewidth=1,
        label=world,
    )
ax.axhline(0.0, color="black", linewidth=0.8)
ax.set_xlabel("radius (copies a day)")
ax.set_ylabel("coins a day more\nthan with radius 0")
ax.legend(frameon=False, title="demand ...")
plt.show()

# %% [markdown]
# More is not always better: a radius of 100 gains no more than one of 50 if demand
# halves, and gives up far more in all other worlds. So choose a radius that belongs to
# a change that you believe in. The tutorial on
# [the radius in your units](03b_the_radius_in_your_units.ipynb) shows how.
#
# Robustness is an insurance, and it does not always pay: where nothing changes, or
# where one decision is best in every world, it can only cost.
# [Which radius?](../docs/radius.md) has the measurements on twelve problems, those
# where it lost included. `make demo` compares three complete methods on this shop.
#
# ## Where to go from here
#
# - You have a table: [tables and the command line](../docs/tables.md), then
#   [a day in a laboratory](09_a_day_in_a_lab.ipynb).
# - You use BoTorch: [WDRBO in your own loop](02_wdrbo_in_your_own_botorch_loop.ipynb).
# - All methods: [which method?](../docs/methods.md) All options of the loop:
#   [`RobustOptimizer`](../docs/api/optimizer.md).
#
# ## The same in symbols
#
# Write $x$ for the decision, $c$ for the context, $f(x, c)$ for the profit. The
# notebook is the empirical distribution $\hat P_t$ of $c_1, \dots, c_t$. With radius 0
# the method maximises $\mathbb{E}_{c \sim \hat P_t} f(x, c)$. The robust problem is
#
# $$\max_x \; \min_{Q \,:\, W_1(Q, \hat P_t) \le \varepsilon} \;
#   \mathbb{E}_{c \sim Q} f(x, c)$$
#
# where $W_1$ is the Wasserstein distance: how far each day's demand has to be moved, on
# average, to turn one pattern into the other. `wdrbo_exact` solves the inner minimum
# exactly on a set of candidate demands; `wdrbo` (Micheli et al., 2025) maximises the
# bound $\mathbb{E}_{\hat P_t} f(x, c) - \varepsilon L(x)$ instead, where $L(x)$ is the
# steepest slope of $f(x, \cdot)$
# ([a picture of it](02_wdrbo_in_your_own_botorch_loop.ipynb)). Without a `radius` of
# yours, $\varepsilon_t = 1.25\, s_t / \sqrt t$, with $s_t$ the standard
# deviation of the demands seen.
