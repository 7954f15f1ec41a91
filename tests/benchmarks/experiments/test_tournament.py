"""The tournament: deployed laws, learning runs, losses and comparisons."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm, wilcoxon

from benchmarks.experiments.tournament.cases import CASES, METHODS, SIZES
from benchmarks.experiments.tournament.learn import Task
from benchmarks.experiments.tournament.play import play
from benchmarks.problems import make
from benchmarks.run.config import ConfigError
from benchmarks.run.engine import make_run, run_tasks
from benchmarks.run.storage import load as load_results
from benchmarks.run.storage import run_file, runs_of
from benchmarks.study.compare import compare
from benchmarks.study.laws import LawOfTheData
from benchmarks.study.samples import SmoothSample
from benchmarks.study.truth import best_decision

ACKLEY = LawOfTheData(make("ackley_2_1"))
SMOOTH = LawOfTheData(SmoothSample(2, 2, 3))


def test_the_deviation_is_that_of_the_clipped_law():
    # N(.5, .2^2) clipped to [0, 1]: two masses at the ends, a truncated normal between
    z = 0.5 / 0.2
    inside = 1 - 2 * norm.sf(z) - 2 * z * norm.pdf(z)
    variance = 0.2**2 * inside + 0.25 * 2 * norm.sf(z)
    assert ACKLEY.deviation.item() == pytest.approx(variance**0.5, rel=1e-3)


@pytest.mark.parametrize("size", [1.0, 2.0])
def test_a_shift_moves_the_mean_by_as_many_deviations(size):
    direction = SMOOTH.directions()[2]  # the diagonal
    assert direction.norm() == pytest.approx(1.0)
    mean = SMOOTH.shifted(size, direction).points.mean(0)
    expected = 0.5 + size * SMOOTH.deviation * direction
    torch.testing.assert_close(mean, expected, atol=0.01, rtol=0)


def test_the_rare_regime_has_a_tenth_of_the_mass_in_one_corner():
    law = SMOOTH.rare_regime()
    low, high = (law.points < 0.1), (law.points > 0.9)
    in_corner = (low | high).all(-1)
    assert law.weights[in_corner].sum().item() == pytest.approx(0.1, abs=0.005)
    assert law.weights.sum().item() == pytest.approx(1.0)


def test_a_ball_goes_from_the_mean_to_the_lowest_context():
    function = SMOOTH.function
    X = torch.rand(5, 2, dtype=torch.double)
    ball = SMOOTH.ball(1.0)
    points = torch.cat([ball.atoms, ball.elsewhere])
    centre = function.evaluate(X[:, None], ball.atoms).mean(-1)
    lowest = function.evaluate(X[:, None], points).amin(-1)
    torch.testing.assert_close(replace(ball, radius=0.0).value(function, X), centre)
    torch.testing.assert_close(replace(ball, radius=9.0).value(function, X), lowest)
    value = ball.value(function, X)
    assert (lowest < value).all() and (value < centre).all()


def test_a_ball_is_below_the_law_that_it_holds():
    function = SMOOTH.function
    X = torch.rand(64, 2, dtype=torch.double)
    shifted = SMOOTH.shifted(1.0, SMOOTH.adverse_direction()).value(function, X)
    # but for the grid, and the 128 atoms in place of 1,024 points
    assert (SMOOTH.ball(1.0).value(function, X) < shifted + 0.02).all()


def test_smooth_samples_have_the_covariance_of_their_kernel():
    z = torch.rand(4, 3, generator=torch.Generator().manual_seed(1)).double()
    values = torch.stack(
        [SmoothSample(2, 1, seed).evaluate(z[:, :2], z[:, 2:]) for seed in range(600)]
    )
    kernel = (-0.5 * (torch.cdist(z, z) / 0.5) ** 2).exp()
    covariance = values.mT @ values / len(values)
    torch.testing.assert_close(covariance, kernel, atol=0.2, rtol=0)


def test_the_best_decision_and_a_blind_guess():
    bounds = torch.tensor([[0.0, 0.0], [1.0, 2.0]]).double()
    target = torch.tensor([0.3, 1.7]).double()
    best, guess = best_decision(
        lambda X: -(X - target).square().sum(-1), bounds, bounds
    )
    assert best == pytest.approx(0.0, abs=1e-5)
    mean = -((0.3**3 + 0.7**3) / 3 + (1.7**3 + 0.3**3) / 6)  # by integration
    assert guess == pytest.approx(mean, abs=0.01)


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("tournament")
    methods = ["erbo", "wdrbo_exact_1sd", "random"]
    assert play(out, size="smoke", workers=1, methods=methods, only=["newsvendor"]) == 0
    return out


def test_play_writes_results_and_reports(played):
    losses = pd.read_parquet(played / "losses.parquet")
    assert len(losses) == 2 * 3 * 9  # seeds, methods, deployments; one checkpoint
    assert losses["loss"].min() > -1e-3  # no decision beats the best fixed one
    steps = pd.read_parquet(played / "steps.parquet")
    _, about = load_results(played)
    assert losses.attrs["commit"] == steps.attrs["commit"] == about["commit"]
    assert len(steps) == 2 * 3 * SIZES["smoke"].contexts
    first = steps[~steps["chosen"]].groupby(["seed", "step"])["y"].nunique()
    assert (first == 1).all()  # the same design and noise for all methods
    for name in ("report.md", "advice.md", "differences.png", "price.png"):
        assert (played / name).stat().st_size > 0


def test_a_report_of_what_is_there_learns_nothing(played, tmp_path):
    names = {"size": "smoke", "workers": 1, "only": ["newsvendor"]}
    with pytest.raises(ConfigError, match="nothing to read"):
        play(tmp_path, **names, methods=["erbo"], report_only=True)
    before = (played / "losses.parquet").read_bytes()
    methods = ["erbo", "wdrbo_exact_1sd", "random"]
    assert play(played, **names, methods=methods, report_only=True) == 0
    assert (played / "losses.parquet").read_bytes() == before
    with pytest.raises(ConfigError, match="no seed"):  # one method has not played
        play(played, **names, methods=[*methods, "gp_ucb"], report_only=True)


def test_the_data_law_is_judged_by_the_test_function(played):
    losses = pd.read_parquet(played / "losses.parquet")
    row = losses[losses["deployment"] == "nothing shifts"].iloc[0]
    key = Task("newsvendor", row["method"], int(row["seed"]), SIZES["smoke"]).key
    run = runs_of(load_results(played)[0])[key].set_index("iteration")
    x = [*run.recommended[row["contexts"] - 1]]
    function = make("newsvendor")
    expected = function.expected_value(torch.tensor(x).double(), num=2**15).item()
    assert row["value"] == pytest.approx(expected, abs=2e-3)
    assert row["best"] == pytest.approx(function.optimal_value, abs=2e-3)


def test_a_finished_run_is_kept_and_another_is_refused(played):
    task = Task("newsvendor", "random", 0, SIZES["smoke"])
    before = run_file(played, task.key).read_bytes()
    seen = []
    assert run_tasks([task], played, on_finished=seen.append) == {} and seen == []
    assert run_file(played, task.key).read_bytes() == before
    longer = replace(task, size=replace(task.size, contexts=8))
    with pytest.raises(ConfigError, match="is another run"):
        run_tasks([longer], played)


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="Did you mean `erbo`"):
        play(tmp_path, size="smoke", workers=1, methods=["erbbo"])


def test_a_drifting_case_ends_two_deviations_away():
    size = replace(SIZES["smoke"], contexts=7)
    still, moved = (
        [row["c"] for row in make_run(Task(case, "random", 0, size)).rows]
        for case in ("newsvendor", "newsvendor_drifting")
    )
    data = LawOfTheData(CASES["newsvendor"].make(0))
    end = 2 * data.deviation * data.adverse_direction()
    # the cases draw contexts of their own: means compare, single contexts do not
    assert np.mean(moved[-3:]) < np.mean(still) - 0.5 * end.abs().item()


def test_a_comparison_is_paired_by_case_and_seed():
    generator = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([["p", "q"], range(8)], names=["case", "seed"])
    base = pd.Series(generator.normal(size=16), index)
    better = base - 1 - 0.1 * pd.Series(generator.random(16), index)
    frame = pd.DataFrame({"base": base, "better": better, "absent": np.nan})
    frame.loc["p", "absent"] = 2.0
    found = compare(frame, "base")
    assert found["better"].difference == pytest.approx((better - base).mean())
    assert found["better"].wins == found["better"].blocks == 16
    p = wilcoxon(better - base).pvalue
    assert found["better"].p == pytest.approx(2 * p)  # one of two, the smallest
    assert found["absent"].blocks == 8
    expected = (2.0 - base["p"]).mean()
    assert found["absent"].difference == pytest.approx(expected)


def test_every_method_is_a_recipe_that_takes_its_options():
    function, size = CASES["newsvendor"].make(0), SIZES["laptop"]
    for method in METHODS.values():
        assert method.algorithm(function, size.search).name == method.recipe
