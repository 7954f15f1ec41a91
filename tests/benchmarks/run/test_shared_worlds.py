"""No two experiments play in one world, unless that is declared."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

import pandas as pd
import pytest
import torch

from benchmarks.accuracy import search
from benchmarks.commands import RESULTS
from benchmarks.development import random_rows
from benchmarks.experiments import batches, pending
from benchmarks.problems import make
from benchmarks.run.config import CONFIGS, SIZES, ConfigError, from_dict, from_toml
from benchmarks.run.runner import recorded_runs
from benchmarks.run.tables import load_tables
from benchmarks.run.world import SHARED, World
from tests.data import needs_raw
from tests.page_numbers import ROOT
from tests.page_sources.files import words_of

Place = tuple[str, str, int]  # salt, problem, seed
CONFIG_NAMES = sorted(path.stem for path in CONFIGS.glob("*.toml"))
PLAYERS = {  # files with a world that no config describes
    "accuracy/search.py": "search",
    "development/learn.py": "development",
    "development/random_rows.py": "calibration",
    "experiments/batches.py": "batches",
    "experiments/claims/learn.py": "claims",
    "experiments/tournament/learn.py": "tournament",
}


def of_config(name: str) -> Iterator[Place]:
    """The worlds of all sizes of a config, and of its committed runs."""
    for size in ("", *SIZES):
        try:
            config = from_toml(name, size)
        except ConfigError:
            continue
        seeds = {*config.seeds, *recorded_seeds(name)}
        for problem, seed in itertools.product(config.problems, seeds):
            yield config.worlds, problem.name, seed


def recorded_seeds(name: str) -> set[int]:
    """The seeds of a committed result, or of the shops of the demo."""
    if name == "demo":
        shops = [pd.read_csv(path) for path in (RESULTS / "demo").glob("*.csv")]
        return {int(seed) for table in shops for seed in table["shop"]}
    return {int(seed) for seed in load_tables(RESULTS / name)[0]["seed"]}


def of_table(path: str, first: int = 0) -> Iterator[Place]:
    """The worlds of a committed table of cases and seeds."""
    table = pd.read_csv(RESULTS / path)
    for case, seed in set(zip(table["case"], table["seed"], strict=True)):
        yield "", case, first + seed


def all_worlds() -> dict[str, set[Place]]:
    """Experiment -> its worlds."""
    problems = {batches.PROBLEM, *pending.PROBLEMS}
    found: dict[str, Iterable[Place]] = {
        **{name: of_config(name) for name in CONFIG_NAMES},
        "search": (("", p, 1000 + i) for p in search.PROBLEMS for i in range(16)),
        "development": of_table("development/worlds.csv"),
        "calibration": itertools.chain.from_iterable(
            of_table(f"development/intervals_{half}.csv", random_rows.FIRST_SEED)
            for half in "AB"
        ),
        "batches": (("", name, seed) for name in problems for seed in range(10)),
        "claims": of_table("tournament/claims.csv"),
        "tournament": of_table("tournament/regrets.csv"),
    }
    return {name: set(worlds) for name, worlds in found.items()}


def test_experiments_share_the_declared_worlds_and_no_others():
    worlds = all_worlds()
    found = {
        (one, other)
        for one, other in itertools.combinations(sorted(worlds), 2)
        if worlds[one] & worlds[other]
    }
    declared = (itertools.combinations(sorted(group), 2) for group in SHARED)
    assert found == set(itertools.chain.from_iterable(declared))


def test_the_page_says_how_many_worlds_of_the_study_others_share():
    worlds = all_worlds()
    first = [len(worlds[each]) for each in ("wdrbo", "claims", "tournament")]
    shared = [
        len(worlds[each] & worlds["development"])
        for each in ("wdrbo", "claims", "tournament")
    ]
    assert (first, shared) == ([120, 240, 70], [84, 78, 30])
    said = words_of("benchmarks/README.md")
    assert (
        "84 of 120 pairs of problem and seed of `wdrbo`, 78 of 240 of `claims` and 30 "
        "of 70 of the tournament are those of `development`"
    ) in said


def test_every_experiment_with_a_world_is_looked_at():
    files = {
        str(path.relative_to(ROOT / "benchmarks"))
        for path in (ROOT / "benchmarks").rglob("*.py")
        if re.search(r"\bWorld\(", path.read_text())
    }
    assert files == {*PLAYERS, "run/runner.py"}
    assert {*PLAYERS.values(), *CONFIG_NAMES} == all_worlds().keys()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=needs_raw(f"{name}/results.parquet"))
        for name in ("figure1", "ablations")
    ],
)
def test_committed_runs_are_of_their_worlds(name: str):
    runs, _ = recorded_runs(RESULTS / name)
    for task, rows in runs.values():
        problem = make(task.problem.name)
        world = World(problem, task.problem.name, task.seed, salt=task.config.worlds)
        for row in (rows[0], rows[-1]):
            context = world.context(task.config.initial + row["iteration"])
            assert context.flatten().tolist() == list(row["c"])


def test_an_experiment_has_the_salt_of_its_name_and_other_worlds():
    plain = {"problem": "ackley_2_1", "algorithms": ["random"], "seeds": 1}
    plain["iterations"] = 1
    salts = [from_dict(plain | {"name": name}).worlds for name in "ab"]
    assert salts == ["a", "b"] and from_dict(plain | {"worlds": ""}).worlds == ""
    problem = make("ackley_2_1", noise_std=0.5)
    X = torch.full((1, 2), 0.3, dtype=torch.double)
    drawn = [World(problem, "ackley_2_1", 0, salt=salt) for salt in ("", *salts)]
    for one, other in itertools.combinations(drawn, 2):
        assert not torch.equal(one.context(3), other.context(3))
        assert not torch.equal(one.initial_decision(3), other.initial_decision(3))
        c = one.context(3)
        assert not torch.equal(one.outcome(3, X, c), other.outcome(3, X, c))
    with pytest.raises(ConfigError, match="`worlds` of the config must be a name"):
        from_dict(plain | {"worlds": 3})
    with pytest.raises(TypeError, match="salt"):
        World(problem, "ackley_2_1", 0)  # type: ignore[call-arg]


def test_what_extends_a_config_plays_in_its_worlds(tmp_path):
    (tmp_path / "first.toml").write_text(
        'problem = "newsvendor"\nalgorithms = ["erbo"]\nseeds = 1\niterations = 1\n'
    )
    (tmp_path / "second.toml").write_text(
        'extends = { config = "first.toml" }\nalgorithms = ["random"]\n'
    )
    configs = [from_toml(tmp_path / f"{name}.toml") for name in ("first", "second")]
    assert [config.worlds for config in configs] == ["first", "first"]
