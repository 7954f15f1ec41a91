"""The commands run, write what they say, and fail with a sentence."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import torch
from matplotlib import pyplot as plt
from rich.console import Console

from benchmarks.__main__ import main
from benchmarks.accuracy import lipschitz, search
from benchmarks.experiments import demo
from benchmarks.experiments.demo import (
    MEANING,
    SHORT,
    WORLDS,
    paired_differences,
    profits,
    run_demo,
)
from benchmarks.run.config import (
    AlgorithmConfig,
    BenchmarkConfig,
    ProblemConfig,
    from_toml,
)
from benchmarks.run.display import working
from benchmarks.run.world import make_problem


def test_run_writes_table_numbers_and_plot(tmp_path: Path, capsys):
    line = ["run", "--problem", "wdrbo_figure1", "--algorithms", "random", "gp_ucb"]
    line += ["--seeds", "2", "--iterations", "2", "--initial", "2", "--workers", "1"]
    assert main([*line, "--out", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    report = {"table.md", "regret.png"}
    assert names == {"runs", "results.parquet", "runs.csv", "about.json"} | report
    printed = capsys.readouterr().out
    assert "gp_ucb" in printed
    assert "random" in printed


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run --problem no_such --algorithms random --workers 1", "no_such"),
        ("run --problem newsvendor --algorithms no_such --workers 1", "no_such"),
        ("run --config no_such", "no config"),
        ("run", "Give a config"),
    ],
)
def test_wrong_input_is_one_sentence(line: str, message: str, tmp_path: Path, capsys):
    assert main([*line.split(), "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


COMMANDS = [
    "run --problem newsvendor --algorithms random",
    "demo",
    "speed",
    "speed inner",
    "speed iterations",
    "accuracy",
    "lipschitz",
    "search",
    "batches",
    "bocu",
    "misspecified",
]


@pytest.mark.parametrize("location", ["inside", "is of the wrong kind"])
@pytest.mark.parametrize("line", COMMANDS)
def test_a_place_that_cannot_be_written_is_refused_at_once(
    line: str, location: str, tmp_path: Path, capsys
):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.touch()
    folder.mkdir()
    is_folder = line.split()[0] in ("run", "demo", "bocu", "misspecified")
    out = (
        file / "there" / "out"
        if location == "inside"
        else file
        if is_folder
        else folder
    )
    start = time.perf_counter()
    assert main([*line.split(), "--out", str(out)]) == 2
    assert time.perf_counter() - start < 20  # what it imports
    printed = capsys.readouterr()
    assert "cannot be written" in printed.err and "--out" in printed.err
    assert printed.out == ""
    assert sorted(tmp_path.rglob("*")) == [file, folder]


def test_each_finished_run_is_a_line_with_the_time_left(tmp_path: Path, capsys):
    line = ["run", "--problem", "wdrbo_figure1", "--algorithms", "random"]
    line += ["--seeds", "3", "--iterations", "1", "--initial", "1", "--workers", "1"]
    assert main([*line, "--out", str(tmp_path)]) == 0
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("[")]
    assert len(lines) == 3
    for number, text in enumerate(lines):
        assert text.startswith(f"[{number + 1}/3, ")
        assert f"left] random on wdrbo_figure1, seed {number}: regret" in text
    assert main([*line, "--out", str(tmp_path)]) == 0  # all is there
    assert "0 of 3 runs" in capsys.readouterr().out


def test_what_is_done_is_said_without_a_terminal():
    for terminal in (True, False):
        said = io.StringIO()
        with working(Console(file=said, force_terminal=terminal), "whole iterations"):
            time.sleep(0.2)
        assert "whole iterations" in said.getvalue()


def test_lipschitz_writes_a_table(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(lipschitz, "POINTS_PER_SIDE", {1: 201})
    out = tmp_path / "table.md"
    assert main(["lipschitz", "--models", "3", "--out", str(out)]) == 0
    rows = [line for line in out.read_text().splitlines() if line.startswith("| 1")]
    assert [row.split(" | ")[1] for row in rows] == [
        *lipschitz.KERNELS,
        lipschitz.ONE_STEP,
    ]
    assert all(row.endswith("| 0% |") for row in rows)  # none is short by 2%


def test_search_counts_what_is_missed(tmp_path: Path):
    sizes = search.Sizes(
        histories=1,
        recipes=("erbo",),
        problems=("newsvendor",),
        settings=((1, 1), (10, 256)),  # a single start at a single point, and plenty
        dense=(20, 512),
    )
    out = tmp_path / "table.md"
    assert search.run_search(out, sizes) == 0
    row = out.read_text().splitlines()[-2]
    assert row.startswith("| erbo | newsvendor | ")
    assert row.split(" | ")[3].startswith("0 of 2; ")


def test_accuracy_writes_a_table(tmp_path: Path):
    out = tmp_path / "table.md"
    assert main(["accuracy", "--quick", "--out", str(out)]) == 0
    (row,) = [line for line in out.read_text().splitlines() if line.startswith("| 20")]
    *_, rank, mean, variance, exact_mean, exact_variance = row.strip("| ").split(" | ")
    assert 2 < int(rank) < 64
    assert max(float(mean), float(variance)) < 1e-8
    assert max(float(exact_mean), float(exact_variance)) < 1e-10


def test_list(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    for name in ("sbo_kde", "wdrbo", "figure1"):
        assert name in printed


def test_help_needs_no_torch():
    code = (
        "import sys\n"
        "from benchmarks.__main__ import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    sys.exit('torch' in sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", code], check=False)
    assert finished.returncode == 0


def test_demo_tells_a_story_and_draws(tmp_path: Path, capsys):
    tiny = {"num_restarts": 1, "raw_samples": 8, "max_iterations": 5}
    config = BenchmarkConfig(
        name="demo",
        problems=(ProblemConfig("newsvendor"),),
        algorithms=tuple(AlgorithmConfig(n, options=tiny) for n in ("erbo", "gp_ucb")),
        seeds=(0,),
        iterations=2,
        initial=2,
    )
    for _ in range(2):  # the second time it runs again, it does not skip
        assert run_demo(config, tmp_path, workers=1) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert "Coins a day" in printed
        assert "falls by a third" in printed
        assert "more than erbo, shop by shop" in printed
        assert "demo.png" in printed
    shops = pd.read_csv(tmp_path / "shops.csv")
    assert shops["method"].tolist() == ["erbo", "gp_ucb"]
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_demo_takes_other_shops(monkeypatch, tmp_path: Path):
    seen = []
    monkeypatch.setattr(demo, "run_demo", lambda config, *_, **__: seen.append(config))
    main(["demo", "--shops", "3", "--first", "8", "--out", str(tmp_path)])
    assert seen[0].seeds == (8, 9, 10)
    assert main(["demo", "--shops", "0", "--out", str(tmp_path)]) == 2


def test_demo_compares_each_shop_with_itself():
    first, *others = WORLDS
    rows = [("erbo", 0, 100.0), ("erbo", 1, 300.0), ("mine", 1, 304.0), ("mine", 0, 98)]
    shops = pd.DataFrame(rows, columns=["method", "shop", first])
    found = paired_differences(shops.assign(**dict.fromkeys(others, 0.0)), "erbo")
    assert list(found) == ["mine"]
    # -2 and 4: mean 1, standard deviation sqrt(18), its error sqrt(18 / 2)
    assert found["mine"][first].mean == pytest.approx(1.0)
    assert found["mine"][first].error == pytest.approx(3.0)


def test_demo_explains_each_of_its_methods():
    config = from_toml("demo")
    assert {a.name for a in config.algorithms} == set(MEANING) == set(SHORT)


def test_picture_of_the_demo_has_paired_bars_and_orders_of_their_own(
    monkeypatch, tmp_path: Path
):
    monkeypatch.setattr(plt, "close", lambda figure: None)
    earned = {"erbo": (0.0, 200.0), "wdrbo_exact": (-2.0, 204.0)}
    shops = pd.DataFrame(
        [
            {"method": method, "shop": i, "copies": 100.0 + i}
            | dict.fromkeys(WORLDS, coins)
            for method, both in earned.items()
            for i, coins in enumerate(both)
        ]
    )
    problem = make_problem(from_toml("demo").problems[0])
    demo.draw_demo(problem, shops, "erbo", tmp_path / "demo.png")
    gain, reason, orders = plt.gcf().axes
    (bars,) = gain.containers
    # Gains of -2 and 4: mean 1, standard error 3. Unpaired it would be 143.
    ends = [segment[:, 1].tolist() for segment in bars[2][0].get_segments()]
    assert ends == [pytest.approx([-2.0, 4.0])] * len(WORLDS)
    assert [text.get_text() for text in gain.get_xticklabels()] == list(WORLDS)
    labels = [text.get_text() for text in orders.get_yticklabels()]
    assert labels == ["trusts the past", "robust"]
    assert len(reason.lines) == len(WORLDS) + 1  # and zero
    plt.gcf().clear()


def test_profits_of_the_demo_by_hand():
    problem = make_problem(from_toml("demo").problems[0])
    nothing = torch.zeros(1, 1, dtype=torch.double)
    assert profits(problem, nothing, 1.0).item() == 0.0
    # So large an order never sells out: 9 E[c] + 1 (x - E[c]) - 5 x = 8 E[c] - 4 x.
    everything = torch.ones(1, 1, dtype=torch.double)
    demand = problem.true_contexts().mean().item()
    for factor in (1.0, 0.5):
        expected = 1000 * (8 * factor * demand - 4)
        found = profits(problem, everything, factor).item()
        assert found == pytest.approx(expected, abs=1e-6)
