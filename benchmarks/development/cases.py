"""The functions of the development set, in the order that splits them in halves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks.development.formulas import PROBLEMS
from benchmarks.study.cases import Case, fixed, formula, half_in
from benchmarks.study.samples import CategorySample, PriorSample


def _sample(kernel: str, d_x: int, d_c: int, noise_std: float = 0.0) -> Case:
    make = partial(PriorSample, kernel, d_x, d_c, noise_std=noise_std)
    return Case(make, random=True)


# Neighbours are of one kind; see claims.md before a row is moved.
CASES: Mapping[str, Case] = {
    "ackley_2_1": fixed("ackley_2_1"),
    "rastrigin_2_1": formula(PROBLEMS["rastrigin_2_1"]),
    "hartmann_2_1": fixed("hartmann_2_1"),
    "hartmann_5_1": fixed("hartmann_5_1"),
    "three_hump_camel": fixed("three_hump_camel"),
    "six_hump_camel": fixed("six_hump_camel"),
    "branin_2_2": fixed("branin_2_2"),
    "drop_wave_1_1": formula(PROBLEMS["drop_wave_1_1"]),
    "newsvendor": fixed("newsvendor"),
    "newsvendor_2_1": formula(PROBLEMS["newsvendor_2_1"]),
    "reservoir_2_1": formula(PROBLEMS["reservoir_2_1"]),
    "portfolio_normal": fixed("portfolio_normal"),
    "rbf_2_2": _sample("rbf", 2, 2),
    "matern_2_1": _sample("matern_5_2", 2, 1),
    "rational_quadratic_3_1": _sample("rational_quadratic", 3, 1),
    "category_2_1": Case(CategorySample, random=True, categories={0: 3}),
    "noisy_1_2": _sample("matern_3_2", 1, 2, noise_std=0.4),
    "bowl_3_1": formula(PROBLEMS["bowl_3_1"]),
}
half_of = partial(half_in, CASES)
