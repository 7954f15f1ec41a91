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
# # WDRBO in your own BoTorch loop
#
# *Intermediate, fifteen minutes: you use BoTorch.*
#
# After this page you can make a BoTorch loop of your own distributionally robust: it
# takes one acquisition function, which goes into `optimize_acqf` like any other. You
# have seen what it adds to an ordinary upper confidence bound (a penalty on decisions
# whose outcome depends steeply on the context), on a case where this pays, with the
# price and an interval, and on one where it cannot pay.

# %% [markdown]
# ## Terms
#
# The model's input is $z = [x, c]$. The *decision* $x$ is chosen. The *context* $c$ is
# chosen by nobody and seen only afterwards, together with the outcome $y = f(x, c)$.
# BoTorch calls $c$ an **environmental variable** and writes $w$, for instance in its
# risk measures. It is *not* the "context" of BoTorch's LCE-A and LCE-M models, where a
# context is a population with parameters of its own to choose.
# [Conventions](../docs/conventions.md) has all terms, signs and units.
#
# `optimize_acqf` sees decisions only. Contexts enter through a
# [`ContextSet`](../docs/api/contexts.md), a weighted set of points that describes their
# distribution.
#
# ## The case
#
# The gap of a machine, up to 1 mm, is adjusted in a laboratory, where the temperature
# (the context) is steady: 20 degrees with a standard deviation of 2. Then it is used in
# a factory, at 22 degrees on average, varying twice as much. A fine adjustment is best
# in the laboratory, and loses much for every degree; a coarse one tolerates it. The
# code counts temperatures from 0 to 1, for 10 to 30 degrees. This is the illustration
# of Figure 1 in the paper of WDRBO. The case was chosen because robustness pays there;
# on many problems it does not
# ([what was measured](../docs/measured.md#five-claims)).

# %%
import os

import matplotlib.pyplot as plt
import pandas as pd
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood
from scipy.stats import t as student
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import DistributionallyRobustUCB, LipschitzPenalizedUCB
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.plotting import COLOURS, plot_surface
from botorch_drbo.test_functions import make_test_function

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
NUM_INITIAL = 10
NUM_ROUNDS = 12 if SMOKE_TEST else 26  # the initial ones included
MACHINES = 3 if SMOKE_TEST else 12  # repetitions for the interval

plt.rcParams.update({"figure.dpi": 80, "font.size": 10})

machine = make_test_function("wdrbo_figure1")
x_bounds = torch.tensor([[0.0], [1.0]]).double()
c_bounds = machine.context_bounds  # 2 x 1


def temperatures(mean: float, std: float, n: int, seed: int) -> Tensor:
    """Contexts of a place, `n x 1`."""
    draws = torch.randn(n, 1, generator=torch.Generator().manual_seed(seed)).double()
    return (mean + std * draws).clamp(*c_bounds)


def laboratory(n: int, seed: int) -> Tensor:
    return temperatures(0.5, 0.1, n, seed)


def factory(n: int, seed: int) -> Tensor:
    return temperatures(0.6, 0.2, n, seed)


grid = torch.linspace(0, 1, 201).double().unsqueeze(-1)  # 201 x 1
places = {"laboratory": laboratory(4096, 1), "factory": factory(4096, 1)}
value_in = {
    name: machine.evaluate(grid.unsqueeze(1), contexts).mean(-1)  # 201
    for name, contexts in places.items()
}
for name, value in value_in.items():
    best = grid[value.argmax()].item()
    print(f"{name:10s} best adjustment {best:.3f}, expected value {value.max():.3f}")


# %%
def degrees(c: Tensor) -> Tensor:
    """From the scale of the code to degrees Celsius."""
    return 10 + 20 * c


fig, (surface, curves) = plt.subplots(2, 1, figsize=(6.6, 6.6), layout="constrained")
plot_surface(
    lambda x, c: machine.evaluate(x, (c - 10) / 20),
    x_bounds,
    degrees(c_bounds),
    surface,
    value_label="outcome",
)
surface.set_ylabel("temperature (degrees)")
for i, (name, value) in enumerate(value_in.items()):
    style = {"color": ("0.3", COLOURS[3])[i], "label": f"in the {name}"}
    curves.plot(grid, value, linestyle="-:"[i], **style)
    curves.plot(grid[value.argmax()], value.max(), "o", color=style["color"])
for ax in (surface, curves):
    ax.set_xlabel("adjustment (mm)")
curves.set_ylabel("expected outcome")
curves.legend(frameon=False)
plt.show()

# %% [markdown]
# Both curves are the truth, which the loop does not know. It sees single outcomes, at
# temperatures of the laboratory.
#
# ## One round, by hand
#
# **The model** is a plain `SingleTaskGP` on $[x, c]$.

# %%
C_lab = laboratory(NUM_ROUNDS, seed=0)  # rounds x 1
X_design = draw_sobol_samples(x_bounds, n=NUM_INITIAL, q=1, seed=0).squeeze(1)


def fit_model(X: Tensor, C: Tensor, Y: Tensor) -> SingleTaskGP:
    """A Gaussian process of decision and context; both live in the unit cube here."""
    model = SingleTaskGP(torch.cat([X, C], dim=-1), Y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


X, C = X_design, C_lab[:NUM_INITIAL]
Y = machine.evaluate(X, C).unsqueeze(-1)  # t x 1
model = fit_model(X, C, Y)

# %% [markdown]
# **The contexts**: those seen so far, with equal weights. `ContextSet` has other
# builders, for instance `kernel_density` to smooth them and `from_distribution` for a
# distribution that you know.
#
# **The radius**: how far the distribution may be from them, as a share of the width of
# the context box. The engineer fears that temperatures in the factory differ by 0.12 on
# average: 2.4 degrees. (If you fear only that the sample is small, let the radius
# shrink, as the paper does with $\varepsilon_t = 0.3 / \sqrt t$; see
# [which radius?](../docs/radius.md))
#
# **The acquisition function** is the expected upper confidence bound minus the penalty,
#
# $$\alpha(x) = \sum_i w_i \, \mathrm{ucb}(x, c_i) - \varepsilon \, L(x), \qquad
#   L(x) = \max_c \left\| \frac{\partial\, \mathrm{ucb}(x, c)}{\partial c} \right\|,$$
#
# with $\mathrm{ucb} = \mu + \sqrt\beta\, \sigma$ in BoTorch's convention.

# %%
RADIUS = 0.12


def robust_ucb(
    model: SingleTaskGP, C: Tensor, *, beta: float = 2.25, radius: float = RADIUS
) -> LipschitzPenalizedUCB:
    """WDRBO after the contexts `C`; with `radius=0` there is no penalty."""
    return LipschitzPenalizedUCB(
        model,
        beta=beta,
        context_set=ContextSet.empirical(C),
        radius=radius,
        context_bounds=c_bounds,
    )


def best_of(acqf: LipschitzPenalizedUCB) -> Tensor:
    """Its best decision, 1 x 1."""
    x, _ = optimize_acqf(
        acqf,
        bounds=x_bounds,
        q=1,
        num_restarts=4,
        raw_samples=64,
        retry_on_optimization_warning=False,
    )
    return x


torch.manual_seed(0)  # optimize_acqf draws its starting points
print(f"next decision {best_of(robust_ucb(model, C)).item():.3f}")

# %% [markdown]
# Why `retry_on_optimization_warning=False`? $L(x)$ is a maximum, so it has kinks, where
# the line search of L-BFGS may give up. The point at which it stopped is a candidate
# like any other; without this option BoTorch would warn and start again.
#
# **Mind the units.** `optimize_acqf` searches in the units of `bounds` and of $y$, and
# its L-BFGS-B stops where no partial derivative is above $10^{-5}$, an absolute number.
# With decisions in dollars or metres and outcomes of order one it stops at its first
# point, without a warning; the model's `Normalize` and `Standardize` do not help,
# because they translate back. So keep decisions in the unit cube (`normalize` and
# `unnormalize` of `botorch.utils.transforms`), and fit the model to outcomes of order
# one (`standardize` from there). [`RobustOptimizer`](../docs/api/optimizer.md) does
# both for you.
#
# ## The loop


# %%
def run(radius: float) -> tuple[Tensor, Tensor]:
    """Play all rounds in the laboratory; return the decisions and the outcomes."""
    torch.manual_seed(0)
    X, Y = X_design, machine.evaluate(X_design, C_lab[:NUM_INITIAL]).unsqueeze(-1)
    for t in range(NUM_INITIAL, NUM_ROUNDS):
        model = fit_model(X, C_lab[:t], Y)
        x = best_of(robust_ucb(model, C_lab[:t], radius=radius))
        y = machine.evaluate(x, C_lab[t])  # the world shows its context: 1
        X, Y = torch.cat([X, x]), torch.cat([Y, y.unsqueeze(-1)])
    return X, Y


X, Y = run(RADIUS)
X_plain, Y_plain = run(0.0)
C, model = C_lab, fit_model(X, C_lab, Y)
acqf, plain = robust_ucb(model, C), robust_ucb(model, C, radius=0.0)

# %% [markdown]
# ## $L(x)$, made visible
#
# Take two decisions and draw their upper confidence bound over all contexts. The
# thick line is the tangent at the context where the curve is steepest: its slope is
# $L(x)$. If the contexts of the future move by $\varepsilon$ on average, then the
# expected score can fall by at most $\varepsilon L(x)$: much for the steep curve, less
# for the flatter one.

# %% tags=["thumbnail"]
pair = torch.tensor([[0.02], [0.4]]).double()  # 2 x d_x
with torch.no_grad():
    curves = acqf.scores(pair, grid)  # 2 x 201
steepness = acqf.lipschitz_constant(pair).detach()
rises = curves.diff(dim=-1) / grid.squeeze(-1).diff()  # slopes between grid points
steepest = rises.abs().argmax(-1)  # 2

fig, ax = plt.subplots(figsize=(6.6, 4.0), layout="constrained")
for i, x in enumerate(pair):
    name = f"{x.item():.2f} mm, L = {steepness[i]:.1f}"
    style = {"color": COLOURS[3 + i], "linestyle": "-:"[i]}
    ax.plot(degrees(grid), curves[i], label=name, **style)
    k = steepest[i]
    at, height, slope = grid[k].item(), curves[i, k].item(), rises[i, k].item()
    reach = torch.tensor([-0.06, 0.06]).double()
    ax.plot(
        degrees(at + reach),
        height + slope * reach,
        color="0.8",
        linewidth=6,
        solid_capstyle="butt",
        zorder=0,
        label="tangent where it is steepest" if i == 1 else None,
    )
    ax.plot(10 + 20 * at, height, "o", color=COLOURS[3 + i], markersize=6)
ax.plot(
    degrees(C),
    torch.full_like(C, 0.02),
    "|",
    color="black",
    markersize=8,
    transform=ax.get_xaxis_transform(),
    label="contexts seen",
)
ax.set_xlabel("temperature (degrees)")
ax.set_ylabel("upper confidence bound of f(x, c)")
ax.legend(frameon=False, loc="upper left")
ax.margins(x=0)
plt.show()

# %% [markdown]
# Now for every decision. Above: $L(x)$. Below: the acquisition function with and
# without its penalty.

# %%
line = grid[:: 10 if SMOKE_TEST else 2]  # m x d_x
with torch.no_grad():
    slopes = acqf.lipschitz_constant(line)
    penalised, unpenalised = acqf(line.unsqueeze(1)), plain(line.unsqueeze(1))

fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(6.6, 5.4), sharex=True, layout="constrained"
)
top.plot(line, slopes, color="0.3", linewidth=2)
for i, x in enumerate(pair):
    top.plot(x, steepness[i], "o", color=COLOURS[3 + i], markersize=7)
top.set_ylabel("L(x)\n(outcome per 20 degrees)")
top.set_ylim(bottom=0)
bottom.plot(
    line, unpenalised, "--", color=COLOURS[1], linewidth=2, label="expected UCB"
)
bottom.plot(line, penalised, color=COLOURS[0], linewidth=2, label="with the penalty")
bottom.fill_between(
    line.squeeze(-1),
    penalised,
    unpenalised,
    color="0.88",
    label=r"penalty $\varepsilon L(x)$",
)
bottom.set_xlabel("adjustment (mm)")
bottom.set_ylabel("acquisition value")
bottom.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
bottom.margins(x=0)
plt.show()

# %% [markdown]
# Without the penalty a fine adjustment is the next decision. There the outcome depends
# on the temperature most, and the penalty moves the maximum to the right. The kinks of
# $L(x)$ are where one context replaces another as the steepest.

# %% [markdown]
# ## Did it pay?
#
# The recommendation maximises the same function with `beta=0`, on the posterior mean.
# First the two runs above, judged by the truth.


# %%
def regret(x: Tensor) -> dict[str, float]:
    """What a decision, 1 x 1, loses to the best one of each place."""
    return {
        name: (value_in[name].max() - machine.evaluate(x, contexts).mean()).item()
        for name, contexts in places.items()
    }


torch.manual_seed(0)
rows = {}
for name, (decisions, outcomes, radius) in {
    "robust (WDRBO)": (X, Y, RADIUS),
    "no penalty (ERBO)": (X_plain, Y_plain, 0.0),
}.items():
    fitted = fit_model(decisions, C, outcomes)
    x = best_of(robust_ucb(fitted, C, beta=0.0, radius=radius))
    rows[name] = {"recommended (mm)": x.item()} | {
        f"regret in the {place}": lost for place, lost in regret(x).items()
    }
pd.DataFrame(rows).T.round(3)

# %% [markdown]
# One run of each is an example and no measurement. Next, several machines, each with
# 30 random adjustments at temperatures of its own. All recommendations of a machine
# come from the same model, so that they are compared pair by pair. The table has what
# the robust one gains on the one without a penalty (negative: it loses), for several
# radii, with 95% intervals.

# %%
RADII = (RADIUS / 4, RADIUS / 2, RADIUS)
rows = []
for seed in range(MACHINES):
    tried = draw_sobol_samples(x_bounds, n=30, q=1, seed=seed).squeeze(1)
    seen = laboratory(30, seed)
    fitted = fit_model(tried, seen, machine.evaluate(tried, seen).unsqueeze(-1))
    torch.manual_seed(seed)
    lost = {
        radius: regret(best_of(robust_ucb(fitted, seen, beta=0.0, radius=radius)))
        for radius in (0.0, *RADII)
    }
    rows += [
        {"radius": radius}
        | {place: lost[0.0][place] - lost[radius][place] for place in places}
        for radius in RADII
    ]
by_radius = pd.DataFrame(rows).groupby("radius")
mean, half = by_radius.mean(), student.ppf(0.975, MACHINES - 1) * by_radius.sem()
pd.DataFrame(
    {
        f"gain in the {place}": [
            f"{mean[place][r]:+.3f} ({mean[place][r] - half[place][r]:+.3f} to "
            f"{mean[place][r] + half[place][r]:+.3f})"
            for r in RADII
        ]
        for place in places
    },
    index=pd.Index(RADII, name="radius"),
)

# %% [markdown]
# The gain in the laboratory is negative: that is the price. A machine that stays in the
# laboratory should not pay it. One that goes to the factory gets the other column.
# $\varepsilon L(x)$ is an upper bound of what a shift can cost, so the penalty is
# cautious, and a smaller radius than the shift that is feared can be the better one.
#
# ## Where it cannot pay
#
# Here the best decision of the laboratory is fragile, and another one, nearly as good,
# is not. Ackley's function is the opposite: the decision that is best on average is
# best in the worst case too, because away from its peak the function is flatter, but
# bad everywhere. No model is needed to see that:

# %%
ackley = make_test_function("ackley_2_1")  # two decisions, one context
truth = ackley.true_contexts(256)  # n x 1
ball = Wasserstein(0.1, (truth - truth.mT).abs())
equal = torch.full((len(truth),), 1 / len(truth)).double()
side = torch.linspace(0, 1, 21).double()
lattice = torch.cartesian_prod(side, side)  # 441 x d_x
scores = ackley.evaluate(lattice.unsqueeze(1), truth)  # 441 x n
worst = ball.worst_case(scores, equal).value
print(f"best on average    {lattice[scores.mean(-1).argmax()].tolist()}")
print(f"best in worst case {lattice[worst.argmax()].tolist()}")

# %% [markdown]
# On such a problem the penalty keeps the search away from the peak and gains nothing.
# So run `radius=0` beside it: it is one argument away.
# [Which radius?](../docs/radius.md) and [benchmarks](../docs/benchmarks.md) have
# measurements of both kinds.

# %% [markdown]
# ## Found, and certified
#
# `lipschitz_constant` *finds* $L(x)$: it looks at the contexts seen and at a set that
# fills the box, and climbs from the best. The result is attained, so it is never too
# large, but it could miss a steeper spot. `lipschitz_upper_bound` *proves* a number
# from the kernel (like Lemma 3 of the paper). It holds for every decision at once, and
# that makes it large. [Slopes](../docs/api/lipschitz.md) has both.

# %%
certified = acqf.lipschitz_upper_bound().item()
print(f"steepest slope found           {slopes.max():6.1f}")
print(f"certified for every decision   {certified:6.1f}")

# %% [markdown]
# The penalty itself is a bound: if $L(x)$ was found, no distribution within the radius
# can push the expected score below the acquisition value. The exact worst case over the
# contexts seen lies between the two. `DistributionallyRobustUCB` computes it for any
# [ambiguity set](../docs/api/ambiguity.md):

# %%
unit = acqf.context_set.normalised(c_bounds)  # n x 1
ball = Wasserstein(RADIUS, (unit - unit.mT).abs())
exact = DistributionallyRobustUCB(
    model, 2.25, acqf.context_set, UncertaintyObjective(ball)
)
with torch.no_grad():
    for x in pair:
        values = [a(x.reshape(1, 1, -1)).item() for a in (plain, exact, acqf)]
        print(
            f"x = {x.item():.2f}   expected {values[0]:6.2f}   "
            f"worst case {values[1]:6.2f}   with the penalty {values[2]:6.2f}"
        )

# %% [markdown]
# ## Several decisions at a time
#
# `sequential=True` picks them one by one, each knowing those before it as pending. A
# pending decision has no context yet; the acquisition function pairs it with contexts
# that represent the set, and takes the model's own mean for its outcomes. So the
# uncertainty shrinks there. (Here the decisions stay close together all the same, at
# the kink of $L(x)$: one of them is where the bound is best by far.)

# %%
torch.manual_seed(0)
batch, _ = optimize_acqf(
    acqf,
    bounds=x_bounds,
    q=3,
    num_restarts=4,
    raw_samples=64,
    sequential=True,
    retry_on_optimization_warning=False,
)
print("three decisions:", [round(x, 3) for x in batch.flatten().tolist()])

# %% [markdown]
# Decisions that are already under way go in as `X_pending=...` at construction, or with
# `acqf.set_X_pending(...)`. [Batches](02b_batches.ipynb) has more.
#
# ## Minimisation
#
# If low outcomes are good, fit the model to the outcomes as they are and turn the sign
# with a `posterior_transform`. Here we minimise $-f$, which must give the same
# acquisition function as maximising $f$, up to the accuracy of the fit:

# %%
cost_model = fit_model(X, C, -Y)
to_minimise = LipschitzPenalizedUCB(
    cost_model,
    beta=2.25,
    context_set=acqf.context_set,
    radius=acqf.radius,
    context_bounds=c_bounds,
    posterior_transform=ScalarizedPosteriorTransform(torch.tensor([-1.0]).double()),
)
with torch.no_grad():
    gap = (to_minimise(line.unsqueeze(1)) - penalised).abs().max()
print(f"largest difference: {gap:.1e}")

# %% [markdown]
# ## To take with you
#
# ```python
# acqf = LipschitzPenalizedUCB(
#     model,                                   # SingleTaskGP on [x, c]
#     beta=2.25,
#     context_set=ContextSet.empirical(C),
#     radius=0.12,
#     context_bounds=c_bounds,
# )
# x, value = optimize_acqf(acqf, bounds=x_bounds, q=1, num_restarts=10, raw_samples=512)
# ```
#
# All options: [acquisition functions](../docs/api/acquisition.md). Which models are
# accepted, and what else BoTorch can do with them: [I use BoTorch](../docs/botorch.md).
#
# Method: Micheli, Balta, Tsiamis and Lygeros, *Wasserstein Distributionally Robust
# Bayesian Optimization with Continuous Context*, AISTATS 2025; formula by formula in
# [the papers](../docs/papers.md).
