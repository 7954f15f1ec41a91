"""Names and cells of a file are shown, and never steer the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from botorch_drbo.cli.commands import app
from botorch_drbo.cli.terminal import plain, say, show


def test_markup_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"[bold]price[/bold]": "[red]A"}], "Appended to [link=x]a.csv")
    say("Error: [bold]", "red", error=True)
    shown, errors = capsys.readouterr()
    assert "[bold]price[/bold]" in shown and "[red]A" in shown
    assert "Appended to [link=x]a.csv" in shown and errors == "Error: [bold]\n"


def test_control_characters_are_shown_by_their_codes() -> None:
    assert plain("a\x1b[31m\x07\r\u202eb\té\n") == "a\\x1b[31m\\x07\\r\\u202eb\\té\n"


def test_a_long_word_is_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    row = {f"a_rather_long_name_{i}": "0.12345678901234567" for i in range(9)}
    show([row], "Suggested")
    shown = capsys.readouterr().out
    assert "…" not in shown and shown.count("7") >= 9


@pytest.mark.parametrize("command", ["suggest", "recommend"])
def test_a_file_cannot_speak_to_the_terminal(command: str, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("p\x1b[31m,[bold]w,y\n1,a\x1b[0m,1\n2,[red]b,2\n3,[red]b,3\n")
    words = ["--decisions", "p\x1b[31m", "--contexts", "[bold]w", "--outcome", "y"]
    words += ["--algorithm", "dro"]
    done = CliRunner().invoke(app, [command, str(path), *words])
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    assert "[bold]w: one of [red]b, a\\x1b[0m" in done.output
    assert "p\\x1b[31m" in done.stdout
