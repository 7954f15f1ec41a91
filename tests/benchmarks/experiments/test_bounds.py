"""The regrets beside the bounds of theorems."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel
from gpytorch.means import ZeroMean

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
from benchmarks.experiments.misspecified import LENGTHSCALE, NOISE, NORM
from benchmarks.run.engine import make_run
from benchmarks.run.storage import load
from botorch_drbo.policies import ConfidenceWidth
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


@pytest.mark.parametrize("case", CASES)
def test_terms_of_theorem_4_are_those_of_the_library(
    case: str, monkeypatch: pytest.MonkeyPatch
):
    """Posterior by BoTorch with lambda for noise, expectations by hand."""
    seen: list[History] = []

    def remember(X: torch.Tensor, C: torch.Tensor, Y: torch.Tensor, **rest: object):
        seen.append(History(X=X, C=C, Y=Y, contexts=C))
        return seen[-1]

    monkeypatch.setattr(wdrbo, "History", remember)
    task, side, truth = Task(case, 2, 3), line(), law(TRUE_LAWS[case])
    grid = torch.cartesian_prod(side.squeeze(-1), side.squeeze(-1))
    outcomes = task.function().evaluate(grid[:, :1], grid[:, 1:])
    values = outcomes.reshape(wdrbo.SIDE, wdrbo.SIDE) @ truth
    for row, history in zip(make_run(task).rows, seen, strict=True):
        Z = torch.cat([history.X, history.C], dim=-1)
        model = SingleTaskGP(
            Z,
            history.Y,
            train_Yvar=torch.full_like(history.Y, wdrbo.RATIO),
            covar_module=RBFKernel().double(),
            mean_module=ZeroMean(),
            outcome_transform=None,
        )
        model.covar_module.lengthscale = LENGTHSCALE
        width = ConfidenceWidth(NORM, wdrbo.DELTA, noise_std=NOISE).width(model)
        x = side[row["position"]].expand(wdrbo.SIDE, 1)
        with torch.no_grad():
            deviation = model.posterior(torch.cat([x, side], -1)).variance.sqrt()
        expected = (width * (deviation.squeeze(-1) @ truth)).item()
        assert row["mean_width"] == pytest.approx(expected, rel=1e-6)
        assert row["regret"] == pytest.approx(
            (values.max() - values[row["position"]]).item(), abs=1e-12
        )
        bound = UpperBound.of(Z, history.Y)
        assert row["lipschitz"] == bound.slope(side[values.argmax()])


def test_theorem_5_by_hand():
    """Two rounds: 4 beta sqrt(T (2 gain + 4 ln(6 / delta))) + the sum of 2 eps L."""
    radius, slope = torch.tensor([0.1, 0.1]).double(), torch.tensor([2.0, 3.0]).double()
    gains = wdrbo.largest_gains(2)
    # At least the greedy gain of six inputs apart, and at most six times that of one.
    assert 0.5 * 5 * math.log(2) < gains[0] < gains[1]
    assert gains[1] <= 6 * 0.5 * math.log(2) / (1 - math.exp(-1)) + 1e-9
    beta = NOISE * (2 * (gains + math.log(10))).sqrt() + NORM  # lambda and R: 1 and .1
    rounds = torch.tensor([1.0, 2.0]).double()
    learning = 4 * beta * (rounds * (2 * gains + 4 * math.log(60))).sqrt()
    expected = learning + torch.tensor([0.4, 1.0]).double()
    assert torch.allclose(wdrbo.theorem_5(radius, slope), expected)


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
    found = wdrbo.found(load(tmp_path)[0])
    kept = pd.read_csv(tmp_path / wdrbo.THEOREMS).set_index("case")
    for case, (regret, fourth, fifth, _) in found.items():
        assert kept.loc[case, "regret"].tolist() == pytest.approx(
            regret.sum(-1).tolist()
        )
        for name, bound in (("theorem_4", fourth), ("theorem_5", fifth)):
            assert kept.loc[case, name].tolist() == pytest.approx(bound[:, -1].tolist())
        assert not kept.loc[case, ["above_4", "above_5"]].to_numpy().any()
    for regret, fourth, fifth, shift in found.values():
        assert regret.shape == fourth.shape == fifth.shape == (2, 3)
        assert bool((regret >= 0).all()) and bool((regret <= fourth).all())
        assert bool((shift <= fourth).all())
        assert bool((regret.cumsum(-1) <= fifth).all())
    text = (tmp_path / "table.md").read_text()
    assert "Theorem 1 / measured" in text and "0 of 6" in text
    for name in ("bounds.png", "wdrbo.png"):
        assert (tmp_path / name).stat().st_size > 1000
