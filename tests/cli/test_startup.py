"""`--help` needs none of the libraries that take seconds to import."""

from __future__ import annotations

import inspect
import subprocess
import sys

from typer.testing import CliRunner

from botorch_drbo import __version__
from botorch_drbo.cli import actions, options
from botorch_drbo.cli.commands import app
from botorch_drbo.recommendation.promise import LEVEL
from botorch_drbo.surrogate import SURROGATES
from botorch_drbo.surrogate.by_name import DEFAULT_SURROGATE

SLOW = {"torch", "botorch", "gpytorch", "pandas", "matplotlib", "scipy", "numpy"}


def imported_by(*words: str) -> set[str]:
    code = f"""
import sys
from botorch_drbo.cli import main
sys.argv = ["botorch-drbo", *{words!r}]
try:
    main()
except SystemExit as ended:
    assert ended.code == 0
print("imported:", *(name for name in sys.modules if "." not in name))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("imported:")[2].split())


def test_help_imports_nothing_slow() -> None:
    assert imported_by("--help").isdisjoint(SLOW)
    assert imported_by("suggest", "--help").isdisjoint(SLOW)


def test_words_that_stand_twice_are_the_same() -> None:
    assert options.SURROGATES.split(", ") == list(SURROGATES)
    assert options.DEFAULT_SURROGATE == DEFAULT_SURROGATE
    assert options.LEVEL == LEVEL


def test_each_command_has_an_action_with_its_parameters() -> None:
    declared = {command.callback.__wrapped__ for command in app.registered_commands}
    assert len(declared) == 11
    for function in declared:
        action = getattr(actions, function.__name__)
        names = list(inspect.signature(function).parameters)
        assert list(inspect.signature(action).parameters) == names


def test_the_version_is_said() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"botorch-drbo {__version__}\n")
    assert imported_by("--version").isdisjoint(SLOW)
