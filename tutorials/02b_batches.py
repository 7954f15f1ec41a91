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
# # Batches: several experiments at once
#
# *Intermediate, ten minutes: the second half is for users of BoTorch.*
#
# Often experiments run in parallel: four ovens, four test fields, four shops. Then four
# decisions are made before any of their outcomes is known, and before any of their
# contexts is known. After this page you can ask for a batch, report contexts and
# outcomes in whatever order they arrive, ask again while some are missing, and choose
# batches in a loop of your own. And you know what was measured: whether it pays
# to optimise a batch as a whole.

# %%
import os
import time
import warnings

import matplotlib.pyplot as plt
import pandas as pd
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    RobustThompsonSampling,
    qDistributionallyRobustUCB,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.plotting import COLOURS, MARKERS
from botorch_drbo.test_functions import make_test_function

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
ROUNDS = 2 if SMOKE_TEST else 5
PATHS = 16 if SMOKE_TEST else 64

plt.rcParams.update({"figure.dpi": 110, "font.size": 9})
warnings.filterwarnings("ignore", message="Optimization failed")  # flat starts

# %% [markdown]
# ## Four shops, one evening
#
# A newspaper company has four similar shops. Every evening each gets an order of papers
# (the *decision*); the next day shows each its own demand (the *context*) and its own
# profit. So the company learns from four experiments a day. Orders and demands are
# counted in thousands; [the first tutorial](01_newsvendor_in_five_minutes.ipynb) has
# the story.

# %%
shop = make_test_function("newsvendor")
Q = 4
demands = shop.sample_contexts(Q * (ROUNDS + 2), seed=1).split(Q)  # one row per shop

# %% [markdown]
# ## The loop
#
# `ask(q=4)` gives four different orders. With `ts_bocu` ([Thompson
# sampling](05_thompson_sampling_any_objective.ipynb)) each order is the best one for a
# different sample path of the model. A batch therefore spreads as much as the model is
# uncertain.

# %%
company = RobustOptimizer(
    "ts_bocu",
    shop.bounds,
    shop.context_bounds,
    seed=0,
    num_initial=Q,
    ambiguity_set=TotalVariation(0.3),
    num_restarts=4,  # one number per shop: a small search is enough
    raw_samples=128,
)
for day in range(ROUNDS):
    orders = company.ask(q=Q)  # 4 x 1
    company.tell(orders, demands[day], shop.evaluate(orders, demands[day]))
    print(f"day {day + 1}:", [round(1000 * x) for x in orders.flatten().tolist()])

# %% [markdown]
# ## Things arrive late
#
# Next evening the four orders go out as before. By noon we know how many people came to
# two of the shops, but not yet what is in the tills. Tell the demands *without*
# outcomes: they already improve the estimated distribution of the context.

# %%
orders, today = company.ask(q=Q), demands[ROUNDS]
company.tell(orders[:2], today[:2])  # contexts only
seen, told = len(company.history.contexts), company.history.t
print(f"contexts known: {seen}, outcomes known: {told}, on the way: {Q}")

# %% [markdown]
# A fifth shop opens and needs an order now. `ask` works while others are *pending*: it
# takes them into account, and none of their contexts has to be guessed. Here the new
# shop follows another path than the four.

# %%
fifth = company.ask()
print(f"the fifth shop orders {1000 * fifth.item():.0f} copies")
print(f"pending decisions: {len(company.pending)}")

# %% [markdown]
# In the evening the tills are counted, in any order. A row belongs to the decision that
# it names.

# %%
last_first = torch.tensor([3, 1, 0, 2])
profits = shop.evaluate(orders, today)
company.tell(orders[last_first], today[last_first], profits[last_first])
print(f"outcomes known: {company.history.t}, on the way: {len(company.pending)}")
best = company.recommend()
print(
    f"recommended: {1000 * best.x.item():.0f} copies, at worst "
    f"{1000 * best.worst_case_value:.0f} coins a day in expectation"
)

# %% [markdown]
# `ask(q=4)` and pending decisions work with every recipe, not only with `ts_bocu`.
#
# ## In your own loop: a batch as one thing
#
# The four orders can also be chosen *together*. Two acquisition functions value a whole
# batch: draw many sample paths, look on each path which of the four decisions is best,
# and average over the paths. A decision that is best on no path adds nothing, so a good
# batch covers what the others miss.
#
# - `qDistributionallyRobustUCB`: an optimistic bound of the best one.
# - `qLogDistributionallyRobustNoisyExpectedImprovement`: by how much the best one is
#   expected to beat the best of the decisions tried, on each path; as a logarithm.
#
# Both take any objective. The paths are fixed when the object is made, so the function
# is smooth in the batch, and `optimize_acqf` can climb it.

# %%
history = company.history
X, C, Y = history.X, history.C, history.Y
contexts = ContextSet.empirical(history.contexts)
dro = UncertaintyObjective.dro(TotalVariation(0.3))
model = SingleTaskGP(torch.cat([X, C], -1), Y, outcome_transform=Standardize(1))
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))

ucb = qDistributionallyRobustUCB(
    model, 2.25, contexts, dro, num_paths=PATHS, seed=0
)  # beta 2.25: 1.5 standard deviations
improvement = qLogDistributionallyRobustNoisyExpectedImprovement(
    model, X, contexts, dro, num_paths=PATHS, seed=0
)

# %% [markdown]
# There are three ways to search:
#
# - *jointly*: `q=4`, four numbers at once;
# - *greedily*: `q=4, sequential=True`, one after the other, each knowing those before;
# - *greedily, then jointly*: the greedy batch is where the joint search starts.


# %%
def choose(acqf, how: str) -> tuple[Tensor, float, float]:
    """A batch of four, its acquisition value, and the seconds it took."""
    search = {"num_restarts": 4, "raw_samples": 32 if SMOKE_TEST else 128}
    torch.manual_seed(0)  # optimize_acqf draws its starting points
    start = time.perf_counter()
    greedily = how != "jointly"
    batch, _ = optimize_acqf(acqf, shop.bounds, q=Q, sequential=greedily, **search)
    if how == "greedily, then jointly":
        batch, _ = optimize_acqf(
            acqf,
            shop.bounds,
            q=Q,
            num_restarts=1,
            batch_initial_conditions=batch.unsqueeze(0),
        )
    seconds = time.perf_counter() - start
    with torch.no_grad():
        value = acqf(batch.unsqueeze(0)).item()
    return batch, value, seconds


WAYS = ("jointly", "greedily", "greedily, then jointly")
batches, rows = {}, {}
for name, acqf in {"qUCB": ucb, "qLogNEI": improvement}.items():
    for how in WAYS:
        batches[name, how], value, seconds = choose(acqf, how)
        rows[f"{name}, {how}"] = {
            "value": f"{1000 * value:.2f} coins" if acqf is ucb else f"{value:.3f}",
            "seconds": f"{seconds:.1f}",
        }
pd.DataFrame(rows).T

# %% [markdown]
# And a batch by Thompson sampling, for comparison: `num_paths=4`, one order for each of
# four paths.

# %%
thompson = RobustThompsonSampling(model, contexts, dro, num_paths=Q, seed=0)
torch.manual_seed(0)
batches["Thompson", ""], _ = optimize_acqf(
    thompson, shop.bounds, q=Q, num_restarts=4, raw_samples=64
)

grid = torch.linspace(0, 1, 201).double()
with torch.no_grad():
    alone = ucb(grid.reshape(-1, 1, 1))  # batches of one
fig, (top, below) = plt.subplots(
    2,
    1,
    figsize=(6.8, 4.6),
    sharex=True,
    layout="constrained",
    height_ratios=(2, 3),
)
top.plot(1000 * grid, 1000 * alone, color=COLOURS[0])
top.set_ylabel("qUCB of one\norder (coins)")
for i, ((name, _), batch) in enumerate(batches.items()):
    row = torch.full((Q,), float(-i))
    colour = COLOURS[("qUCB", "qLogNEI", "Thompson").index(name)]
    below.plot(1000 * batch, row, MARKERS[i % 3], color=colour, alpha=0.7, markersize=7)
below.set_yticks(
    [-i for i in range(len(batches))],
    [f"{name} {how}".strip() for name, how in batches],
)
below.set_xlabel("order (copies)")
plt.show()

# %% [markdown]
# Four orders chosen independently would all be at the top of the curve above. As a
# batch they spread: widely under the optimistic bound, less where only improvements of
# the robust value count, and little where the sample paths hardly differ any more. A
# joint search can stop at a batch that no single step improves. A greedy start avoids
# that. (The values of qLogNEI are logarithms, of thousands of coins: hardly a tenth of
# a coin can still be gained on the orders tried.)
#
# Orders that are already out are passed as `X_pending`; they join the batch, but stay
# where they are:

# %%
out = batches["qUCB", "greedily"][:2]  # two of four are on their way
ucb.set_X_pending(out)
torch.manual_seed(0)
rest, _ = optimize_acqf(ucb, shop.bounds, q=2, num_restarts=4, raw_samples=64)
ucb.set_X_pending(None)
print("on their way:", [round(1000 * x) for x in out.flatten().tolist()])
print("to be added: ", [round(1000 * x) for x in rest.flatten().tolist()])

# %% [markdown]
# (`RobustThompsonSampling` takes no `X_pending` and raises an error: the next path is a
# different one anyway.)
#
# ## Does it pay to choose jointly?
#
# A higher acquisition value is not the goal; less regret is. So we measured it:
# `python -m benchmarks batches`, Branin with two decisions and two contexts, total
# variation 0.3, eight random decisions, then eight batches of four, 10 seeds. Regret is
# that of the worst expectation, mean and standard error; lower is better. (The *qEI* of
# the table is the plain expected improvement over one bar, without the logarithm.)
#
# <!-- numbers: benchmarks/results/batches.md, table -->
# | method | regret at the end | mean over rounds | seconds a batch |
# |---|---:|---:|---:|
# | qUCB, jointly | 2.76 ± 0.75 | 9.0 ± 1.7 | 0.74 |
# | qUCB, greedily | 6.7 ± 2.5 | 10.2 ± 1.7 | 0.42 |
# | UCB, hallucinated | 2.73 ± 0.70 | 6.4 ± 1.2 | 0.35 |
# | qEI, jointly | 5.1 ± 2.1 | 8.5 ± 1.1 | 0.54 |
# | qEI, greedily | 2.63 ± 0.62 | 8.2 ± 1.2 | 0.30 |
# | random | 3.46 ± 0.50 | 11.5 ± 1.8 | 0.00 |
#
# (*Jointly* had the greedy batch among its starting points. *UCB, hallucinated* is the
# plain `DistributionallyRobustUCB`, one decision after the other; for those already
# chosen only the variance shrinks: `repulsion = 0`. By default they also push the next
# one away, a little.)
#
# **No: joint batches do not beat greedy ones here.** All differences between them are
# within two standard errors. The joint ones took nearly twice the time,
# because they find the greedy batch and search jointly twice, from it and from random
# points. The joint search works: its acquisition values are nearly always higher, but
# only a little, and the regret does not show it. The simplest method, the hallucinated
# bound, had less regret in its batches than joint qUCB, in half of its time. In
# the last row, the final regret of random decisions is within the errors of most
# others. This is one problem with 10 seeds; other problems may differ.
#
# ## What to remember
#
# - `ask(q=4)`; `tell` in any order; contexts without outcomes count at once; `ask`
#   again at any time.
# - In a loop of your own: `optimize_acqf(..., q=4, sequential=True)` first. If you do
#   maximise jointly, start from the greedy batch.
# - Thompson sampling: as many paths as decisions, and no other setting.
# - The q acquisition functions and Thompson sampling draw sample paths: they want a
#   `SingleTaskGP` with RBF or Matern kernels. `DistributionallyRobustUCB` takes more
#   models of one outcome, ensembles and variational ones among them;
#   [I use BoTorch](../docs/botorch.md) has the table.
# - A simulator that runs by itself: [a simulator on many
#   cores](14_a_simulator_on_many_cores.ipynb).
# - All options: [the loop](../docs/api/optimizer.md), [acquisition
#   functions](../docs/api/acquisition.md); how the numbers above were made:
#   [benchmarks](../docs/benchmarks.md).
