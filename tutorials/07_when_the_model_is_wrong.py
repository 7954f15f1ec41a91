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
# # When the model is wrong
#
# *Advanced, ten minutes: you know some theory of Gaussian processes.*
#
# A Gaussian process gives error bars. They are right for functions that its kernel can
# represent. Real functions need not be of that kind: they have steps, notches, a sensor
# that reads a little high. Then the model is *misspecified*, and its error bars can be
# wrong although they are narrow.
#
# After this page you have seen that happen, you can widen the error bars so that they
# hold again, you know what this costs in a search, which is much, and where it is worth
# it: not in the search, but in a guarantee.
#
# The method is that of Bogunovic and Krause, *Misspecified Gaussian Process Bandit
# Optimization* (NeurIPS 2021). Their paper has theory and no experiments.

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks.problems import MisspecifiedFunction  # of the repository
from botorch_drbo.acquisition import EnlargedConfidenceUCB
from botorch_drbo.confidence import model_confidence_width
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.plotting import COLOURS, DASHES
from botorch_drbo.surrogate import FixedHyperparameters

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
ROUNDS = 5 if SMOKE_TEST else 60

plt.rcParams.update({"figure.dpi": 110, "font.size": 9})

# %% [markdown]
# ## A machine with notches
#
# A machine has a dial. The quality of what it makes rises and falls smoothly with the
# dial, just as the kernel believes. But the dial has ten marked positions, and at each
# of them it clicks into a notch that drags the quality towards the middle: what is good
# gets worse there, what is bad gets better, by up to 0.3. The notches are narrower than
# anything the kernel can represent.
#
# `MisspecifiedFunction` makes such problems: a random function of the kernel's own,
# with known norm, plus an error of known size. That size, here `EPSILON`, is the
# **misspecification**: the largest distance between the truth and the nearest function
# that the model can represent. It is in the units of y. (This function knows no
# contexts; it is shown one column of them that has no effect.)

# %%
EPSILON, NORM, NOISE, LENGTHSCALE = 0.3, 2.0, 0.1, 0.2
machine = MisspecifiedFunction(
    "bumps",
    seed=3,
    misspecification=EPSILON,
    norm=NORM,
    lengthscale=LENGTHSCALE,
    noise_std=NOISE,
    d_x=1,
)
NOTHING = torch.zeros(1, 1).double()  # the context without effect
dial = torch.linspace(0, 1, 801).double().unsqueeze(-1)
marks = (torch.arange(10).double().unsqueeze(-1) + 0.5) / 10
truth = machine.evaluate(dial, NOTHING)

# %% [markdown]
# The engineer likes round numbers: each of her 160 runs is at a mark. And she could not
# have a better model of the smooth part: kernel, noise and norm are the true ones
# (`FixedHyperparameters`: nothing is fitted).
#
# `model_confidence_width` gives the width of the error bars that is *proven* for a
# right model: with probability 90% they hold the function everywhere. We compare it
# with the **enlarged** width of `EnlargedConfidenceUCB`,
#
# $$\sqrt\beta + \epsilon\,\frac{\sqrt t}{\sigma_n}$$
#
# standard deviations, with $t$ outcomes and $\sigma_n$ the deviation of the noise, both
# read from the model. Why $\sqrt t$? Noise averages out. An error that always points
# the same way does not: each further outcome makes the model surer of what is wrong.

# %%
prior = FixedHyperparameters(lengthscale=LENGTHSCALE, noise_variance=NOISE**2)


def learn(runs_per_mark: int) -> SingleTaskGP:
    """The model after so many runs at each mark."""
    X = marks.repeat(runs_per_mark, 1)
    noise = torch.Generator().manual_seed(1)
    Y = machine.observe(X, NOTHING, generator=noise).unsqueeze(-1)
    return prior.model(X, Y, machine.bounds, num_joint=1)


def intervals(model: SingleTaskGP) -> dict[str, tuple[Tensor, Tensor]]:
    """Mean and half-width, plain and enlarged, along the dial."""
    width = model_confidence_width(model, norm_bound=NORM, delta=0.1)
    acqf = EnlargedConfidenceUCB(model, beta=width**2, misspecification=EPSILON)
    with torch.no_grad():
        posterior = model.posterior(dial)
        mean = posterior.mean.squeeze(-1)
        sigma = posterior.variance.sqrt().squeeze(-1)
    enlarged = acqf.confidence_width().item()
    return {"plain": (mean, width * sigma), "enlarged": (mean, enlarged * sigma)}


def share_inside(mean: Tensor, half: Tensor) -> float:
    """On how much of the dial the interval holds the truth."""
    return ((truth - mean).abs() <= half).double().mean().item()


fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (name, (mean, half)) in zip(axes, intervals(learn(16)).items(), strict=True):
    at = dial.squeeze(-1)
    ax.fill_between(at, mean - half, mean + half, color=COLOURS[5], alpha=0.4)
    ax.plot(at, mean, color=COLOURS[0], linestyle=DASHES[1], label="posterior mean")
    ax.plot(at, truth, color="black", linewidth=1, label="truth")
    ax.plot(marks, mean.min() - 1.6 + 0 * marks, "|", color=COLOURS[1], label="marks")
    ax.set_title(f"{name}: holds {100 * share_inside(mean, half):.0f}% of the dial")
    ax.set_xlabel("dial x")
axes[0].set_ylabel("quality y")
axes[0].legend(frameon=False)
plt.show()

# %% [markdown]
# The interval on the left has a proof, but it does not contain the function, because
# the proof assumes another kind of function. At the marks the model has seen the
# notches, and it treats them as the whole function. The interval on the right contains
# the function, and is much wider.
#
# More runs make it worse, not better:

# %%
rows = []
for runs in (1, 4, 16) if SMOKE_TEST else (1, 4, 16, 64):
    row = {"outcomes": 10 * runs}
    for name, (mean, half) in intervals(learn(runs)).items():
        row[f"{name}: half-width"] = half.mean().item()
        row[f"{name}: holds"] = f"{100 * share_inside(mean, half):.0f}%"
    rows.append(row)
pd.DataFrame(rows).set_index("outcomes").round(2)

# %% [markdown]
# The plain interval closes in on the wrong function. The enlarged one stops shrinking,
# as it should: these outcomes cannot tell the truth from what lies $\epsilon$ beside
# it. Its half-width is four times the depth of the notches, because it allows for the
# worst error of that size, wherever it may be. (It is proven that it contains the part
# that the kernel can represent; the truth is at most $\epsilon$ away from that. Here it
# also contained the truth.)
#
# ## The enlarged bound in your own loop
#
# `EnlargedConfidenceUCB` is an acquisition function like BoTorch's own. Give
# `misspecification` in the units of the y that you pass to the model; the standardising
# that BoTorch does inside is accounted for. So the same machine measured in percent
# needs 30, not 0.3. Below the hyperparameters are fitted as usual, to outcomes from all
# over the dial:


# %%
def fit(X: Tensor, Y: Tensor) -> SingleTaskGP:
    """BoTorch's standard model."""
    model = SingleTaskGP(X, Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


X = torch.rand(60, 1, generator=torch.Generator().manual_seed(0)).double()
noise = torch.Generator().manual_seed(1)
Y = machine.observe(X, NOTHING, generator=noise).unsqueeze(-1)
for unit in (1, 100):
    model = fit(X, unit * Y)
    acqf = EnlargedConfidenceUCB(model, 2.25, misspecification=unit * EPSILON)
    noise_std = (model.likelihood.noise.sqrt() * model.outcome_transform.stdvs).item()
    width = acqf.confidence_width().item()
    print(f"noise fitted {noise_std:.2f}, width {width:.1f} standard deviations")

# %% [markdown]
# Look at the noise. It is really 0.1; the fit attributes the notches to noise and
# estimates more. So a fitted model is already a little more careful than theory makes
# it, and this is one reason why plain methods often get away with a wrong model. The
# width depends on that number: a model that believes its outcomes to be nearly exact
# makes it huge.
#
# **Where does $\epsilon$ come from?** From you: the accuracy of a sensor, the distance
# between a simulator and reality, a lack of fit that repeated runs show to be no noise.
# No data alone can give it.
#
# The loop has a recipe: `RobustOptimizer("ec_gp_ucb", ..., misspecification=0.3)`. For
# uncertain contexts, `ec_wdrbo` adds the Wasserstein penalty, and
# `EnlargedConfidenceUCB(..., context_set, objective)` takes any objective.
#
# ## What it costs in a search
#
# The same kind of machine with two dials, each with 19 positions. Every recipe has the
# true kernel and noise. The *regret* of a decision is what it lacks to the best
# setting. One seed: an example, no measurement.

# %%
positions = torch.linspace(0.05, 0.95, 19).double().unsqueeze(-1)
settings = torch.cartesian_prod(positions.squeeze(-1), positions.squeeze(-1))  # 361 x 2
two_dials = MisspecifiedFunction(
    "bumps",
    seed=0,
    misspecification=EPSILON,
    norm=NORM,
    lengthscale=LENGTHSCALE,
    noise_std=NOISE,
)
quality = two_dials.evaluate(settings, NOTHING)


def search(name: str, **options) -> Tensor:
    """The regret of each decision of a run, `rounds`."""
    optimizer = RobustOptimizer(
        name, two_dials.bounds, two_dials.context_bounds, seed=0, **options
    )
    noise = torch.Generator().manual_seed(0)
    for _ in range(ROUNDS):
        x = optimizer.ask(candidates=settings)
        optimizer.tell(x, NOTHING, two_dials.observe(x, NOTHING, generator=noise))
    found = two_dials.evaluate(optimizer.history.X, NOTHING)
    return quality.max() - found


regret = {
    "gp_ucb": search("gp_ucb", hyperparameters=prior),
    "ec_gp_ucb": search("ec_gp_ucb", hyperparameters=prior, misspecification=EPSILON),
    "ec_gp_ucb, a tenth": search(
        "ec_gp_ucb", hyperparameters=prior, misspecification=EPSILON / 10
    ),
    "random": search("random"),
}
fig, ax = plt.subplots(figsize=(6.6, 3.4), layout="constrained")
for i, (label, lost) in enumerate(regret.items()):
    ax.plot(lost.cumsum(0), color=COLOURS[i], linestyle=DASHES[i], label=label)
ax.set_xlabel("decisions")
ax.set_ylabel("cumulative regret")
ax.legend(frameon=False)
plt.show()
least = min(regret, key=lambda label: regret[label].sum().item())
print(f"least regret: {least}")
for label, lost in regret.items():
    print(f"{label:20s} mean over the last half {lost[ROUNDS // 2 :].mean():.2f}")

# %% [markdown]
# The notches are there, but they do not keep plain `gp_ucb` from good settings. With
# the true $\epsilon$, `ec_gp_ucb` explores nearly as much as random decisions; with a
# tenth of it, less. The theory protects against the worst error of size $\epsilon$, and
# this costs as much where the error is milder. The paired comparison, over seeds, sizes
# and kinds of error, is on the page [benchmarks](../docs/benchmarks.md).
#
# ## Explore plainly, judge carefully
#
# The enlarged interval is worth its price where a *statement* is made about settings
# that were not tried. Back to the engineer with one dial and 160 runs at the marks: a
# customer asks for positions between them, and for a quality that is guaranteed. She
# would promise the lower end of the interval.

# %%
for name, (mean, half) in intervals(learn(16)).items():
    broken = (truth < mean - half).double().mean().item()
    print(f"{name:8s} guarantee: broken on {100 * broken:.0f}% of the dial")

# %% [markdown]
# ## Which one when
#
# - **No reason to doubt the model, or you only want good decisions soon:** `gp_ucb`,
#   `wdrbo`. Widen the interval when you report.
# - **You have a bound $\epsilon$, and the search must not be misled by any error of
#   that size:** `ec_gp_ucb`, `ec_wdrbo`. Try a fraction of $\epsilon$ beside it.
# - **No bound, a list of decisions, large parallel batches:** `phased_gp_us`. It works
#   in episodes of 1, 2, 4, 8, ... decisions, discards what cannot be the best any more,
#   and forgets all outcomes between episodes: `ask(q=state.remaining)`.
# - **No bound, other decisions on offer in each round, many hundreds of rounds:**
#   `regret_balancing`, which lets several guesses of $\epsilon$ compete:
#   `ask(actions=...)`.
#
# [Which method?](../docs/methods.md) has all four in its table,
# [the papers](../docs/papers.md) their formulas, and
# [confidence](../docs/api/confidence.md) the widths.
#
# ## What to remember
#
# - Misspecification is a distance to the nearest function that the model can represent,
#   in the units of y. You have to know it; no data alone can tell.
# - More data make a plain interval narrower, not more right. The enlarged one grows by
#   $\epsilon\sqrt t / \sigma_n$ deviations and holds.
# - Expect a guarantee, not less regret: these methods explore far more than most errors
#   call for.
# - A model that is merely *uncertain* is another matter:
#   [is my model good enough?](13_is_my_model_good_enough.ipynb)
