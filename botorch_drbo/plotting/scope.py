"""One decision for a list of contexts: how it does on each, and what else there is."""

from __future__ import annotations

import textwrap
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from botorch.exceptions.errors import InputDataError
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from botorch_drbo.objectives import NamedObjective
from botorch_drbo.plotting.style import COLOURS, as_array
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.problem.feasible import all_decisions
from botorch_drbo.recommendation.promise import shown
from botorch_drbo.space import NamedRecommendation, Space
from botorch_drbo.space.table import to_frame, to_tensor

if TYPE_CHECKING:
    import pandas as pd

MOST_CONTEXTS = 60
"""That a picture has room for."""
_MOST_DECISIONS = 512  # that are compared; of more those that were tried
_LEADING = 10
_COLUMNS = 48  # characters of a line of the key


class _InTensors(Protocol):
    """A run in tensors."""

    @property
    @abstractmethod
    def history(self) -> History:
        """The outcomes so far."""

    @abstractmethod
    def predict(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances."""


class Named(Protocol):
    """A ``NamedOptimizer``, as far as a picture has to ask it."""

    @property
    @abstractmethod
    def named_space(self) -> Space:
        """The variables."""

    @property
    @abstractmethod
    def space(self) -> SearchSpace:
        """The same as the model sees them."""

    @property
    @abstractmethod
    def maximize(self) -> bool:
        """Whether high outcomes are good."""

    @property
    @abstractmethod
    def tensors(self) -> _InTensors:
        """The same run in tensors."""


@dataclass(frozen=True, eq=False)
class Scope:
    """The recommended decision and the leading ones on each context of a list."""

    # The contexts in words, the one with the best mean first, ``n``.
    contexts: list[str]
    # What is expected of the recommended decision there, and its interval, ``n``.
    mean: Tensor
    lower: Tensor
    upper: Tensor
    # The leading decisions in words, the recommended one first, and their means.
    decisions: list[str]
    values: Tensor  # m x n
    # The columns of contexts and decisions, whose values these words are.
    names: tuple[str, str]
    # What should be reached, and what it is.
    threshold: float
    source: str
    outcome: str
    level: float
    maximize: bool

    @classmethod
    def of(
        cls,
        optimizer: Named,
        best: NamedRecommendation,
        threshold: float | None = None,
    ) -> Scope:
        """Ask the model; nothing is recorded."""
        space, tensors = optimizer.named_space, optimizer.tensors
        weighted = best.contexts.loc[best.contexts["reference_weight"] > 0.0]
        table = weighted.loc[:, list(space.contexts)]
        if len(table) > MOST_CONTEXTS:
            raise InputDataError(
                f"The reference has {len(table)} contexts, a picture has room for "
                f"{MOST_CONTEXTS}. Give a `context_set` of those that matter, or take "
                "`plot_worst_case`."
            )
        C = to_tensor(table, space.contexts, "contexts")
        weights = torch.tensor(weighted["reference_weight"].tolist()).double()
        x = to_tensor(best.x, space.decisions, "recommendation")
        others = all_decisions(optimizer.space)
        if others is None or len(others) > _MOST_DECISIONS:
            others = tensors.history.X.unique(dim=0)
        X, n = torch.cat([x, others[(others != x).any(-1)]]), len(C)
        moments = tensors.predict(X.repeat_interleave(n, 0), C.repeat(len(X), 1))
        means, spreads = (part.double().reshape(-1, n) for part in moments)  # m x n
        spreads = spreads.sqrt()
        sign = 1.0 if optimizer.maximize else -1.0
        named = NamedObjective(best.decided_for or "mean")
        ball, aim = named.ambiguity_set, named.threshold
        if ball is not None:
            rank = ball.value(sign * means, weights)
        else:
            gaps = sign * (means - (aim or 0.0))
            rank = torch.special.ndtr(gaps / spreads) @ weights
        leading = 1 + rank[1:].topk(min(_LEADING - 1, len(X) - 1)).indices
        leading = torch.cat(
            [leading.new_zeros(1), leading]
        )  # the recommended one first
        source = "as asked for" if threshold is not None else "what is aimed at"
        if threshold is None and (threshold := aim) is None:
            threshold = tensors.history.Y.mean().item()
            source = "the mean of all outcomes so far"
        widening = best.promise.widening if best.promise else None
        belief = GaussianMixture(means[:1], spreads[:1]).widened(widening or 1.0)
        rest = 0.5 * (1.0 - best.level)
        order = (-sign * means[0]).argsort()
        labels = _labels(table)
        return cls(
            contexts=[labels[i] for i in order.tolist()],
            mean=means[0, order],
            lower=belief.quantile(rest)[order],
            upper=belief.quantile(1.0 - rest)[order],
            decisions=_labels(to_frame(X[leading], space.decisions)),
            names=(", ".join(space.contexts), ", ".join(space.decisions)),
            values=means[leading][:, order],
            threshold=threshold,
            source=source,
            outcome=best.outcome,
            level=best.level,
            maximize=optimizer.maximize,
        )

    def words(self) -> str:
        """On which contexts the decision misses what should be reached."""
        sign = 1.0 if self.maximize else -1.0
        misses = sign * (self.mean - self.threshold) < 0.0
        bad_end = self.lower if self.maximize else self.upper
        unsure = int((~misses & (sign * (bad_end - self.threshold) < 0.0)).sum())
        missed = misses.nonzero().flatten()
        n, what = len(self.contexts), f"{shown(self.threshold)} ({self.source})"
        perhaps = ""
        if unsure:
            perhaps = f" On {unsure} more it may miss it: its intervals reach there."
        if n == 1:
            verb = "miss" if len(missed) else "reach"
            may = " It may miss it: its interval reaches there." if unsure else ""
            return (
                f"The decision is expected to {verb} {what} on {self.contexts[0]}, "
                f"the only one: {shown(self.mean[0].item())}.{may}"
            )
        if not len(missed):
            return f"The decision is expected to reach {what} on all {n}." + (
                perhaps.replace(" more", "")
            )
        worst_first = missed.flip(0).tolist()
        each = [
            f"{self.contexts[i]} ({shown(self.mean[i].item())})" for i in worst_first
        ]
        return (
            f"The decision is expected to miss {what} on {len(missed)} of {n}: "
            f"{'; '.join(each)}.{perhaps}"
        )


def _labels(table: pd.DataFrame) -> list[str]:
    """The values of each row."""
    columns = [map(shown, table[name].tolist()) for name in table.columns]
    return [", ".join(row) for row in zip(*columns, strict=True)]


def plot_scope(
    optimizer: Named,
    recommendation: NamedRecommendation,
    axes: tuple[Axes, Axes] | None = None,
    *,
    threshold: float | None = None,
) -> tuple[Axes, Axes]:
    r"""Draw how a decision does on each context of a list, beside the leading others.

    On the left a dot for each context of the reference, the best one on top, with the
    interval of the model (the level is that of the recommendation, and so is the factor
    by which it is widened). On the right a heat map of what is expected of up to ten
    decisions on the same contexts: the recommended one, and those that are the best by
    what was decided for. Of a list of up to 512 decisions all are compared, otherwise
    those that were tried. The title names the contexts on which the decision is
    expected to miss a threshold.

    Args:
        optimizer: The optimizer that recommended the decision.
        recommendation: The recommendation, with up to 60 contexts.
        axes: Where to draw dots and heat map; a new figure if None.
        threshold: What should be reached, in your units; None for that of ``share above
            60``, or else the mean of all outcomes so far.

    Returns:
        The axes of the dots and of the heat map.

    Raises:
        InputDataError: More contexts than a picture has room for.

    Example:
        >>> from botorch_drbo import Category, NamedOptimizer, Space
        >>> from botorch_drbo.plotting import plot_scope
        >>> substrates = Category(["A", "B", "C"])
        >>> space = Space({"temp": (0, 1)}, {"substrate": substrates}, outcome="yield")
        >>> few = {"num_restarts": 1, "raw_samples": 16, "surrogate": "botorch"}
        >>> opt = NamedOptimizer("erbo", space, **few)
        >>> opt.tell(
        ...     {"temp": [0.1, 0.4, 0.6, 0.9]},
        ...     {"substrate": ["A", "B", "C", "A"]},
        ...     [30.0, 55.0, 10.0, 70.0],
        ... )
        >>> dots, heat = plot_scope(opt, opt.recommend(), threshold=20.0)
        >>> [label.get_text() for label in dots.get_yticklabels()]
        ['A', 'B', 'C']
    """
    found = Scope.of(optimizer, recommendation, threshold)
    if axes is None:
        size = (9.6, 2.4 + 0.24 * len(found.contexts) + 0.16 * len(found.decisions))
        drawn = plt.figure(figsize=size, layout="constrained")
        dots, heat = drawn.subplots(1, 2, sharey=True)
    else:
        dots, heat = axes
    draw_contexts(found, dots)
    draw_decisions(found, heat)
    heat.tick_params(labelleft=False)
    words = [found.names[1], *(f"{i}: {x}" for i, x in enumerate(found.decisions, 1))]
    lines = [textwrap.shorten(line, _COLUMNS, placeholder="...") for line in words]
    heat.set_xlabel("\n".join(lines), loc="left")
    dots.set_title(textwrap.fill(found.words(), 48), fontsize="medium", loc="left")
    return dots, heat


def draw_contexts(found: Scope, ax: Axes) -> None:
    """A dot with its interval for each context, and the threshold."""
    mean, lower, upper = map(as_array, (found.mean, found.lower, found.upper))
    places = np.arange(len(mean))
    ax.errorbar(
        mean,
        places,
        xerr=(mean - lower, upper - mean),
        fmt="o",
        color=COLOURS[0],
        capsize=3.0,
    )
    ax.axvline(found.threshold, color="black", linestyle=(0, (6, 2)), linewidth=1.0)
    ax.set_yticks(places, found.contexts)
    ax.set(
        ylim=(len(mean) - 0.5, -0.5),
        ylabel=found.names[0],
        xlabel=f"expected {found.outcome}, {found.level:.0%} intervals\n"
        f"dashed: {shown(found.threshold)}, {found.source}",
    )
    ax.grid(axis="y", alpha=0.25)


def draw_decisions(found: Scope, ax: Axes) -> None:
    """A heat map, decisions by contexts, the recommended one first."""
    values = as_array(found.values).T
    n, m = values.shape
    drawn = ax.pcolormesh(np.arange(m + 1) + 0.5, np.arange(n + 1) - 0.5, values)
    ax.set_xticks(range(1, m + 1))
    ax.set_yticks(range(n), found.contexts)
    ax.set_ylim(n - 0.5, -0.5)
    colours = ax.figure.colorbar(drawn, ax=ax, label=f"expected {found.outcome}")
    if not found.maximize:
        colours.ax.invert_yaxis()
    ax.set_xlabel("decision")
