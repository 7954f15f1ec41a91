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
# # Thompson sampling for any objective
#
# *Intermediate, ten minutes: you know some Bayesian optimisation.*
#
# "Best" can mean the best average, the best worst case, the steadiest, or a mixture:
# [which objective?](../docs/objectives.md) Thompson sampling optimises any of them.
#
# A grower chooses the *pH* of the water, and not the *ammonia* that a plant meets; she
# believes in the bell-shaped *reference*. The outcome is the *leaf area*, which we know
# and she does not.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from botorch_drbo import ContextSet, RobustOptimizer
from botorch_drbo.acquisition import DistributionallyRobustUCB, RobustThompsonSampling
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import RobustSatisficing, UncertaintyObjective
from botorch_drbo.plotting import COLOURS, DASHES, plot_surface

ROUNDS = 3 if os.environ.get("SMOKE_TEST") else 40
plt.rcParams.update({"figure.dpi": 100, "font.size": 10})


def hill(at: tuple[float, float], width: tuple[float, float], x, c) -> Tensor:
    return (
        -0.5 * (((x - at[0]) / width[0]) ** 2 + ((c - at[1]) / width[1]) ** 2)
    ).exp()


def leaf_area(pH: Tensor, ammonia: Tensor) -> Tensor:
    """In cm²."""
    high = 50 * hill((5.0, 7.0), (0.6, 6.0), pH, ammonia)
    return (20 + high + 36 * hill((6.1, 14.0), (0.5, 18.0), pH, ammonia)).squeeze(-1)


bounds, context_bounds = torch.tensor([[[4.0], [7.0]], [[0.0], [30.0]]]).double()
bottles = torch.linspace(4, 7, 121).double().unsqueeze(-1)  # the list to choose from
levels = torch.linspace(0, 30, 31).double().unsqueeze(-1)
weights = (-0.5 * ((levels.flatten() - 8) / 4) ** 2).softmax(-1)
reference = ContextSet(levels, weights)
table = leaf_area(bottles.unsqueeze(1), levels)  # 121 x 31

ax = plot_surface(
    leaf_area, bounds, context_bounds, context_set=reference, value_label="cm²"
)
ax.set(xlabel="pH", ylabel="ammonia (mmol/l)")
plt.show()

# %% [markdown]
# ## Four ideas of "best"
#
# An adversary may move 15% of the probability (`TotalVariation(0.3)`) to the level that
# suits a decision least. `v` is the expected leaf area after that, `delta` its slope in
# the radius. An objective is `value_weight * v + sensitivity_weight * delta`. The dots
# are the best decisions.

# %% tags=["thumbnail"]
GOALS = {  # radius, value_weight, sensitivity_weight
    "worst case": (0.3, 1.0, 0.0),
    "mean": (0.0, 1.0, 0.0),
    "steadiest": (0.0, 0.0, 1.0),
    "own weights": (0.3, 1.0, 0.25),
}
objectives = {
    name: UncertaintyObjective(TotalVariation(radius), value, sensitivity)
    for name, (radius, value, sensitivity) in GOALS.items()
}
truth = {name: goal(table, weights) for name, goal in objectives.items()}
fig, ax = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
for i, (name, value) in enumerate(truth.items()):
    ax.plot(bottles, value, color=COLOURS[i], linestyle=DASHES[i], label=name)
    ax.plot(bottles[value.argmax()], value.max(), "o", color=COLOURS[i])
ax.set(xlabel="pH", ylabel="objective, if all were known (cm²)")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## One path at a time
#
# A model of a few outcomes stands for many functions. Thompson sampling draws *one*, a
# sample path, and takes the decision that is best for it. Where the model is uncertain
# the paths differ, so decisions spread. Nothing is to be tuned, and any objective can
# be computed of a path: here the worst case, after eight outcomes.


# %%
def observe(x: Tensor, c: Tensor, seed: int) -> Tensor:
    noise = torch.randn(len(x), generator=torch.Generator().manual_seed(seed))
    return leaf_area(x, c) + noise


def fit(X: Tensor, C: Tensor, Y: Tensor) -> SingleTaskGP:
    box = torch.cat([bounds, context_bounds], dim=-1)
    model = SingleTaskGP(
        torch.cat([X, C], dim=-1),
        Y.unsqueeze(-1),
        input_transform=Normalize(2, bounds=box),
        outcome_transform=Standardize(1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


generator = torch.Generator().manual_seed(0)
X = 4 + 3 * torch.rand(8, 1, generator=generator).double()
ammonia = levels[weights.multinomial(8 + ROUNDS, True, generator=generator)]
C, Y = ammonia[:8], observe(X, ammonia[:8], seed=100)
start, model = (X, C, Y), fit(X, C, Y)
fig, ax = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
for seed in range(4):
    path = RobustThompsonSampling(model, reference, objectives["worst case"], seed=seed)
    with torch.no_grad():
        value = path(bottles.unsqueeze(-2))
    style = {"color": COLOURS[seed], "linestyle": DASHES[seed]}
    ax.plot(bottles, value, label=f"path {seed + 1}", **style)
ax.set(xlabel="pH", ylabel="worst case of a path (cm²)")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## The loop
#
# `ask` and `recommend` choose from the bottles. The *regret* is what the recommendation
# lacks to the best bottle, by its own objective. One run is no measurement.


# %%
def grow(name: str) -> dict[str, float]:
    radius, value_weight, sensitivity_weight = GOALS[name]
    opt = RobustOptimizer(
        "ts_bocu",
        bounds,
        context_bounds,
        seed=0,
        num_initial=0,
        reference=reference,
        ambiguity_set=TotalVariation(radius),
        value_weight=value_weight,
        sensitivity_weight=sensitivity_weight,
    )
    opt.tell(*start, closes_pending=False)
    for step, c in enumerate(ammonia[8:].split(1)):
        x = opt.ask(candidates=bottles)
        opt.tell(x, c, observe(x, c, seed=step))
    best, value = opt.recommend(candidates=bottles).x, truth[name]
    found = value[(bottles - best).abs().argmin()]
    return {
        "recommended pH": best.item(),
        "best pH": bottles[value.argmax()].item(),
        "regret (cm²)": (value.max() - found).item(),
    }


pd.DataFrame({name: grow(name) for name in GOALS}).T.round(2) + 0.0

# %% [markdown]
# ## In your own loop
#
# `RobustThompsonSampling` takes *any* objective, here robust satisficing: 50 cm² are
# enough, and are to be missed as slowly as possible when the ammonia shifts. Its last
# decision is exploration: to recommend, take the posterior mean.
# [Options](../docs/api/acquisition.md)

# %%
search = {"q": 1, "num_restarts": 4, "raw_samples": 64}
search["retry_on_optimization_warning"] = False
enough = RobustSatisficing(TotalVariation(0.05), target=50.0)
for step, c in enumerate(ammonia[8:].split(1)):
    acqf = RobustThompsonSampling(fit(X, C, Y), reference, enough, seed=step)
    torch.manual_seed(step)
    x, _ = optimize_acqf(acqf, bounds, **search)
    X, C = torch.cat([X, x]), torch.cat([C, c])
    Y = torch.cat([Y, observe(x, c, seed=step)])
mean = DistributionallyRobustUCB(fit(X, C, Y), 0.0, reference, enough)
x, _ = optimize_acqf(mean, bounds, **search)
best = bottles[enough(table, weights).argmax()]
print(f"advice pH {x.item():.2f}, best pH {best.item():.2f}")
