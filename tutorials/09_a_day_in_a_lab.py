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
# # A day in a lab
#
# *Beginner, ten minutes: no knowledge of Gaussian processes is needed.*
#
# Real experiments do not follow a tidy loop. The results of Monday arrive on Tuesday, a
# technician sets 71 degrees where 70 were asked, an oven fails, the computer is
# switched off at night. After this page you know what to write in each of these cases,
# from a table to a table, and that nothing is lost on the way.

# %%
import io
import os
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from botorch_drbo import Category, Integer, NamedOptimizer, Space
from botorch_drbo.plotting import COLOURS, MARKERS

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
ROUNDS = 2 if SMOKE_TEST else 8

plt.rcParams.update({"figure.dpi": 110, "font.size": 10})

# %% [markdown]
# ## The bakery lab
#
# The lab bakes crackers. It chooses the oven's temperature, the minutes, and one of two
# flours (the *decisions*). It cannot choose the humidity of the day (the *context*),
# and customers cannot either. The *outcome* is how crisp the crackers are. The trials
# so far are in a table, as `pd.read_csv` would read it from a spreadsheet.

# %%
SHEET = """date,temperature,minutes,flour,humidity,crispness
Mon,180,10,wheat,40,5.1
Mon,200,14,rye,40,4.2
Tue,160,18,wheat,55,4.4
Tue,220,8,rye,55,5.6
Wed,190,12,rye,70,4.9
Wed,170,9,wheat,70,2.3
Thu,210,11,wheat,60,6.0
"""
sheet = pd.read_csv(io.StringIO(SHEET))
sheet

# %% [markdown]
# State which columns you choose and their limits, which ones you only observe, and
# which one to improve ([spaces](../docs/spaces.md) has all kinds of columns). Other
# columns (the date) are ignored. `journal` is a file in which every event is on the
# disk before the call returns. `radius` says that the humidity may differ by 8
# percentage points from that of the days seen, on average ([the radius in your
# units](03b_the_radius_in_your_units.ipynb)).

# %%
space = Space(
    decisions={
        "temperature": (150.0, 240.0),  # degrees Celsius
        "minutes": Integer(6, 20),
        "flour": Category(["wheat", "rye"]),
    },
    contexts={"humidity": (20.0, 90.0)},  # per cent
    outcome="crispness",
)
journal = Path(tempfile.mkdtemp()) / "crackers.jsonl"
lab = NamedOptimizer(
    "wdrbo_exact",
    space,
    radius={"humidity": 8},
    seed=0,
    journal=journal,
    num_initial=0,  # the table is the beginning
    num_restarts=4,
    raw_samples=128,
)
columns = ["temperature", "minutes", "flour"]
lab.tell(
    sheet[columns],
    sheet[["humidity"]],
    sheet["crispness"],
    closes_pending=False,  # nobody asked for these trials here
)

# %% [markdown]
# ## Two trays, one of them done differently, and results that come later
#
# Friday: two trays are asked for at once. They differ from each other.

# %%
trays = lab.ask(2)
trays

# %% [markdown]
# The oven showed 3 degrees more than asked on the first tray. Tell what was really
# *done*. At noon the humidity is read off, and the crispness will be measured on
# Saturday. So tell what is known now, the decisions as executed and the context.

# %%
done = trays.copy()
done.loc[0, "temperature"] = min(done.loc[0, "temperature"] + 3, 240)
humidity = pd.DataFrame({"humidity": [48.0, 48.0]})
lab.tell(done, humidity)  # noon: no outcome yet
print(f"{len(lab.pending)} trays have no result yet")

# %% [markdown]
# Each row closes the nearest pending decision, and is pending itself until its outcome
# is told. Decisions asked in between avoid both.
#
# ## Saturday: a result, and a failure
#
# Tell a trial again, with its outcome. The second tray fell on the floor: it has none,
# and never will.


# %%
def crispness(decision: pd.Series, humidity: float) -> float:
    """How crisp crackers become: the lab does not know this."""
    best = 195.0 + 0.3 * humidity - (8.0 if decision["flour"] == "rye" else 0.0)
    heat = ((decision["temperature"] - best) / 30) ** 2
    time = ((decision["minutes"] - 12) / 5) ** 2
    return round(6.5 - 0.8 * heat - 0.6 * time, 2)


first, second = done.iloc[[0]], done.iloc[[1]]
lab.tell(first, humidity.iloc[[0]], crispness(done.iloc[0], 48.0))
lab.tell(second, humidity.iloc[[1]], failed=True)
pd.DataFrame(
    [
        {"trial": trial.number, "status": trial.status, "outcome": trial.y}
        for trial in lab.trials
    ]
).tail(4)

# %% [markdown]
# Every trial has a number. Was a value mistyped? `lab.withdraw(number)` takes it back,
# and you tell it again. A wrong cell is refused as a whole, by row and column:

# %%
try:
    lab.tell(first.assign(flour="spelt"), humidity.iloc[[0]], 5.0)
except Exception as error:
    print(error)

# %% [markdown]
# ## The night
#
# The computer is switched off. Monday morning, in another process: `resume`. Decisions
# that were asked and have no outcome are in `pending`.

# %%
before = lab.history
lab.close()

lab = NamedOptimizer.resume(journal)
print(f"{len(lab.history)} trials, {len(lab.pending)} pending")
assert lab.history.equals(before)

# %% [markdown]
# The resumed run proposes what the stopped one would have proposed. A few more days:

# %%
generator = torch.Generator().manual_seed(1)
for _ in range(ROUNDS):
    tray = lab.ask()
    damp = 50 + 12 * torch.randn((), generator=generator).item()
    lab.tell(
        tray,
        pd.DataFrame({"humidity": [damp]}),
        crispness(tray.iloc[0], damp),
    )
best = lab.recommend()
print(best)

# %% [markdown]
# The record as a picture. A tray that failed has no crispness; the cross says when it
# was baked.

# %%
table = lab.table()  # all trials, with their status
table["trial"] = range(len(table))
fig, ax = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
for i, flour in enumerate(["wheat", "rye"]):
    own = table[table["flour"] == flour]
    style = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": "none"}
    ax.plot(own["trial"], own["crispness"], label=flour, **style)
failed = table[table["status"] == "failed"]
lowest = table["crispness"].min()
ax.plot(failed["trial"], [lowest] * len(failed), "kx", label="failed")
ax.axvline(len(sheet) - 0.5, color="0.5", linestyle=":", linewidth=1)
ax.annotate("the sheet ends", (len(sheet) - 0.4, lowest), color="0.3", rotation=90)
ax.set_xlabel("trial")
ax.set_ylabel("crispness")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# And the recommendation, by the humidity of the day. The band is two standard
# deviations of the model on each side; the dotted line is the truth, which the lab does
# not know. Short strokes are the days so far.

# %%
damp = np.linspace(20, 90, 15 if SMOKE_TEST else 71)
recipe = pd.concat([best.x] * len(damp), ignore_index=True)
guess = lab.predict(recipe, pd.DataFrame({"humidity": damp}))
truth = [crispness(best.x.iloc[0], each) for each in damp]
low, high = guess["mean"] - 2 * guess["sd"], guess["mean"] + 2 * guess["sd"]
fig, ax = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
ax.fill_between(damp, low, high, color="0.85")
ax.plot(damp, guess["mean"], color=COLOURS[0], label="by the model")
ax.plot(damp, truth, color="black", linestyle=":", label="in truth")
days = lab.history["humidity"]
ax.plot(days, [low.min()] * len(days), "|", color="black")
ax.set_xlabel("humidity of the day (per cent)")
ax.set_ylabel("crispness of the recommended recipe")
ax.legend(frameon=False)
plt.show()
seen = (damp >= days.min()) & (damp <= days.max())
inside = (low <= truth) & (truth <= high)
print(f"truth inside the band on {inside[seen].mean():.0%} of the humidities seen,")
print(f"on {inside[~seen].mean():.0%} of those not seen")

# %% [markdown]
# Print this recipe on the box only if you trust the model: where no day was seen, it is
# guessing. The line *answer holds* of the report says how far the humidity may shift
# before another recipe that was tried has the better worst case, and
# [is my model good enough?](13_is_my_model_good_enough.ipynb) how to check the model.
#
# ## Back to the spreadsheet

# %%
table = lab.history
table.to_csv(journal.with_suffix(".csv"))
table.tail(4).round(2)

# %% [markdown]
# The same without Python: `botorch-drbo suggest data.csv --decisions ...` reads a CSV
# and appends what to try next: [tables and the command line](../docs/tables.md). All
# arguments: [the loop](../docs/api/optimizer.md). Questions such as "how do I stop and
# resume?" are in the [FAQ](../docs/faq.md).
#
# **For experts.** The journal is one JSON event per line, each with a checksum, written
# and synchronised before `ask` and `tell` return. A state is a function of the
# configuration and the events, which is why a resumed run continues bit by bit on the
# same machine. Contexts of failed trials still count for the context distribution,
# because they did occur.
