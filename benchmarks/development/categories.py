"""Functions of categories, and the candidates for how an ensemble learns them.

``categories.md`` says, written before anything was measured, what is chosen and how.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from torch import Tensor
from torch.distributions import Normal

from botorch_drbo.surrogate import ModelData
from botorch_drbo.surrogate.botorch_default import botorch_family
from botorch_drbo.surrogate.evidence import CategoryPriors, around
from botorch_drbo.surrogate.gaussian_process import (
    GaussianProcess,
    most_likely,
    with_categories,
)

SALT = 4_907_102  # of this experiment: no other one has these functions and rows
_CELLS = 400  # at which a function is predicted
_BLOCK = 400


class Member(NamedTuple):
    """A member of an ensemble: its kernel of numbers, and its priors of categories."""

    kernel: str
    categories: CategoryPriors | None
    """None for a lengthscale of each one-hot column, as before."""

    def fit(self, data: ModelData) -> Model:
        """Fit it to data."""
        d = data.inputs.shape[-1]
        if self.kernel != "botorch":
            family = GaussianProcess(self.kernel).family(d)
        else:
            columns = data.num_columns if self.categories is None else d
            family = botorch_family(columns, data)
        if self.categories is not None:
            family = with_categories(family, data, self.categories)
        return most_likely(family, data)


_KERNELS = ("botorch", "rbf", "matern52", "matern32")
_SPREADS = (0.5, 1.5, 1.0)
_USUAL, _SMOOTH, _ROUGH, _INTERACTING = (
    CategoryPriors(*map(around, middles, _SPREADS))
    for middles in (
        (1.0, 0.22, 0.5),
        (1.6, 0.22, 0.5),
        (0.6, 0.22, 0.5),
        (1.0, 0.05, 1.0),
    )
)
_BALANCED = CategoryPriors(around(1.4, 0.25), around(0.1, 0.5), around(0.5, 1.0))
_PRODUCT, _SMOOTH_PRODUCT, _TIGHT_PRODUCT = (
    CategoryPriors(around(level, spread), around(0.01, 1.0), around(0.7, 0.5))
    for level, spread in ((1.0, 0.5), (1.5, 0.5), (1.5, 0.25))
)
CANDIDATES: Mapping[str, tuple[Member, ...]] = {
    name: tuple(map(Member, _KERNELS, priors))
    for name, priors in {
        "before": (None,) * 4,
        "graded": (_SMOOTH, _USUAL, _ROUGH, _INTERACTING),
        "products": (_BALANCED, _SMOOTH_PRODUCT, _PRODUCT, _ROUGH),
        "tight": (_TIGHT_PRODUCT, _SMOOTH_PRODUCT, _BALANCED, _ROUGH),
    }.items()
}


@dataclass(frozen=True)
class CategoryFunction:
    """Outcomes to learn from, and cells to predict.

    Attributes:
        data: Random rows with noise.
        cells: ``n x d``, random too.
        true: The function's values there, ``n``.
        observed: The same with noise, ``n``.
        unseen: Whether a cell has not been learnt from, ``n``.
    """

    data: ModelData
    cells: Tensor
    true: Tensor
    observed: Tensor
    unseen: Tensor


def random_functions(kind: str, num: int) -> Iterator[CategoryFunction]:
    """Functions of two to six categories of 2 to 30 levels, and 12 to 96 rows of each.

    Args:
        kind: "additive"; "interacting", with 20 to 70% of the variance in tables of two
            columns; "irrelevant", the same where one column does nothing; "mixed", the
            same with two numbers beside.
        num: How many.
    """
    for number in range(num):
        generator = np.random.default_rng([SALT, KINDS.index(kind), number])
        yield _random_function(generator, kind)


KINDS = ("additive", "interacting", "irrelevant", "mixed")


def _random_function(rng: np.random.Generator, kind: str) -> CategoryFunction:
    d, t = int(rng.integers(2, 7)), int(rng.choice([12, 24, 48, 96]))
    levels = np.exp(rng.uniform(math.log(2), math.log(31), d)).astype(int).clip(2, 30)
    cells = np.stack([rng.integers(0, k, t + _CELLS) for k in levels], 1)
    effects = [
        rng.normal(size=k)[column] for k, column in zip(levels, cells.T, strict=True)
    ]
    numbers = rng.uniform(size=(t + _CELLS, 2 if kind == "mixed" else 0))
    for column in numbers.T:
        waves = np.arange(1, 4)
        heights = rng.normal(size=(2, 3)) / waves
        angles = np.pi * np.outer(column, waves)
        effects.append(np.cos(angles) @ heights[0] + np.sin(angles) @ heights[1])
    shares = rng.gamma(1.0, size=len(effects)) + 0.1
    acting = np.ones(len(effects), dtype=bool)
    if kind == "irrelevant":
        acting[rng.integers(d)] = False
    effects = [e for e, acts in zip(effects, acting, strict=True) if acts]
    values = _unit(np.sqrt(shares[acting]) @ np.stack(effects))
    if kind != "additive":
        share = rng.uniform(0.2, 0.7)
        together = np.zeros(t + _CELLS)
        for a in range(d):
            for b in range(a):
                table = rng.normal(size=(levels[a], levels[b]))
                if acting[a] and acting[b]:
                    together += table[cells[:, a], cells[:, b]]
        if kind == "mixed":  # a wave whose height depends on a level
            together += 2 * rng.normal(size=levels[0])[cells[:, 0]] * effects[-1]
        if together.any():
            values = np.sqrt(1 - share) * values + np.sqrt(share) * _unit(together)
    noise = rng.choice([0.05, 0.2, 0.5]) * rng.normal(size=t + _CELLS)
    inputs = torch.from_numpy(np.concatenate([cells, numbers], 1))
    true, observed = torch.from_numpy(values), torch.from_numpy(values + noise)
    upper = torch.tensor([k - 1.0 for k in levels] + [1.0] * numbers.shape[1])
    data = ModelData(
        inputs[:t],
        observed[:t, None],
        torch.stack([torch.zeros_like(upper), upper]).double(),
        categories={j: int(k) for j, k in enumerate(levels)},
    )
    unseen = torch.ones(_CELLS, dtype=torch.bool)
    return CategoryFunction(data, inputs[t:], true[t:], observed[t:], unseen)


def _unit(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


class Score(NamedTuple):
    """How well a function is predicted."""

    explained: float
    """Of the variance of its values: R², at least -1."""
    density: float
    """The mean logarithm of the density of unseen outcomes, in deviations of those
    learnt from."""
    covered: float
    """The share of unseen outcomes in bands of 95%, noise included."""


Moments = tuple[Tensor, Tensor]


def moments(model: Model, function: CategoryFunction) -> Moments:
    """Means and deviations of outcomes, noise included, of one model: ``n`` each."""
    means, variances = [], []
    for cells in function.cells.split(_BLOCK):  # their covariance is made, too
        with torch.no_grad():
            found = model.posterior(cells, observation_noise=True)
            found = cast(GPyTorchPosterior, found)
            means.append(found.mean.flatten())
            variances.append(found.variance.flatten())
    return torch.cat(means), torch.cat(variances).sqrt()


def score(function: CategoryFunction, members: Sequence[Moments]) -> Score:
    """That of an ensemble, whose predictions are mixed."""
    means, deviations = (torch.stack(parts) for parts in zip(*members, strict=True))
    true = function.true
    error = (means.mean(0) - true).square().mean() / true.var(correction=0)
    normal = Normal(means[:, function.unseen], deviations[:, function.unseen])
    observed = function.observed[function.unseen]
    density = normal.log_prob(observed).exp().mean(0) * function.data.units[1]
    below = normal.cdf(observed).mean(0)
    return Score(
        max(-1.0, 1.0 - error.item()),
        density.clamp_min(1e-300).log().mean().item(),
        ((below - 0.5).abs() <= 0.475).double().mean().item(),
    )


def scores(function: CategoryFunction) -> dict[str, Score]:
    """Those of every candidate; each member is fitted once."""
    members = {member for candidate in CANDIDATES.values() for member in candidate}
    found = {member: moments(member.fit(function.data), function) for member in members}
    return {
        name: score(function, [found[member] for member in candidate])
        for name, candidate in CANDIDATES.items()
    }


def chosen(groups: Mapping[str, Sequence[Mapping[str, Score]]]) -> list[str]:
    """The candidates, the one that the rule of ``categories.md`` takes first.

    Args:
        groups: The scores of all candidates at each function of each group.
    """

    def gaps(name: str, best: str, column: int) -> tuple[float, float]:
        """How far it is behind the best, and the standard error of that."""
        behind, squares = 0.0, 0.0
        for group in groups.values():
            gap = [scored[best][column] - scored[name][column] for scored in group]
            behind += float(np.mean(gap)) / len(groups)
            squares += float(np.var(gap, ddof=1)) / len(gap) / len(groups) ** 2
        return behind, squares**0.5

    def order(names: list[str], column: int) -> list[str]:
        return sorted(names, key=lambda name: gaps(name, names[0], column)[0])

    by_explained = order(list(CANDIDATES), 0)
    near = []
    for name in by_explained:
        behind, error = gaps(name, by_explained[0], 0)
        if behind <= 2.0 * error:
            near.append(name)
    far = [name for name in by_explained if name not in near]
    return order(near, 1) + far
