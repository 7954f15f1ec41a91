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
# *Five minutes; no knowledge of Gaussian processes needed.*
#
# After this page you know what it means to choose *robustly*: to look for a decision
# that stays good when the world is not quite as the data said. You can run the
# library's loop yourself, `ask`, `tell`, `recommend`. And you have seen on numbers what
# robustness costs on ordinary days and what it saves on bad ones.

# %% [markdown]
# ## Why robust?
#
# Every evening a shop orders newspapers for the next day. Each copy costs 5 coins,
# sells for 9, and goes back to the printer for 1 if nobody buys it. So a sold copy
# earns 4 coins and an unsold one loses 4.
#
# How many people will come? Nobody knows when the order is placed, and nobody chooses
# it. The shop has a notebook with the days so far, and that is all.
#
# The obvious plan: take the days in the notebook as they are, and order what would
# have earned most *on average*. It has a weak spot. Twenty days are not the truth; they
# may have been busier than usual. And even the truth may move: a new café opens across
# the street, and a third of the customers read there.
#
# The robust plan: imagine *every* pattern of demand that is not too different from the
# notebook, and order what is best **in the worst of them**.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch

from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.plotting import COLOURS, plot_surface
from botorch_drbo.test_functions import make_test_function

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
DAYS = 6 if SMOKE_TEST else 20
SHOPS = 2 if SMOKE_TEST else 8  # repetitions, each with its own days

plt.rcParams.update({"figure.dpi": 110, "font.size": 10})

# %% [markdown]
# ## The problem
#
# The library has this shop among its test functions. The order (the *decision*) and the
# demand (the *context*) are counted in thousands of copies, both between 0 and 1, and
# the profit in thousands of coins. The tables below count single copies and coins.

# %%
shop = make_test_function("newsvendor")
order, demand = torch.tensor([[0.200]]).double(), torch.tensor([[0.150]]).double()
coins = 1000 * shop.evaluate(order, demand).item()
print(f"Order 200 copies, sell 150 of them: {coins:.0f} coins (150 x 4 - 50 x 4).")

# %% [markdown]
# We play it as if the shop did not know this formula. It sees three numbers a day: what
# it ordered, how many copies were asked for, what was left in the till. A Gaussian
# process, a flexible curve with error bars, learns the profit from them.
#
# ## Ask, tell, recommend
#
# One loop serves every method. `ask` proposes the order, the day shows the demand,
# `tell` reports what happened. Three methods:
#
# - `wdrbo_exact` is robust: it prepares for every demand pattern near the notebook;
# - `erbo` believes the notebook, and maximises the average over the days in it;
# - `gp_ucb` ignores demand: it sees orders and profits, and takes the rest for noise.
#
# All see the same demands and start with the same three trial orders.


# %%
def run_shop(method: str, seed: int) -> RobustOptimizer:
    """Run one shop for all its days. The demands depend on the seed alone."""
    demands = shop.sample_contexts(DAYS, seed=seed)  # days x 1
    optimizer = RobustOptimizer(
        method,
        shop.bounds,
        shop.context_bounds,
        seed=seed,
        num_initial=3,
        num_restarts=4,  # one number to choose: a small search is enough
        raw_samples=128,
    )
    for demand in demands:
        order = optimizer.ask()
        profit = shop.evaluate(order, demand)
        optimizer.tell(order, demand, profit)
    return optimizer


robust = run_shop("wdrbo_exact", seed=0)
print(robust.recommend())

# %% [markdown]
# That is the whole advice: how many (thousand) copies, what they earn on average by the
# days in the notebook, what in the worst pattern that is near enough, and which days
# would hurt.
#
# The picture shows the true profit for every order and demand: what the shop had to
# find out from the white dots. Above the diagonal every copy is sold, and a larger
# order earns more. Below it copies go to waste, and the ground falls away quickly.

# %%
fig, ax = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
plot_surface(
    shop.evaluate,
    shop.bounds,
    shop.context_bounds,
    ax,
    X=robust.history.X,
    C=robust.history.C,
    decision=robust.recommend().x.item(),
    value_label="profit (1000 coins)",
)
ax.set_xlabel("order x (1000 copies)")
ax.set_ylabel("demand c (1000 copies)")
plt.show()

# %% [markdown]
# ## What if demand shifts?
#
# Now the exam, for many shops, each with its own days. We, unlike the shops, know the
# true demand. What would each recommended order earn from now on, if demand stays as it
# was, if it falls by a third, if it halves? No method was told of any fall.


# %%
METHODS = ("wdrbo_exact", "erbo", "gp_ucb")
WORLDS = {"stays as it was": 1.0, "falls by a third": 2 / 3, "halves": 1 / 2}


def expected_profit(order: torch.Tensor, factor: float) -> float:
    """Expected coins a day when every demand is multiplied by a factor."""
    return 1000 * shop.evaluate(order, factor * shop.true_contexts()).mean().item()


advice = {
    method: [run_shop(method, seed).recommend().x for seed in range(SHOPS)]
    for method in METHODS
}
earned = pd.DataFrame(
    [
        {"method": method, "copies": 1000 * x.item()}
        | {f"coins, {world}": expected_profit(x, f) for world, f in WORLDS.items()}
        for method, orders in advice.items()
        for x in orders
    ]
)
table = earned.groupby("method", sort=False).agg(["mean", "sem"]).round().astype(int)
table

# %% [markdown]
# That is the mean over the shops, and its standard error. The shops differ a lot, so
# compare each one with itself: how much more than `erbo`'s does its robust order earn?

# %%
coins_of = earned.groupby("method")[[f"coins, {world}" for world in WORLDS]]
gain = coins_of.get_group("wdrbo_exact").reset_index(drop=True)
gain = gain - coins_of.get_group("erbo").reset_index(drop=True)
gain.agg(["mean", "sem"]).round().astype(int)

# %% [markdown]
# - *Stays as it was*: this is the price. An order that prepares for other demands is
#   not the best one for this demand.
# - *Falls by a third*, *halves*: this is what it buys. The robust orders are smaller on
#   average, so fewer copies go to waste.
#
# A difference of less than two of its standard errors may be chance. `make demo` plays
# nearly the same game, and the README has its numbers, and those of 32 further shops.
#
# `gp_ucb` cannot see demand. To it the same order earns this today and that tomorrow,
# and in twenty days that does not average away: look at how far its orders differ from
# shop to shop in the next picture.
#
# That picture also says why. Profit falls slowly to the left of its top and steeply to
# the right when fewer people come; a careful order stands on the slow side.

# %%
grid = torch.linspace(0, 0.3, 121).double().unsqueeze(-1)  # 121 x 1
fig, ax = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
for dash, (world, factor) in zip(("-", "--", ":"), WORLDS.items(), strict=True):
    demands = factor * shop.true_contexts()
    curve = 1000 * shop.evaluate(grid.unsqueeze(1), demands).mean(-1)  # 121
    ax.plot(1000 * grid, curve, color="0.25", linestyle=dash, label=world)
for i, (method, orders) in enumerate(advice.items()):
    copies = [1000 * x.item() for x in orders]
    ax.plot(copies, [-420 - 90 * i] * SHOPS, "o^s"[i], color=COLOURS[i], alpha=0.6)
    ax.annotate(method, (-5, -420 - 90 * i), ha="right", va="center", color=COLOURS[i])
ax.set_xlim(left=-80)
ax.set_xlabel("order x (copies)")
ax.set_ylabel("expected profit (coins a day)")
ax.legend(frameon=False, title="demand ...", loc="upper left", bbox_to_anchor=(0, 0.5))
plt.show()

# %% [markdown]
# ## How much insurance?
#
# "Not too different from the notebook" is a distance: *how far, on average, must each
# day's demand be moved* to turn one pattern into the other. The limit on it is called
# the **radius**. By default it is what the days themselves can tell: it grows with
# their spread and shrinks as the notebook grows. You can set it: `radius=0` is `erbo`,
# a larger one buys more insurance and costs more.
# `RobustOptimizer("wdrbo_exact", ..., radius=0.02)` counts it in widths of the box of
# demands. How to choose it is the subject of the tutorial on the radius.
#
# Robustness is insurance, and not always a good buy: where nothing shifts, or where one
# decision is best in every world, it can only cost. The README says what was measured.
#
# ## The same in symbols
#
# Write $x$ for the decision, $c$ for the context, $f(x, c)$ for the profit. The
# notebook is the empirical distribution $\hat P_t$ of $c_1, \dots, c_t$. `erbo` looks
# for $\max_x \mathbb{E}_{c \sim \hat P_t} f(x, c)$. The robust question is
#
# $$\max_x \; \min_{Q \,:\, W_1(Q, \hat P_t) \le \varepsilon_t} \;
#   \mathbb{E}_{c \sim Q} f(x, c), \qquad
#   \varepsilon_t = \frac{1.25\, s_t}{\sqrt t},$$
#
# with $W_1$ the distance from above, named after Wasserstein, and $s_t$ the standard
# deviation of the demands seen. `wdrbo_exact` solves the inner minimum exactly on a set
# of candidate demands; `wdrbo` (Micheli et al., 2025) maximises the bound
# $\mathbb{E}_{\hat P_t} f(x, c) - \varepsilon_t L(x)$ instead, where $L(x)$ is the
# steepest slope of $f(x, \cdot)$. The next tutorial makes $L(x)$ visible.
