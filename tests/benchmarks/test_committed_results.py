"""What is committed under results/ agrees with the problems as they are now."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.text import Text

from benchmarks.commands import RESULTS
from benchmarks.experiments.claims.report import make_report as make_claims_report
from benchmarks.experiments.papers.edrbo_values import NAMES
from benchmarks.experiments.tournament.report import make_report
from benchmarks.run.config import ProblemConfig, from_toml
from benchmarks.run.runner import tasks_of
from benchmarks.run.storage import header_name, load
from benchmarks.run.summary import search_of, title_of
from benchmarks.run.tables import ABOUT, KEY, RUNS, load_tables, write_tables
from benchmarks.run.world import make_problem
from botorch_drbo.recipes import make_recipe
from tests.data import FILES, needs, needs_raw

FOREIGN = re.compile(r"[`\s=>](/[\w.-]+){2,}")


def runs() -> list[object]:
    """A parameter for each problem of each benchmark."""
    found = []
    for path in sorted(RESULTS.rglob(RUNS)):
        _, about = load_tables(path.parent)
        # an experiment has no config: its functions are judged by its own tests
        for entry in about.get("config", {"problems": []})["problems"]:
            marks = [needs(FILES[entry["name"]])] if entry["name"] in FILES else []
            name = f"{path.parent.name}/{entry['label']}"
            found.append(pytest.param(path.parent, entry, marks=marks, id=name))
    return found


# With the portfolio's data.
STUDIES = {"edrbo": "long", "sbo_kde": "long", "wdrbo": "long"}
STUDIES |= dict.fromkeys(NAMES[1:], "")


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("ablations", "laptop"),
        ("figure1", "paper"),
        *(
            pytest.param(*study, marks=needs(FILES["portfolio_normal"]))
            for study in STUDIES.items()
        ),
    ],
)
def test_runs_are_those_of_the_config(name: str, size: str):
    """Problems, recipes with all their options, and initial decisions."""
    _, about = load_tables(RESULTS / name)
    config, made = from_toml(name, size), {"format", "versions"}
    tasks = [t for t in tasks_of(config, RESULTS / name) if t.seed == config.seeds[0]]
    headers = about["headers"]
    assert {header_name(task.key) for task in tasks} == set(headers)
    for task in tasks:
        kept = headers[header_name(task.key)]
        asked = json.loads(json.dumps(task.header()))
        then, now = (h["algorithm"]["options"] for h in (kept, asked))
        new = {option: now.pop(option) for option in now.keys() - then.keys()}
        default = make_recipe(asked["algorithm"]["name"])
        assert new == {option: default.options[option] for option in new}
        assert {key: kept[key] for key in kept.keys() - made} == {
            key: asked[key] for key in asked.keys() - {"seed"}
        }


@pytest.mark.parametrize(("folder", "entry"), runs())
def test_regret_is_that_to_the_stored_optimum(folder: Path, entry: dict[str, Any]):
    """`optima` has the least and the largest `regret + expected` of all rounds."""
    rows, about = load_tables(folder)
    problem = make_problem(ProblemConfig(**entry))
    rows = rows[rows.problem == entry["label"]]
    assert len(rows) > 0
    assert about["optima"][entry["label"]] == pytest.approx(
        [problem.optimal_value] * 2, abs=1e-9
    )
    assert rows.recommended_regret.notna().all()
    assert min(rows.least.min(), rows.recommended_regret.min()) > -1e-3  # quadrature
    first = about["recommended"][entry["label"]]
    value = problem.expected_value(problem.bounds.new_tensor([first["x"]]))
    assert first["regret"] == pytest.approx(
        problem.optimal_value - value.item(), abs=1e-6
    )
    assert rows.recommended_regret.iloc[0] == pytest.approx(first["regret"], abs=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            str(name := path.parent.relative_to(RESULTS)),
            marks=needs_raw(f"{name}/results.parquet"),
        )
        for path in sorted(RESULTS.rglob(RUNS))
    ],
)
def test_the_tables_are_those_of_the_rows(name: str, tmp_path: Path):
    write_tables(*load(RESULTS / name), tmp_path)
    for file in (RUNS, ABOUT):
        found = (tmp_path / file).read_text(encoding="utf-8")
        assert found == (RESULTS / name / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("wdrbo", "random decisions"),
        ("sbo_kde", "Sobol points of decision and context"),
        ("edrbo", "Sobol decisions"),
        ("edrbo_slips", "Sobol decisions"),
    ],
)
def test_head_of_a_table_says_what_was_run(name: str, first: str):
    """Where the first decisions come from, and how hard the functions are searched."""
    rows, about = load_tables(RESULTS / name)
    head = (RESULTS / name / "table.md").read_text(encoding="utf-8").splitlines()[0]
    size = f"{rows.seed.nunique()} seeds, {rows.rounds.max()} iterations"
    search = "`num_restarts = 4`, `raw_samples = 256`, `max_iterations = 50`"
    assert head.endswith(f"{size} after 5 {first}; {search}")
    config = about["config"]  # the code of today writes the same
    assert head == f"# {title_of(config)}; {search_of(config)}"


def test_no_folder_of_another_machine_is_named():
    texts = [path for kind in ("md", "csv") for path in RESULTS.rglob(f"*.{kind}")]
    assert len(texts) > 20
    for path in texts:
        assert not FOREIGN.search(path.read_text(encoding="utf-8")), path


README = RESULTS.parent / "README.md"


def table_after(heading: str) -> tuple[list[str], dict[str, list[str]]]:
    """The first table below a heading of the README: its head, and rows by name."""
    text = README.read_text(encoding="utf-8").split(heading, 1)[1]
    lines = itertools.dropwhile(lambda line: line[:1] != "|", text.splitlines())
    table = itertools.takewhile(lambda line: line[:1] == "|", lines)
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in table]
    return rows[0][1:], {row[0]: row[1:] for row in rows[2:]}


def unranked(about: dict[str, Any]) -> list[str]:
    """The methods of a config that are beside those of the paper."""
    return about["config"].get("unranked", [])


def check_cell(cell: str, wanted: list[float], where: object) -> None:
    """Each number of a cell is the wanted one, rounded as it is shown."""
    shown = re.findall(r"\d*\.?\d+", cell)
    assert len(shown) == len(wanted), where
    for text, value in zip(shown, wanted, strict=True):
        step = 10.0 ** -len(text.partition(".")[2])
        assert float(text) == pytest.approx(value, abs=0.501 * step), where


@pytest.mark.parametrize(
    ("heading", "name", "unlike"),
    [
        ("### Figures 2, 3 and 4: eight methods", "wdrbo", []),
        ("### Figures 1 and 2, Appendix D", "sbo_kde", ["complicated_hartmann"]),
    ],
)
def test_regrets_of_the_readme_are_those_of_the_rows(
    heading: str, name: str, unlike: list[str]
):
    """Mean and standard error of the seeds; one problem is judged by its reward."""
    rows, about = load_tables(RESULTS / name)
    methods, table = table_after(heading)
    assert set(methods) == set(rows.algorithm.unique())
    ranked = [each for each in methods if each not in unranked(about)]
    table = {line.split()[0]: cells for line, cells in table.items()}
    ranks = table.pop("mean", None)
    assert table.keys() == set(rows.problem.unique())
    regrets, rewards = (rows.set_index(KEY)[each] for each in ("regret", "reward"))
    for problem, cells in table.items():
        for method, cell in zip(methods, cells, strict=True):
            found = (rewards if problem in unlike else regrets)[problem][method]
            # Of two seeds the standard error is half of their distance.
            check_cell(cell, [found.mean(), found.sem()], (problem, method))
    if ranks:
        means = regrets.groupby(level=[0, 1]).mean().unstack()
        own = means[ranked].rank(axis=1).mean()
        shown = dict(zip(methods, ranks, strict=True))
        assert {name for name, rank in shown.items() if rank} == set(ranked)
        assert [float(shown[name]) for name in ranked] == pytest.approx(
            own.tolist(), abs=0.051
        )


@pytest.mark.parametrize(
    ("heading", "name", "problems"),
    [
        ("### Tables 1 and 2: seconds per", "wdrbo", ["ackley_1_1", "branin_2_2"]),
        ("### Table 1: seconds per", "sbo_kde", ["ackley_2_1"]),
    ],
)
def test_times_of_the_readme_are_those_of_the_rows(
    heading: str, name: str, problems: list[str]
):
    """Multiples of GP-UCB's within a seed, their median over the seeds."""
    rows, about = load_tables(RESULTS / name)
    rows = rows[~rows.algorithm.isin(unranked(about))]
    _, table = table_after(heading)
    assert table.keys() == set(rows.algorithm.unique())
    medians = rows.set_index(["problem", "seed", "algorithm"])
    wanted = [
        medians[field][problem]
        .unstack()
        .pipe(lambda m: m.div(m.gp_ucb, axis=0))
        .median()
        for problem in problems
        for field in ("own_seconds", "seconds")
    ]
    for method, cells in table.items():
        for cell, found in zip(cells[-len(wanted) :], wanted, strict=True):
            check_cell(cell, [found[method]], method)


def test_multiples_of_the_paper_are_those_of_its_seconds():
    _, table = table_after("### Table 1: seconds per")
    for method, (seconds, multiple, *_) in table.items():
        check_cell(multiple, [float(seconds) / float(table["gp_ucb"][0])], method)


def test_ablations_of_the_readme_are_those_of_the_rows():
    """Cumulative regret without a fault and with it, and that of `erbo`."""
    totals = load_tables(RESULTS / "ablations")[0].set_index(KEY)["regret"]
    means = totals.groupby(level=[0, 1]).mean()
    (_, *problems), table = table_after("## Ablations: which cause?")
    for fault, (recipes, *cells) in table.items():
        for problem, cell in zip(problems, cells, strict=True):
            if cell != "(one column: none)":
                wanted = [means[problem][name] for name in recipes.split(", ")]
                check_cell(cell, wanted, (fault, problem))
    text = README.read_text(encoding="utf-8")
    own = re.search(r"`erbo` has (\d.*, \d+ and \d+)\.", text)
    assert own is not None
    check_cell(own[1], [means[problem]["erbo"] for problem in problems], "erbo")


def test_places_of_bocu_in_the_readme_are_those_of_the_rows():
    """The lowest cumulative regret of each setting, and the place of `ts_bocu`."""
    _, table = table_after("### Figure 2: four functions")
    folders = (path for path in (RESULTS / "bocu").iterdir() if path.is_dir())
    assert set(table) == {path.name for path in folders}
    for function, (*lowest, places) in table.items():
        rows = pd.read_csv(RESULTS / "bocu" / function / "iterations.csv")
        last = rows[rows["decision"] == rows["decision"].max()]
        found = []
        for objective, cell in zip(("dro", "wcs", "gen"), lowest, strict=True):
            for distance, method in zip(("tv", "mmd"), cell.split(" / "), strict=True):
                here = (last.objective == objective) & (last.distance == distance)
                totals = last[here].set_index("method")["mean"]
                assert totals[method] == totals.min()
                found.append(1 + int((totals < totals["ts_bocu"]).sum()))
                if objective == "dro":  # there both versions are one, and one row
                    both = totals["ucb_bocu_2"] < totals["ts_bocu"]
                    found[-1] += int("ucb_bocu_1" not in totals and both)
        assert [int(place) for place in re.findall(r"\d", places)] == found


@needs_raw("tournament/claims.parquet")
def test_the_claims_report_is_that_of_its_table():
    folder = RESULTS / "tournament"
    found = str(make_claims_report(pd.read_parquet(folder / "claims.parquet")))
    assert found == (folder / "claims.md").read_text()


@needs_raw("tournament/losses.parquet")
def test_no_name_covers_another_in_the_picture_of_prices():
    losses, steps = (
        pd.read_parquet(RESULTS / "tournament" / f"{name}.parquet")
        for name in ("losses", "steps")
    )
    figure = make_report(losses, steps, "").figures["price.png"]
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [Text.get_window_extent(text) for text in axes.texts]
        assert len(boxes) == 5
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    plt.close("all")


@needs_raw("tournament/losses.parquet")
@pytest.mark.slow
def test_the_tournaments_report_is_that_of_its_rows(tmp_path: Path):
    folder = RESULTS / "tournament"
    losses, steps = (
        pd.read_parquet(folder / f"{name}.parquet") for name in ("losses", "steps")
    )
    command = "python -m benchmarks tournament --size laptop"
    make_report(losses, steps, command).write(tmp_path / "report.md")
    for name in ("report.md", "advice.md"):
        assert (tmp_path / name).read_text() == (folder / name).read_text()
    assert (folder / "advice.md").read_text() in README.read_text(encoding="utf-8")
