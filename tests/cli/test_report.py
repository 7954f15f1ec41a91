"""`botorch-drbo report` writes one page, and leaves the file alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from botorch_drbo.cli import actions
from botorch_drbo.cli.commands import app

CSV = """plot,N [kg/ha],weather,yield
1,20.5,sun,1.5
2,30,rain,2.5
3,61,,
"""
COLUMNS = ["--decisions", "N [kg/ha]=10:90", "--contexts", "weather=sun,rain"]
COLUMNS += ["--outcome", "yield", "--algorithm", "erbo", "--surrogate", "botorch"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "farm.csv"
    path.write_text(CSV)
    return path


def test_the_page_is_written_where_it_was_asked_for(data: Path) -> None:
    out = data.with_name("for the manager.html")
    words = ["report", str(data), *COLUMNS, "-o", str(out), "-q", "1", "--level", "0.5"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "Wrote" in done.output and data.read_text() == CSV
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>") and "farm.csv" in text
    assert "50% interval" in text and "3: 2 complete, 1 pending" in text


def test_decisions_have_the_digits_of_the_file(data: Path) -> None:
    words = ["report", str(data), *COLUMNS, "-q", "2"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    text = data.with_suffix(".html").read_text(encoding="utf-8")
    (chosen,) = re.findall(r"Choose N \[kg/ha\] = ([\d.]+?)\.? ", text)
    proposed = text.partition("These decisions teach most")[2]
    told = re.findall(r"<td[^>]*>([\d.]+)</td>", proposed.partition("</table>")[0])
    assert len(told) == 2  # the column has one digit behind the point
    assert all(re.fullmatch(r"\d+\.\d", word) for word in [chosen, *told])


def test_limits_are_named_as_they_were_typed(data: Path) -> None:
    data.write_text(
        "N [kg/ha],weather,runoff,yield\n20.5,sun,4,1.5\n30,rain,6,2.5\n61,sun,8,2\n"
    )
    words = ["report", str(data), *COLUMNS, "-q", "1", "--limit", "runoff <= 9"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    text = data.with_suffix(".html").read_text(encoding="utf-8")
    assert "The measured limits (runoff &lt;= 9) are met with probability" in text


def test_rows_are_named_by_their_lines(data: Path) -> None:
    rows = "".join(f"{i},{20 + 7 * i},sun,{2 + i % 2}\n" for i in range(5))
    data.write_text(CSV.splitlines()[0] + "\n\n" + rows)  # the first row is line 3
    done = CliRunner().invoke(app, ["report", str(data), *COLUMNS, "-q", "1"])
    assert done.exit_code == 0, done.output
    text = data.with_suffix(".html").read_text(encoding="utf-8")
    assert "The highest yield so far is 3, in line 4 (" in text
    assert "trial" not in text.partition("</style>")[2]


def test_a_file_without_an_outcome_is_refused(data: Path) -> None:
    data.write_text(CSV.splitlines()[0] + "\n")
    done = CliRunner().invoke(app, ["report", str(data), *COLUMNS])
    assert done.exit_code == 2 and "has no outcome yet" in done.output
    assert not data.with_suffix(".html").exists()


def test_a_watched_file_is_reported_again_whenever_it_changes(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, looks = [], iter(["same", "broken", "more", "stop"])

    def look(seconds: float) -> None:
        what = next(looks)
        if what == "stop":
            raise KeyboardInterrupt
        if what == "broken":  # in the middle of a line
            data.write_text(CSV + "4,50")
        if what == "more":
            data.write_text(CSV + "4,50,sun,3\n")

    def write(opt: object, path: Path, **options: object) -> None:
        written.append(len(data.read_text().splitlines()))

    monkeypatch.setattr(actions.time, "sleep", look)
    monkeypatch.setattr(actions, "write_report", write)
    done = CliRunner().invoke(app, ["report", str(data), *COLUMNS, "--watch"])
    assert written == [4, 5]
    assert "line 5: has 2 cells" in done.stderr and done.exit_code != 0


def test_another_trial_is_weighed(data: Path) -> None:
    done = CliRunner().invoke(app, ["recommend", str(data), *COLUMNS])
    assert done.exit_code == 0, done.output
    said = (
        r"another trial +to know exactly what N \[kg/ha\] = [\d.]+ is worth would gain"
    )
    assert re.search(said, done.stdout)
    done = CliRunner().invoke(app, ["report", str(data), *COLUMNS, "-q", "1"])
    text = data.with_suffix(".html").read_text(encoding="utf-8")
    assert "Is it worth going on?" in text and "no promise" in text
