"""Finite worlds: decisions, the contexts of a scope, and the outcome of each pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
import torch

from benchmarks.accuracy.tables import read_table
from benchmarks.experiments.price.cases import CASES as FUNCTIONS
from botorch_drbo import Category
from botorch_drbo.sampling import derive_seed, sobol
from botorch_drbo.space import Continuous, Variable

EXPERIMENT = 20_261_130  # salts every draw: no other experiment has these worlds
OUTCOME = "outcome"
_NUM_DECISIONS, _NUM_CONTEXTS = 200, 12  # of a function


@dataclass(frozen=True, eq=False)
class ListedWorld:
    """What can be tried, and what comes of it."""

    decisions: pd.DataFrame  # n rows
    contexts: pd.DataFrame  # m rows
    outcomes: np.ndarray  # n x m
    noise: float
    chosen: Mapping[str, Variable]
    met: Mapping[str, Variable]
    # Numbers that describe the levels of columns, a row for each.
    features: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def without_features(self) -> ListedWorld:
        """The same world, to one who knows the names of the levels only."""
        if not self.features:
            return self
        return _categories(self.decisions, self.contexts, self.outcomes, self.noise)

    def trials(
        self, rows: np.ndarray, columns: np.ndarray, noise: np.ndarray
    ) -> pd.DataFrame:
        """What is measured of pairs."""
        x = self.decisions.iloc[rows].reset_index(drop=True)
        c = self.contexts.iloc[columns].reset_index(drop=True)
        y = self.outcomes[rows, columns] + self.noise * noise
        return pd.concat([x, c], axis=1).assign(**{OUTCOME: y})


def _of_table(name: str, num_decisions: int, seed: int) -> ListedWorld:
    """A real table, a full factorial; the first columns are decisions."""
    table = read_table(name)
    columns = list(table.columns[:-1])
    chosen, met = columns[:num_decisions], columns[num_decisions:]
    wide = table.pivot_table(table.columns[-1], chosen, met)
    full = wide.dropna()
    return _categories(
        full.index.to_frame(index=False),
        full.columns.to_frame(index=False),
        full.to_numpy(),
        noise=0.0,
    )


def _categories(
    decisions: pd.DataFrame,
    contexts: pd.DataFrame,
    outcomes: np.ndarray,
    noise: float,
    features: Mapping[str, pd.DataFrame] | None = None,
) -> ListedWorld:
    described = features or {}

    def variables(frame: pd.DataFrame) -> dict[str, Variable]:
        return {
            str(n): Category(sorted(frame[n].unique()), features=described.get(str(n)))
            for n in frame
        }

    return ListedWorld(
        decisions,
        contexts,
        outcomes,
        noise,
        variables(decisions),
        variables(contexts),
        described,
    )


def _of_effects(
    sizes: tuple[int, ...],
    scope: tuple[int, ...],
    crossing: float,
    place: int,
    seed: int,
) -> ListedWorld:
    """Effects of all columns, and of pairs of a decision's and a context's column."""
    draw = np.random.default_rng(derive_seed(EXPERIMENT + seed, place, 0))
    decisions = pd.DataFrame(list(np.ndindex(*sizes)))
    contexts = pd.DataFrame(list(np.ndindex(*scope)))
    outcomes = np.zeros((len(decisions), len(contexts)))
    for j, size in enumerate(sizes):
        outcomes += draw.normal(size=size)[decisions[j]][:, None]
    for k, size in enumerate(scope):
        outcomes += draw.normal(size=size)[contexts[k]][None, :]
    for j, rows in enumerate(sizes):
        for k, columns in enumerate(scope):
            pairs = crossing * draw.normal(size=(rows, columns))
            outcomes += pairs[decisions[j].to_numpy()[:, None], contexts[k].to_numpy()]
    x, c = (
        frame.astype(str).rename(columns=lambda j, p=prefix: f"{p}{j + 1}")
        for frame, prefix in ((decisions, "x"), (contexts, "c"))
    )
    return _categories(x, c, _to_percent(outcomes), noise=2.0)


def _of_descriptors(
    sizes: tuple[int, ...], scope: int, widths: tuple[int, int], place: int, seed: int
) -> ListedWorld:
    """The first column and the contexts have features, three quarters of their worth.

    A smooth function of the features of each, and of both together, of half the size;
    a quarter of the variance of each effect is of the levels by themselves. One feature
    of the first column has no effect at all.
    """
    draw = np.random.default_rng(derive_seed(EXPERIMENT + seed, place, 0))

    def smooth(*described: np.ndarray) -> np.ndarray:
        """A Gaussian process of features, and levels by themselves, at all levels."""
        grid = np.stack(np.meshgrid(*[np.arange(len(d)) for d in described]), -1)
        z = np.concatenate(
            [d[grid[..., j].T] for j, d in enumerate(described)], axis=-1
        )
        slopes = draw.normal(size=(z.shape[-1], 200)) / np.sqrt(z.shape[-1])
        waves = np.cos(z @ slopes + draw.uniform(0.0, 2.0 * np.pi, 200))
        known = waves @ draw.normal(size=200) * np.sqrt(2.0 / 200)
        return np.sqrt(0.75) * known + np.sqrt(0.25) * draw.normal(size=known.shape)

    first, last = (
        draw.normal(size=(k, p)) for k, p in zip((sizes[0], scope), widths, strict=True)
    )
    decisions = pd.DataFrame(list(np.ndindex(*sizes)))
    level = decisions[0].to_numpy()
    outcomes = smooth(first[:, :-1])[level][:, None] + smooth(last)[None, :]
    outcomes = outcomes + 0.5 * smooth(first[:, :-1], last)[level]
    for j, size in enumerate(sizes[1:], 1):
        of_level = decisions[j].to_numpy()
        outcomes += draw.normal(size=size)[of_level][:, None]
        outcomes += 0.33 * draw.normal(size=(size, scope))[of_level]
    x = decisions.astype(str).rename(columns=lambda j: f"x{j + 1}")
    c = pd.DataFrame({"c1": np.arange(scope).astype(str)})
    features = {
        name: pd.DataFrame(table, index=np.arange(len(table)).astype(str))
        for name, table in (("x1", first), ("c1", last))
    }
    return _categories(x, c, _to_percent(outcomes), 2.0, features)


def _of_function(name: str, place: int, seed: int) -> ListedWorld:
    """A function with continuous contexts, at a list of decisions and of contexts."""
    about = FUNCTIONS[name]
    lower, upper = about.space.bounds
    X = lower + sobol(_NUM_DECISIONS, len(lower), place).double() * (upper - lower)
    C = about.contexts(_NUM_CONTEXTS, derive_seed(EXPERIMENT + seed, place, 0))

    def table(points: torch.Tensor, prefix: str) -> pd.DataFrame:
        names = [f"{prefix}{j + 1}" for j in range(points.shape[-1])]
        return pd.DataFrame(points.numpy(), columns=names)

    def variables(frame: pd.DataFrame, box: torch.Tensor) -> dict[str, Variable]:
        return {str(n): Continuous(*box[:, j].tolist()) for j, n in enumerate(frame)}

    x, c = table(X, "x"), table(C, "c")
    return ListedWorld(
        x,
        c,
        _to_percent(about.values(X, C).numpy()),
        2.0,
        variables(x, about.space.bounds),
        variables(c, about.space.context_bounds),
    )


def _to_percent(outcomes: np.ndarray) -> np.ndarray:
    return 100.0 * (outcomes - outcomes.min()) / np.ptp(outcomes)


CASES: Mapping[str, Callable[[int], ListedWorld]] = {
    "suzuki": partial(_of_table, "suzuki", 3),
    "amidation": partial(_of_table, "amidation", 3),
    "additive": partial(_of_effects, (8, 5, 4), (8,), 0.33, 2),
    "crossed": partial(_of_effects, (12, 6), (5, 4), 0.7, 3),
    "described": partial(_of_descriptors, (24, 5), 12, (3, 2), 6),
    "field": partial(_of_function, "field", 4),
    "tolerance": partial(_of_function, "tolerance", 5),
}
"""The world of a seed; real tables are the same for all of them."""
