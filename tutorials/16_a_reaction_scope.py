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
# # A reaction scope, a plate at a time
#
# *Beginner, ten minutes: you run reactions, and have never seen this package.*
#
# A laboratory looks for *one* set of reaction conditions that works for a whole list of
# substrates. It chooses which substrate goes into which well while it learns; who uses
# the conditions later has all of them. So the conditions are the *decision*, the
# substrate is the *context*, the list is the *scope*, and what counts is not the best
# yield but what the worst fifth of the substrates get.
#
# The yields here come from a function of ours that behaves as published tables of
# cross-couplings do: effects of ligand, base, solvent and substrate, and pairs of them
# that do not go together. (Real tables: Perera et al. 2018, for Suzuki couplings, and
# the Open Reaction Database.)

# %%
import os
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from botorch_drbo import Category, NamedOptimizer
from botorch_drbo.plotting import plot_scope

SMOKE_TEST = bool(os.environ.get("SMOKE_TEST"))  # small budgets, for CI
EFFORT = {"surrogate": "botorch"} if SMOKE_TEST else {}
PLATES = 2 if SMOKE_TEST else 5

LIGANDS = ["PPh3", "PCy3", "SPhos", "XPhos", "dppf", "P(tBu)3", "RuPhos", "BrettPhos"]
BASES = ["K2CO3", "K3PO4", "CsF", "NaOtBu", "Et3N"]
SOLVENTS = ["THF", "DMF", "MeCN", "dioxane"]
SUBSTRATES = ["anisole", "nitrile", "ester", "amine", "pyridine", "indole"]
SUBSTRATES += ["thiophene", "ketone", "phenol", "ortho-methyl"]

# %% [markdown]
# ## The laboratory

# %%
draw = np.random.default_rng(2)
EFFECTS = {
    name: dict(zip(levels, 14 * draw.normal(size=len(levels)), strict=True))
    for name, levels in {
        "ligand": LIGANDS,
        "base": BASES,
        "solvent": SOLVENTS,
        "substrate": SUBSTRATES,
    }.items()
}
PAIRS = {pair: 9 * draw.normal() for pair in product(LIGANDS + BASES, SUBSTRATES)}


def measured(ligand: str, base: str, solvent: str, substrate: str) -> float:
    """Percent of yield, without the noise."""
    total = 42.0 + EFFECTS["ligand"][ligand] + EFFECTS["base"][base]
    total += EFFECTS["solvent"][solvent] + EFFECTS["substrate"][substrate]
    total += PAIRS[ligand, substrate] + PAIRS[base, substrate]
    return 100 / (1 + np.exp(-(total - 50) / 16))


def in_the_laboratory(wells: pd.DataFrame) -> list[float]:
    """The yields of a plate, with an error of two percent."""
    return [measured(*well) + 2 * draw.normal() for well in wells.to_numpy()]


# %% [markdown]
# ## From an empty file
#
# The space names the columns and their levels, `scope="uniform"` says that the decision
# must serve every substrate alike, and `objective="worst fifth"` what is to be high.
# The first two plates of sixteen cover conditions and substrates; each of the next has
# four conditions on four substrates each. No well comes twice.

# %%
decisions = {
    "ligand": Category(LIGANDS),
    "base": Category(BASES),
    "solvent": Category(SOLVENTS),
}
lab = NamedOptimizer.from_dataframe(
    pd.DataFrame(columns=[*decisions, "substrate", "yield"]),
    decisions=decisions,
    contexts={"substrate": Category(SUBSTRATES)},
    outcome="yield",
    scope="uniform",
    objective="worst fifth",
    num_initial=32,
    seed=0,
    **EFFORT,
)
conditions = pd.DataFrame(list(product(LIGANDS, BASES, SOLVENTS)), columns=[*decisions])


def truth(row: pd.Series) -> pd.Series:
    """The yield of each substrate, by the function itself."""
    return pd.Series({s: measured(*row, s) for s in SUBSTRATES})


def judged(best: pd.DataFrame) -> dict[str, float]:
    """What the recommended conditions truly give."""
    values = truth(best.iloc[0]).sort_values()
    return {"mean": values.mean(), "worst fifth": values.iloc[:2].mean()}


progress = {}
for plate in range(PLATES):
    each = 1 if plate < 2 else 4
    chosen, substrates = lab.ask(
        16, choose_context=True, contexts_per_decision=each, candidates=conditions
    )
    wells = pd.concat([chosen, substrates], axis=1)
    lab.tell(chosen, substrates, in_the_laboratory(wells))
    if plate:
        best = lab.recommend(candidates=conditions)
        progress[16 * (plate + 1)] = {**best.x.iloc[0], **judged(best.x)}
wells.head(8)

# %% [markdown]
# ## What was found
#
# For the conditions recommended after each plate: what they truly give. The last line
# is the best there is among the 160.

# %%
table = pd.DataFrame(progress).T.infer_objects()
true = conditions.apply(truth, axis=1)
fifth = np.sort(true, axis=1)[:, :2].mean(-1)
table.loc["best there is"] = {
    **conditions.iloc[fifth.argmax()],
    "mean": true.mean(axis=1)[fifth.argmax()],
    "worst fifth": fifth.max(),
}
table.round({"mean": 1, "worst fifth": 1})

# %% [markdown]
# The recommendation says how sure the model is, and the picture on which substrates the
# conditions fail: a dot for each substrate with its interval, and beside it the ten
# leading conditions.

# %%
print(best)

# %%
plot_scope(lab, best, threshold=75.0)
plt.show()

# %% [markdown]
# ## The worst fifth, or the mean?
#
# Conditions with the best mean may leave some substrates with nothing, and those with
# the best worst fifth may cost some of the mean. `give_up` limits that price: the best
# worst fifth among all conditions whose mean is within a tenth of what there is to gain
# by choosing.

# %%
rows = {}
for name, options in {
    "mean": {"objective": "mean"},
    "worst fifth within 10%": {"give_up": 0.1},
    "worst fifth": {},
}.items():
    found = lab.recommend(candidates=conditions, **options).x
    rows[name] = {**found.iloc[0], **judged(found)}
pd.DataFrame(rows).T.infer_objects().round({"mean": 1, "worst fifth": 1})

# %% [markdown]
# ## On your bench
#
# The same from a file, without programming: `substrates.csv` has one column and a line
# for each substrate.
#
# ```text
# botorch-drbo init plate.csv --scope substrates.csv --outcome yield \
#     --decisions ligand=PPh3,SPhos,XPhos solvent=THF,DMF
# botorch-drbo suggest plate.csv --choose-context -q 16 --contexts-per-decision 4
# botorch-drbo recommend plate.csv --objective "worst fifth" --give-up 10%
# botorch-drbo report plate.csv
# ```
#
# - Only what is in the cupboard: `candidates=` with a table, `--candidates stock.csv`.
# - At most two solvents in a plate: `at_most={"solvent": 2}`.
# - Numbers that describe the ligands: `Category(LIGANDS, features=table)`; then the
#   model can say something of a ligand that was never tried.
# - An old campaign with other substrates: tell it as well; they are further contexts,
#   and not of the scope.
#
# [One decision for a whole list](../docs/scope.md) has all of this, and
# [which objective](../docs/objectives.md) the words for what is to be high;
# [`NamedOptimizer`](../docs/api/optimizer.md) has every argument.
