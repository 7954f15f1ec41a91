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
# # Tuning a learner for data that shift
#
# *Beginner, ten minutes: you have trained a model and chosen its hyper-parameters.*
#
# A model is tuned on validation data, and used on other data. If these have moved
# (other patients, another season, another camera), the hyper-parameter that was best in
# validation can be a bad one. After this page you can tune for data that have moved by
# an amount that you name, and you know what that costs where nothing moves. The case
# was chosen because robustness pays there; on many problems it does not
# ([what was measured](../docs/measured.md#five-claims)).

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import t as student

from botorch_drbo import Log, NamedOptimizer
from botorch_drbo.plotting import COLOURS

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
CLINICS = 12 if SMOKE_TEST else 40  # validation batches
TUNERS = 2 if SMOKE_TEST else 12  # repetitions for the interval

plt.rcParams.update({"figure.dpi": 110, "font.size": 10})

# %% [markdown]
# ## The learner
#
# A hospital trains a test for an illness from four blood values. One patient in five of
# its data is ill. The learner is logistic regression, fitted by Newton's method. Its
# hyper-parameter is the *weight* of an ill patient in the fit: a larger one makes the
# test call more patients ill.


# %%
def patients(n, share, rng):
    """Blood values, and who is ill, of so many patients."""
    ill = rng.random(n) < share
    values = rng.standard_normal((n, 4))
    values[:, 0] += 1.4 * ill
    values[:, 1] += 0.7 * ill
    return values, ill


RIDGE = np.diag([0.0, 1.0, 1.0, 1.0, 1.0])  # no penalty on the constant


def trained(weight, values, ill):
    """A test, a function of blood values, trained with this weight of the ill."""
    A = np.column_stack([np.ones(len(values)), values])
    w, b = np.where(ill, weight, 1.0), np.zeros(5)
    for _ in range(12):
        p = 1 / (1 + np.exp(-A @ b))
        slope = A.T @ (w * (p - ill)) + RIDGE @ b
        b = b - np.linalg.solve((A.T * (w * p * (1 - p))) @ A + RIDGE, slope)
    return lambda values: b[0] + values @ b[1:] > 0


hospital = patients(300, 0.2, np.random.default_rng(0))

# %% [markdown]
# An ill patient who is missed costs 10, a healthy one who is called ill costs 1. The
# *outcome* is the cost of 100 patients. It depends on the share of ill patients, and
# that differs from clinic to clinic: the *context*. Nobody chooses it; each clinic
# reports it after a day of validation. (It is the clinic's label shift; other contexts
# are the mean of an input, or the time since training.)


# %%
def cost(weight, batch):
    """Of 100 patients of a batch, if the test is trained with this weight."""
    values, ill = batch
    called = trained(weight, *hospital)(values)
    return float(100 * (10 * (ill & ~called) + (~ill & called)).mean())


def validated(n, seed):
    """A day in each of so many clinics, each with another weight."""
    rng = np.random.default_rng(seed)
    rows = []
    for share in np.clip(rng.normal(0.1, 0.06, n), 0.02, 0.9):
        weight, batch = 10 ** rng.uniform(0, 1.8), patients(1000, share, rng)
        found = {"weight": weight, "share_ill": batch[1].mean()}
        rows.append(found | {"cost": cost(weight, batch)})
    return pd.DataFrame(rows)


trials = validated(CLINICS, seed=0)
trials.head(4).round(3)

# %% [markdown]
# ## Two ways to choose
#
# `maximize=False`: a low cost is good. `radius={"share_ill": 0.1}` prepares for clinics
# in which the share of ill patients differs by 0.1 from those seen, on average over
# clinics. Radius 0 trusts the clinics seen.


# %%
def tuner(trials, **options):
    """The loop that knows the trials."""
    return NamedOptimizer.from_dataframe(
        trials,
        decisions={"weight": Log(1.0, 100.0)},
        contexts={"share_ill": (0.0, 0.6)},
        outcome="cost",
        maximize=False,
        radius={"share_ill": 0.1},
        seed=0,
        num_restarts=2,
        raw_samples=64,
        **options,
    )


loop = tuner(trials)
robust = loop.recommend()
trusting = loop.recommend(radius=0.0)
print(robust)
print()
print(f"radius 0: weight = {trusting.x['weight'].iloc[0]:.2f}")

# %% [markdown]
# ## What does each choice cost in new clinics?
#
# We know the truth, so we can validate on very many patients.

# %%
shares = np.linspace(0.05, 0.4, 3 if SMOKE_TEST else 8)
large = [patients(20_000, share, np.random.default_rng(5)) for share in shares]
chosen = {"robust": robust.x, "trusts the clinics seen": trusting.x}
fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for (name, x), colour, dash in zip(chosen.items(), COLOURS, "-:", strict=False):
    weight = float(x["weight"].iloc[0])
    costs = [cost(weight, batch) for batch in large]
    label = f"{name}: weight {weight:.1f}"
    ax.plot(shares, costs, color=colour, linestyle=dash, label=label)
seen = trials["share_ill"]
ax.plot(seen, np.zeros(len(seen)), "|", color="black", label="clinics seen")
ax.set_ylim(bottom=0)
ax.set_xlabel("share of ill patients")
ax.set_ylabel("cost of 100 patients")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# The usual choice is best where clinics are as before. If there are more ill patients,
# it misses many of them, and the robust weight costs less. Is that luck? Here are more
# tuners, each with clinics of its own. Each one is compared with itself: what does its
# robust weight save against the weight for radius 0 (negative: it costs more), with a
# 95% interval? (`surrogate="botorch"` is a quicker [model](../docs/surrogates.md) than
# the default.)

# %%
WORLDS = {0.1: "as before", 0.2: "twice as many ill", 0.3: "three times as many"}
exam = {share: patients(20_000, share, np.random.default_rng(6)) for share in WORLDS}
rows = []
for seed in range(1, TUNERS + 1):
    other = tuner(validated(CLINICS, seed), surrogate="botorch")
    plain, careful = (
        float(other.recommend(radius=radius).x["weight"].iloc[0])
        for radius in (0.0, {"share_ill": 0.1})
    )
    rows.append(
        {
            world: cost(plain, exam[share]) - cost(careful, exam[share])
            for share, world in WORLDS.items()
        }
    )
saved = pd.DataFrame(rows)
half = student.ppf(0.975, TUNERS - 1) * saved.sem()
summary = pd.DataFrame(
    {"saved": saved.mean(), "from": saved.mean() - half, "to": saved.mean() + half}
)
price, gain = -summary["saved"].iloc[0], summary["saved"].iloc[-1]
print(f"costs {price:.1f} a hundred patients if nothing moves,")
print(f"saves {gain:.1f} with three times as many ill patients")
summary.round(1)

# %% [markdown]
# Whether that is a good bargain depends on how far the clinics will move. That is what
# the radius says, so take it from what you expect:
# [the radius in your units](03b_the_radius_in_your_units.ipynb). If you can measure the
# share of ill patients *before* the test is used, you need no robustness but one weight
# for each share: `policy`, in
# [a forecast each morning](10_a_forecast_each_morning.ipynb).
#
# ## The choices that were made here
#
# - The *decision* is what you fix before deployment: hyper-parameters, thresholds,
#   which features to use. [Spaces](../docs/spaces.md) has integers, logarithmic scales
#   and categories.
# - The *context* is a description of the data that you can measure in every batch. Take
#   few columns.
# - The *outcome* is the validation cost of one batch. Batches that would have been
#   pooled are kept apart: their differences are what the loop learns from.
# - More trials: `ask` proposes a weight for the next clinic, as in
#   [a day in a laboratory](09_a_day_in_a_lab.ipynb). All arguments:
#   [the loop](../docs/api/optimizer.md).
