"""The cases, in the order that splits them in halves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks.experiments.claims.formulas import PROBLEMS
from benchmarks.study.cases import Case, fixed, formula, half_in
from benchmarks.study.samples import SmoothSample

TENSION = 15.0  # points that the robust decision gains under the shift, with f known

# *Seen* are those of the development set, by which the surrogate "ensemble" was chosen
# (seeds 1 to 13 are the same).
# Neighbours are of one kind; see claims.md before a row is moved.
CASES: Mapping[str, Case] = {
    "newsvendor": fixed("newsvendor", tension=True, seen=True),
    "advertised_2_1": formula(PROBLEMS["advertised_2_1"], tension=True),
    "two_products_2_2": formula(PROBLEMS["two_products_2_2"], tension=True),
    "branin_2_2": fixed("branin_2_2", tension=True, seen=True),
    "released_2_1": formula(PROBLEMS["released_2_1"], tension=True),
    "controller_2_2": formula(PROBLEMS["controller_2_2"], tension=True),
    "ackley_2_1": fixed("ackley_2_1", seen=True),
    "hartmann_2_1": fixed("hartmann_2_1", seen=True),
    "smooth_2_2": Case(partial(SmoothSample, 2, 2), random=True),
    "smooth_3_1": Case(partial(SmoothSample, 3, 1), random=True),
    "six_hump_camel": fixed("six_hump_camel", seen=True),
    "hartmann_5_1": fixed("hartmann_5_1", seen=True),
}
half_of = partial(half_in, CASES)
