"""A report has every number, and refuses what cannot be joined."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.run.config import (
    AlgorithmConfig,
    BenchmarkConfig,
    ConfigError,
    ProblemConfig,
)
from benchmarks.run.page import write_report
from benchmarks.run.storage import Run, RunKey, collect, run_file, save

CONFIG = BenchmarkConfig(
    name="by_hand",
    problems=(ProblemConfig("newsvendor"), ProblemConfig("ackley_2_1")),
    algorithms=tuple(map(AlgorithmConfig, ("erbo", "wdrbo", "a_b"))),
    seeds=(0, 1, 2),
    iterations=2,
)


def keep(config: BenchmarkConfig, out: Path) -> Path:
    for p, problem in enumerate(config.problems):
        for a, algorithm in enumerate(config.algorithms):
            for seed in config.seeds:
                rows = [
                    {
                        "iteration": i,
                        "x": [0.0],
                        "c": [0.0],
                        "y": 10.0 * i + seed,
                        "expected": 0.0,
                        "regret": float(10 * p + a + seed - i),
                        "seconds": 1.0,
                        "fit_seconds": 0.5,
                        "inner_seconds": 0.2,
                        "warnings": ["W: careful"] if a == 1 else [],
                        "recommended": [0.0] if i else None,
                        "recommended_regret": 0.25 if i else None,
                    }
                    for i in range(config.iterations)
                ]
                made = {"commit": "abc", "machine": "a machine", "load": 0.25 * a}
                header = {"versions": {"torch": "2"}}
                key = RunKey(problem.label, algorithm.label, seed)
                save(Run(rows, header, made), run_file(out, key))
    collect(config, out)
    return out


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = keep(CONFIG, tmp_path_factory.mktemp("results"))
    assert write_report([out], out) == out / "table.md"
    return out


def test_the_report_has_the_numbers(report: Path):
    summary = (report / "table.md").read_text(encoding="utf-8")
    # wdrbo on newsvendor: cumulative 2 s + 1, simple s, paired difference 2 of erbo;
    # outcomes 2 s + 10.
    # Three pairs of one sign: p = 2 / 2^3 = .25, twice that with Holm's correction.
    expected = [
        "wdrbo", "3", "3.0 ± 1.2", "12.0 ± 1.2", "1.00 ± 0.58", "0.25",
        "1.50 ± 0.58", "2",
        "0 of 3", "0.5", "0.5", "0.3", "0.2",
    ]  # fmt: skip
    assert "| " + " | ".join(expected) + " |" in summary
    assert "3 pairs cannot give less than 0.25" in summary
    assert "wdrbo: 6 of 6 asks warned, mostly" in summary
    assert "commit abc; a machine; load up to 0.5 a core." in summary
    assert "mean ranks erbo 1.00, wdrbo 2.00, a_b 3.00" in summary
    for picture in ("regret.png", "ranks.png"):
        assert (report / picture).read_bytes().startswith(b"\x89PNG")


def test_an_unranked_method_is_in_the_tables_and_not_in_the_ranks(tmp_path: Path):
    out = keep(replace(CONFIG, unranked=("wdrbo",)), tmp_path)
    summary = write_report([out], out).read_text(encoding="utf-8")
    assert "| wdrbo | 3 | 3.0 ± 1.2 |" in summary
    assert "mean ranks erbo 1.00, a_b 2.00" in summary
    assert "Not on all problems" not in summary


def test_several_results_become_one_report(report: Path, tmp_path: Path):
    other = replace(CONFIG, name="other", problems=(ProblemConfig("hartmann_5_1"),))
    keep(other, tmp_path / "other")
    write_report([report, tmp_path / "other"], tmp_path / "out", baseline="wdrbo")
    summary = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert "3 problems" in summary and "minus wdrbo" in summary
    assert "other: hartmann_5_1" in summary


def test_what_cannot_be_joined_is_refused(report: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot be joined"):
        write_report([report, report], tmp_path)
    with pytest.raises(ConfigError, match="'nobody' is not among"):
        write_report([report], tmp_path, baseline="nobody")
    with pytest.raises(ConfigError, match="no results"):
        write_report([tmp_path / "nothing"], tmp_path)


@pytest.mark.parametrize("below", [True, False])
def test_a_report_names_no_folder_of_the_machine_that_made_it(
    below: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The command is to be read on other machines; results may be anywhere on this."""
    results = keep(CONFIG, tmp_path / "results" / "mine")
    here = tmp_path if below else tmp_path / "elsewhere"
    here.mkdir(exist_ok=True)
    monkeypatch.chdir(here)
    write_report([results], results)
    command = "report results/mine" if below else "report mine"
    text = (results / "table.md").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert f"python -m benchmarks {command}" in text
