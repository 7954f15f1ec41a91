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
# After this page you know what it means to choose *robustly*: to look for a decision
# that stays good when the world is not quite as the data said. You can run the
# library's loop yourself, `ask`, `tell`, `recommend`, for a robust method and for two
# that are not. And you have seen on numbers what robustness costs on ordinary days,
# what it saves on bad ones, and where it does not help at all.

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
# the street, and a third of the customers read there. A plan that is tuned to the
# notebook can lose a lot then.
#
# The robust plan: imagine *every* pattern of demand that is not too different from the
# notebook, and order what is best **in the worst of them**.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch

from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.plotting import COLOURS, plot_history, plot_regret, plot_surface
from botorch_drbo.test_functions import make_test_function

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
DAYS = 6 if SMOKE_TEST else 20
SHOPS = 2 if SMOKE_TEST else 3  # repetitions, each with its own 20 days

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
# `tell` reports what happened. Three shops, three methods:
#
# - `wdrbo` is robust: it fears every demand pattern near the notebook;
# - `erbo` believes the notebook, and maximises the average over the days in it;
# - `gp_ucb` ignores demand: it sees orders and profits, and takes the rest for noise.
#
# All three see the same demands and start with the same four trial orders.


# %%
def run_shop(method: str, seed: int) -> RobustOptimizer:
    """Run one shop for all its days. The demands depend on the seed alone."""
    demands = shop.sample_contexts(DAYS, seed=seed)  # days x 1
    optimizer = RobustOptimizer(
        method,
        shop.bounds,
        shop.context_bounds,
        seed=seed,
        num_initial=4,
        num_restarts=4,  # one number to choose: a small search is enough
        raw_samples=128,
    )
    for demand in demands:
        order = optimizer.ask()
        profit = shop.evaluate(order, demand)
        optimizer.tell(order, demand, profit)
    return optimizer


METHODS = ("wdrbo", "erbo", "gp_ucb")
runs = {method: run_shop(method, seed=0) for method in METHODS}
advice = {method: run.recommend() for method, run in runs.items()}

# %% [markdown]
# ## What each shop learned
#
# The picture shows the true profit for every order and demand: what the robust shop had
# to find out from the white dots. Above the diagonal every copy is sold, and a larger
# order earns more. Below it copies go to waste, and the ground falls away quickly. The
# line marks the recommended order. On the right is the notebook: how often which demand
# occurred.

# %%
robust = advice["wdrbo"]
history = runs["wdrbo"].history
fig, ax = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
plot_surface(
    shop.evaluate,
    shop.bounds,
    shop.context_bounds,
    ax,
    X=history.X,
    C=history.C,
    context_set=robust.context_set,
    decision=robust.x.item(),
    value_label="profit (1000 coins)",
)
ax.set_xlabel("order x (1000 copies)")
ax.set_ylabel("demand c (1000 copies)")
plt.show()

# %% [markdown]
# Order by order, the first four being the common trial orders:

# %%
fig, axes = plt.subplots(1, 3, figsize=(9.0, 2.9), sharey=True, layout="constrained")
for ax, (method, run) in zip(axes, runs.items(), strict=True):
    plot_history(run, ax, quantity="decision")
    ax.get_legend().remove()
    ax.axhline(shop.optimal_decision.item(), color="black", linewidth=1, linestyle=":")
    ax.set_title(method)
    ax.set_xlabel("day")
    ax.set_ylabel("order x (1000 copies)" if ax is axes[0] else "")
axes[0].annotate(
    "best if the true\ndemand were known",
    xy=(0.97, shop.optimal_decision.item() + 0.02),
    xycoords=("axes fraction", "data"),
    ha="right",
    va="bottom",
    fontsize=8,
)
plt.show()

# %% [markdown]
# ## What if demand shifts?
#
# Now the exam. We, unlike the shops, know the true demand. We ask for the expected
# profit of each recommended order under the true demand, and after a shift: every day
# a third fewer people, or a third more.


# %%
def expected_profit(order: torch.Tensor, factor: float = 1.0) -> float:
    """Expected coins a day when every demand is multiplied by a factor."""
    demands = (factor * shop.true_contexts()).clamp(max=1.0)  # n x 1
    return 1000 * shop.evaluate(order, demands).mean().item()


SHIFTS = {"as before": 1.0, "a third less": 2 / 3, "a third more": 4 / 3}


def exam(orders: dict[str, torch.Tensor]) -> pd.DataFrame:
    """One row per order: its size, and the coins it earns under each demand."""
    rows = {
        name: {"copies": 1000 * x.item()}
        | {f"coins, {k}": expected_profit(x, s) for k, s in SHIFTS.items()}
        for name, x in orders.items()
    }
    return pd.DataFrame(rows).T.round().astype(int)


exam(
    {method: best.x for method, best in advice.items()}
    | {"best, if all were known": shop.optimal_decision}
)

# %% [markdown]
# Read it column by column.
#
# - *As before*: the robust order earns a little **less** than `erbo`'s. That is the
#   price of robustness, and there is no way around it: an order that prepares for other
#   demands is not the best one for this demand.
# - *A third less*: the robust order earns clearly more. It was smaller, so fewer copies
#   go to waste.
# - *A third more*: the robust order loses again. It prepared for the other surprise:
#   a worst case is about what hurts, and a quiet day hurts more than a busy one.
#
# `gp_ucb` cannot see demand. To it the same order earns this today and that tomorrow.
# Here it ordered too much, which looks clever only if demand happens to rise.
#
# ### How large a shift was it prepared for?
#
# "Not too different from the notebook" is a distance: *how far, on average, must each
# day's demand be moved* to turn one pattern into the other. The limit on it is called
# the **radius**. `wdrbo` starts with a large one and lowers it as the notebook grows,
# because more days mean fewer surprises. Shaded below: the shifts that lie within the
# radius that it had at the end.

# %%
radius = runs["wdrbo"].algorithm.radius(DAYS)
levels = (torch.arange(2000).double() + 0.5) / 2000


def distance(first: torch.Tensor, second: torch.Tensor) -> float:
    """Average move that turns one sample into the other: match them by rank."""
    a = first.flatten().quantile(levels, interpolation="lower")
    b = second.flatten().quantile(levels, interpolation="lower")
    return (a - b).abs().mean().item()


factors = torch.linspace(0.4, 1.5, 56)
far = torch.tensor([distance(history.C, f * shop.true_contexts()) for f in factors])
inside = 100 * (factors[far <= radius] - 1)
change = 100 * (factors - 1)

fig, ax = plt.subplots(figsize=(6.6, 4.0), layout="constrained")
ax.axvspan(inside.min(), inside.max(), color="0.9")
ax.annotate(
    "within the radius\nof the notebook",
    xy=(inside.min(), 0.97),
    xycoords=("data", "axes fraction"),
    xytext=(5, 0),
    textcoords="offset points",
    va="top",
)
for i, (method, best) in enumerate(advice.items()):
    ax.plot(
        change,
        [expected_profit(best.x, f.item()) for f in factors],
        color=COLOURS[i],
        linestyle=("-", "--", "-.")[i],
        linewidth=2,
        label=f"{method}: {1000 * best.x.item():.0f} copies",
    )
ax.axvline(0, color="0.4", linewidth=1, linestyle=":")
ax.set_xlabel("change of demand (%)")
ax.set_ylabel("expected profit (coins a day)")
ax.legend(frameon=False, loc="lower right")
ax.margins(x=0)
plt.show()

# %% [markdown]
# The robust shop's curve is the flattest. It gives up some profit on the right, and
# keeps more of it on the left.
#
# ## The worst case, made visible
#
# `recommend` also says *which* pattern of demand it fears for its order: a new weight
# for each day in the notebook, and weights for demands that no day has shown yet. In
# the notebook each day weighs the same. The worst pattern within the radius moves
# weight from demand to demand, anywhere between 0 and 1, until the average move is used
# up.

# %%
demands = robust.context_set.points.squeeze(-1)  # n
before = 100 * robust.context_set.weights
after = 100 * robust.worst_case_weights
fig, ax = plt.subplots(figsize=(6.6, 3.4), layout="constrained")
ax.vlines(demands, before, after, color="0.75", linewidth=1.5, zorder=1)
ax.scatter(
    demands, before, s=34, color=COLOURS[0], marker="o", label="weight in the notebook"
)
ax.scatter(
    demands, after, s=34, color=COLOURS[1], marker="^", label="weight in the worst case"
)
ax.axvline(robust.x.item(), color="black", linewidth=1, linestyle=":")
ax.annotate(
    "order",
    xy=(robust.x.item(), 0.97),
    xycoords=("data", "axes fraction"),
    xytext=(4, 0),
    textcoords="offset points",
    va="top",
)
ax.set_xlabel("demand c (1000 copies)")
ax.set_ylabel("weight of the day (%)")
ax.legend(frameon=False)
plt.show()

truly = 1000 * shop.evaluate(robust.x, robust.context_set.points)  # n
in_band = [expected_profit(robust.x, f.item()) for f in factors[far <= radius]]
earned = {
    "in the notebook, by the model": 1000 * robust.expected_value,
    "in the notebook, by the true formula": robust.context_set.weights @ truly,
    "under the true demand": expected_profit(robust.x),
    "after the worst of the shaded shifts": min(in_band),
    "in the worst pattern, by the model": 1000 * robust.worst_case_value,
    "in the worst pattern, by the true formula": robust.worst_case_weights @ truly,
}
print("The robust order earns, in coins a day,")
for where, coins in earned.items():
    print(f"  {where + ':':42} {coins:4.0f}")

# %% [markdown]
# The worst pattern is blunt: on half of the days hardly anybody comes. These were the
# quieter days of the notebook: an empty shop is nearest to them, so they cost the least
# move. The busy days are left as they were.
#
# Compare the numbers. The notebook promises more than the truth keeps, because the
# twenty days had fewer quiet ones among them than twenty days have on average. A plan
# that believes the notebook believes that too. The worst case allows for every pattern
# within the radius, also for demands that were never seen. So it lies below what the
# order earns after any of the shaded shifts.
#
# But it is a promise with *two* conditions: that the truth lies within the radius, and
# that the model is right. It is the least that the **model** expects, and the last line
# shows what that is worth where there are no data: the shop has seen no day so empty,
# the model guesses what would be left in the till, and it guesses too much.
#
# ## Was that luck?
#
# One shop proves little. Here are more shops, each with its own twenty days, and the
# same exam for each.

# %%
all_runs = {0: runs} | {
    seed: {method: run_shop(method, seed) for method in METHODS}
    for seed in range(1, SHOPS)
}
pd.concat(
    {
        f"shop {seed}": exam(
            {method: run.recommend().x for method, run in these.items()}
        )
        for seed, these in all_runs.items()
    }
)

# %% [markdown]
# And while they were learning? The *regret* of a day is the expected profit that the
# best order would have made under the true, unshifted demand, minus that of the order
# made. It adds up over the days.

# %%
regret = {
    method: torch.stack(
        [
            shop.optimal_value - shop.expected_value(these[method].history.X)  # days
            for these in all_runs.values()
        ]
    ).cumsum(-1)
    for method in METHODS
}
ax = plot_regret(regret, ylabel="cumulative expected regret (1000 coins)")
ax.set_xlabel("day")
ax.set_title("Mean and standard error over the shops, unshifted demand", fontsize=10)
plt.show()

# %% [markdown]
# What the numbers show:
#
# - As long as demand stays as it was, `erbo` is the better choice: in every shop, and
#   in the mean regret. The price of robustness is small in shop 0 and large in the two
#   others: with twenty days and this radius `wdrbo` orders less than half of the best.
# - When demand falls by a third, the robust order is ahead of `erbo`'s in two shops and
#   level with it in shop 1. There the twenty days had been unusually quiet, so `erbo`
#   ordered little as well.
# - What the robust order has in *every* shop is the smallest loss from the fall:
#   compare the first two columns of coins.
# - `gp_ucb` is anywhere: it has to average demand away, and twenty days are few.
#
# So robustness is insurance. Buy it if a bad shift is plausible and would hurt, and
# choose the radius by how large a shift that is:
# `RobustOptimizer("wdrbo", ..., radius=0.02)` insures less, and costs less.

# %% [markdown]
# ## The same in symbols
#
# Write $x$ for the decision, $c$ for the context, $f(x, c)$ for the profit. The
# notebook is the empirical distribution $\hat P_t$ of $c_1, \dots, c_t$. `erbo` looks
# for $\max_x \mathbb{E}_{c \sim \hat P_t} f(x, c)$. The robust question is
#
# $$\max_x \; \min_{Q \,:\, W_1(Q, \hat P_t) \le \varepsilon_t} \;
#   \mathbb{E}_{c \sim Q} f(x, c), \qquad \varepsilon_t = \frac{0.3}{\sqrt t},$$
#
# with $W_1$ the distance from above, named after Wasserstein. The inner minimum is at
# least $\mathbb{E}_{\hat P_t} f(x, c) - \varepsilon_t L(x)$, where $L(x)$ is the
# steepest slope of $f(x, \cdot)$: moving demand by $\varepsilon$ cannot cost more than
# slope times distance. `wdrbo` maximises this bound with an optimistic model in the
# place of $f$ (Micheli et al., 2025). Its radius counts in widths of the box of
# contexts, so that contexts in different units can be mixed.
#
# ### The fine print, for this very shop
#
# The true profit is piecewise linear: for every order $x > 0$ its steepest slope in $c$
# is 8. So with the exact formula the penalty $\varepsilon L(x)$ would be the *same* for
# every order, and would change no decision! We can compute the exact worst case, with
# everything known, and look:

# %%
atoms = shop.true_contexts(64 if SMOKE_TEST else 256)  # n x 1
candidates = torch.cat([atoms, torch.linspace(0, 1, 101).unsqueeze(-1)])  # m x 1
cost = (atoms - candidates.mT).abs()  # n x m: how far demand moves
weights = torch.full((len(atoms),), 1 / len(atoms)).double()
orders = torch.linspace(0, 0.4, 81).unsqueeze(-1)  # 81 x 1
profits = shop.evaluate(orders.unsqueeze(1), candidates)  # 81 x m

fig, ax = plt.subplots(figsize=(6.6, 3.8), layout="constrained")
for i, eps in enumerate((0.0, 0.03, 0.05, 0.08)):
    worst = 1000 * Wasserstein(eps, cost).worst_case(profits, weights).value
    best = worst.argmax()
    ax.plot(
        orders,
        worst,
        color=COLOURS[i],
        linestyle=("-", "--", "-.", ":")[i],
        linewidth=2,
        label=rf"$\varepsilon$ = {eps}",
    )
    ax.plot(orders[best], worst[best], "o", color=COLOURS[i], markersize=7)
ax.set_xlabel("order x (1000 copies)")
ax.set_ylabel("worst-case expected profit\n(coins a day)")
ax.set_ylim(-400, 520)
ax.legend(frameon=False, ncols=2)
plt.show()

# %% [markdown]
# The best order (dots) does not move at all while $\varepsilon$ is small, and then
# jumps to zero: order nothing. The radius of day 20, 0.067, is already on that side. In
# the shops `wdrbo` chose between these extremes, because it works with a *smooth* model
# of the profit, whose slope in $c$ grows with the order. That caution is as much about
# the model as about demand. The method has most to offer where $L(x)$ truly differs
# from decision to decision; the next tutorial makes $L(x)$ visible.
