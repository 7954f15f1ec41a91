"""The choice of priors of categories: its functions, its rule, and its oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.accuracy.tables import learnt_from, ridge
from benchmarks.development.categories import (
    CANDIDATES,
    KINDS,
    Score,
    chosen,
    random_functions,
)
from botorch_drbo.surrogate.gaussian_process import CATEGORIES


@pytest.mark.parametrize("kind", KINDS)
def test_functions_are_as_described(kind: str) -> None:
    for function in random_functions(kind, 5):
        data = function.data
        assert 12 <= len(data.inputs) <= 96
        assert all(2 <= k <= 30 for k in data.categories.values())
        assert (data.inputs <= data.bounds[1]).all() and (data.inputs >= 0).all()
        assert data.inputs.shape[-1] - len(data.categories) == 2 * (kind == "mixed")
        assert len(function.cells) == len(function.true) == len(function.observed)


def test_the_rule_takes_the_density_among_those_that_are_near() -> None:
    """By hand: "tight" explains a little more, within the noise; "graded" far less."""
    generator = np.random.default_rng(0)
    worth = {"before": (0.0, 9.0), "graded": (0.2, 5.0)}
    worth |= {"products": (0.5, 1.0), "tight": (0.501, 0.0)}
    group = [
        {
            name: Score(explained + 0.05 * generator.normal(), density, 0.95)
            for name, (explained, density) in worth.items()
        }
        for _ in range(20)
    ]
    order = chosen({"one": group, "other": group})
    assert order == ["products", "tight", "graded", "before"]
    assert set(order) == set(CANDIDATES)


def test_the_default_is_what_was_chosen() -> None:
    assert all(m.categories == CATEGORIES[m.kernel] for m in CANDIDATES["tight"])


def test_ridge_is_that_of_the_normal_equations() -> None:
    """Oracle: refit without each row, for every penalty; the best one's predictions."""
    generator = np.random.default_rng(1)
    table = pd.DataFrame(generator.integers(0, 3, (12, 2)), columns=["a", "b"])
    table["yield"] = table["a"] + 0.1 * generator.normal(size=12)
    function = learnt_from(table, range(12), table)
    A = np.stack([table[c].to_numpy() == k for c in "ab" for k in table[c].unique()], 1)
    y = table["yield"].to_numpy() - table["yield"].mean()
    best, wanted = np.inf, y
    for penalty in np.exp(np.linspace(-4.0, 6.0, 41)):

        def weights(keep: np.ndarray, penalty: float = penalty) -> np.ndarray:
            B = A[keep].astype(float)
            return np.linalg.solve(
                B.T @ B + penalty * np.eye(B.shape[1]), B.T @ y[keep]
            )

        left_out = sum(
            (y[i] - A[i] @ weights(np.arange(12) != i)) ** 2 for i in range(12)
        )
        if left_out < best:
            best, wanted = left_out, A @ weights(np.ones(12, dtype=bool))
    found = ridge(function) - table["yield"].mean()
    assert torch.allclose(found, torch.from_numpy(wanted), atol=1e-10)
    assert not function.unseen.any()


def test_without_the_tables_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BOTORCH_DRBO_DATA", str(tmp_path))
    assert main(["tables", "--out", str(tmp_path / "tables.md")]) == 2
    assert "reactions_suzuki.csv" in capsys.readouterr().err
