"""Draw the picture of docs/objectives.md: `python docs/figures/objectives.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch

from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import RobustSatisficing, UncertaintyObjective
from botorch_drbo.plotting import COLOURS

EPS, WEIGHT, TARGET = 0.4, 0.5, 2.4

# The page's "bold" decision: nothing on a bad day, 9 on a good one.
c = torch.linspace(0, 1, 21).double()
p = torch.softmax(-0.5 * ((c - 0.6) / 0.2).square(), -1)
f = 9 * c.square()

ball = TotalVariation(EPS)
radii = torch.linspace(0, 2, 401).double()  # total variation ends at 2
v = ball.worst_case(f.expand(401, 21), p, radius=radii).value
mean = UncertaintyObjective.so()(f, p).item()
worst = UncertaintyObjective.ro()(f, p).item()
robust = UncertaintyObjective.dro(ball)(f, p).item()
slope_at_0 = UncertaintyObjective.wcs(ball)(f, p).item()
mean_risk = UncertaintyObjective.mean_risk(ball, WEIGHT)(f, p).item()
slope_at_eps = ball.sensitivity(f, p).item()
gen = UncertaintyObjective.gen(ball)(f, p).item()
k = RobustSatisficing(TotalVariation(0.0), TARGET)(f, p).item()
line = TARGET + k * radii
touch = int((v - line).argmin())

plt.rcParams.update({"font.size": 9, "figure.dpi": 150})
fig, ax = plt.subplots(figsize=(7.6, 5.0), layout="constrained")
ax.plot(radii, v, color="black", linewidth=2.4, zorder=3)
ax.annotate(r"$v(\varepsilon)$", (1.2, v[240]), (4, 6), textcoords="offset points")


def note(x: float, y: float, text: str, dx: float, dy: float, colour: str) -> None:
    """A dot, and a name with a thin line to it (offset in points)."""
    ax.plot(x, y, "o", color=colour, markersize=6, zorder=4, clip_on=False)
    ax.annotate(
        text,
        (x, y),
        (dx, dy),
        textcoords="offset points",
        color=colour,
        va="center",
        arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8},
    )


def tangent(x: float, y: float, slope: float, end: float, colour: str) -> None:
    """A dashed tangent of the curve from (x, y) on."""
    ax.plot([x, end], [y, y + slope * (end - x)], "--", color=colour, linewidth=1.4)


at_0, at_eps, satisficing = COLOURS[0], COLOURS[1], COLOURS[2]
note(0.0, mean, "SO: the value at 0", 60, 0, at_0)
tangent(0.0, mean, slope_at_0, WEIGHT, at_0)
middle = 0.45 * WEIGHT
ax.annotate(
    "WCS: the slope at 0",
    (middle, mean + middle * slope_at_0),
    (-54, -112),
    textcoords="offset points",
    color=at_0,
    arrowprops={"arrowstyle": "-", "color": at_0, "linewidth": 0.8},
)
note(
    WEIGHT, mean_risk, f"mean-risk: that tangent,\nread at b = {WEIGHT}", -14, -62, at_0
)
note(EPS, robust, r"DRO: the value at $\varepsilon$", 45, 40, at_eps)
tangent(EPS, robust, slope_at_eps, EPS + 1, at_eps)
note(
    EPS + 1,
    gen,
    "GEN: the tangent at $\\varepsilon$,\nread one unit further right",
    -150,
    -24,
    at_eps,
)
ax.axhline(worst, color="0.55", linewidth=1, linestyle=":")
note(2.0, worst, "RO: the floor,\nthe worst context", -62, 72, "0.35")
ax.plot(radii, line, "-.", color=satisficing, linewidth=1.6)
note(0.0, TARGET, r"target $\tau$", -2, -32, satisficing)
note(
    radii[touch].item(),
    v[touch].item(),
    "robust satisficing: the slope of the\nline from the target that just touches v",
    24,
    58,
    satisficing,
)
ax.plot([EPS, EPS], [worst, robust], ":", color="0.7", linewidth=1)
ax.plot([EPS + 1] * 2, [gen, worst], ":", color="0.7", linewidth=1)
ax.set_xticks(
    [0, EPS, WEIGHT, EPS + 1, 2],
    ["0", r"$\varepsilon$ ", " b", r"$\varepsilon+1$", "2"],
)
ax.set_xlabel("radius: how far the distribution may shift (total variation)")
ax.set_ylabel("worst expected score of one decision")
ax.set_xlim(-0.02, 2.02)
ax.set_ylim(-0.95, 3.7)
for side in ("top", "right"):
    ax.spines[side].set_visible(False)
fig.savefig(Path(__file__).with_suffix(".png"))
print(
    f"SO {mean:.3f} RO {worst:.3f} DRO {robust:.3f} WCS {slope_at_0:.3f} "
    f"mean-risk {mean_risk:.3f} GEN {gen:.3f} satisficing {k:.3f}"
)
