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
# # A simulator on many cores, or on a cluster
#
# *Intermediate, ten minutes: you have a simulator that takes seconds or hours.*
#
# After this page you can hand a simulator to the loop and let it run several copies at
# once, in processes of your machine or on a cluster; you know what happens when a run
# crashes, when the worker dies, and when the whole job is killed; and how to go on.

# %%
import importlib
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from botorch_drbo import NamedOptimizer, Space
from botorch_drbo.plotting import COLOURS

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
FIRST, ALL = (4, 6) if SMOKE_TEST else (12, 48)  # evaluations
WORKERS = 2 if SMOKE_TEST else 4

plt.rcParams.update({"figure.dpi": 110, "font.size": 10})
folder = Path(tempfile.mkdtemp())

# %% [markdown]
# ## The simulator
#
# A web service rents a machine of some *speed* (requests that it can answer in a
# second: the decision). The *load* (requests that arrive in a second) differs from hour
# to hour: the context, which the simulator draws itself. The outcome is the *cost* of
# an hour: rent, and the annoyance of those who wait.
#
# A simulator is a function in a file, because other processes have to import it. It
# takes a decision, and returns the context that occurred and the outcome. Ours sleeps
# for a second, as if it had much to do, and crashes now and then.

# %%
SIMULATOR = '''
"""An hour of a web service."""
import time
import numpy as np


def cost_of(speed, load, rng, requests=20_000):
    """Rent and waiting: customers queue, the machine serves one at a time."""
    service = rng.exponential(1 / speed, requests)
    gaps = rng.exponential(1 / load, requests)
    steps = np.concatenate([[0.0], service[:-1] - gaps[1:]]).cumsum()
    wait = (steps - np.minimum.accumulate(steps)).mean()  # Lindley's formula
    return float(3.0 * speed + 40.0 * min(wait, 2.0))


def simulate(decision):
    """The context that occurred, and the cost."""
    time.sleep(1.0)
    rng = np.random.default_rng(round(1e6 * decision["speed"]))
    load = float(np.clip(rng.normal(6.0, 0.8), 2.0, 12.0))
    if rng.random() < 0.1:
        raise RuntimeError("the licence server did not answer")
    return {"load": load}, cost_of(decision["speed"], load, rng)
'''
(folder / "simulator.py").write_text(SIMULATOR)
sys.path.insert(0, str(folder))
simulator = importlib.import_module("simulator")

print(simulator.simulate({"speed": 8.0}))

# %% [markdown]
# ## Run it in four processes
#
# `run` asks, evaluates and tells. Whenever one evaluation ends, its outcome is told and
# the next decision is asked; the others are pending, and avoided. It takes any
# `concurrent.futures` executor. The *journal* is a file in which every event is on the
# disk before the loop goes on.

# %%
space = Space(
    decisions={"speed": (5.0, 15.0)},
    contexts={"load": (2.0, 12.0)},
    outcome="cost",
)
journal = folder / "service.jsonl"
service = NamedOptimizer(
    "wdrbo_exact",
    space,
    maximize=False,
    radius={"load": 1.0},  # one request a second more or fewer, on average
    surrogate="botorch",  # quick; the default model is slower and more careful
    seed=0,
    journal=journal,
    num_initial=6,
    num_restarts=2,
    raw_samples=64,
)
pool = ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn"))
start = time.perf_counter()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a failed trial is also a warning
    service.run(simulator.simulate, num=FIRST, parallel=WORKERS, executor=pool)
took = time.perf_counter() - start
print(f"{FIRST} simulations of one second or more, in {took:.0f} seconds")
service

# %% [markdown]
# (Without `executor` the loop makes processes of its own; a script then has to start
# its work under `if __name__ == "__main__":`. A `dask.distributed.Client` works in the
# place of the pool: that is a cluster, with SLURM for instance by `dask_jobqueue`.)
#
# ## What happens when something goes wrong?
#
# - The simulator raises an error, or returns something that cannot be told: the trial
#   has *failed*, and the error is kept. The loop goes on.
# - A worker dies (memory, a node that is switched off): the decision is submitted
#   again, up to `retries` times.
# - The job is killed: everything told so far is in the journal.

# %%
rows = [
    {
        "trial": trial.number,
        "status": trial.status,
        "error": (trial.error or "").strip().splitlines()[-1:] or [""],
    }
    for trial in service.trials
]
table = pd.DataFrame(rows)
table["error"] = table["error"].str[0]
table[table["status"] == "failed"]

# %% [markdown]
# Now the job is killed. A new process resumes the run from the journal, and `total`
# says how many evaluations there should be in the end: those that are done already are
# not repeated, and decisions that were under way come first. So the same script can be
# submitted again and again until it is finished.

# %%
service.close()
service = NamedOptimizer.resume(journal)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    service.run(simulator.simulate, total=ALL, parallel=WORKERS, executor=pool)
pool.shutdown()
print(service)
best = service.recommend()
plain = service.recommend(radius=0.0)
print(best)

# %% [markdown]
# ## What was it good for?
#
# The true mean cost of an hour, by the load: for the robust speed and for the one that
# is best for the loads seen (radius 0). This is one run, an example and no measurement;
# another run differs, because evaluations end in another order.


# %%
def true_cost(speed, shift):
    """Over many hours whose load has moved by so much."""
    rng = np.random.default_rng(0)
    loads = np.clip(rng.normal(6.0 + shift, 0.8, 20 if SMOKE_TEST else 200), 2.0, 12.0)
    return np.mean([simulator.cost_of(speed, load, rng) for load in loads])


shifts = np.linspace(-1.0, 3.0, 9)
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
costs = {}
for i, (name, found) in enumerate({"robust": best, "radius 0": plain}.items()):
    speed = float(found.x["speed"].iloc[0])
    costs[name] = [true_cost(speed, shift) for shift in shifts]
    label = f"{name}: {speed:.1f} requests a second"
    ax.plot(shifts, costs[name], "-o" if i else "--s", color=COLOURS[i], label=label)
ax.set_xlabel("load more than in the simulations (requests a second)")
ax.set_ylabel("mean cost of an hour")
ax.legend(frameon=False)
plt.show()
differences = pd.Series(costs["robust"], shifts) - pd.Series(costs["radius 0"], shifts)
print("robust less radius 0:", differences.round(1).to_dict())

# %% [markdown]
# Negative numbers: there the robust speed costs less. It should be so where the load
# rises, if the model is right; look at the line *model* above before you rely on it.
#
# ## Details that matter
#
# - `parallel` may be larger than the number of workers that are free; calls wait.
# - The simulator may be *told* the context instead of drawing it:
#   `run(..., choose_context=True)` asks for both, and `simulate(decision, context)`
#   returns the outcome alone. That needs fewer simulations, if you can set the load.
# - `callback=` is called with each trial that is over (a log, a plot), `progress=True`
#   shows a bar.
# - Without `run`: `ask(q)`, `tell` and `pending` do the same by hand, see
#   [batches](02b_batches.ipynb) and [a day in a laboratory](09_a_day_in_a_lab.ipynb).
# - [On a cluster](../docs/cluster.md) has dask, Slurm and what happens to lost workers;
#   [the loop](../docs/api/optimizer.md) has all options, [rounds](../docs/rounds.md)
#   what can be said of a single round, [speed](../docs/speed.md) how long `ask` takes.
