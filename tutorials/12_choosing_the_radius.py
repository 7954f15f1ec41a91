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
# # Choosing the radius
#
# *Fifteen minutes; you have run the loop of the first tutorial once.*
#
# A robust method asks one thing of you: how far may the world be from what your data
# say? That number is the *radius*. After this page you know three ways to find
# it, from your data, from what you fear, and from what you would pay; what each of them
# guarantees, and what not; and how to ask the question the other way round: here is a
# decision, how much shift does it bear?

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import Tensor

from botorch_drbo import ContextSet, RobustOptimizer, calibrate
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.plotting import plot_robustness_profile, plot_worst_case

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
RESAMPLES = 20 if SMOKE_TEST else 200
STEPS = 2 if SMOKE_TEST else 8  # radii tried for the budget

plt.rcParams.update({"figure.dpi": 110, "font.size": 10})

# %% [markdown]
# ## The hut
#
# A ski hut hires skis for tomorrow: 12 euros a pair, whether used or not. A visitor
# pays 30 euros for a pair. How many visitors will come, nobody knows in the evening. So
# the number of pairs is the *decision*, the number of visitors is the *context*, and
# the till says the *outcome*. The hut has a list of 30 days.

# %%
WIDTH = 200.0  # nobody remembers a day with more visitors
box = torch.tensor([[0.0], [WIDTH]]).double()


def profit(skis: Tensor, visitors: Tensor) -> Tensor:
    """Euros a day."""
    return 30 * torch.minimum(skis, visitors) - 12 * skis


generator = torch.Generator().manual_seed(1)
draws = torch.randn(30, 1, generator=generator).double()
visitors = (110 + 25 * draws).clamp(0, WIDTH)  # 30 x 1
skis = WIDTH * torch.rand(30, 1, generator=generator).double()

hut = RobustOptimizer(
    "wdrbo_exact", box, box, radius=0.05, seed=0, num_restarts=4, raw_samples=64
)
hut.tell(skis, visitors, profit(skis, visitors), closes_pending=False)
print(hut.recommend())

# %% [markdown]
# `radius=0.05` was a guess. In which unit? A set that moves probability about, such as
# the *Wasserstein* ball here, measures how far: the number of visitors that a day is
# moved by, on average over all days. The recipe counts in widths of the box of
# contexts, so that 0.05 is 5 % of 200: **10 visitors a day**. The line
# *answer holds* says at which radius the hut would have to change its mind.
#
# For the calculations below we need the same distance as a set of our own.


# %%
def ball(points: Tensor) -> Wasserstein:
    """All distributions near a list of contexts; the unit is the width of the box."""
    return Wasserstein(0.0, torch.cdist(points, points) / WIDTH)


today = ContextSet.empirical(visitors)

# %% [markdown]
# ## First way: from your data
#
# Thirty days are not the truth. How far may they be from it? Draw 30 days from these
# 30, with repetition, and see how far from the list the draw lands. Do it many times.
# The distance that 95 % of the draws stay within is the radius (this is called the
# bootstrap).

# %%
from_data = calibrate.from_data(visitors, ball, num_resamples=RESAMPLES)
print(f"radius {from_data:.3f}, that is {WIDTH * from_data:.0f} visitors a day")

# %% [markdown]
# *What it guarantees:* with about 95 % confidence the ball holds the distribution that
# the days came from, as long as days are independent and the world **stays as it is**.
# More days make it smaller. A winter without snow is not in it.
#
# ## Second way: from what you fear
#
# Say what you are afraid of, as distributions, and take the smallest ball that holds
# them all.

# %%
fears = {
    "a fifth fewer visitors": calibrate.shifted(today, -0.2 * today.mean, box),
    "days twice as uneven": calibrate.scaled(today, 2.0, box),
}
for name, fear in fears.items():
    distance = calibrate.from_scenarios(today, fear, ball)
    print(f"{name}: {distance:.3f}")
from_fears = calibrate.from_scenarios(today, list(fears.values()), ball)

# %% [markdown]
# *What it guarantees:* in each of these worlds the decision earns at least its
# worst-case value, under the model. It does not say how likely they are.
#
# ## Third way: from a budget
#
# Robustness costs some of the expected profit. Say how much you would pay, here 5 %,
# and take the largest radius that costs no more. For each radius that is tried the
# recipe recommends anew.


# %%
def at_radius(radius: float):
    """What the same recipe recommends with another radius."""
    recipe = hut.algorithm.with_options(radius=radius)
    return recipe.recommend(hut.history, hut.space)


from_budget = calibrate.from_budget(
    lambda radius: at_radius(radius).expected_value,
    max_radius=0.4,
    share=0.05,
    num_radii=STEPS,
    tolerance=0.25 if SMOKE_TEST else 0.02,
)
print(f"radius {from_budget:.3f}")

# %% [markdown]
# *What it guarantees:* the price, under the model. It does not say what the price buys.
#
# ## Side by side
#
# What do the four radii recommend, and what would the hut earn in winters that we,
# unlike the hut, can play? The last three columns are the true mean profit of 20,000
# days.

# %%
worlds = {"as before": 1.0, "a fifth fewer": 0.8, "half": 0.5}
fresh = torch.randn(20_000, 1, generator=generator).double()
rows = {}
for name, radius in {
    "none (trust the list)": 0.0,
    "from the data": from_data,
    "from a budget": from_budget,
    "from fears": from_fears,
}.items():
    best = at_radius(radius)
    true = {
        world: profit(best.x, (factor * (110 + 25 * fresh)).clamp(0, WIDTH))
        for world, factor in worlds.items()
    }
    rows[name] = {
        "radius": radius,
        "pairs of skis": best.x.item(),
        "expected": best.expected_value,
        "worst case": best.worst_case_value,
        **{world: each.mean().item() for world, each in true.items()},
    }
table = pd.DataFrame(rows).T
table.round({name: 3 if name == "radius" else 0 for name in table})

# %% [markdown]
# Read it by rows: a larger radius hires fewer skis and gives up some of the expected
# profit. With a fifth fewer visitors the middle rows earn most, with half of them the
# last one earns twice as much as the first. No row is the right one: the first suits a
# hut that knows its winter, the last one that could not survive the bad one.
#
# ## The other way round: how much shift does a decision bear?
#
# Suppose somebody proposes 80 pairs. How does that compare with what was recommended,
# and up to which shift does it still earn 1,000 euros a day?

# %%
recommended = hut.recommend()
proposal = torch.tensor([80.0]).double()
profile = hut.robustness_profile(
    recommended.x,
    proposal,
    target=1000.0,
    radii=torch.linspace(0.0, 0.3, 4 if SMOKE_TEST else 25).double(),
)
ax = plot_robustness_profile(
    profile,
    label=f"recommended: {recommended.x.item():.0f} pairs",
    other_label="proposal: 80 pairs",
    xlabel="radius (widths of the box; 0.1 is 20 visitors a day)",
    ylabel="worst-case profit (euros a day)",
)
plt.show()

# %% [markdown]
# Each curve begins at the expected profit and falls as the world is allowed to shift
# further. Where they cross, the smaller order becomes the safer one; where the first
# one meets the level line, the target is lost.
#
# And what is the worst case? Not "no visitors at all": the ball allows 10 visitors a
# day on average, and the adversary spends them where they hurt most. Dark bars are the
# days as the worst distribution has them, light bars the days of the list.

# %%
ax = plot_worst_case(
    hut, recommended, xlabel="visitors a day", ylabel="profit (euros a day)"
)
plt.show()

# %% [markdown]
# ## Which one should I take?
#
# - You have many contexts from a world that stays: **from the data**.
# - You can name what you fear: **from scenarios**. It is the easiest to explain.
# - You can name a price: **from a budget**. Then look at the profile to see what it
#   buys.
# - Today differs from other days: give the round its own radius, `ask(radius=...)` (see
#   the tutorial on forecasts).
#
# The default of the `wdrbo` recipes follows the spread of the contexts seen and shrinks
# as they accumulate: a cautious start for those who do not want to choose yet.
#
# **For experts.** All three are statements about $\{ q : d(p, q) \le \varepsilon \}$
# around the reference $p$. From data, $\varepsilon$ is a bootstrap quantile of $d(p^*,
# \hat p)$, consistent for independent contexts in one dimension and of the right order
# in more; from scenarios, $\max_k d(p, q_k)$; from a budget, the largest $\varepsilon$
# with $|E_p f(x_\varepsilon, c) - E_p f(x_0, c)| \le b$ for all smaller radii tried.
# The curve $v(\varepsilon) = \min \{ E_q f : d(p, q) \le \varepsilon \}$ is convex and
# falls.
