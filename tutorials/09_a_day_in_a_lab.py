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
# %% [markdown]
# # A day in a lab
#
# *Ten minutes; no knowledge of Gaussian processes needed.*
#
# Real experiments do not come as a clean loop. The results of Monday arrive on Tuesday,
# a technician sets 71 degrees where 70 were asked, an oven fails, the computer is
# switched off over night. After this page you know what to write in each of these
# cases, from a table to a table, and that nothing is lost on the way.

# %%
import io
import os
import tempfile
from pathlib import Path

import pandas as pd
import torch

from botorch_drbo import Category, Integer, NamedOptimizer, Space

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
ROUNDS = 2 if SMOKE_TEST else 8

# %% [markdown]
# ## The bakery lab
#
# The lab bakes crackers. It chooses the oven's temperature, the minutes, and one of two
# flours (the *decisions*). It cannot choose the humidity of the day (the *context*),
# and customers cannot either. The *outcome* is how crisp the crackers are. What was
# tried so far stands in a table, as it would come from a spreadsheet with
# `pd.read_csv`.

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
# Say which columns you choose, within which limits, which you meet, and which is to be
# improved. Other columns (the date) are left alone. `journal` is a file in which every
# event is on the disk before the call returns.

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
# Friday: two trays are asked for at once. They keep apart from each other.

# %%
trays = lab.ask(2)
trays

# %% [markdown]
# The oven showed 3 degrees more than asked on the first tray. What counts is what was
# *done*: tell that. At noon the humidity is read off, and the crispness will be
# measured on Saturday. So tell what is known now, the decisions as executed and the
# context.

# %%
done = trays.copy()
done.loc[0, "temperature"] = min(done.loc[0, "temperature"] + 3, 240)
humidity = pd.DataFrame({"humidity": [48.0, 48.0]})
lab.tell(done, humidity)  # noon: no outcome yet
print(f"{len(lab.pending)} trays have no result yet")

# %% [markdown]
# Each closes the pending decision that it is nearest to, and is pending itself until
# its outcome is told: what is asked in between keeps away from both.
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
# The resumed run asks what the dead one would have asked. A few more days:

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
print(lab.recommend())

# %% [markdown]
# That is the recipe to print on the box, if you trust the model: it expects crisp
# crackers on days as they were, and nearly as crisp ones when the humidity shifts. The
# line *answer holds* says how far it may shift on average (in widths of the range of
# the humidity) before another recipe that was tried has the better worst case.
#
# ## Back to the spreadsheet

# %%
table = lab.history
table.to_csv(journal.with_suffix(".csv"))
table.tail(4).round(2)

# %% [markdown]
# The same without Python: `botorch-drbo suggest data.csv --decisions ...` reads a CSV
# and appends what to try next (see *Tables and the command line*).
#
# **For experts.** The journal is one JSON event per line, each with a checksum, written
# and synchronised before `ask` and `tell` return. A state is a function of the
# configuration and the events, which is why a resumed run continues bit by bit on the
# same machine. Contexts of failed trials still count for the context distribution: the
# world did show them.
