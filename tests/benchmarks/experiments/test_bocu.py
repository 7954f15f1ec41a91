"""The BOCU experiment: which runs there are, what they decide, how they are judged."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.experiments import bocu
from benchmarks.experiments.bocu import METHODS, SETTINGS, Curves, Setting, Task
from benchmarks.problems import BOCUProblem
from benchmarks.run.engine import make_run, run_tasks
from benchmarks.run.storage import collect_runs, load
from botorch_drbo.problem import History, SearchSpace

GP = "gp_prior_2_2"
TV_DRO, TV_WCS, TV_GEN = (Setting(o, "tv") for o in ("dro", "wcs", "gen"))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    def problem(name: str, seed: int) -> BOCUProblem:
        return BOCUProblem.preset(
            name, seed, decisions="grid", num_decisions=16, num_contexts=9
        )

    monkeypatch.setattr(bocu, "make_problem", problem)


def test_the_setting_of_the_paper():
    problem = bocu.make_problem(GP, 0)
    assert problem.candidates.shape == (1024, 2)
    assert problem.contexts.shape == (64, 2)
    assert problem.num_initial == 5
    p, truth = problem.context_set.weights, problem.true_weights
    tv, mmd = (Setting("dro", d).ambiguity_set(problem).radius for d in bocu.DISTANCES)
    torch.testing.assert_close(tv, (p - truth).abs().sum(), check_dtype=False)
    gap = p - truth
    squared = gap @ problem.kernel_matrix @ gap
    torch.testing.assert_close(mmd.double().square(), squared, rtol=1e-5, atol=0.0)


def test_objectives_by_hand(small: None):
    # Total variation: half the radius of mass goes from the best scores to the worst.
    problem = bocu.make_problem(GP, 0)
    f, p = problem.table[0], problem.context_set.weights
    order = f.argsort(descending=True)
    left = Setting("dro", "tv").ambiguity_set(problem).radius.item() / 2
    moved, q = left, p.clone()
    kept = f.max()
    for i in order:
        kept = f[i]
        taken = min(left, q[i].item())
        q[i], left = q[i] - taken, left - taken
        if left == 0.0:
            break
    dro = q @ f + moved * f.min()
    want = {
        TV_DRO: dro,
        TV_WCS: (f.min() - f.max()) / 2,
        TV_GEN: dro + (f.min() - kept) / 2,
    }
    for setting, value in want.items():
        torch.testing.assert_close(setting.build(problem)(f, p), value)


def test_each_run_is_made_once():
    tasks = bocu.tasks_of([GP], [TV_DRO, TV_WCS, TV_GEN], seeds=2, rounds=1)
    assert len(tasks) == len(set(tasks)) == 2 * (3 + 2 + 3 + 3)
    assert [t.seed for t in tasks] == sorted(t.seed for t in tasks)
    assert len({task.key for task in tasks}) == len(tasks)


def rows_of(tasks: list[Task], out: Path) -> pd.DataFrame:
    assert run_tasks(tasks, out) == {}
    return load(collect_runs({t.key: t.rounds for t in tasks}, out, {}))[0]


@pytest.mark.parametrize("distance", ["tv", "mmd"])
def test_both_bounds_are_one_under_dro_and_two_under_wcs(distance: str, small: None):
    # The first half is why `Task.of` runs only one of them under DRO.
    problem = bocu.make_problem(GP, 3)
    function = problem.function
    space = SearchSpace(function.bounds, function.context_bounds)
    x, c, y = problem.initial()
    same = []
    for objective in ("dro", "wcs"):
        setting = Setting(objective, distance)
        common = Task(GP, "ucb_so", None, 3, 1).algorithm(problem).options
        assert common["beta"] == 2.0
        values = []
        for method in ("ucb_bocu_1", "ucb_bocu_2"):
            recipe = Task(GP, method, setting, 3, 1).algorithm(problem)
            history = History(X=x, C=c, Y=y, contexts=c)
            values.append(
                recipe.propose(
                    history, space, q=8, candidates=problem.candidates, seed=0
                )
            )
        same.append(torch.equal(*values))
    assert same == [True, False]


def test_recipes_have_the_prior_and_the_reference(small: None):
    problem = bocu.make_problem(GP, 0)
    for method in METHODS:
        options = Task.of(GP, method, TV_GEN, 0, 1).algorithm(problem).options
        prior = options["hyperparameters"]
        assert (prior.lengthscale, prior.outputscale) == (0.1, 1.0)
        assert prior.noise_variance == pytest.approx(1e-4)
        assert options["reference"] is problem.context_set


@pytest.mark.parametrize("method", ["ts_bocu", "ucb_so", "random"])
def test_a_killed_run_is_extended_as_if_it_had_not_been(method: str, small: None):
    task = Task.of(GP, method, TV_GEN, 1, 6)
    whole = make_run(task).rows
    rest = make_run(task, make_run(Task.of(GP, method, TV_GEN, 1, 3)).rows).rows
    assert [row["position"] for row in rest] == [row["position"] for row in whole]
    assert len(rest) == 6


def test_only_seeds_with_all_methods_are_judged(tmp_path: Path, small: None):
    tasks = [
        Task.of(GP, method, TV_DRO, seed, 2)
        for seed, methods in ((0, METHODS), (1, METHODS[:-1]))
        for method in methods
    ]
    rows = rows_of(tasks, tmp_path)
    (found,) = bocu.collect(GP, rows, SETTINGS).items()
    setting, methods = found
    assert setting == TV_DRO
    assert {c.regret.shape for c in methods.values()} == {torch.Size([1, 2])}
    problem = bocu.make_problem(GP, 0)
    taken = rows[(rows.algorithm == "ucb_ro") & (rows.seed == 0)].position.tolist()
    scores = torch.stack(
        [TV_DRO.build(problem)(f, problem.context_set.weights) for f in problem.table]
    )
    want = scores.max() - scores[taken]
    torch.testing.assert_close(methods["ucb_ro"].regret[0], want)


def test_the_table_compares_by_seed():
    def curves(*rows: list[float]) -> Curves:
        return Curves(torch.tensor(rows).double(), 0.5)

    methods = {m: curves([4.0, 0, 0, 1], [4.0, 0, 0, 3]) for m in METHODS}
    methods["random"] = curves([2.0, 0, 0, 2], [3.0, 0, 0, 3])
    text = str(bocu.setting_table(SETTINGS[0], methods))
    assert "| ts_bocu | 6.0 ± 1.0 | 2.0 ± 1.0 | 0.50 |  |  | 0.5 |" in text
    assert "| random | 5.0 ± 1.0 | 2.50 ± 0.50 | 1.00 | -1 | 2 | 0.5 |" in text


def test_the_command_writes_its_report(tmp_path: Path, small: None, capsys):
    line = ["bocu", "--seeds", "1", "--iterations", "2", "--workers", "1"]
    line += ["--problems", "gp_prior_2_2", "hartmann_2_1"]
    assert main([*line, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "hartmann_2_1" / "table.md").exists()
    folder = tmp_path / GP
    text = (folder / "table.md").read_text()
    assert text.count("judged by every objective") == 2
    assert all(f"**{setting}**: 1 seeds, 2 decisions" in text for setting in SETTINGS)
    rows = (folder / "iterations.csv").read_text().splitlines()
    assert len(rows) == 1 + len(SETTINGS) * len(METHODS) * 2
    assert (folder / "regret.png").stat().st_size > 10_000
    assert "ts_bocu" in capsys.readouterr().out


def test_fewer_methods_may_run_longer(tmp_path: Path, small: None):
    line = ["bocu", "--seeds", "2", "--workers", "1", "--distances", "tv"]
    line += ["--problems", GP]
    line += ["--objectives", "wcs", "--out", str(tmp_path), "--iterations"]
    assert main([*line, "1"]) == 0
    assert main([*line, "3", "--methods", "random", "ucb_so"]) == 0
    text = (tmp_path / GP / "table.md").read_text()
    assert "**WCS, TV**: 2 seeds, 3 decisions" in text
    assert "| ucb_so |" in text
    assert "| ts_bocu |" not in text


def test_wrong_counts_are_one_sentence(tmp_path: Path, capsys):
    assert main(["bocu", "--seeds", "0", "--out", str(tmp_path)]) == 2
    assert "`seeds` must be at least 1" in capsys.readouterr().err


def test_an_objective_is_judged_by_the_others(tmp_path: Path, small: None):
    tasks = [Task.of(GP, "ts_bocu", s, 0, 3) for s in (TV_DRO, TV_WCS, TV_GEN)]
    rows = rows_of(tasks, tmp_path)
    crossed = bocu.cross(GP, rows)
    assert list(crossed) == ["tv"]
    problem = bocu.make_problem(GP, 0)
    taken = rows[rows.algorithm == tasks[0].key.algorithm].position.tolist()
    objective, p = TV_WCS.build(problem), problem.context_set.weights
    scores = torch.stack([objective(f, p) for f in problem.table])
    expected = 3 * scores.max() - scores[taken].sum()
    torch.testing.assert_close(crossed["tv"]["dro", "wcs"][0], expected)


def test_how_little_is_learnt_of_a_sample_of_the_prior():
    """docs/benchmarks.md: the variance left after random pairs, of the prior's 1."""
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(1405, 4, generator=generator, dtype=torch.float64)
    kernel = torch.exp(-(torch.cdist(points, points) ** 2) / (2 * 0.1**2))
    left = {}
    for told in (105, 605, 1005):
        matrix = kernel[:told, :told] + 0.01**2 * torch.eye(told, dtype=torch.float64)
        cross = kernel[:told, 1005:]
        explained = cross * torch.linalg.solve(matrix, cross)
        left[told] = 1.0 - explained.sum(0).mean().item()
    assert left[105] > 0.9 and 0.65 < left[605] < 0.75 and left[1005] > 0.5
