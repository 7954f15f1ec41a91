"""Tests and ranks, against enumeration, formulas and published tables."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from benchmarks.run.statistics import holm, rank, wilcoxon


def test_wilcoxon_by_enumeration_of_all_signs():
    differences = [0.3, -0.1, 0.5, 0.7, 1.1, -0.2]
    order = sorted(map(abs, differences))
    ranks = [order.index(abs(d)) + 1 for d in differences]
    observed = sum(r for r, d in zip(ranks, differences, strict=True) if d > 0)
    total = sum(ranks)
    extreme = [
        abs(sum(itertools.compress(ranks, signs)) - total / 2)
        >= abs(observed - total / 2)
        for signs in itertools.product((0, 1), repeat=len(ranks))
    ]
    assert wilcoxon(differences) == pytest.approx(sum(extreme) / len(extreme))


def test_wilcoxon_of_no_difference_is_one():
    assert wilcoxon([0.0, 0.0, 0.0]) == 1.0


def test_holm_by_hand():
    # 3 * .01, 2 * .02 and .06; the order of the input stays.
    assert holm([0.06, 0.01, 0.02]) == pytest.approx([0.06, 0.03, 0.04])
    # 2 * .4 = .8, and .5 may not fall below that.
    assert holm([0.5, 0.4]) == pytest.approx([0.8, 0.8])
    assert holm([0.9, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("methods", "q"), [(2, 1.960), (4, 2.569), (7, 2.949), (10, 3.164)]
)
def test_critical_difference_by_the_table_of_demsar(methods: int, q: float):
    problems = 14
    scores = pd.DataFrame([range(methods)] * problems)
    expected = q * (methods * (methods + 1) / (6 * problems)) ** 0.5
    assert rank(scores).critical_difference == pytest.approx(expected, abs=2e-3)


def test_ranks_by_hand():
    scores = pd.DataFrame(
        {"a": [1.0, 1.0, 3.0], "b": [2.0, 1.0, 1.0], "c": [9.0, 9.0, 9.0]}
    )
    found = rank(scores)
    # a: 1, 1.5, 2; b: 2, 1.5, 1; c: 3, 3, 3.
    assert found.mean.to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}
    assert found.problems == 3
    # Friedman with ties: 12 n sum (R - 2)^2 / (k (k + 1)) = 4.5 over
    # 1 - (2^3 - 2) / (n k (k^2 - 1)) = 11 / 12, chi squared of 2: exp(-x / 2).
    assert found.p_value == pytest.approx(2.718281828 ** (-4.5 / (11 / 12) / 2))


def test_groups_are_the_longest_spans_without_a_difference():
    found = rank(pd.DataFrame([[1.0, 2.0, 3.0, 4.0]] * 10, columns=list("abcd")))
    assert 1 < found.critical_difference < 2
    assert found.groups() == [(1.0, 2.0), (2.0, 3.0), (3.0, 4.0)]
