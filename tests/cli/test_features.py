"""``--features ligand=ligands.csv``: levels described by numbers, also untried ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from botorch_drbo.cli.commands import app

LIGANDS = ["L1", "L2", "L3", "L4", "L5", "L6"]
SIZES = [1.0, 2.0, 3.0, 5.0, 6.0, 4.0]
COLUMNS = ["--decisions", "temp=0:1", "ligand", "--contexts", "humid=0:1"]
COLUMNS += ["--outcome", "y", "--surrogate", "botorch"]
ROWS = [
    f"{(k % 7) / 7:.2f},{LIGANDS[k % 5]},{(k % 3) / 3:.2f},"
    f"{10 - (SIZES[k % 5] - 4) ** 2 + (k % 7) / 7 + (k % 3) / 9:.2f}"
    for k in range(25)
]
TABLE = ["ligand,size,shape"] + [
    f"{name},{size},{(3 * k) % 4}"
    for k, (name, size) in enumerate(zip(LIGANDS, SIZES, strict=True))
]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["temp,ligand,humid,y", *ROWS]) + "\n")
    (tmp_path / "ligands.csv").write_text("\n".join(TABLE) + "\n")

    def called(command: str, *words: str) -> tuple[int, str, str]:
        place = [word.replace("DIR", str(tmp_path)) for word in words]
        done = CliRunner().invoke(app, [command, str(data), *place])
        return done.exit_code, done.stdout, done.stderr

    return called


FEATURES = ("--features", "ligand=DIR/ligands.csv")


def test_an_untried_level_is_predicted_and_recommended(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    """L6 stands in the file of features alone, and its size is the best."""
    code, out, _ = run("recommend", *COLUMNS, *FEATURES, "--no-insurance", "--json")
    assert code == 0
    assert json.loads(out)["decision"]["ligand"] == "L6"
    at = ["--at", "temp=0.5", "ligand=L6", "humid=0.5", "--json"]
    _, out, _ = run("predict", *COLUMNS, *FEATURES, *at)
    assert json.loads(out)["rows"][0]["mean"] == pytest.approx(10.7, abs=1.2)
    _, out, _ = run("check", *COLUMNS, *FEATURES, "--json")
    new = json.loads(out)["new_levels"]["ligand"]
    assert set(new) == {"explained", "without_features"}
    _, out, _ = run("check", *COLUMNS, *FEATURES)
    assert "a new ligand" in out and "without its features" in out


def test_an_option_is_its_key(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    names = ", ".join(f'"{name}"' for name in LIGANDS)
    above = 'outcome = "y"\nsurrogate = "botorch"\n'
    below = "[decisions]\ntemp = [0, 1]\n[contexts]\nhumid = [0, 1]\n"
    below = below.replace("[c", f"ligand = {{Category = [{names}]}}\n[c")
    problem = tmp_path / "problem.toml"
    problem.write_text(above + below)
    _, by_word, _ = run("recommend", *FEATURES, "--json")
    _, without, _ = run("recommend", "--json")
    problem.write_text(f'{above}features = {{ligand = "ligands.csv"}}\n{below}')
    _, by_key, _ = run("recommend", "--json")
    assert by_word == by_key != without


def test_rows_of_levels_that_are_not_listed_are_said(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    """L6 stands in the file of features, and not among the levels that were typed."""
    columns = [
        f"ligand={','.join(LIGANDS[:5])}" if word == "ligand" else word
        for word in COLUMNS
    ]
    code, _, error = run("check", *columns, *FEATURES)
    assert code == 0
    assert "`features` has rows for ['L6'], 1 in all" in " ".join(error.split())


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE[:3], "no row for ['L3', 'L4', 'L5']"),
        ([*TABLE, "L1,9,9"], "line 8, column `ligand`: 'L1' has a row already"),
        ([*TABLE, ",9,9"], "line 8, column `ligand`: no name"),
        (
            [*TABLE[:6], "L6,6 A,1"],
            "line 7, column `size`: must be a number, got '6 A'",
        ),
        (
            [row + ",2" if k else "ligand,size,shape,a" for k, row in enumerate(TABLE)],
            "2 in a of every level",
        ),
    ],
)
def test_what_is_wrong_in_the_file_is_said(
    run: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    table: list[str],
    message: str,
) -> None:
    (tmp_path / "ligands.csv").write_text("\n".join(table) + "\n")
    code, _, error = run("recommend", *COLUMNS, *FEATURES)
    assert code == 2
    assert message in " ".join(error.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ligands.csv"], "`--features ligands.csv` cannot be read"),
        (["ligan=DIR/ligands.csv"], "Did you mean `ligand`?"),
        (["temp=DIR/ligands.csv"], "no category `temp`"),
    ],
)
def test_what_is_described_is_a_category(
    run: Callable[..., tuple[int, str, str]], words: list[str], message: str
) -> None:
    code, _, error = run("recommend", *COLUMNS, "--features", *words)
    assert code == 2
    assert message in " ".join(error.split())
