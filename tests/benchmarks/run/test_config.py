"""Configs: the same object from a file and from the command line; clear refusals."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.commands import config_from_options
from benchmarks.parser import make_parser
from benchmarks.run.config import (
    CONFIGS,
    SIZES,
    AlgorithmConfig,
    BenchmarkConfig,
    ConfigError,
    ProblemConfig,
    from_dict,
    from_toml,
)
from benchmarks.run.extensions import import_all
from benchmarks.run.runner import build_algorithm
from benchmarks.run.world import make_problem
from botorch_drbo.schedules import InverseSquareRoot

NEWSVENDOR = ProblemConfig("newsvendor")
PLAIN = {
    "problem": "newsvendor",
    "algorithms": ["wdrbo", "erbo"],
    "seeds": 2,
    "iterations": 4,
}


def parse(line: str) -> BenchmarkConfig:
    return config_from_options(make_parser().parse_args(line.split()))


def test_command_line_of_the_readme():
    config = parse(
        "run --problem newsvendor --algorithms wdrbo erbo gp_ucb --seeds 3 "
        "--iterations 30"
    )
    assert config == BenchmarkConfig(
        name="newsvendor",
        problems=(ProblemConfig("newsvendor"),),
        algorithms=tuple(AlgorithmConfig(name) for name in ("wdrbo", "erbo", "gp_ucb")),
        seeds=(0, 1, 2),
        iterations=30,
        initial=5,
        baseline="wdrbo",
        worlds="newsvendor",
    )


def test_file_and_command_line_build_the_same_config(tmp_path: Path):
    file = tmp_path / "newsvendor.toml"
    file.write_text(
        'problem = "newsvendor"\nalgorithms = ["wdrbo", "erbo"]\n'
        'seeds = 2\niterations = 4\ninitial = 3\nbaseline = "erbo"\n'
    )
    line = (
        "run --problem newsvendor --algorithms wdrbo erbo --seeds 2 --iterations 4 "
        "--initial 3 --baseline erbo"
    )
    assert from_toml(file) == parse(line) == parse(f"run --config {file}")


def test_command_line_changes_a_config_file():
    config = parse("run --config figure1 --seeds 2 --iterations 7")
    assert (config.seeds, config.iterations) == ((0, 1), 7)
    assert config.algorithms == from_toml("figure1").algorithms


def test_tables_carry_labels_and_options():
    config = from_dict(
        PLAIN
        | {
            "problem": {"name": "newsvendor", "options": {"noise_std": 0.1}},
            "algorithms": [
                {"name": "wdrbo", "label": "wide", "options": {"radius": 0.5}},
                {"name": "wdrbo"},
            ],
            "seeds": [7, 3],
        }
    )
    assert config.problems == (ProblemConfig("newsvendor", options={"noise_std": 0.1}),)
    assert config.algorithms == (
        AlgorithmConfig("wdrbo", "wide", {"radius": 0.5}),
        AlgorithmConfig("wdrbo", "wdrbo", {}),
    )
    assert config.seeds == (7, 3)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda p: p.stem)
def test_committed_configs_name_algorithms_that_exist(path: Path):
    with path.open("rb") as file:
        sizes = [size for size in SIZES if size in tomllib.load(file)]
    for size in sizes or [""]:
        config = from_toml(path.stem, size)
        import_all(config.imports)
        for problem_config in config.problems:
            if problem_config.name.startswith("portfolio"):
                problem = make_problem(NEWSVENDOR)  # the data is not everywhere
            else:
                problem = make_problem(problem_config)
            for algorithm in config.algorithms:
                recipe = build_algorithm(algorithm, problem, config.options)
                assert recipe.name == algorithm.name


@pytest.mark.parametrize("name", ["wdrbo", "edrbo"])
def test_configs_of_wdrbo_have_the_radius_and_the_beta_of_its_experiments(name: str):
    """They are .3 / sqrt(t) and 1.5^2; the radius that the recipe has is another."""
    problem = make_problem(NEWSVENDOR)
    with (CONFIGS / f"{name}.toml").open("rb") as file:
        sizes = [size for size in SIZES if size in tomllib.load(file)]
    for size in sizes or [""]:
        config = from_toml(name, size)
        (wdrbo,) = (a for a in config.algorithms if a.name == "wdrbo")
        options = build_algorithm(wdrbo, problem, config.options).options
        assert options["radius"] == InverseSquareRoot(0.3)
        assert options["beta"] == 2.25


def test_figure1_is_the_general_setting_of_the_paper():
    config = from_toml("figure1", "paper")
    problem = make_problem(config.problems[0])
    wdrbo, erbo, *ours = (build_algorithm(a, problem) for a in config.algorithms)
    assert (config.iterations, len(config.seeds), config.baseline) == (100, 20, "erbo")
    assert wdrbo.options["radius"] == 0.1
    assert wdrbo.to_dict()["options"]["reference"] is not None
    assert (
        wdrbo.to_dict()["options"]["reference"]
        == erbo.to_dict()["options"]["reference"]
    )
    assert erbo.name == "erbo"
    for own, paper in zip(ours, (wdrbo, erbo), strict=True):
        assert own.options == paper.options | {"surrogate": "ensemble"}


def test_schedule_table_becomes_a_schedule():
    problem = make_problem(NEWSVENDOR)
    option = {"radius": {"schedule": "InverseSquareRoot", "initial": 0.7}}
    algorithm = build_algorithm(AlgorithmConfig("wdrbo", options=option), problem)
    assert algorithm.options["radius"] == InverseSquareRoot(0.7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"iteration": 3}, "unknown keys"),
        ({"algorithms": []}, "at least one algorithm"),
        ({"algorithms": "wdrbo"}, "must be a list"),
        ({"algorithms": ["wdrbo", "wdrbo"]}, "must differ"),
        ({"algorithms": [{"name": "wdrbo", "radius": 1}]}, "unknown keys"),
        ({"algorithms": [{"label": "a"}]}, "missing keys"),
        ({"algorithms": [3]}, "name or a table"),
        ({"algorithms": [{"name": "wdrbo", "label": "../x"}]}, "names a folder"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"seeds": [-1]}, "seeds"),
        ({"seeds": [0.5]}, "whole numbers"),
        ({"iterations": 0}, "at least 1"),
        ({"iterations": True}, "whole numbers"),
        ({"initial": 0}, "at least 1"),
        ({"baseline": "gp_ucb"}, "not among"),
        ({"unranked": ["gp_ucb"]}, "`unranked` algorithm 'gp_ucb' is not among"),
        (
            {"unranked": "wdrbo"},
            "`unranked` of .* must be a list of names, got 'wdrbo'",
        ),
        ({"imports": "mine.py"}, "`imports` of .* must be a list of names"),
        ({"imports": [3]}, r"`imports` of .* must be a list of names, got \[3\]"),
    ],
)
def test_refuses(changes, message):
    with pytest.raises(ConfigError, match=message):
        from_dict(PLAIN | changes)


@pytest.mark.parametrize(
    "line",
    [
        "run",
        "run --problem newsvendor",
        "run --config demo --problem newsvendor",
        "run demo --config figure1",
        "run --problem newsvendor --algorithms random --size smoke",
    ],
)
def test_refuses_half_a_command_line(line):
    with pytest.raises(ConfigError):
        parse(line)


def test_refuses_missing_and_broken_files(tmp_path: Path):
    with pytest.raises(ConfigError, match="figure1"):
        from_toml("no_such_config")
    broken = tmp_path / "broken.toml"
    broken.write_text("problem = ")
    with pytest.raises(ConfigError, match="not valid TOML"):
        from_toml(broken)


@pytest.mark.parametrize(
    "algorithm",
    [
        AlgorithmConfig("no_such_algorithm"),
        AlgorithmConfig("wdrbo", options={"no_such_option": 1}),
        AlgorithmConfig("wdrbo", options={"reference": "problem"}),  # it has none
    ],
)
def test_refuses_algorithms_that_cannot_be_built(algorithm):
    with pytest.raises(ConfigError):
        build_algorithm(algorithm, make_problem(NEWSVENDOR))


def test_refuses_unknown_problem():
    with pytest.raises(ConfigError, match="no_such_problem"):
        make_problem(ProblemConfig("no_such_problem"))


SIZED = """
problems = ["newsvendor", {name = "newsvendor", label = "noisy"}]
algorithms = ["wdrbo", "random"]
initial = 4
options = {num_restarts = 3, raw_samples = 64}
imports = ["mine.py", "a_module"]
[smoke]
seeds = 1
iterations = 2
options = {raw_samples = 8}
[laptop]
seeds = 5
iterations = 30
[paper]
seeds = 50
iterations = 200
initial = 9
"""


def test_one_file_has_three_sizes(tmp_path: Path):
    file = tmp_path / "sized.toml"
    file.write_text(SIZED)
    sizes = ["smoke", "laptop", "paper"]
    smoke, laptop, paper = (from_toml(file, size) for size in sizes)
    assert from_toml(file) == laptop == parse(f"run {file}")
    assert parse(f"run {file} --size smoke --iterations 7").iterations == 7
    assert [len(c.seeds) for c in (smoke, laptop, paper)] == [1, 5, 50]
    assert [c.initial for c in (smoke, laptop, paper)] == [4, 4, 9]
    assert smoke.options == {"num_restarts": 3, "raw_samples": 8}
    assert laptop.options == {"num_restarts": 3, "raw_samples": 64}
    assert [c.size for c in (smoke, laptop, paper)] == sizes
    assert [p.label for p in smoke.problems] == ["newsvendor", "noisy"]
    assert smoke.imports == (str(tmp_path / "mine.py"), "a_module")


def test_a_file_extends_another_at_one_of_its_sizes(tmp_path: Path):
    (tmp_path / "sized.toml").write_text(SIZED)
    (tmp_path / "other").mkdir()
    file = tmp_path / "other" / "more.toml"
    file.write_text(
        'extends = {config = "../sized.toml", size = "smoke"}\n'
        'algorithms = ["erbo"]\noptions = {beta = 1.0, num_restarts = 4}'
    )
    base, config = from_toml(tmp_path / "sized.toml", "smoke"), from_toml(file)
    assert config == replace(
        base,
        name="more",
        algorithms=(AlgorithmConfig("erbo"),),
        options={"num_restarts": 4, "raw_samples": 8, "beta": 1.0},
        baseline="erbo",
        size="",
    )
    far = tmp_path / "other" / "far.toml"
    far.write_text('extends = {config = "more.toml"}\nseeds = 9\n[paper]\nseeds = 7')
    assert from_toml(far) == replace(config, name="far", seeds=tuple(range(9)))
    assert len(from_toml(far, "paper").seeds) == 7
    file.write_text('extends = {config = "edrbo"}')  # by name, at its laptop size
    laptop = from_toml("edrbo", "laptop")
    assert from_toml(file) == replace(laptop, name="more", size="")


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ('"edrbo"', "`extends` of .* must be a table"),
        ('{size = "long"}', r"missing keys \['config'\]"),
        ('{config = "edrbo", sizes = "long"}', "Did you mean 'size'"),
        ('{config = "edrb"}', "Did you mean 'edrbo'"),
        ('{config = "edrbo", size = "huge"}', "no size 'huge'"),
        ('{config = "two.toml"}', "leads back to .*one.toml"),
        ('{config = "edrbo"}\nsize = "long"', r"unknown keys \['size'\]"),
    ],
)
def test_what_cannot_be_extended_is_refused(extends: str, message: str, tmp_path: Path):
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(f"extends = {extends}")
    two.write_text(f'extends = {{config = "../{tmp_path.name}/one.toml"}}')
    with pytest.raises(ConfigError, match=message):
        from_toml(one)


def test_a_size_that_a_file_does_not_have_is_refused():
    with pytest.raises(ConfigError, match="no size 'paper'"):
        from_toml("demo", "paper")
    with pytest.raises(ConfigError, match=r"Choose one of \['smoke'"):
        from_toml("edrbo", "huge")
    with pytest.raises(ConfigError, match="Leave out --size"):
        from_toml("edrbo_batch", "laptop")


def test_unknown_names_list_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'figure1'"):
        from_toml("figur1")
    with pytest.raises(ConfigError, match="Did you mean 'newsvendor'"):
        make_problem(ProblemConfig("newsvendr"))
    with pytest.raises(ConfigError, match="Did you mean 'wdrbo'"):
        build_algorithm(AlgorithmConfig("wdrb"), make_problem(NEWSVENDOR))
    with pytest.raises(ConfigError, match="Did you mean 'iterations'"):
        from_dict(PLAIN | {"iteration": 3})
