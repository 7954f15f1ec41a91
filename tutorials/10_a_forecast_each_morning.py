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
# # A forecast each morning, and a context known before the choice
#
# *Intermediate, fifteen minutes: you have run the loop of the first tutorial once.*
#
# Often you know more about today than about days in general. The weather service has a
# forecast; the thermometer says how warm it is already; the bookings are in. After this
# page you can tell the loop so, in one line each, see what the knowledge is worth, and
# print a table with a decision for each temperature.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from botorch_drbo import ContextSet, NamedOptimizer, Space
from botorch_drbo.plotting import plot_policy, plot_robustness_profile

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
DAYS = 8 if SMOKE_TEST else 30
EXAM = 3 if SMOKE_TEST else 30  # days on which knowledge is compared

plt.rcParams.update({"figure.dpi": 110, "font.size": 10})

# %% [markdown]
# ## The kiosk
#
# A kiosk at a lake orders ice early in the morning (the *decision*, in kilograms). Then
# the day shows two things that nobody chose (the *context*): how warm it gets, and how
# many guests come. Ice costs 2 euros a kilogram, sells for 6, and melts if it is not
# sold. Guests eat more of it when it is warm. The kiosk does not know the formula
# below; it sees what it ordered, how the day was, and what was in the till.

# %%
space = Space(
    {"ice": (0.0, 60.0)},  # kg
    {"degrees": (10.0, 35.0), "guests": (0.0, 200.0)},
    outcome="profit",
)


def profit(ice, degrees, guests):
    """Euros a day, of numbers or of columns."""
    eaten = 0.01 * guests * np.maximum(degrees - 8, 0)
    return 6 * np.minimum(ice, eaten) - 2 * ice


# %% [markdown]
# A day's temperature is near the forecast of that morning, which is itself warm or
# cold. The *forecast* is a list of equally likely days: the degrees of the weather
# service with its usual error, and the guests of past summers.

# %%
rng = np.random.default_rng(0)
GUESTS = (60.0, 90.0, 120.0, 150.0)


def forecast_of(*degrees: float) -> ContextSet:
    """These temperatures, each with the guests of past summers."""
    rows = [{"degrees": d, "guests": guests} for d in degrees for guests in GUESTS]
    return space.context_set(pd.DataFrame(rows))


def morning() -> tuple[ContextSet, dict[str, float]]:
    """The forecast of a day, and the context that the day then shows."""
    centre = rng.uniform(14, 31)
    day = {"degrees": centre + 1.2 * rng.normal(), "guests": 105 + 30 * rng.normal()}
    day = {name: round(float(max(value, 10)), 1) for name, value in day.items()}
    return forecast_of(*(centre + error for error in (-2, -1, 0, 1, 2))), day


# %% [markdown]
# ## Learning, with today's forecast
#
# The loop is as always, with one addition: `ask(context_set=forecast, radius=OFF)`. For
# this round the forecast takes the place of what the loop has learnt about the
# contexts, and `OFF` is how far it may be off on average: 1.5 degrees, or 10 guests.
# Next morning brings another one. The model of the profit learns from all days.
# (`surrogate="botorch"` is a quicker [model](../docs/surrogates.md) than the default.)

# %%
OFF = {"degrees": 1.5, "guests": 10}
kiosk = NamedOptimizer(
    "wdrbo_exact",
    space,
    surrogate="botorch",
    seed=0,
    num_initial=4,
    num_restarts=2,
    raw_samples=64,
)
for _ in range(DAYS):
    forecast, day = morning()
    order = kiosk.ask(context_set=forecast, radius=OFF)  # before the day
    kiosk.tell(order, day, profit(order["ice"].iloc[0], **day))  # after the day

print(kiosk.recommend(context_set=forecast, radius=OFF))

# %% [markdown]
# ## What is the knowledge worth?
#
# The same model, the same days, four amounts of knowledge:
#
# - nothing but past days: `recommend()`;
# - the forecast: `recommend(context_set=forecast, radius=OFF)`;
# - the temperature itself, because it is noon already; the guests not;
# - both.

# %%
exam = [morning() for _ in range(EXAM)]
days = pd.DataFrame([day for _, day in exam])
plain = kiosk.recommend().x["ice"].iloc[0]
orders = {
    "past days only": np.full(EXAM, plain),
    "the forecast": np.array(
        [
            kiosk.recommend(context_set=seen, radius=OFF).x["ice"].iloc[0]
            for seen, _ in exam
        ]
    ),
    "the temperature": kiosk.policy(days[["degrees"]])["ice"].to_numpy(),
    "temperature and guests": kiosk.policy(days)["ice"].to_numpy(),
}
rows = {}
for name, ice in orders.items():
    earned = profit(ice, days["degrees"].to_numpy(), days["guests"].to_numpy())
    worst = np.sort(earned)[: max(1, EXAM // 10)]
    rows[name] = {
        "mean profit (euros)": f"{earned.mean():.1f}",
        "worst tenth of days": f"{worst.mean():.1f}",
        "ice ordered (kg)": f"{ice.min():.0f} to {ice.max():.0f}",
    }
pd.DataFrame(rows).T

# %% [markdown]
# One number for all days cannot be right for a cool and for a hot one. The forecast
# alone brings most of what perfect knowledge would, on these days.
#
# What is *known* is certain: it is put into every context of the reference, and the
# adversary moves in the other columns only. What is *forecast* is not: the radius says
# by how much it may be wrong.
#
# ## A table for the wall
#
# `policy` answers for many contexts at once, with one fit of the model. Here for each
# temperature, guests not known.

# %%
wall = kiosk.policy({"degrees": np.linspace(12, 34, 5 if SMOKE_TEST else 12)})
ax = plot_policy(
    wall[["degrees"]],
    wall,
    decision="ice",
    without=plain,
    labels=("temperature (degrees Celsius)", "ice to order (kg)"),
)
plt.show()
wall[["degrees", "ice"]].round(1)

# %% [markdown]
# ## And if the forecast is wrong?
#
# `robustness_profile` takes the same arguments: the worst-case profit of today's order,
# by how far the day may be from today's forecast. Beside it, an order for a day 5
# degrees cooler.

# %%
today = forecast_of(25, 26, 27)
best = kiosk.recommend(context_set=today, radius=OFF)
cooler = kiosk.policy({"degrees": [21.0]})[["ice"]]
profile = kiosk.robustness_profile(
    best.x,
    cooler,
    context_set=today,
    radii=torch.linspace(0.0, 0.3, 4 if SMOKE_TEST else 16).double(),
)
ax = plot_robustness_profile(
    profile,
    label=f"today's order: {best.x['ice'].iloc[0]:.0f} kg",
    other_label=f"order for 21 degrees: {cooler['ice'].iloc[0]:.0f} kg",
    xlabel="radius (widths of the bounds of degrees and guests)",
    ylabel="worst-case profit (euros)",
)
plt.show()

# %% [markdown]
# ## Details that matter
#
# - [Rounds](../docs/rounds.md) has all of this for tables too, and drift, and contexts
#   that you can choose; [the loop](../docs/api/optimizer.md) has the arguments, and
#   [Which radius?](../docs/radius.md) says how much to distrust a forecast.
# - Everything said of a round is in the journal (`journal="kiosk.jsonl"`), and `resume`
#   brings it back. Decisions of the initial design depend on no forecast.
# - A recipe without a radius (`erbo`) takes a forecast and refuses a `radius`; one that
#   models the decision alone (`gp_ucb`) refuses both, because it cannot use them.
# - A forecast is any `ContextSet`: an ensemble of the weather service as it is, with
#   its weights; draws from a distribution (`ContextSet.from_distribution`); a single
#   point.
# - A pending decision for another known context is not avoided when the next one is
#   asked, because they answer different questions.
#
# **For experts.** `context_set` is the reference $p_t$ and `radius` the $\varepsilon_t$
# of the general setting of BOCU and WDRBO, which change in each round; the Gaussian
# process is one and the same. A known context fixes columns: $\max_x \min_q E_q[f(x,
# c_1, C_2)]$ with $C_2 \sim q$ and $c_1$ observed, which for a fully known context is
# contextual Bayesian optimisation.
