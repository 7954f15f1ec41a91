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
# "Best" can mean the best average, the best worst case, the steadiest, or a mixture.
# After this page you can optimise any of these with one method, Thompson sampling: by
# the library's loop, from a list of decisions that you name, and in a loop of your own.
# [Which objective?](../docs/objectives.md) says what they mean; the short version is
# below.

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
from torch.distributions import Independent, Uniform

from benchmarks.problems import BOCUProblem  # of the repository
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    RobustThompsonSampling,
)
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import RobustSatisficing, UncertaintyObjective
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.plotting import COLOURS, DASHES, plot_surface
from botorch_drbo.test_functions import RobustTestFunction

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
ROUNDS = 3 if SMOKE_TEST else 20

plt.rcParams.update({"figure.dpi": 110, "font.size": 9})

# %% [markdown]
# ## The problem: a plant, its acidity and its ammonia
#
# A grower chooses the pH of the water (the *decision*, 2.5 to 6.5). She cannot choose
# how much ammonia the plant receives (the *context*, 0 to 30,000). The outcome is the
# leaf area, here in standard deviations from the mean.
#
# The surrogate of this problem was fitted to laboratory measurements by the authors of
# the method. Its file is not ours to share. If it is not on your machine, a stand-in
# takes its place: a made-up function with hills in about the same places.


# %%
class StandIn(RobustTestFunction):
    """Three smooth hills in pH and ammonia; made up."""

    def __init__(self) -> None:
        box = torch.tensor([[0.0], [30_000.0]]).double()
        super().__init__(
            "stand_in",
            bounds=torch.tensor([[2.5], [6.5]]).double(),
            context_bounds=box,
            context_law=Independent(Uniform(box[0], box[1]), 1),
        )

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        acid, ammonia = x.squeeze(-1), c.squeeze(-1) / 30_000

        def hill(height: float, at: tuple[float, float], width: tuple[float, float]):
            far = ((acid - at[0]) / width[0]).square()
            return (
                height * (-0.5 * (far + ((ammonia - at[1]) / width[1]).square())).exp()
            )

        low = hill(2.1, (5.3, 0.17), (1.1, 0.16)) + hill(1.7, (3.2, 0.08), (0.6, 0.13))
        return low + hill(1.1, (6.0, 0.75), (1.0, 0.18)) - 1.0


try:
    problem = BOCUProblem.preset("plant_growth")
except FileNotFoundError:
    problem = BOCUProblem(StandIn())
print(f"This page was made with: {problem.function.name}")

# %% [markdown]
# `BOCUProblem` adds the setting of the paper. The grower believes in a bell-shaped
# distribution of the ammonia (the *reference*, on the right of the picture, on 64
# levels). In truth all levels are equally likely; she does not know that.

# %%
plant, contexts = problem.function, problem.context_set
fig, ax = plt.subplots(figsize=(6.6, 3.8), layout="constrained")
plot_surface(
    plant.evaluate,
    plant.bounds,
    plant.context_bounds,
    ax,
    context_set=contexts,
    value_label="leaf area (standardised)",
)
ax.set_xlabel("pH (decision x)")
ax.set_ylabel("ammonia (context c)")
plt.show()

# %% [markdown]
# ## Five ideas of "best"
#
# An adversary may move a little probability from the levels that suit a decision to the
# level that suits it least. `v(radius)` is the expected leaf area when it has done its
# worst, `delta` the slope of `v`: what a slightly larger radius costs. Each objective
# is a weighted sum `value_weight * v + sensitivity_weight * delta`:
#
# - **DRO**: `v`, the worst case at the radius;
# - **WCS**: `delta` at radius 0, whatever the value;
# - **GEN**: both, with weight 1 each;
# - **weights of your own**: here the value counts, and a fifth of the sensitivity;
# - for comparison **SO**, the plain expectation.
#
# The radius is the distance between reference and truth, as in the paper. (In real life
# nobody knows it; [the radius in your
# units](03b_the_radius_in_your_units.ipynb) says how to choose one.)

# %%
radius = problem.radius(TotalVariation(0.0).distance)
ball = TotalVariation(radius)
options = {
    "SO": {"radius": 0.0},
    "DRO": {},
    "WCS": {"radius": 0.0, "value_weight": 0.0, "sensitivity_weight": 1.0},
    "GEN": {"sensitivity_weight": 1.0},
    "own weights": {"sensitivity_weight": 0.2},
}
objectives = {
    "SO": UncertaintyObjective.so(),
    "DRO": UncertaintyObjective.dro(ball),
    "WCS": UncertaintyObjective.wcs(ball),
    "GEN": UncertaintyObjective.gen(ball),
    "own weights": UncertaintyObjective(ball, 1.0, 0.2),
}
print(f"radius {radius:.3f}")

fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.2), layout="constrained")
pH = problem.candidates.squeeze(-1)  # 1024 decisions, evenly spread
for i, (name, objective) in enumerate(objectives.items()):
    truth = objective(problem.table, contexts.weights)  # 1024
    ax = axes[int(name in ("WCS", "GEN"))]
    ax.plot(pH, truth, color=COLOURS[i], linestyle=DASHES[i], label=name)
    ax.plot(pH[truth.argmax()], truth.max(), "o", color=COLOURS[i])
for ax in axes:
    ax.set_xlabel("pH (decision x)")
    ax.legend(frameon=False)
axes[0].set_ylabel("objective, if all were known")
plt.show()

# %% [markdown]
# The dots are the best decisions. The more the sensitivity counts, the further they
# move from where the average is best, towards decisions that do not care about ammonia.
# With WCS nothing else counts, so it may choose a plant that is poor at every level.
#
# ## Thompson sampling, one path at a time
#
# A Gaussian process that has seen a few outcomes stands for many functions, all of
# which could be the truth. Thompson sampling draws *one* of them, a sample path, and
# takes the decision that is best for it. Where the model is uncertain the paths differ,
# so decisions spread; where it is certain they agree. There is no exploration parameter
# to tune, and a new objective needs no derivation: a path is a function, and an
# objective can be computed for any function.
#
# The paths below come from a model of five outcomes. Each curve is GEN of one path.

# %%
box = torch.cat([plant.bounds, plant.context_bounds], dim=-1)  # 2 x 2


def fit(X: Tensor, C: Tensor, Y: Tensor) -> SingleTaskGP:
    """A Gaussian process of [pH, ammonia]."""
    model = SingleTaskGP(
        torch.cat([X, C], dim=-1),
        Y,
        input_transform=Normalize(2, bounds=box),
        outcome_transform=Standardize(1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


X, C, Y = problem.initial()  # five random pairs
model = fit(X, C, Y)
fig, ax = plt.subplots(figsize=(6.6, 3.4), layout="constrained")
for seed in range(4):
    path = RobustThompsonSampling(model, contexts, objectives["GEN"], seed=seed)
    with torch.no_grad():
        values = path(problem.candidates.unsqueeze(-2))  # 1024 batches of one
    ax.plot(pH, values, color=COLOURS[seed], linestyle=DASHES[seed])
    ax.plot(pH[values.argmax()], values.max(), "o", color=COLOURS[seed])
ax.set_xlabel("pH (decision x)")
ax.set_ylabel("GEN of a sample path")
plt.show()

# %% [markdown]
# ## The loop, and a list of candidates
#
# `RobustOptimizer("ts_bocu")` does the rest. The objective is a matter of options. So
# is `reference`; leave it out, and the contexts seen so far take its place.
#
# Perhaps you cannot choose every pH, but have bottles with 1024 of them. Then pass the
# list to `ask` and to `recommend`: what comes back is a row of it. (No list: the whole
# range.) The list may be another one at each call, when bottles run out.


# %%
def grow(name: str) -> RobustOptimizer:
    """Run one objective; ammonia and noise are the same for all."""
    optimizer = RobustOptimizer(
        "ts_bocu",
        plant.bounds,
        plant.context_bounds,
        seed=0,
        num_initial=0,
        reference=contexts,
        ambiguity_set=ball,
        **options[name],
    )
    optimizer.tell(*problem.initial(), closes_pending=False)  # nobody asked for these
    ammonia = problem.sample_contexts(ROUNDS)
    for step, c in enumerate(ammonia.split(1)):
        x = optimizer.ask(candidates=problem.candidates)
        optimizer.tell(x, c, problem.observe(x, c, step=step))
    return optimizer


runs = {name: grow(name) for name in options}

# %% [markdown]
# Now the comparison with the true function: the *regret* of a recommendation is the
# difference between the best objective in the list and its own. Each row is judged by
# its own objective, so do not compare regrets between rows.

# %%
rows = {}
for name, run in runs.items():
    best = run.recommend(candidates=problem.candidates)
    truth = problem.regret(objectives[name])  # of all candidates
    rows[name] = {
        "recommended pH": best.x.item(),
        "best pH": pH[truth.argmin()].item(),
        "regret": problem.regret(objectives[name], best.x.unsqueeze(0)).item(),
        "regret of a random pH": truth.mean().item(),
    }
pd.DataFrame(rows).T.round(3) + 0.0  # no "-0.0"

# %%
fig, axes = plt.subplots(1, 5, figsize=(9.6, 2.5), sharey=True, layout="constrained")
for ax, (name, run) in zip(axes, runs.items(), strict=True):
    asked = run.history.X[problem.num_initial :, 0]
    ax.plot(range(1, ROUNDS + 1), asked, "o", markersize=4, color=COLOURS[0])
    ax.axhline(rows[name]["best pH"], color="black", linewidth=1, linestyle=":")
    ax.set_title(name, fontsize=9)
    ax.set_xlabel("round")
axes[0].set_ylabel("pH asked (line: best)")
plt.show()

# %% [markdown]
# Early decisions spread over the range, and later ones concentrate, for some objectives
# sooner than for others. This is one run of each with one seed: an illustration, no
# measurement.
#
# ## In your own loop
#
# `RobustThompsonSampling` is an acquisition function like BoTorch's own; it takes a
# model, a context set and *any* objective. Here the one that the loop above has no
# option for: robust satisficing. The grower names a leaf area that is good enough, and
# wants to miss it as slowly as possible. The decision is continuous, `optimize_acqf`
# climbs the path.
#
# - A path is fixed once drawn. Make a new acquisition function for new data; `redraw()`
#   gives another path of the same model.
# - The radius of the set in `RobustSatisficing` is the smallest shift that counts. A
#   small positive one keeps a decision that misses the target comparable with others.

# %%
good_enough = RobustSatisficing(TotalVariation(0.05), target=0.1)
ammonia = problem.sample_contexts(ROUNDS)
X, C, Y = problem.initial()
for step, c in enumerate(ammonia.split(1)):
    acqf = RobustThompsonSampling(fit(X, C, Y), contexts, good_enough, seed=step)
    torch.manual_seed(step)  # optimize_acqf draws its starting points
    x, _ = optimize_acqf(acqf, plant.bounds, q=1, num_restarts=4, raw_samples=64)
    X, C = torch.cat([X, x]), torch.cat([C, c])
    Y = torch.cat([Y, problem.observe(x, c, step=step)])

# %% [markdown]
# The last decision of a Thompson loop is exploration, not a recommendation. To
# recommend, maximise over the posterior mean: `DistributionallyRobustUCB` with `beta`
# 0.

# %%
mean = DistributionallyRobustUCB(fit(X, C, Y), 0.0, contexts, good_enough)
torch.manual_seed(0)
x, _ = optimize_acqf(mean, plant.bounds, q=1, num_restarts=4, raw_samples=64)
truth = problem.regret(good_enough)
print(f"advice pH {x.item():.2f}, best pH {pH[truth.argmin()].item():.2f}")
fragility = -good_enough(plant.evaluate(x, contexts.points), contexts.weights).item()
print(f"leaf area lost per unit of shift, against the target: {fragility:.2f}")
print(
    f"the same for the best pH: {fragility - problem.regret(good_enough, x).item():.2f}"
)

# %% [markdown]
# For several decisions at once set `num_paths=q`: `q` independent paths, one decision
# for each. [Batches](02b_batches.ipynb) has more about parallel experiments.
#
# ## What to remember
#
# - `RobustOptimizer("ts_bocu", ..., value_weight=a, sensitivity_weight=b, radius=...)`:
#   any weighted sum of worst case and sensitivity.
# - `ask(candidates=...)`, `recommend(candidates=...)`: a list in place of the range.
# - `RobustThompsonSampling(model, contexts, objective)`: any objective, any loop.
# - Decisions of a Thompson loop explore. The decision to implement is that of
#   `recommend`.
# - All options: [acquisition functions](../docs/api/acquisition.md),
#   [objectives](../docs/api/objectives.md) and
#   [sample paths](../docs/api/sample_paths.md).
# - Paths need a `SingleTaskGP` with RBF or Matern kernels (their products and sums are
#   fine); anything else is refused with a message that says what to use.
