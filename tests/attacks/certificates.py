"""Proofs that a worst case is right, in NumPy, that know nothing of the solvers.

A distribution inside the set bounds the value from above, a point of the dual from
below. The proof uses the multiplier that was returned, but would refuse a wrong one: at
any point the dual is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog
from scipy.special import logsumexp

Array = np.ndarray


def linear_program(f: Array, p: Array, A: Array, b: Array, extra: int = 0) -> float:
    """``min q.f`` over the simplex with ``A [q, z] <= b``; ``z >= 0``."""
    n, least = len(f), f.min()  # the program is solved to 1e-7 of what it sees
    f = f - least
    found = linprog(
        np.concatenate([f, np.zeros(extra)]),
        A_ub=A,
        b_ub=b,
        A_eq=np.concatenate([np.ones(n), np.zeros(extra)])[None],
        b_eq=[1.0],
        bounds=(0, None),
    )
    assert found.status == 0, found.message
    return least + found.fun


def total_variation(f: Array, p: Array, radius: float) -> float:
    """With the absolute differences as further variables."""
    n = len(f)
    eye = np.eye(n)
    A = np.block([[eye, -eye], [-eye, -eye], [np.zeros((1, n)), np.ones((1, n))]])
    return linear_program(f, p, A, np.concatenate([p, -p, [radius]]), n)


def conditional_value_at_risk(f: Array, p: Array, radius: float) -> float:
    """With the caps as constraints."""
    return linear_program(f, p, np.eye(len(f)), (1 + radius) * p)


def wasserstein(f: Array, p: Array, radius: float, cost: Array) -> float:
    """Over transport plans: a mass of ``p_i`` leaves each atom."""
    n, least = len(f), f.min()
    f = f - least
    leaves = np.kron(np.eye(n), np.ones(n))
    found = linprog(
        np.tile(f, n),
        A_ub=cost.reshape(1, -1),
        b_ub=[radius],
        A_eq=leaves,
        b_eq=p,
        bounds=(0, None),
    )
    assert found.status == 0, found.message
    return least + found.fun


def kullback_leibler_dual(
    f: Array, p: Array, radius: float, multiplier: float
) -> float:
    """``-l log sum p exp(-f / l) - l radius``; the least score at ``l = 0``."""
    least = f[p > 0].min()
    if multiplier <= 0:
        return least
    scaled = -(f - least) / multiplier
    return least - multiplier * (logsumexp(scaled[p > 0], b=p[p > 0]) + radius)


def modified_chi_squared_dual(
    f: Array, p: Array, radius: float, multiplier: float
) -> float:
    """The Lagrangian's minimum over ``q >= 0``, at the best level of a fine search."""
    inside = p > 0
    f, p = f[inside], p[inside]
    if multiplier <= 0:
        return f.min()

    def mass(level: float) -> float:
        return (p * np.maximum(0.0, 1 + (level - f) / (2 * multiplier))).sum()

    low, high = f.min() - 2 * multiplier, f.max() + 2 * multiplier
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if mass(middle) < 1 else (low, middle)
    q = p * np.maximum(0.0, 1 + (low - f) / (2 * multiplier))
    penalty = ((q - p) ** 2 / p).sum() - radius
    return (q * f).sum() + multiplier * penalty + low * (1 - q.sum())


def kernel_dual(
    f: Array, p: Array, radius: float, multiplier: float, q: Array, K: Array
) -> float:
    """At the dual point along ``q - p``: ``min_i (f + K h)_i - p'K h - l radius``."""
    difference = q - p
    length = np.sqrt(max(difference @ K @ difference, 0.0))
    if multiplier <= 0 or length == 0:
        return f.min()
    h = multiplier * difference / length
    size = np.sqrt(h @ K @ h)
    return (f + K @ h).min() - p @ K @ h - size * radius


DISTANCES: dict[str, Callable[[Array, Array], float]] = {
    "total_variation": lambda p, q: np.abs(p - q).sum(),
    "kullback_leibler": lambda p, q: float(
        sum(b * np.log(b / a) for a, b in zip(p, q, strict=True) if b > 0)
    ),
    "modified_chi_squared": lambda p, q: float(
        sum((b - a) ** 2 / a for a, b in zip(p, q, strict=True) if a > 0)
    ),
    "chi_squared": lambda p, q: float(
        sum((b - a) ** 2 / b if b > 0 else 0.0 for a, b in zip(p, q, strict=True))
    ),
}


def chi_squared(f: Array, p: Array, radius: float) -> float:
    """By the closed form of one unknown, found by plain bisection."""
    carried = p > 0
    if radius == 0:
        return p @ f
    size = np.ptp(f)
    if size == 0:
        return f[0]
    y = (f - f.min()) / size

    def product(w: float) -> float:
        root = np.sqrt(y[carried] + w)
        return (p[carried] / root).sum() * (p[carried] * root).sum()

    if y[carried].min() > 0 and product(0.0) <= 1 + radius:
        return f.min() + size * (p * np.sqrt(y)).sum() ** 2 / (1 + radius)
    low, high = -300.0, 20.0  # of the decimal logarithm, in units of the range
    for _ in range(200):
        middle = (low + high) / 2
        wide = product(10.0**middle) > 1 + radius
        low, high = (middle, high) if wide else (low, middle)
    root = np.sqrt(y[carried] + 10.0**high)
    q = p[carried] / root
    return float(q @ f[carried] / q.sum())
