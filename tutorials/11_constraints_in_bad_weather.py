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
# # Constraints that must hold in bad weather
#
# *Intermediate, ten minutes: you have run the loop of the first tutorial once.*
#
# Some limits are known before a decision is tried: a budget, a size. Others have to be
# *measured*, and depend on what the world adds: a dam must not spill, whatever the
# rain. After this page you can tell the loop what was measured, ask for decisions that
# keep the limit with a probability that you name, under *every* plausible distribution
# of the context, and you have seen what it costs and what it saves.

# %%
import os
import warnings

import matplotlib.pyplot as plt
import pandas as pd
import torch
from botorch.exceptions.warnings import BotorchWarning

from benchmarks.problems import Reservoir  # of the repository
from botorch_drbo import NamedOptimizer, Space
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.plotting import COLOURS

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
DAYS = 10 if SMOKE_TEST else 16

plt.rcParams.update({"figure.dpi": 110, "font.size": 10})

# %% [markdown]
# ## Two reservoirs and a flood
#
# Two reservoirs earn more the fuller they are kept (the *decision*, two levels in
# percent). Then it rains (the *context*, an inflow in percent of what they hold). The
# limit: the inflow must find room. What is measured is the **room that was left**, in
# percent, not negative where all is well. The outcome is the earnings, in 1000 euros.
#
# The operator believes that every inflow is equally likely. In truth one in ten is a
# flood. How likely is it, then, that the limit holds? For this problem there is a
# formula, so we can judge every plan by it.

# %%
dam = Reservoir()  # it counts in shares, not in percent
RADIUS, LEVEL = 0.2, 0.8  # a tenth of the probability may be elsewhere; 4 times in 5
space = Space(
    {"upper": (0.0, 100.0), "lower": (0.0, 100.0)},
    {"inflow": (0.0, 100.0)},
    outcome="earnings",
)
X = torch.rand(DAYS, 2, generator=torch.Generator().manual_seed(0)).double()
C = dam.sample_contexts(DAYS, seed=0)
days = pd.DataFrame((100 * X).numpy().round(), columns=["upper", "lower"])
days["inflow"] = (100 * C).numpy().round()
X, C = torch.tensor(days.to_numpy() / 100).split([2, 1], dim=-1)
days["earnings"] = 100 * dam.evaluate(X, C).numpy()
room = (100 * dam.constraints(X, C)).numpy()  # days x 1
print(f"{(room < 0).sum()} of {DAYS} days had too little room")

# %% [markdown]
# ## Three operators
#
# All have the same days behind them, and all maximise the same worst-case earnings.
#
# - The first tells the room, and asks that the limit hold four times in five for
#   *every* distribution of the inflow within the radius.
# - The second tells it, and trusts the reference: every inflow is equally likely.
# - The third does not tell the room.
#
# `tell(..., constraints=room)` is all it takes, a column for each constraint;
# `feasibility` is the level.


# %%
def operator(radius: float, *, told: bool) -> NamedOptimizer:
    """A loop that knows all days."""
    reference = pd.DataFrame({"inflow": 100 * dam.reference.points.flatten().numpy()})
    optimizer = NamedOptimizer(
        "dro",
        space,
        seed=0,
        reference=space.context_set(reference),
        ambiguity_set=TotalVariation(radius),
        feasibility=LEVEL,
        num_restarts=2,
        raw_samples=64,
    )
    x, c = days[["upper", "lower"]], days[["inflow"]]
    optimizer.tell(x, c, days["earnings"], constraints=room if told else None)
    return optimizer


operators = {
    "robust": operator(RADIUS, told=True),
    "trusts the reference": operator(0.0, told=True),
    "no constraint": operator(RADIUS, told=False),
}
with warnings.catch_warnings():  # what it warns of is in the report as well
    warnings.simplefilter("ignore", BotorchWarning)
    advice = {name: each.recommend() for name, each in operators.items()}
print(advice["robust"])

# %% [markdown]
# The line *feasible* is the promise: the probability of keeping the limit, by the model
# of the room, under the worst distribution within the radius. If no decision reached
# the level, `recommend` would warn, return the decision with the largest probability,
# and say so here.
#
# Now the truth, which only we know:

# %%
inflows = dam.true_contexts()  # n x 1


def judge(x: pd.DataFrame) -> dict[str, object]:
    """What a plan keeps and earns."""
    X = torch.tensor(x.to_numpy() / 100)  # 1 x 2
    left = dam.constraints(X.expand(len(inflows), -1), inflows)  # n x 1
    return {
        "levels (%)": ", ".join(f"{v:.0f}" for v in x.iloc[0]),
        "holds, by the reference": f"{dam.feasibility(X).item():.2f}",
        "holds, in truth": f"{(left >= 0).double().mean().item():.2f}",
        "holds, worst law": f"{dam.feasibility(X, radius=RADIUS).item():.2f}",
        "earns (1000 euros)": f"{100 * dam.expected_value(X).item():.0f}",
    }


pd.DataFrame({name: judge(best.x) for name, best in advice.items()}).T

# %% [markdown]
# Without a constraint the reservoirs are full, and spill nearly always. The operator
# who trusts the reference keeps the limit four times in five by that reference, and too
# seldom in truth: the world has more floods. The robust plan earns less, and its limit
# holds as often as was asked, in truth and under the worst law.
#
# ## The picture
#
# Shaded: the decisions that keep the limit four times in five under the worst law.

# %%
grid = torch.linspace(0, 1, 101).double()
points = torch.cartesian_prod(grid, grid)  # 10201 x 2
holds = dam.feasibility(points, radius=RADIUS).reshape(101, 101)
fig, ax = plt.subplots(figsize=(5.4, 5), layout="constrained")
allowed = ["0.85"]
ax.contourf(100 * grid, 100 * grid, holds.T, levels=[LEVEL, 1.01], colors=allowed)
ax.fill_between([], [], color=allowed[0], label="keeps the limit")
ax.scatter(days["upper"], days["lower"], s=14, color="0.5", label="the days so far")
for (name, best), colour, marker in zip(advice.items(), COLOURS, "os^", strict=False):
    style = {"markersize": 10, "clip_on": False, "zorder": 5, "linestyle": "none"}
    ax.plot(*best.x.iloc[0], marker, color=colour, label=name, **style)
ax.set_xlabel("level of the upper reservoir (%)")
ax.set_ylabel("level of the lower reservoir (%)")
ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
plt.show()

# %% [markdown]
# ## And the next decision
#
# `ask` looks for a gain among decisions that may keep the limit: it counts fully where
# the probability reaches the level, and less the further it falls short. Tell a day
# that failed completely as well: the model learns from its room, although it has no
# outcome.

# %%
robust = operators["robust"]
x = robust.ask()
spilt = 100 * dam.constraints(torch.tensor(x.to_numpy() / 100), torch.tensor([[0.95]]))
robust.tell(x, {"inflow": 95.0}, failed=True, constraints=spilt.numpy())
print(f"asked for {x.round().iloc[0].to_dict()}; {robust.trials[-1].status}")

# %% [markdown]
# ## To take with you
#
# - `tell(x, c, y, constraints=g)`: not negative where all is well, a column for each.
# - `feasibility=0.95` (the default) is the probability with which a recommendation has
#   to keep them.
# - The radius is that of the recipe: one ambiguity for the outcome and the limit.
# - Constraints on the decision alone, known beforehand, are `LinearConstraint` or a
#   function in a `Space`.
# - [Constraints that are measured](../docs/constraints.md) has the formulas and the
#   command line; [spaces](../docs/spaces.md) has the constraints known beforehand.
# - In a BoTorch loop: `RobustFeasibility`, `FeasibilityWeighted`
#   ([acquisition functions](../docs/api/acquisition.md)).
