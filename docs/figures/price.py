"""Draw the picture of README and the quick start: `python docs/figures/price.py`.

The price curve of the shipped table `bakery.csv`, and beside it what the decisions on
it are worth by the function that made the table.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from random import Random

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

from botorch_drbo import Integer, MeanShift, NamedOptimizer
from botorch_drbo.plotting import MARKERS, plot_price

FOLDER = Path(__file__).parent
WARMER = 5.0
made = runpy.run_path(str(FOLDER.parents[1] / "examples" / "make.py"))
opt = NamedOptimizer.from_dataframe(
    pd.read_csv(made["FOLDER"] / "bakery.csv"),
    decisions={"loaves": Integer(30, 130), "price": (2.5, 6.0)},
    contexts={"temperature": (0.0, 40.0)},
    outcome="profit",
    seed=0,
)
curve = opt.price_curve(against=MeanShift({"temperature": WARMER}))

random = Random(1)
days = [made["noon"](random) for _ in range(20_000)]


def earned(loaves: float, price: float, warmer: float) -> float:
    """Mean profit on days that are so much warmer."""
    each = (made["bakery_profit"](loaves, price, t + warmer) for t in days)
    return sum(each) / len(days)


rows = list(curve.decisions.itertuples(index=False))
usual = [earned(*row, 0.0) for row in rows]
worst = [min(earned(*row, move) for move in (-WARMER, 0.0, WARMER)) for row in rows]
paid = [usual[0] - value for value in usual]
for row, *numbers in zip(rows, curve.paid, paid, worst, strict=True):
    print(*row, *(f"{float(number):.1f}" for number in numbers))

plt.rcParams.update({"font.size": 10})
figure, ax = plt.subplots(figsize=(7.6, 3.9), layout="constrained")
plot_price(curve, ax, ylabel="profit if it gets 5 degrees warmer")
ax.plot(paid, worst, color="0.35", linestyle="--", marker=MARKERS[1], label="in truth")
ax.set_xlabel("given up of the profit expected if the weather stays")
ax.set_title("What a price buys: 40 days of a bakery")
ax.legend(frameon=False, loc="lower right")
figure.savefig(FOLDER / "price.png", dpi=130)
