r"""Search the whole box for each optimum that a test function stores.

    python -m benchmarks.find_optima [name ...]

Without names it does all of them (some ten minutes; the portfolios take most of it, and
need the data file). Each line has the stored optimum and what the search found. Run it
again when a formula or a law changes, and store what it prints.

Nothing of the library's own search is used (``find_optimum``).
A maximum over a box lies inside exactly one of its faces: the inside, the sides, the
edges and the corners, :math:`3^d` of them. Each face gets a point set of its own, the
best points climb inside their face, and the expectation is a quadrature of the law.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.polynomial import legendre
from scipy.optimize import minimize
from scipy.stats import qmc
from torch import Tensor

from benchmarks.problems import make
from botorch_drbo.test_functions import RobustTestFunction

_PANELS, _ORDER = 500, 4  # of the fine rule of one context: .1 is a multiple of a panel
_MOST_CONTEXTS = 3  # of a product rule; more are summed over Sobol points
_NUM_SOBOL, _SOBOL_SEED = 2**17, 4711  # not the points with which the library sums
_VALUES_AT_ONCE = 2**20
_STEP = 0.02  # of a climb at first, in sides of the box


@dataclass(frozen=True)
class Effort:
    """How hard one optimum is searched for.

    Args:
        points: Points of each face that has more than a corner.
        climbs: How many of the best points climb, and how many of the best faces.
        coarse: Nodes of each context for the first look.
        fine: Nodes of each context for climbs and values; None for the fine rule.
    """

    points: int = 4096
    climbs: int = 12
    coarse: int = 12
    fine: int | None = None


Rule = tuple[Tensor, Tensor]
"""Contexts ``n x d_c`` and their weights ``n``, which sum to one."""


_Start = tuple[float, tuple[float | None, ...], np.ndarray]  # value, face, point


def fine_rule(function: RobustTestFunction, column: int) -> Rule:
    """The clipped law of one context: Gauss-Legendre panels, an atom at each end."""
    low, high = function.context_bounds[:, column].tolist()
    law, width = function.context_law.base_dist, function.d_c
    nodes, weights = legendre.leggauss(_ORDER)
    edges = np.linspace(low, high, _PANELS + 1)
    half = np.diff(edges) / 2  # panels
    inner = (edges[:-1] + half)[:, None] + half[:, None] * nodes  # panels x order
    points = torch.as_tensor(inner.ravel())
    rows = points.unsqueeze(-1).expand(-1, width)  # every coordinate at the same place
    density = law.log_prob(rows)[:, column].exp()
    ends = law.cdf(torch.tensor([[low], [high]]).double().expand(-1, width))[:, column]
    mass = density * torch.as_tensor((half[:, None] * weights).ravel())
    points = torch.cat([points, points.new_tensor([low, high])])
    mass = torch.cat([mass, torch.stack([ends[0], 1 - ends[1]])])
    return points.unsqueeze(-1), mass / mass.sum()


def gauss_rule(rule: Rule, num: int) -> Rule:
    """The Gauss quadrature of a law: ``num`` nodes, exact to degree ``2 num - 1``."""
    points, mass = rule[0][:, 0].numpy(), rule[1].numpy()
    low, high = points.min(), points.max()
    scaled = 2 * (points - low) / (high - low) - 1
    basis, _ = np.linalg.qr(
        np.sqrt(mass)[:, None] * legendre.legvander(scaled, num - 1)
    )
    nodes, vectors = np.linalg.eigh(basis.T @ (points[:, None] * basis))  # Jacobi
    weights = (vectors.T @ (basis.T @ np.sqrt(mass))) ** 2
    return torch.as_tensor(nodes).unsqueeze(-1), torch.as_tensor(weights)


def expectation_rule(function: RobustTestFunction, nodes: int | None) -> Rule:
    """Contexts and weights of the true law: a product rule, or many Sobol points."""
    if function.d_c > _MOST_CONTEXTS:
        num = _NUM_SOBOL if nodes is None else nodes**3
        contexts = function.true_contexts(num, seed=_SOBOL_SEED)
        return contexts, contexts.new_full((num,), 1 / num)
    rules = [fine_rule(function, column) for column in range(function.d_c)]
    if nodes is not None:
        rules = [gauss_rule(rule, nodes) for rule in rules]
    contexts = torch.cartesian_prod(*(points[:, 0] for points, _ in rules))
    mass = torch.cartesian_prod(*(weights for _, weights in rules))
    rows = len(contexts)
    return contexts.reshape(rows, -1), mass.reshape(rows, -1).prod(-1)


def expectation(
    function: RobustTestFunction, nodes: int | None
) -> Callable[[Tensor], Tensor]:
    """The expected values of ``M x d_x`` decisions by such a rule, as a function."""
    contexts, weights = expectation_rule(function, nodes)
    separated = function._separated  # f(x, c) = <a(x), b(c)>: E b(c) once is enough
    mean = None if separated is None else separated.context(contexts).mT @ weights
    width = len(contexts) if mean is None else len(mean)

    def values(part: Tensor) -> Tensor:
        if separated is None or mean is None:
            return function.table(part, contexts) @ weights
        return separated.decision(part) @ mean

    def expected(x: Tensor) -> Tensor:
        with torch.no_grad():
            parts = x.split(max(1, _VALUES_AT_ONCE // width))
            return torch.cat([values(part) for part in parts])

    return expected


def faces(dim: int) -> Iterator[tuple[float | None, ...]]:
    """The faces of the unit cube: a bound for a fixed column, None for a free one."""
    return itertools.product((None, 0.0, 1.0), repeat=dim)


def points_of(face: tuple[float | None, ...], num: int, seed: int) -> np.ndarray:
    """The middle of a face of the unit cube and ``num`` Sobol points, ``n x d``."""
    free = [column for column, bound in enumerate(face) if bound is None]
    points = np.tile([0.5 if bound is None else bound for bound in face], (num + 1, 1))
    if not free:
        return points[:1]
    points[1:, free] = qmc.Sobol(len(free), rng=np.random.default_rng(seed)).random(num)
    return points


def search(
    function: RobustTestFunction, effort: Effort, seed: int = 0
) -> tuple[float, tuple[float, ...]]:
    """Search every face of the box.

    Args:
        function: What to maximise the expected value of.
        effort: How hard.
        seed: Of the Sobol points.

    Returns:
        The best expected value found, and its decision.
    """
    low, high = function.bounds.numpy()
    look, judge = (
        expectation(function, nodes) for nodes in (effort.coarse, effort.fine)
    )
    candidates: list[_Start] = []
    best_of_faces: list[_Start] = []
    for number, face in enumerate(faces(function.d_x)):
        unit = points_of(face, effort.points, seed + number)
        x = torch.as_tensor(low + (high - low) * unit)
        values = look(x).numpy()
        order = values.argsort()[::-1][: effort.climbs]
        first, *others = [(float(values[i]), face, unit[i]) for i in order]
        best_of_faces.append(first)
        candidates += others
    ranked = [
        start
        for starts in (best_of_faces, candidates)
        for start in sorted(starts, key=lambda entry: -entry[0])[: effort.climbs]
    ]

    def value(unit: np.ndarray) -> float:
        x = torch.as_tensor(low + (high - low) * unit)
        return judge(x.unsqueeze(0)).item()

    ends = [_climb(value, face, start) for _, face, start in ranked]
    best = max(ends, key=value)
    return value(best), tuple((low + (high - low) * best).tolist())


def _climb(
    value: Callable[[np.ndarray], float],
    face: tuple[float | None, ...],
    start: np.ndarray,
) -> np.ndarray:
    """The better of a point and the end of Nelder and Mead's search inside its face."""
    free = [column for column, bound in enumerate(face) if bound is None]
    if not free:
        return start

    def inside(part: np.ndarray) -> np.ndarray:
        point = start.copy()
        point[free] = part
        return point

    step = _STEP * np.where(start[free] > 0.5, -1, 1)  # inwards
    simplex = start[free] + np.vstack([np.zeros(len(free)), np.diag(step)])
    found = minimize(
        lambda part: -value(inside(part)),
        start[free],
        method="Nelder-Mead",
        bounds=[(0.0, 1.0)] * len(free),
        options={"initial_simplex": simplex, "xatol": 1e-7, "fatol": 1e-11},
    )
    return max(start, inside(found.x), key=value)


@dataclass(frozen=True)
class Search:
    """One stored optimum, and the effort that its search takes."""

    name: str
    effort: Effort = field(default_factory=Effort)
    options: Mapping[str, str | bool] = field(default_factory=dict)


_BOTH = ({"preset": "wdrbo"}, {"preset": "sbo_kde"})
_SIGNS = ({"negate": False}, {"negate": True})
_ACKLEY = Effort(coarse=24)
_HARTMANN = Effort(points=1024)
SEARCHES = (
    *(Search("ackley_1_1", _ACKLEY, options) for options in _BOTH),
    *(Search("ackley_2_1", _ACKLEY, options) for options in _BOTH),
    *(Search("ackley_2_4", Effort(points=512), options) for options in _BOTH),
    *(Search("branin_2_2", Effort(fine=96), options) for options in _BOTH),
    *(Search("hartmann_5_1", _HARTMANN, options) for options in _BOTH),
    Search("complicated_hartmann", _HARTMANN),
    Search("newsvendor"),
    Search("three_hump_camel"),
    Search("six_hump_camel"),
    Search("wdrbo_figure1"),
    *(
        Search(name, Effort(points=1024, climbs=6, coarse=6, fine=24), preset | sign)
        for name in ("portfolio_normal", "portfolio_uniform")
        for preset in _BOTH
        for sign in _SIGNS
    ),
    Search("gp_prior_2_2", Effort(fine=32)),
    Search("hartmann_2_1"),
    Search("plant_growth"),
    Search("plant_growth", options={"standardise": True}),
    Search("covid_testing", Effort(fine=20)),
    Search("reservoir"),
)


def main(names: list[str]) -> None:
    """Search, and print what is stored beside what is found.

    Args:
        names: Which test functions; all of them if empty.
    """
    unknown = set(names) - {each.name for each in SEARCHES}
    if unknown:
        raise SystemExit(f"Unknown test functions: {sorted(unknown)}.")
    for each in SEARCHES:
        if names and each.name not in names:
            continue
        start = time.perf_counter()
        function = make(each.name, **each.options)
        value, decision = search(function, each.effort)
        stored = function.optimum
        print(
            f"{each.name} {dict(each.options)}: stored "
            f"{_text(stored.value, stored.decision)}, found {_text(value, decision)}  "
            f"[{time.perf_counter() - start:.0f} s]",
            flush=True,
        )


def _text(value: float, decision: tuple[float, ...]) -> str:
    return f"{value:.6f} at ({', '.join(f'{column:.6f}' for column in decision)})"


if __name__ == "__main__":
    main(sys.argv[1:])
