"""The experiment on prices: its cases, its statistics, and its committed tables."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from benchmarks.commands import RESULTS
from benchmarks.experiments.price.cases import CASES, seed_of
from benchmarks.experiments.price.play import PARTS, read_tables, write_tables
from benchmarks.experiments.price.report import claims, make_report, sign_flip
from benchmarks.experiments.price.rules import BALL, EXPECTED, WITHIN
from benchmarks.experiments.price.truth import truth_of
from benchmarks.study.cases import Case

PRICE = RESULTS / "price"


def test_the_committed_page_is_made_of_the_committed_tables() -> None:
    page = (PRICE / "README.md").read_text(encoding="utf-8")
    assert page == make_report(read_tables(PRICE))


def test_the_claims_that_decide_the_default_hold() -> None:
    """All blocks are there, and A and B hold: the shell's default follows from them."""
    rows = read_tables(PRICE)
    table = claims(rows).set_index("claim")
    assert (table["blocks"] == 240).all()
    assert table.loc[["A", "B"], "verdict"].tolist() == ["holds", "holds"]
    # By hand from the csv: the floor of the winning rule above that of the plain one.
    wide = pd.read_csv(PRICE / "rules.csv").query("told == 30")
    gain = wide[f"floor: {WITHIN}"] - wide[f"floor: {EXPECTED}"]
    assert table.loc["A", "mean"] == pytest.approx(gain.mean())
    price = wide[f"loss: {WITHIN}"] - wide[f"loss: {EXPECTED}"]
    assert table.loc["B", "mean"] == pytest.approx(3.0 - price.mean())


def test_the_ensemble_against_one_model_is_not_decided() -> None:
    wide = pd.read_csv(PRICE / "one_model.csv")
    more = (wide["loss: ensemble"] - wide["loss: botorch"]).to_numpy()
    assert len(more) == 300
    assert (more.mean(), sign_flip(more)[1]) == pytest.approx((0.37, 0.14), abs=0.01)


def test_a_sign_flip_is_a_count_over_all_signs() -> None:
    values = np.array([2.0, -1.0, 3.0, 0.5])
    means = [np.mean(values * signs) for signs in product((1, -1), repeat=4)]
    upper, both = sign_flip(values)
    assert upper == np.mean([m >= values.mean() - 1e-12 for m in means])
    assert both == np.mean([abs(m) >= values.mean() - 1e-12 for m in means])
    many = np.full(40, 0.1)
    assert sign_flip(many)[0] == pytest.approx(1 / 100_001)


def test_tables_go_to_disk_and_back(tmp_path: Path) -> None:
    keys = {"part": "rules", "case": "queue", "seed": 1, "told": 30, "commit": "abc"}
    rows = [
        {**keys, "rule": rule, "loss": 1.0, "floor": -2.5, "worst_regret": 3.0}
        for rule in (EXPECTED, BALL)
    ]
    write_tables(rows, tmp_path)
    found = read_tables(tmp_path).sort_values("rule", ignore_index=True)
    assert found["rule"].tolist() == sorted([EXPECTED, BALL])
    assert found["floor"].tolist() == [-2.5, -2.5]


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_what_it_says(name: str) -> None:
    """Inside its boxes, finite everywhere, noise of a fiftieth, its own seeds."""
    case = CASES[name]
    contexts = case.contexts(50, 3)
    low, high = case.space.context_bounds
    assert ((contexts >= low) & (contexts <= high)).all()
    X = case.space.bounds[0] + torch.rand(20, case.space.d_x).double() * (
        case.space.bounds[1] - case.space.bounds[0]
    )
    values = case.values(X, contexts)
    assert values.shape == (20, 50) and values.isfinite().all()
    one = case.formula(X[3], contexts[7])
    torch.testing.assert_close(values[3, 7], one.reshape(()))
    assert case.noise > 0.0
    seeds = {seed_of(name, seed, 1) for seed in range(1, 26)}
    assert len(seeds) == 25
    assert not isinstance(case, Case)  # of the other studies
    assert all(name in cases for _, _, cases in list(PARTS.values())[:3])


def test_losses_and_floors_by_a_loop() -> None:
    """Of the seats, whose law and worlds are averaged by hand."""
    truth = truth_of("seats")
    x = torch.tensor([105.0]).double()
    judged = truth.judged(x)
    each = {
        name: sum(
            w * truth.case.formula(x, c.unsqueeze(0)).item()
            for c, w in zip(world.points, world.weights.tolist(), strict=True)
        )
        for name, world in truth.worlds.items()
    }
    best = truth.best[0].item()
    assert judged["loss"] == pytest.approx(
        100 * (best - each["as it was"]) / truth.gain, abs=1e-6
    )
    worst = min(value for name, value in each.items() if name != "as it was")
    assert judged["floor"] == pytest.approx(100 * (worst - best) / truth.gain, abs=1e-6)
    dense = torch.linspace(80, 140, 4001).double().unsqueeze(-1)
    assert truth.expectations(dense)[:, 0].max().item() <= best + 1e-4 * truth.gain
