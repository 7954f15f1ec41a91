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
# # Is my model good enough?
#
# *Beginner, fifteen minutes: you have a table of decisions, contexts and outcomes.*
#
# A recommendation is what a *model* predicts. After this page you know how to check
# whether the model can be trusted (`check`), how far its predictions may be off (the
# intervals of `recommend`), whether a robust decision is worth its price on your own
# data (`compare`), and what to do if the answer is "not yet".

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from botorch_drbo import Category, NamedOptimizer
from botorch_drbo.plotting import plot_compare, plot_model_check

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
SIZES = [8, 12] if SMOKE_TEST else [8, 15, 30, 60]  # fields that the farm knows of
FARMS = 1 if SMOKE_TEST else 10  # other farms, to count how often a promise is kept

plt.rcParams.update({"figure.dpi": 90, "font.size": 10})

# %% [markdown]
# ## The farm
#
# A farm chooses the *variety* of its wheat (hardy or rich) and the *nitrogen* that it
# spreads. Then comes a season with so many millimetres of *rain*, with aphids or
# without. Nobody chose these. The outcome is the *profit* in euros a hectare. The rich
# variety earns more in a wet season, and suffers more in a dry one.
#
# The farm has a table of fields: its own, and those of its neighbours. It does not know
# the formula below, and nobody can repeat a season. We can, so we can say at the end
# who was right.

# %%
VARIETIES, PESTS = ["hardy", "rich"], ["none", "aphids"]


def true_profit(fields: pd.DataFrame) -> pd.Series:
    """Euros a hectare, without the luck of a single field."""
    rich, aphids = fields["variety"] == "rich", fields["pest"] == "aphids"
    top = np.where(rich, 9.0, 6.3)  # tonnes a hectare
    fed = 1 - np.exp(-(40 + fields["nitrogen"]) / 85)
    thirst = np.where(rich, 250, 150) - fields["rain"]
    watered = 1 / (1 + np.exp(thirst / np.where(rich, 38, 35)))
    left = np.where(aphids, np.where(rich, 0.8, 0.93), 1.0)
    return 180 * top * fed * watered * left - 1.1 * fields["nitrogen"] - 300


def seasons(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rain and pests of seasons of the usual kind."""
    rain = (300 + 35 * rng.standard_normal(n)).clip(150, 450).round()
    return pd.DataFrame({"rain": rain, "pest": rng.choice(PESTS, n, p=[0.75, 0.25])})


def records(n: int, seed: int) -> pd.DataFrame:
    """A table of fields as farms keep it."""
    rng = np.random.default_rng(seed)
    table = seasons(n, rng)
    table["variety"] = rng.choice(VARIETIES, n)
    table["nitrogen"] = rng.uniform(0, 200, n).round()
    luck = 40 * rng.standard_normal(n)
    table["profit"] = (true_profit(table) + luck).round()
    return table


def in_truth(decision: pd.DataFrame, contexts: pd.DataFrame) -> float:
    """The mean profit of one decision over seasons, which only we can compute."""
    fields = contexts.assign(**decision.iloc[0])
    return float(true_profit(fields).mean())


fields = records(max(SIZES), seed=0)
fields.head()


# %% [markdown]
# The loop takes the table as it is. The robust recipe is to guard against seasons that
# have 30 mm less rain (or more) than those in the table: `radius={"rain": 30}` says it
# in millimetres. Pests are not named, so they stay as frequent as they were.


# %%
def farm(table: pd.DataFrame) -> NamedOptimizer:
    """A loop that knows the rows of a table."""
    return NamedOptimizer.from_dataframe(
        table,
        decisions={"variety": Category(VARIETIES), "nitrogen": (0.0, 200.0)},
        contexts={"rain": (100.0, 450.0), "pest": Category(PESTS)},
        outcome="profit",
        radius={"rain": 30},
        num_restarts=2,
        raw_samples=64,
    )


# %% [markdown]
# ## Eight fields
#
# The farm begins with the first eight rows. Before it asks what to sow, it asks whether
# the model knows anything.

# %%
young = farm(fields[:8])
print(young.check())

# %% [markdown]
# *Five folds*: the fields of each fold are predicted by a fit to the others. Whatever
# it says here, eight rows are few, and the first line says so: with fewer than ten
# outcomes the model **knows nearly nothing**, however well these few rows fit. A
# recommendation can be had all the same. How does it compare with the truth?

# %%
first = young.recommend()
low, high = first.expected_interval
truths = {
    "these eight seasons": in_truth(first.x, fields[:8]),
    "20,000 seasons": in_truth(first.x, seasons(20_000, np.random.default_rng(1))),
}
print(first)
print()
for what, true in truths.items():
    verdict = "inside" if low <= true <= high else "outside"
    print(f"in truth, over {what}: {true:.0f}, {verdict} {low:.0f} to {high:.0f}")

# %% [markdown]
# The interval is about the first of these two numbers: what the decision earns on
# average over the seasons *in the table*, if the model is right. Two things are not in
# it. The eight seasons may have been lucky; the worst case covers this, the interval
# does not. And a model of eight rows is easily wrong: the interval comes from the
# model, and is no better than it.
#
# ## More outcomes first
#
# What helps is more rows: those of other years, those of neighbours, and those that the
# loop asks for. `ask` looks for decisions that are promising or little known; here are
# three for next year.

# %%
young.ask(3).round({"nitrogen": 0})

# %% [markdown]
# The neighbours' fields come in. For each size of the table: what the model explains of
# fields that it has not seen, how wide the promise is (90%), what was promised, and
# what it is in truth over the same seasons.

# %%
rows, farms = [], {}
for size in SIZES:
    farms[size] = farm(fields[:size])
    check, best = farms[size].check(), farms[size].recommend()
    low, high = best.expected_interval
    rows.append(
        {
            "fields": size,
            "explained": f"{check.explained:.0%}",
            "outside 95%": f"{check.num_outside} of {size}",
            "variety": best.x["variety"].iloc[0],
            "promised": round(best.expected_value),
            "interval": f"{low:.0f} to {high:.0f}",
            "in truth": round(in_truth(best.x, fields[:size])),
        }
    )
pd.DataFrame(rows).set_index("fields")

# %% [markdown]
# Read the last two columns together. A high share *explained* and few fields *outside*
# are what to wait for. But one farm is one sample. Here are other farms with
# other seasons: for how many does the 90% interval hold the truth, by the size of their
# tables? And by how much is the promise too high, on average?

# %%
rows = []
for size in (SIZES[0], SIZES[-1]):
    held, widths, optimism = [], [], []
    for seed in range(1, FARMS + 1):
        other = records(size, seed)
        best = farm(other).recommend()
        low, high = best.expected_interval
        true = in_truth(best.x, other)
        held.append(low <= true <= high)
        widths.append(high - low)
        optimism.append(best.expected_value - true)
    rows.append(
        {
            "fields": size,
            "intervals that hold the truth": f"{sum(held)} of {FARMS}",
            "median width": round(np.median(widths)),
            "promised too much": round(np.mean(optimism)),
            "worst disappointment": round(max(optimism)),
        }
    )
pd.DataFrame(rows).set_index("fields")

# %% [markdown]
# *Promised too much* is a known effect: a decision is recommended because it looks
# good, and of many decisions the one that looks best is often one that chance has made
# look better than it is (the winner's curse). More rows make it smaller.
#
# If the share explained stays low while rows are added, the number of rows is not the
# reason. Something that matters is not in the table (the soil, the date of sowing), or
# the outcome is mostly luck. The line *noise* tells the second from the first, as soon
# as some rows are nearly equal.
#
# ## A wrong row
#
# A minus was typed in front of a profit. Does the check find such a row? It should be
# far from its prediction by all others. `plot_model_check` draws each field against its
# prediction from the others; bars are 95% intervals. Above with the wrong row, below
# after the row that the check names first was withdrawn.

# %%
typed = fields.copy()
wrong = 5
typed.loc[wrong, "profit"] = -typed.loc[wrong, "profit"]
table = farm(typed)
before = table.check()
table.withdraw(before.worst[0])
after = table.check()

figure, axes = plt.subplots(2, 1, figsize=(6.4, 9), layout="constrained")
plot_model_check(before, axes[0], outcome="profit (euros a hectare)")
plot_model_check(after, axes[1], outcome="profit (euros a hectare)")
plt.show()
print(f"wrong row: {wrong}; first of the worst rows: {before.worst[0]}")
print(f"explained: {before.explained:.0%} with it, {after.explained:.0%} without it")

# %% [markdown]
# A number in `worst` is the number of a trial, which `opt.table()` shows with all its
# columns. `withdraw` takes it back; if you know the right value, correct the file.
# Do not withdraw a row only because it surprises you: without a reason it is an
# observation like any other.
#
# ## How sure is this promise?
#
# From here on with all fields. `recommend` prints both promises with an interval each,
# for 90% if nothing else is said. `level=` takes another: half of the time the truth
# should be inside of the second one below.

# %%
known = farms[SIZES[-1]]
best = known.recommend()
half = known.recommend(level=0.5)
print(best)
print()
for level, promise in {"90%": best, "50%": half}.items():
    low, high = promise.worst_case_interval
    print(f"worst-case profit, {level}: {low:.0f} to {high:.0f} euros a hectare")

# %% [markdown]
# The worst case is that of the seasons moved by 30 mm, in the direction that hurts.
# What if the farm believes the seasons are as they were, or fears 60 mm? A radius can
# be given for one question.

# %%
for millimetres in (0, 30, 60):
    answer = known.recommend(radius={"rain": millimetres})
    sown, spread = answer.x.iloc[0]
    print(
        f"{millimetres:2d} mm: sow {sown}, spread {spread:.0f} kg; "
        f"expected {answer.expected_value:.0f}, "
        f"worst case {answer.worst_case_value:.0f}"
    )

# %% [markdown]
# Does the model know anything about such seasons? Where no field has seen a context,
# it guesses. `check` takes the contexts that you ask about.

# %%
usual = fields[["rain", "pest"]]
for less in (30, 90):
    drier = usual.assign(rain=(usual["rain"] - less).clip(lower=100))
    asked = known.check(context_set=known.named_space.context_set(drier))
    print(f"{less} mm less: {asked.unseen:.0%} of these seasons outside those seen")

# %% [markdown]
# ## Is robustness worth it here?
#
# `erbo` trusts the seasons of the table; `wdrbo_exact` guards against a shift within
# the radius. `compare` lets both decide by the same model, and says what each decision
# is expected to earn as things are and under the shifts that you name. First the farm
# of eight fields, then that of all.

# %%
fears = {"15 mm less": {"rain": -15}, "30 mm less": {"rain": -30}}
little = young.compare(["erbo", "wdrbo_exact"], shifts=fears)
print(f"8 fields: {little.advice}")
found = known.compare(["erbo", "wdrbo_exact"], shifts=fears)
print(f"{found.num_outcomes} fields: {found.advice}")

# %% tags=["thumbnail"]
ax = plot_compare(found, ylabel="expected profit (euros a hectare)")
plt.show()

# %%
table = found.table.round({"nitrogen": 0, "better": 2})
worlds = {"as things are": 0, "15 mm less": 15, "30 mm less": 30}
table["in truth"] = [
    in_truth(
        pd.DataFrame([row[["variety", "nitrogen"]]]),
        usual.assign(rain=usual["rain"] - worlds[row["world"]]),
    )
    for _, row in table.iterrows()
]
inside = (table["low"] <= table["in truth"]) & (table["in truth"] <= table["high"])
print(f"intervals that hold the truth: {inside.sum()} of {len(table)}")
table.round(dict.fromkeys(["profit", "low", "high", "gain", "gain_sd", "in truth"], 0))

# %% [markdown]
# `gain` is what a method earns more than the first one, `gain_sd` its standard
# deviation, `better` the probability that there is a gain at all. Errors that both
# decisions share cancel in the difference, so a gain can be certain where the two
# values are not.
#
# The last column is made with the true formula, which no farm has, and it contradicts
# the advice above: with 30 mm less the robust decision earns more in truth, by more
# than it gives up as things are. *Stay with erbo* only says that these fields do not
# show the gain, not that there is none. If dry seasons are likely, do not stay; or
# tell more rows.
#
# The sentence of advice looks at the shift that costs the first decision most:
#
# - all methods recommend the same: there is nothing to choose;
# - the shift costs less than the model's own error: **more outcomes first**;
# - a method is better there with a probability of 90%: that one, and its price;
# - otherwise the model cannot tell, and the sentence stays with the first method.
#
# ## Which order of questions?
#
# 1. `print(opt.check())`. Fewer than ten outcomes, or little explained: tell more rows,
#    or take what `ask` proposes. Nothing below is worth much before that.
# 2. Look at the worst rows. Correct what was typed wrongly.
# 3. `recommend`: is the interval narrow enough for what you decide? If it is not, again
#    more outcomes.
# 4. `compare` with the shifts that you fear, in your units. Take the radius that
#    belongs to them.
#
# The page [certainty](../docs/certainty.md) explains each number,
# [`NamedOptimizer`](../docs/api/optimizer.md) has the arguments, and
# [recommendation](../docs/api/recommendation.md) what they return. On the
# [command line](../docs/tables.md), for a file:
#
# ```text
# botorch-drbo check     fields.csv --decisions ... --contexts ... --outcome profit
# botorch-drbo recommend fields.csv ... --radius rain=30 --level 0.5
# botorch-drbo compare   fields.csv ... --shift rain=-30
# ```
#
# **For experts.** `check` leaves each outcome out in closed form with the
# hyper-parameters of the fit to all, for each member of an ensemble. An interval is one
# of $w^\top f(x, \cdot)$ under the joint posterior over contexts, $N(w^\top \mu,
# w^\top \Sigma w)$, mixed over the members, and stretched where fits to four fifths of
# the rows miss the last fifth by more than they say. It does not hold the optimism of a
# maximum: a decision is chosen because it looks good. `compare` computes all
# differences from one joint posterior.
