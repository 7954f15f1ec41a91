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
# # How much, against what, at what price?
#
# *Beginner, fifteen minutes: you have run the loop of the first tutorial once.*
#
# A robust decision needs two things from you: what you fear, and what you would pay to
# be safe from it. After this page you can say both in the units of your table, read the
# curve that shows what a price buys, and say instead how far the contexts may move: the
# *radius*, which you can find in three ways.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch import Tensor

from botorch_drbo import ContextSet, MeanShift, NamedOptimizer, calibrate
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.plotting import (
    plot_price,
    plot_robustness_profile,
    plot_worst_case,
)

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
RESAMPLES = 20 if SMOKE_TEST else 200
LISTS = 20 if SMOKE_TEST else 400  # repetitions of the simulation
EFFORT = {"num_restarts": 2, "raw_samples": 64}  # small searches suffice here

plt.rcParams.update({"figure.dpi": 80, "font.size": 10})

# %% [markdown]
# ## A cliff
#
# A ferry has 100 seats. Some of those who bought a ticket never come, so it sells more
# than 100, at ten euros each. Whoever has a ticket and finds no seat gets 50 euros. The
# tickets are the *decision*, the percentage that does not come is the *context*, what
# is earned is the *outcome*. Here are 40 trips.


# %%
def earned(tickets: Tensor, absent: Tensor) -> Tensor:
    """Euros a trip; `absent` in percent."""
    left_behind = (tickets * (1 - absent / 100) - 100).clamp_min(0)
    return 10 * tickets - 50 * left_behind


generator = torch.Generator().manual_seed(3)
absent = (10 + 3 * torch.randn(40, generator=generator)).clamp(0, 30).double()
tickets = 80 + 60 * torch.rand(40, generator=generator).double()
trips = pd.DataFrame({"tickets": tickets.numpy(), "absent": absent.numpy()}).round()
trips["earned"] = earned(tickets, absent).numpy().round()
ferry = NamedOptimizer.from_dataframe(
    trips,
    decisions={"tickets": (80.0, 140.0)},
    contexts={"absent": (0.0, 30.0)},
    outcome="earned",
    **EFFORT,
)

# %% [markdown]
# ## What do you fear, what may it cost?
#
# The ferry fears a trip to the festival, to which nearly everybody comes: five percent
# fewer are absent. `give_up` is the price: a share of what there is to gain by choosing
# well, or an amount, `give_up={"earned": 20}`. The table has the decision for four
# prices, what it truly earns on such trips, and what it earns in the case feared.

# %%
festival = MeanShift({"absent": (-5, 0)})  # down by five, not up; (-5, 5) is both ways
law = (10 + 3 * torch.randn(20_000, generator=generator)).clamp(0, 30).double()
rows = {}
for price in (0.0, 0.05, 0.1, 1.0):
    best = ferry.recommend(against=festival, give_up=price)
    sold = torch.tensor(float(best.x["tickets"].iloc[0]))
    rows[f"{price:.0%}"] = {
        "tickets": sold.item(),
        "as before": earned(sold, law).mean().item(),
        "festival": earned(sold, (law - 5).clamp_min(0)).mean().item(),
    }
pd.DataFrame(rows).T.rename_axis("give up at most").round().astype(int)

# %% [markdown]
# The first euros buy the most. At the best expectation the curve of what is earned is
# flat: a ticket fewer costs hardly anything; but just behind it is the cliff, and a
# ticket fewer is a step away from it. That is why a limit on the price makes robustness
# nearly free here. The recommendation says what is feared, what it costs by the model,
# and how sure the model is:

# %%
print(ferry.recommend(against=festival, give_up=0.05))

# %% [markdown]
# `price_curve` answers for all prices at once. The mark is the knee, where the next
# euro begins to buy less than it costs on average.

# %%
ax = plot_price(ferry.price_curve(against=festival))
plt.show()

# %% [markdown]
# Other dangers: `Spread(2.0)` (they vary twice as much), `Mixture(0.1, "box")` (a tenth
# of the trips are like nothing seen), `Weights` for categories, `Scenarios` for
# forecasts of your own, and `AnyOf(...)` joins them. Without a word,
# `ferry.recommend()` is safe from *every* distribution within one standard deviation of
# those seen, for at most a tenth of what there is to gain. On the command line:
#
# ```text
# botorch-drbo recommend trips.csv --against absent=-5:0 --give-up 5%
# ```
#
# ## Or a radius
#
# The papers of this field ask for one number instead: how different may the world be
# from your data? That number is the *radius* of a ball of distributions. The rest of
# this page is about finding it, and what it guarantees.
#
# ### The hut
#
# A ski hut rents skis from a dealer for tomorrow: 12 euros a pair, whether used or not.
# A visitor pays 30 euros for a pair. Nobody knows in the evening how many visitors will
# come. So the number of pairs is the *decision*, the number of visitors is the
# *context*, and the day's profit is the *outcome*. The hut has a table of 30 days.

# %%
WIDTH = 200.0  # nobody remembers a day with more visitors


def profit(skis: Tensor, visitors: Tensor) -> Tensor:
    """Euros a day."""
    return 30 * torch.minimum(skis, visitors) - 12 * skis


def winter(days: int, generator: torch.Generator) -> Tensor:
    """Visitors of so many days, as they truly come."""
    draws = torch.randn(days, 1, generator=generator).double()
    return (110 + 25 * draws).clamp(0, WIDTH)


generator = torch.Generator().manual_seed(1)
visitors = winter(30, generator)  # 30 x 1
skis = WIDTH * torch.rand(30, 1, generator=generator).double()
days = pd.DataFrame(
    {
        "skis": skis.flatten().numpy(),
        "visitors": visitors.flatten().numpy(),
        "profit": profit(skis, visitors).flatten().numpy(),
    }
).round()
days.head(3)

# %% [markdown]
# `radius={"visitors": 10}` prepares for distributions in which the days have 10
# visitors more or fewer **on average**: every day 10 fewer, or every second day 20
# fewer. It is stated in the units of the column, and does not depend on the bounds.
# (`surrogate="botorch"` is a quicker [model](../docs/surrogates.md) than the default.)

# %%
hut = NamedOptimizer.from_dataframe(
    days,
    decisions={"skis": (0.0, WIDTH)},
    contexts={"visitors": (0.0, WIDTH)},
    outcome="profit",
    radius={"visitors": 10},
    surrogate="botorch",
    seed=0,
    num_restarts=2,
    raw_samples=64,
)
print(hut.recommend())

# %% [markdown]
# ### From your data
#
# Thirty days are a sample. How different may the true distribution be? Draw 30 days
# from these 30, with repetition, and measure how far the draw is from the list. Repeat.
# The distance that 95% of the draws stay within is the radius (the bootstrap).
#
# A distance needs a unit. In the set below it is the number of visitors.


# %%
def ball(points: Tensor) -> Wasserstein:
    """All distributions near a list of contexts; the unit is one visitor."""
    return Wasserstein(0.0, torch.cdist(points, points))


today = ContextSet.empirical(visitors)
from_data = calibrate.from_data(visitors, ball, num_resamples=RESAMPLES)
print(f"radius from the data: {from_data:.1f} visitors a day")

# %% [markdown]
# *What it guarantees:* with about 95% confidence the ball contains the distribution
# that the days came from, if days are independent and the world **does not change**.
# More days make the radius smaller. A winter without snow is not in it.
#
# ### From what you fear
#
# Describe what you are afraid of as distributions, and take the smallest ball that
# contains all of them.

# %%
box = torch.tensor([[0.0], [WIDTH]]).double()
fears = {
    "a fifth fewer visitors": calibrate.shifted(today, -0.2 * today.mean, box),
    "days twice as uneven": calibrate.scaled(today, 2.0, box),
}
for name, fear in fears.items():
    distance = calibrate.from_scenarios(today, fear, ball)
    print(f"{name}: {distance:.1f} visitors a day")
from_fears = calibrate.from_scenarios(today, list(fears.values()), ball)
print(f"all of them: {from_fears:.1f} visitors a day")

# %% [markdown]
# *What it guarantees:* in each of these worlds the decision earns at least its
# worst-case value, under the model. It does not say how likely they are.
#
# ### How often does the guarantee hold?
#
# We know the true distribution, so we can count. For many lists of days: is the true
# distribution within the radius from the data? And does the plan of 110 pairs earn at
# least the worst case that was promised for it? On a line the Wasserstein distance of
# two lists of equal length is the mean distance of their sorted values, which makes
# thousands of bootstraps quick.

# %%
PAIRS = torch.tensor(110.0).double()
quantiles = torch.linspace(0, 1, 2001).double()[1::2]  # 1000 levels
sorted_law = (110 + 25 * torch.special.ndtri(quantiles)).clamp(0, WIDTH)
true_mean = profit(PAIRS, sorted_law).mean()


def apart(one: Tensor, two: Tensor) -> Tensor:
    """The Wasserstein distance of two lists, `... x n` each, in visitors."""
    return (one.sort(-1).values - two.sort(-1).values).abs().mean(-1)


other = winter(30, generator)
both = ContextSet.empirical(torch.cat([visitors, other])).points
p, q = (torch.zeros(60).double() for _ in range(2))
p[:30], q[30:] = 1 / 30, 1 / 30
checked = ball(both).distance(p, q)
torch.testing.assert_close(apart(visitors.T, other.T).squeeze(), checked)

rows = {}
for size in (10, 25, 100):  # divisors of the 1000 levels
    lists = winter(LISTS * size, generator).reshape(LISTS, size)
    picks = torch.randint(size, (LISTS, RESAMPLES, size), generator=generator)
    resampled = lists.unsqueeze(1).expand(-1, RESAMPLES, -1).gather(-1, picks)
    radius = apart(resampled, lists.unsqueeze(1)).quantile(0.95, dim=-1)  # LISTS
    inside = apart(lists.repeat_interleave(1000 // size, dim=-1), sorted_law) <= radius
    # A visitor less costs 30 euros on a day with at most 110 of them. The adversary
    # takes such visitors first, as far as the radius and the list allow.
    enough = (lists * (lists <= PAIRS)).mean(-1)
    mean = profit(PAIRS, lists).mean(-1)
    kept = {
        "true distribution inside": inside,
        "promise kept": mean - 30 * torch.minimum(radius, enough) <= true_mean,
        "promise kept with radius 0": mean <= true_mean,
    }
    rows[size] = {"radius (median)": f"{radius.median().item():.1f}"} | {
        name: f"{each.double().mean().item():.0%}" for name, each in kept.items()
    }
pd.DataFrame(rows).T.rename_axis("days in the list")

# %% [markdown]
# Without a radius the true value is below the promise about every other time. With it,
# it hardly ever is: the radius covers every way in which a list can be wrong, and only
# some of them harm a plan. The law itself is inside less often than 95% when the list
# is short, because a bootstrap cannot draw days that the list does not have.
#
# None of this covers a **change** of the distribution. If you expect one, state how
# large it may be, as above, and take the larger radius.
#
# ## The opposite question: how much change does a decision bear?
#
# Suppose a colleague proposes 80 pairs. How does that compare with the recommendation,
# and up to which change does the recommendation still earn 1,000 euros a day?

# %%
recommended = hut.recommend()
pairs = float(recommended.x["skis"].iloc[0])
profile = hut.robustness_profile(
    recommended.x,
    pd.DataFrame({"skis": [80.0]}),
    target=1000.0,
    radius={"visitors": 1.0},
    radii=torch.linspace(0.0, 60.0, 4 if SMOKE_TEST else 25).double(),
)
ax = plot_robustness_profile(
    profile,
    label=f"recommended: {pairs:.0f} pairs",
    other_label="proposal: 80 pairs",
    xlabel="radius (visitors a day)",
    ylabel="worst-case profit (euros a day)",
)
plt.show()

# %% [markdown]
# Each curve begins at the expected profit and falls as the world is allowed to change
# more. Where the curves cross, the smaller order becomes the safer one; where the first
# one meets the horizontal line, the target is lost.
#
# And what is the worst case? Not "no visitors at all": the ball allows 10 visitors a
# day on average, and the adversary spends them where they hurt most. Dark bars are the
# days in the worst distribution, light bars the days of the table.

# %%
ax = plot_worst_case(
    hut, recommended, xlabel="visitors a day", ylabel="profit (euros a day)"
)
plt.show()

# %% [markdown]
# ## Which one should I take?
#
# - You can name what you fear: say it, as for the ferry, or take the radius **from
#   scenarios**. It is the easiest to explain.
# - You have many contexts from a world that does not change: **from the data**.
# - You can name a price: `give_up`, as for the ferry.
# - Today differs from other days: give the round its own radius, `ask(radius=...)` (see
#   [a forecast each morning](10_a_forecast_each_morning.ipynb)).
# - You want to know whether it pays on your own table: `compare`, in
#   [is my model good enough?](13_is_my_model_good_enough.ipynb)
#
# The default radius of the `wdrbo` recipes follows the spread of the contexts seen and
# shrinks as they accumulate. [Which radius?](../docs/radius.md) has radii for several
# columns, categories and other sets, and what was measured.
# [`calibrate`](../docs/api/calibrate.md) has the functions of this page, and
# [schedules](../docs/api/schedules.md) radii with a proof (larger ones).
#
# **For experts.** All three are statements about $\{ q : d(p, q) \le \varepsilon \}$
# around the reference $p$. From data, $\varepsilon$ is a bootstrap quantile of $d(p^*,
# \hat p)$, consistent for independent contexts in one dimension and of the right order
# in more; from scenarios, $\max_k d(p, q_k)$.
# The curve $v(\varepsilon) = \min \{ E_q f : d(p, q) \le \varepsilon \}$ is convex and
# falls.
