"""The regrets beside the bounds of theorems."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from scipy.stats import wasserstein_distance

from benchmarks.__main__ import main
from benchmarks.experiments.bounds import ec_gp_ucb, wdrbo
from benchmarks.experiments.bounds.wdrbo import (
    REFERENCE,
    TRUE_LAWS,
    Task,
    UpperBound,
    distance,
    law,
    line,
)
from benchmarks.run.engine import make_run
from benchmarks.run.storage import load
from botorch_drbo.problem import History

CASES = list(TRUE_LAWS)


@pytest.mark.parametrize("case", CASES)
def test_decisions_of_wdrbo_maximise_its_formula(
    case: str, monkeypatch: pytest.MonkeyPatch
):
    seen: list[History] = []

    def remember(X: torch.Tensor, C: torch.Tensor, Y: torch.Tensor, **rest: object):
        seen.append(History(X=X, C=C, Y=Y, contexts=C))
        return seen[-1]

    monkeypatch.setattr(wdrbo, "History", remember)
    rows = make_run(Task(case, 1, 4)).rows
    reference, side = law(REFERENCE), line()
    radius = distance(reference, law(TRUE_LAWS[case]))
    assert len(seen) == len(rows) == 4
    for row, history in zip(rows, seen, strict=True):
        # Equation 13: the mean under the reference, less the radius times the slope.
        bound = UpperBound.of(torch.cat([history.X, history.C], dim=-1), history.Y)
        score = [
            (bound.value(x, side) @ reference).item() - radius * bound.slope(x)
            for x in side
        ]
        assert row["position"] == int(torch.tensor(score).argmax())
        assert row["radius"] == radius


def test_distance_between_the_laws_is_scipys():
    side = line().squeeze(-1).numpy()
    p, q = law((0.5, 0.1)), law((0.6, 0.2))
    assert p.sum().item() == pytest.approx(1.0)
    assert distance(p, q) == pytest.approx(wasserstein_distance(side, side, p, q))


def test_slope_of_the_bound_is_that_of_finite_differences():
    generator = torch.Generator().manual_seed(0)
    Z, Y = (torch.rand(9, d, generator=generator, dtype=torch.double) for d in (2, 1))
    bound, x = UpperBound.of(Z, Y), torch.tensor([0.3], dtype=torch.double)
    contexts = torch.linspace(0.0, 1.0, 20_001, dtype=torch.double).unsqueeze(-1)
    steps = bound.value(x, contexts).diff() * 20_000
    assert bound.slope(x) == pytest.approx(steps.abs().max().item(), rel=1e-3)


@pytest.mark.parametrize(
    "task", [Task(CASES[1], 0, 6), ec_gp_ucb.tasks(0, 6)[1]], ids=str
)
def test_a_killed_run_goes_on_as_it_would_have(task: Task | ec_gp_ucb.Task):
    def without_times(rows: list[dict[str, float]]) -> list[dict[str, float]]:
        return [{k: row[k] for k in row if k != "seconds"} for row in rows]

    whole = make_run(task).rows
    rest = make_run(task, whole[:4]).rows
    assert without_times(rest) == without_times(whole)


@pytest.mark.slow
def test_command_reports_both(tmp_path: Path):
    line = ["bounds", "--seeds", "2", "--iterations", "3", "--workers", "1"]
    assert main([*line, "--out", str(tmp_path)]) == 0
    for regret, fourth, fifth, shift in wdrbo.found(load(tmp_path)[0]).values():
        assert regret.shape == fourth.shape == fifth.shape == (2, 3)
        assert bool((regret >= 0).all()) and bool((regret <= fourth).all())
        assert bool((shift <= fourth).all())
        assert bool((regret.cumsum(-1) <= fifth).all())
    text = (tmp_path / "table.md").read_text()
    assert "Theorem 1 / measured" in text and "0 of 6" in text
    for name in ("bounds.png", "wdrbo.png"):
        assert (tmp_path / name).stat().st_size > 1000
