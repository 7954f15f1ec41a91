"""Tables and the rule, on rows made up here."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.development import report as module
from benchmarks.development.compare import against_baseline, asks, ends, verdict
from benchmarks.study.cases import INITIAL
from benchmarks.study.compare import lower

HALF = {"ackley_2_1": "A", "bowl_3_1": "B"}


def row(case: str, seed: int, surrogate: str, loss: float, told=(15,)) -> dict:
    """A run whose recommended decisions lose ``loss``, on a scale from 5 down to 1."""
    value = 5 - 4 * loss / 100
    rounds = max(told)
    asked = rounds - INITIAL
    return {
        "case": case,
        "half": HALF[case],
        "method": "erbo",
        "surrogate": surrogate,
        "seed": seed,
        "rounds": rounds,
        "commits": ["abc"],
        "best": 5.0,
        "guess": 1.0,
        "worst_best": None,
        "worst_guess": None,
        "deviation": 1.0,
        "x": [[0.0]] * rounds,
        "c": [[0.0]] * rounds,
        "y": [0.0] * rounds,
        # a blind guess at first, the best at last
        "expected": [1.0] * (rounds - 5) + [5.0] * 5,
        "seconds": [None] * INITIAL + [0.5] * asked,
        "mean": [None] * INITIAL + [1.5] * asked,
        "variance": [None] * INITIAL + [1.0] * asked,
        "log_density": [None] * INITIAL + [-2.0] * asked,
        "told": list(told),
        "recommended": [[0.0]] * len(told),
        "value": [value] * len(told),
        "worst": [None] * len(told),
    }


def table(losses: dict[str, dict[str, list[float]]], told=(15,)) -> pd.DataFrame:
    """Half -> surrogate -> losses by seed."""
    cases = {half: case for case, half in HALF.items()}
    return ends(
        [
            row(cases[half], seed, surrogate, loss, told)
            for half, by_name in losses.items()
            for surrogate, values in by_name.items()
            for seed, loss in enumerate(values)
        ]
    )


def test_ends_are_in_percent():
    found: Any = ends([row("bowl_3_1", 0, "botorch", 25.0, (10, 15))])
    assert found["loss"].tolist() == pytest.approx([25.0, 25.0])
    # up to 10 outcomes five asks, each a blind guess; up to 15 five of ten
    assert found["regret"].tolist() == pytest.approx([100.0, 50.0])


def test_asks_count_for_the_next_checkpoint():
    found: Any = asks([row("bowl_3_1", 0, "botorch", 0.0, (10, 15))])
    assert found["told"].tolist() == [10] * 5 + [15] * 5
    assert found["deviations"].tolist() == [1.5] * 10
    assert module.calibration_cells(found) == ["100%", "0%", "2.00"]


def test_differences_are_paired_by_block():
    losses = {"A": {"botorch": [10, 50, 30], "matern": [8, 49, 25]}}
    d = against_baseline(table(losses), "matern", "loss")
    gaps = np.array([-2.0, -1.0, -5.0])
    assert d is not None
    assert (d.wins, d.blocks) == (3, 3)
    assert d.mean == pytest.approx(gaps.mean())
    assert d.error == pytest.approx(gaps.std(ddof=1) / 3**0.5)
    assert d.p == pytest.approx(1 / 8)  # all of 2^3 signs


def test_blocks_that_one_lacks_do_not_count():
    losses = {"A": {"botorch": [10, 50, 30], "matern": [8, 49]}}
    d = against_baseline(table(losses), "matern", "loss")
    assert d is not None
    assert d.blocks == 2
    assert against_baseline(table(losses), "three", "loss") is None


def test_the_test_is_one_sided():
    gaps = np.array([-3.0, 1.0, -4.0, -2.5, 0.5, -6.0, -1.5])
    ranks = stats.rankdata(np.abs(gaps))
    observed = ranks[gaps > 0].sum()
    sums = [
        ranks[np.array(signs)].sum()
        for signs in itertools.product([True, False], repeat=len(gaps))
    ]
    assert lower(gaps) == pytest.approx(np.mean([s <= observed for s in sums]))
    assert lower(-gaps) > 0.9
    assert lower(np.zeros(4)) == 1.0


BETTER = [10 - k for k in range(8)]  # than botorch's in each block
SAME = [10.0 + k % 2 for k in range(8)]
PLAIN = [20.0] * 8


def test_a_winner_that_is_confirmed_becomes_the_default():
    found = verdict(
        table(
            {
                "A": {"botorch": PLAIN, "matern": SAME, "three": BETTER},
                "B": {"botorch": PLAIN, "matern": [0.0] * 8, "three": BETTER},
            }
        )
    )
    assert found is not None
    assert (found.chosen, found.default) == ("three", "three")
    assert found.losses == pytest.approx({"botorch": 20, "matern": 10.5, "three": 6.5})
    assert list(found.confirmed) == [15]
    assert found.confirmed[15].p == pytest.approx(2**-8)


def test_a_winner_that_half_b_does_not_confirm_stays_outside():
    worse = [*[15.0] * 4, *[40.0] * 4]
    found = verdict(
        table(
            {
                "A": {"botorch": PLAIN, "three": BETTER},
                "B": {"botorch": PLAIN, "three": worse},
            }
        )
    )
    assert found is not None
    assert (found.chosen, found.default) == ("three", "botorch")


def test_a_loss_elsewhere_keeps_the_old_default():
    """At 30 outcomes it is worse by more than its error."""
    at_15 = table(
        {half: {"botorch": PLAIN, "three": BETTER} for half in "AB"}, told=(15,)
    )
    at_30 = table({"B": {"botorch": PLAIN, "three": [22.0, *[21.0] * 7]}}, told=(30,))
    first = verdict(at_15)
    both = verdict(pd.concat([at_15, at_30]))
    assert first is not None
    assert both is not None
    assert (first.default, both.chosen, both.default) == ("three", "three", "botorch")


def test_the_old_default_may_win_half_a():
    found = verdict(table({"A": {"botorch": BETTER, "three": PLAIN}}))
    assert found is not None
    assert (found.chosen, found.default) == ("botorch", "botorch")


def test_a_surrogate_that_was_run_later_is_not_chosen():
    losses = {"botorch": PLAIN, "three": BETTER, "hyperparameters": [0.0] * len(PLAIN)}
    found = verdict(table({"A": losses}))
    assert found is not None
    assert found.chosen == "three"
    assert set(found.losses) == {"botorch", "three"}


def test_nothing_is_chosen_from_one_surrogate():
    assert verdict(table({"A": {"botorch": PLAIN}})) is None


def test_half_a_is_averaged_over_what_all_have_run():
    """matern has 30 outcomes, three not: then 15 counts alone."""
    at_15 = table({"A": {"botorch": PLAIN, "matern": SAME, "three": BETTER}})
    at_30 = table({"A": {"botorch": PLAIN, "matern": [0.0] * 8}}, told=(30,))
    found = verdict(pd.concat([at_15, at_30]))
    assert found is not None
    assert found.losses["matern"] == pytest.approx(10.5)


def test_the_report_has_a_table_for_each_half(monkeypatch):
    monkeypatch.setattr(module, "CANDIDATES", {"botorch": {}, "three": {}})
    monkeypatch.setattr(module, "FRESH_FROM", 8)
    rows = [
        row(case, seed, name, loss)
        for case in HALF
        for name, losses in (("botorch", PLAIN), ("three", BETTER))
        for seed, loss in enumerate(losses)
    ]
    text = module.report(rows, "a command")
    assert "By the rule the default is **three**" in text
    first = module.report([each for each in rows if each["half"] == "A"], "a command")
    assert "nothing is confirmed" in first
    assert "both halves" in text
    assert "both halves" not in first
    table = text[text.index("outcomes, half A") :].splitlines()
    cells = [c.strip() for c in table[5].strip("|").split("|")]
    error = np.std(BETTER, ddof=1) / 8**0.5
    assert cells[:5] == ["three", "8", "6.5", f"-13.5 ± {error:.1f}", ".0039"]


def test_the_second_claim_is_judged_on_fresh_seeds_alone(monkeypatch):
    monkeypatch.setattr(module, "CANDIDATES", {"botorch": {}, "four": {}})
    rows = [
        row(case, seed, name, loss)
        for case in HALF
        for name, losses in (("botorch", PLAIN), ("four", BETTER))
        for seed, loss in enumerate(losses, start=6)
    ]
    assert "By its rule the default is **four**" in module.report(rows, "a command")
    first = [{**each, "seed": each["seed"] - 14} for each in rows]
    text = module.report(first, "a command")
    assert "The second claim has not been run" in text
    names = {"botorch": "four", "four": "botorch"}
    turned = [{**each, "surrogate": names[each["surrogate"]]} for each in rows]
    text = module.report(turned, "a command")
    assert "By its rule the default is **botorch**" in text
