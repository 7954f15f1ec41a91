"""The base of the commands: lists of words, common options, errors in shell words."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import wraps
from importlib import import_module
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand

from botorch_drbo.cli.options import Options
from botorch_drbo.cli.terminal import say

_ACTIONS = "botorch_drbo.cli.actions"
_LISTS = (
    "--decisions",
    "--contexts",
    "--known",
    "--radius",
    "--methods",
    "--shift",
    "--at",
)
_IN_SHELL = {
    "algorithm": "--algorithm",
    "clip": "--clip",
    "group": "--group",
    "context_set": "--forecast",
    "feasibility": "--feasibility",
    "half_life": "--half-life",
    "level": "--level",
    "maximize=False": "--minimize",
    "methods": "--methods",
    "q": "-q",
    "radius": "--radius",
    "shifts": "--shift",
    "surrogate": "--surrogate",
    "target": "--target",
}
"""How an argument of Python is typed; `x` in messages, but not of a column `x`."""


class _ListCommand(TyperCommand):
    """A command whose lists are written ``--decisions price=1:2 stock=0:9``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the option before each entry of its list."""
        spread: list[str] = []
        option = None
        for word in args:
            if word.startswith("-"):
                option = word if word in _LISTS else None
                if option is None:
                    spread.append(word)
            elif option is not None:
                spread += [option, word]
            else:
                spread.append(word)
        return super().parse_args(ctx, spread)


def command(app: typer.Typer) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command to an app, its parameter of the type ``Options`` spread out.

    The function has the parameters and the help; the function of the same name in
    `actions` does the work. Errors are said without a traceback, with exit status 2.

    Args:
        app: The app.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        hints.pop("return")
        shared = [name for name, hint in hints.items() if hint is Options]
        parameters = dict(inspect.signature(function).parameters)
        spread: list[inspect.Parameter] = []
        for name, parameter in parameters.items():
            if name in shared:
                spread += _parameters_of_options()
            else:
                kind = inspect.Parameter.KEYWORD_ONLY
                spread.append(parameter.replace(annotation=hints[name], kind=kind))
        names = {field.name for field in fields(Options)}

        @wraps(function)
        def called(**given: Any) -> None:
            with _errors():
                if shared:
                    chosen = {name: given.pop(name) for name in names}
                    given[shared[0]] = Options(**chosen)
                getattr(import_module(_ACTIONS), function.__name__)(**given)

        called.__dict__["__signature__"] = inspect.Signature(spread)
        called.__annotations__ = {p.name: p.annotation for p in spread}
        return app.command(cls=_ListCommand)(called)

    return add


def _parameters_of_options() -> list[inspect.Parameter]:
    hints = get_type_hints(Options, include_extras=True)
    given = inspect.signature(Options).parameters.values()
    return [parameter.replace(annotation=hints[parameter.name]) for parameter in given]


@contextmanager
def _errors() -> Iterator[None]:
    """Say what was wrong and what is worth knowing, without a traceback."""
    from botorch.exceptions.errors import BotorchError  # seconds: not for ``--help``

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            yield
    except BotorchError as error:
        say(f"Error: {in_shell(str(error))}", "red", error=True)
        raise typer.Exit(2) from error
    except OSError as error:
        reason = error.strerror or str(error)
        place = "" if error.filename is None else f"{error.filename}: "
        say(f"Error: {place}{reason}", "red", error=True)
        raise typer.Exit(2) from error


def _note(message: Warning | str, category: type[Warning], *location: object) -> None:
    """Show a warning without the line of code, which a user of a command does not
    need."""
    say(f"Note: {in_shell(str(message))}", "yellow", error=True)


def in_shell(message: str) -> str:
    r"""A message of the library with the arguments as they are typed in a shell.

    Example:
        >>> in_shell("`half_life` must be positive. The column `level` is empty.")
        '`--half-life` must be positive. The column `level` is empty.'
    """
    words = "|".join(map(re.escape, _IN_SHELL))
    return re.sub(
        rf"(?<!column )`({words})(?:=([^`]+))?`",
        lambda found: f"`{' '.join(filter(None, (_IN_SHELL[found[1]], found[2])))}`",
        message,
    )
