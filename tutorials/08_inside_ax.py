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
# # Inside Ax
#
# *Intermediate, ten minutes: you have run an Ax experiment before.*
#
# After this page your Ax experiment looks for the decision that stays good when the
# world differs from the trials. You know what to tell it when the context comes after
# the trial, hours after it, or before it. And you have seen the true costs of the
# robust decision beside those of `erbo`, which trusts the trials, and of the best
# trial.

# %% [markdown]
# ## A greenhouse in winter
#
# Every evening you set the thermostat of a greenhouse. Heating costs money. If the
# night is cold and the setting low, plants suffer, which costs more. In the evening
# nobody knows how cold the night will be, and nobody chooses it.
#
# The setting is the **decision**. The temperature of the night is the **context**. The
# cost of the night is the **outcome**, and low is good.
#
# You have run two dozen nights, and they were mild. The plan that was best on *these*
# nights has a weakness: the next ones may be two or three degrees colder. The
# **robust** plan is the one that is best in the worst of all patterns of nights that
# are not too different from those seen. How different is your choice, the
# [*radius*](../docs/radius.md).

# %%
import logging
import os
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.utils.common.logger import set_ax_logger_levels

from botorch_drbo.integrations import ax as robust
from botorch_drbo.plotting import COLOURS, DASHES, MARKERS

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
NIGHTS = 9 if SMOKE_TEST else 24
BUDGET = {"num_restarts": 2, "raw_samples": 32} if SMOKE_TEST else {}

set_ax_logger_levels(logging.WARNING)  # it would report each trial
plt.rcParams.update({"figure.dpi": 110, "font.size": 9})


def cost(setting, night):
    """Of one night: heating, and what the plants suffer below twelve degrees."""
    lowest = setting + 0.8 * night  # degrees, at the leaves
    suffering = np.logaddexp(0.0, 12.0 - lowest)
    return 0.5 * (setting - 10.0) + 6.0 * suffering


def nights(n, shift=0.0, seed=3):
    """How cold it gets, in degrees, in each of so many nights."""
    draws = np.random.default_rng(seed).normal(0.0, 3.0, n)
    return np.clip(4.0 + shift + draws, -15.0, 15.0)


# %% [markdown]
# ## Five lines
#
# The context is a parameter of the experiment like any other: it needs a name and
# bounds. The generation strategy declares it a context. The recipe `wdrbo_exact` looks
# for the decision with the best worst case over all patterns of nights within a
# Wasserstein distance of those seen: here, nights that are one and a half degrees
# colder (or warmer) on average. Any [recipe](../docs/methods.md) of this library can
# take its place; the second experiment takes `erbo`, which trusts the nights seen.


# %%
def experiment(algorithm, **options):
    """An Ax experiment with one decision and one context."""
    client = Client()
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name=name, parameter_type="float", bounds=bounds)
            for name, bounds in {
                "setting": (10.0, 24.0),
                "night": (-15.0, 15.0),
            }.items()
        ],
    )
    client.configure_optimization(objective="-cost")
    client.set_generation_strategy(
        robust.generation_strategy(
            ["night"], algorithm=algorithm, num_initial=6, seed=0, **options, **BUDGET
        )
    )
    return client


client = experiment("wdrbo_exact", radius={"night": 1.5})
trusting = experiment("erbo")

# %% [markdown]
# A round: ask for a trial, wait for the night, tell what happened. The trial holds the
# decision alone, because there is no context yet.

# %%
((index, trial),) = client.get_next_trials(max_trials=1).items()
print(f"trial {index}: {trial}")

seen = nights(NIGHTS)
robust.tell(
    client, index, {"night": seen[0]}, {"cost": float(cost(trial["setting"], seen[0]))}
)


# %%
def play(client, nights):
    """A round for each night."""
    for night in nights.tolist():
        ((index, trial),) = client.get_next_trials(max_trials=1).items()
        outcome = float(cost(trial["setting"], night))
        robust.tell(client, index, {"night": night}, {"cost": outcome})


play(client, seen[1:])
play(trusting, seen)
client.summarize(trial_statuses=["completed"]).tail(4)

# %% [markdown]
# In the record each night is an ordinary, complete trial of Ax. (The trial that was
# asked for is closed as "failed", with a note that names the trial with the result,
# because Ax cannot add a parameter to a trial. Failed trials without data do no harm.)
#
# ## What each decision truly costs
#
# Ax's `get_best_parameterization` returns the trial with the lowest cost. That depends
# on luck: a low setting, and the night happened to be mild. `robust.recommend` asks the
# model for the setting with the best robust value (for `erbo`: with the best mean over
# the nights seen). The curves are the true costs, which no experiment observed.

# %%
decisions = {
    "robust": robust.recommend(client),
    "erbo": robust.recommend(trusting),
    "best trial (Ax)": client.get_best_parameterization(use_model_predictions=False)[0],
}
WORLDS = {"as before": 0.0, "three degrees colder": -3.0, "six colder": -6.0}
many = {world: nights(4000, shift, seed=0) for world, shift in WORLDS.items()}

settings = np.linspace(10.0, 24.0, 141)
figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for dash, (world, drawn) in zip(("-", "--", ":"), many.items(), strict=True):
    average = cost(settings[:, None], drawn).mean(1)
    axes.plot(settings, average, "k", linestyle=dash, label=f"nights {world}")
for i, (name, found) in enumerate(decisions.items()):
    style = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": DASHES[i + 1]}
    axes.plot([found["setting"]] * 2, [0.5, 13.5], label=name, **style)
axes.set(xlabel="setting (degrees)", ylabel="average cost of a night", ylim=(0, 14))
axes.legend(frameon=False, fontsize=8, loc="upper right")
plt.show()

# %%
rows = {
    name: {"setting": found["setting"]}
    | {world: cost(found["setting"], drawn).mean() for world, drawn in many.items()}
    for name, found in decisions.items()
}
rows["lowest possible"] = {"setting": np.nan} | {
    world: cost(settings[:, None], drawn).mean(1).min() for world, drawn in many.items()
}
table = pd.DataFrame(rows).T
price = table["as before"]["robust"] - table["as before"]["erbo"]
saved = (table.loc["erbo"] - table.loc["robust"])[list(WORLDS)[1:]]
print(f"robust against erbo: costs {price:+.2f} a night if nothing changes")
print("and saves", {world: round(each, 2) for world, each in saved.items()})
table.round(2)

# %% [markdown]
# The column *as before* has the price of the robust decision, the other columns what it
# saves. This is one run of two dozen nights, an example and no measurement; the page
# [which radius?](../docs/radius.md) has measurements.

# %% [markdown]
# ## Two greenhouses at once, and costs that come late
#
# Pending trials are avoided: if you ask for several, they differ. A context without its
# outcome already counts for the pattern of nights. `tell` returns the number of the
# trial that replaces the one asked for.

# %%
trials = client.get_next_trials(max_trials=2)
print({index: round(trial["setting"], 2) for index, trial in trials.items()})
(first, first_trial), (second, _) = trials.items()

goes_on = robust.tell(client, first, {"night": 1.5})  # the bill comes later
client.mark_trial_failed(second)  # the sensor was broken: nothing is known

outcome = float(cost(first_trial["setting"], 1.5))
robust.tell(client, goes_on, {"night": 1.5}, {"cost": outcome})  # the bill

# %% [markdown]
# ## A night that is known already
#
# Sometimes there is a forecast that you trust. A context that is known before the
# decision is a fixed parameter of Ax. The decision is then for that night alone.

# %%
((index, trial),) = client.get_next_trials(
    max_trials=1, fixed_parameters={"night": -3.0}
).items()
print("to try on a night of -3 degrees:", trial)
outcome = float(cost(trial["setting"], -3.0))
robust.tell(client, index, {"night": -3.0}, {"cost": outcome})

for night in (-3.0, 3.0, 9.0):
    decision = robust.recommend(client, {"night": night})["setting"]
    print(f"to implement at {night:2.0f} degrees: {decision:.1f}")

# %% [markdown]
# ## Stop, and go on
#
# The strategy is saved with the experiment. The loaded client proposes what the saved
# one would have proposed. (Import `botorch_drbo.integrations.ax` before you load.)

# %%
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "greenhouse.json")
    client.save_to_json_file(path)
    again = Client.load_from_json_file(path)
print(robust.recommend(again) == robust.recommend(client))

# %% [markdown]
# ## How far may the world shift, and is the model right?
#
# [`robust.optimizer(client)`](../docs/api/ax.md) is the experiment as a
# `NamedOptimizer`, with everything that this library knows: profiles, policies, checks.
# Its values are predictions of the model, so look at the check first, and at the
# interval.

# %%
optimizer = robust.optimizer(client)
print(optimizer.check())
print()
best = optimizer.recommend()
print(best)
setting = best.x["setting"].iloc[0]
truth = cost(setting, optimizer.history["night"].dropna().to_numpy()).mean()
low, high = best.expected_interval
inside = "inside" if low <= truth <= high else "outside"
print(f"\nin truth, on the nights seen: {truth:.2f}, {inside} {low:.2f} to {high:.2f}")

# %% [markdown]
# Here the truth lies just outside, and the check warned: little explained, several
# trials outside their intervals. An interval of 90% misses one time in ten even if the
# model is right, and a decision is chosen because it looks good. So first try a few
# more nights. The worst-case cost is the worst over patterns of nights, *for
# this model*. Robustness to the nights does not guard against a wrong model; [is my
# model good enough?](13_is_my_model_good_enough.ipynb) does.
#
# ## Where to go from here
#
# Options of recipes, units, what is refused and why, and how to put a single
# acquisition function into a strategy of your own: [Ax](../docs/ax.md).
