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
# A model is tuned on validation data, and used on other data. If the inputs have moved
# (other patients, another season, another camera), the hyper-parameters that were best
# in validation can be bad ones. After this page you can tune them for inputs that have
# moved by an amount that you name, and you know what that costs where nothing moves.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from botorch_drbo import Integer, Log, NamedOptimizer
from botorch_drbo.plotting import COLOURS, DASHES

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
CLINICS = 8 if SMOKE_TEST else 40  # validation batches

plt.rcParams.update({"figure.dpi": 110, "font.size": 10})

# %% [markdown]
# ## The learner
#
# Sixty patients of one hospital: a dose response `y` against a blood value `z` (in
# standard units, 0 is the average patient). The learner is a polynomial with a ridge
# penalty, fitted by least squares. Its two hyper-parameters are the *decision*: the
# degree, and the ridge.

# %%
rng = np.random.default_rng(0)
NOISE = 0.3


def response(z):
    """The truth, which nobody knows."""
    return 0.3 * z + 0.6 * np.sin(4 * z)


z_train = 0.8 * rng.standard_normal(60)
y_train = response(z_train) + NOISE * rng.standard_normal(60)


def fitted(degree, ridge):
    """A polynomial, fitted to the patients of the hospital."""

    def powers(z):
        return (z[:, None] / 1.5) ** np.arange(degree + 1)

    A = powers(z_train)
    weights = np.linalg.solve(A.T @ A + ridge * np.eye(degree + 1), A.T @ y_train)
    return lambda z: powers(z) @ weights


# %% [markdown]
# Validation runs in clinics. The patients of a clinic differ from those of the
# hospital: their average blood value `centre` is the *context*. Nobody chooses it; a
# clinic reports it together with its validation error (the *outcome*, root mean square
# error, at most 2). A clinic tries one pair of hyper-parameters, because each trial
# costs it a day.


# %%
def error(degree, ridge, z, y):
    """The root mean square error on one batch of patients."""
    squared = (fitted(int(degree), ridge)(z) - y) ** 2
    return float(min(np.sqrt(squared.mean()), 2.0))


def clinic(centre, patients, rng):
    """Inputs and outcomes of a clinic."""
    z = centre + 0.4 * rng.standard_normal(patients)
    return z, response(z) + NOISE * rng.standard_normal(patients)


rows = []
for centre in 0.4 * rng.standard_normal(CLINICS):
    degree, ridge = int(rng.integers(1, 10)), 10 ** rng.uniform(-4, 1)
    rows.append(
        {
            "degree": degree,
            "ridge": ridge,
            "centre": centre,
            "error": error(degree, ridge, *clinic(centre, 40, rng)),
        }
    )
trials = pd.DataFrame(rows)
trials.head(4).round(4)

# %% [markdown]
# ## Two ways to choose
#
# `maximize=False`: a low error is good. `radius={"centre": 0.5}` prepares for clinics
# whose patients are 0.5 standard units away from those seen, on average over clinics.
# Radius 0 trusts the clinics seen.

# %%
tuner = NamedOptimizer.from_dataframe(
    trials,
    decisions={"degree": Integer(1, 9), "ridge": Log(1e-4, 10.0)},
    contexts={"centre": (-2.0, 2.0)},
    outcome="error",
    maximize=False,
    radius={"centre": 0.5},
    seed=0,
    num_restarts=2,
    raw_samples=64,
)
robust = tuner.recommend()
trusting = tuner.recommend(radius=0.0)
print(robust)
print()
print("radius 0 chooses", trusting.x.round(4).to_dict("records")[0])

# %% [markdown]
# ## What does each choice lose in new clinics?
#
# We know the truth, so we can validate on thousands of patients in each of many new
# clinics: as those seen, and moved to either side.

# %%
centres = 0.4 * np.random.default_rng(1).standard_normal(40 if SMOKE_TEST else 200)
chosen = {"trusts the clinics seen": trusting.x, "robust": robust.x}
shifts = np.linspace(-1.2, 1.2, 5 if SMOKE_TEST else 13)


def mean_error(x, shift):
    """Over new clinics that have moved by so much."""
    fresh = np.random.default_rng(2)
    degree, ridge = x.iloc[0][["degree", "ridge"]]
    return np.mean(
        [error(degree, ridge, *clinic(c + shift, 400, fresh)) for c in centres]
    )


curves = pd.DataFrame(
    {name: [mean_error(x, s) for s in shifts] for name, x in chosen.items()},
    index=pd.Index(shifts.round(2), name="shift"),
)
fig, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.6), layout="constrained")
line = np.linspace(-2.2, 2.2, 201)
left.plot(z_train, y_train, ".", color="0.6", label="patients of the hospital")
left.plot(line, response(line), color="black", linewidth=1, label="truth")
for i, (name, x) in enumerate(chosen.items()):
    degree, ridge = x.iloc[0][["degree", "ridge"]]
    style = {"color": COLOURS[i], "linestyle": DASHES[i]}
    left.plot(line, fitted(int(degree), ridge)(line), label=name, **style)
    right.plot(shifts, curves[name], label=name, **style)
left.set_ylim(-2.5, 2.5)
left.set_xlabel("blood value z")
left.set_ylabel("response y")
left.legend(frameon=False, fontsize=8)
right.set_ylim(bottom=0)
right.set_xlabel("how far the clinics have moved")
right.set_ylabel("mean error in new clinics")
right.legend(frameon=False)
plt.show()

# %%
here = curves.loc[0.0]
price = here["robust"] - here["trusts the clinics seen"]
worst = curves.max().round(2).to_dict()
print(f"price where nothing moves: {price:+.2f} (from {here.iloc[0]:.2f})")
print("worst error over these moves:", worst)
better = curves.index[curves["robust"] < curves["trusts the clinics seen"]]
print("the robust choice is better at:", list(better))

# %% [markdown]
# A flexible polynomial is best where there are patients, and diverges where there are
# none. The robust choice is stiffer: it gives up accuracy in the middle, and keeps some
# sense outside. Whether that is a good bargain depends on how far the clinics will
# move, which is what the radius says.
#
# This is one hospital and an example. The error of a learner is noisy, because the
# clinics are small; [is my model good enough?](13_is_my_model_good_enough.ipynb) shows
# how to see whether there are enough of them, and `compare` there says on your own
# table whether robustness is worth its price.
#
# ## The choices that were made here
#
# - The *decision* is what you fix before deployment: hyper-parameters, thresholds,
#   which features to use. [Spaces](../docs/spaces.md) has integers, logarithmic scales
#   and categories.
# - The *context* is a description of the inputs that you can measure in every batch: a
#   mean, the share of a group, the time since training. Take few columns.
# - The *outcome* is the validation error of one batch. Batches that would have been
#   pooled are kept apart: their differences are what the loop learns from.
# - More trials: `ask` proposes hyper-parameters for the next clinic, as in
#   [a day in a laboratory](09_a_day_in_a_lab.ipynb).
