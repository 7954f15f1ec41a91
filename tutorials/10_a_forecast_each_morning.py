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
import pandas as pd
import torch
from torch import Tensor

from botorch_drbo import ContextSet, RobustOptimizer
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
bounds = torch.tensor([[0.0], [60.0]]).double()  # ice in kg
context_bounds = torch.tensor([[10.0, 0.0], [35.0, 200.0]]).double()  # degrees, guests


def profit(ice: Tensor, contexts: Tensor) -> Tensor:
    """Euros a day, ``n x 1``."""
    degrees, guests = contexts[..., :1], contexts[..., 1:]
    eaten = 0.01 * guests * (degrees - 8).clamp_min(0)
    return 6 * torch.minimum(ice, eaten) - 2 * ice


# %% [markdown]
# A day's temperature is near the forecast of that morning, which is itself warm or
# cold. The *forecast* is a list of equally likely days: the degrees of the weather
# service with its usual error, and the guests of past summers.

# %%
generator = torch.Generator().manual_seed(0)
GUESTS = torch.tensor([60.0, 90.0, 120.0, 150.0]).double()


def morning() -> tuple[ContextSet, Tensor]:
    """The forecast of a day, and the context ``1 x 2`` that the day then shows."""
    centre = 14 + 17 * torch.rand((), generator=generator).double()
    errors = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0]).double()
    points = torch.cartesian_prod(centre + errors, GUESTS)  # 20 x 2
    degrees = centre + 1.2 * torch.randn((), generator=generator).double()
    guests = 105 + 30 * torch.randn((), generator=generator).double()
    day = torch.stack([degrees, guests]).unsqueeze(0)
    box = context_bounds
    return ContextSet(points.clamp(*box)), day.clamp(*box)


# %% [markdown]
# ## Learning, with today's forecast
#
# The loop is as always, with one addition: `ask(context_set=forecast, radius=0.05)`.
# For this round the forecast takes the place of what the loop has learnt about the
# contexts, and 0.05 is how much we distrust it (5 % of the box, on average). Next
# morning brings another one. The model of the profit learns from all days.
# (`surrogate="botorch"` is a quicker [model](../docs/surrogates.md) than the default.)

# %%
kiosk = RobustOptimizer(
    "wdrbo_exact",
    bounds,
    context_bounds,
    surrogate="botorch",
    seed=0,
    num_initial=4,
    num_restarts=2,
    raw_samples=64,
)
for _ in range(DAYS):
    forecast, day = morning()
    ice = kiosk.ask(context_set=forecast, radius=0.05)  # before the day
    kiosk.tell(ice, day, profit(ice, day))  # after the day

print(kiosk.recommend(context_set=forecast, radius=0.05))

# %% [markdown]
# ## What is the knowledge worth?
#
# The same model, the same days, four amounts of knowledge:
#
# - nothing but past days: `recommend()`;
# - the forecast: `recommend(context_set=forecast, radius=0.05)`;
# - the temperature itself, because it is noon already; the guests not: `NaN` says so;
# - both.

# %%
exam = [morning() for _ in range(EXAM)]
days = torch.cat([day for _, day in exam])  # EXAM x 2
degrees_known = days.clone()
degrees_known[:, 1] = torch.nan  # the guests are not known
plain = kiosk.recommend().x
orders = {
    "past days only": plain.expand(EXAM, 1),
    "the forecast": torch.stack(
        [kiosk.recommend(context_set=seen, radius=0.05).x for seen, _ in exam]
    ),
    "the temperature": kiosk.policy(degrees_known),
    "temperature and guests": kiosk.policy(days),
}
rows = {}
for name, ice in orders.items():
    earned = profit(ice, days).flatten()
    worst = earned.sort().values[: max(1, EXAM // 10)]
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
degrees = torch.linspace(12, 34, 5 if SMOKE_TEST else 12).double()
grid = torch.stack([degrees, torch.full_like(degrees, torch.nan)], -1)
ice = kiosk.policy(grid)
ax = plot_policy(
    grid,
    ice,
    without=plain.item(),
    labels=("temperature (degrees Celsius)", "ice to order (kg)"),
)
plt.show()
pd.DataFrame({"degrees": degrees.tolist(), "ice (kg)": ice.flatten().tolist()}).round(1)

# %% [markdown]
# ## And if the forecast is wrong?
#
# `robustness_profile` takes the same arguments: the worst-case profit of today's order,
# by how far the day may be from today's forecast. Beside it, an order for a day 5
# degrees cooler.

# %%
today = ContextSet(
    torch.cartesian_prod(torch.tensor([25.0, 26.0, 27.0]).double(), GUESTS)
)
best = kiosk.recommend(context_set=today, radius=0.05)
cooler = kiosk.policy(torch.tensor([[21.0, torch.nan]]).double())[0]
profile = kiosk.robustness_profile(
    best.x,
    cooler,
    context_set=today,
    radii=torch.linspace(0.0, 0.3, 4 if SMOKE_TEST else 16).double(),
)
ax = plot_robustness_profile(
    profile,
    label=f"today's order: {best.x.item():.0f} kg",
    other_label=f"order for 21 degrees: {cooler.item():.0f} kg",
    xlabel="radius (widths of the box of contexts)",
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
