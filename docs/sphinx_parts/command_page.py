"""The reference of the command line, from the application itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from typer.main import get_command

from botorch_drbo.cli.commands import app
from botorch_drbo.cli.options import Options

PAGE = Path(__file__).parents[1] / "command_line.md"

_HEAD = """# Command line: every option

`botorch-drbo COMMAND --help` shows the same. [](quickstart.md) is a session, and
[](tables.md) explains the files.

"""
_PROBLEM = """
## Options of the problem

All commands but `example` and `init` take these. Each overrides the key of the same
name in `problem.toml`.

"""


def page() -> str:
    """The page, in Markdown: each command, and once what most of them share."""
    commands: dict[str, Any] = get_command(app).commands
    shared = {field.name for field in fields(Options)} - {"data"}
    parts = [_HEAD]
    for name, command in commands.items():
        is_shared = shared <= {each.name for each in command.params}
        own = [p for p in command.params if not (is_shared and p.name in shared)]
        words = [p.name.upper() for p in own if p.param_type_name == "argument"]
        parts.append(f"## {name}\n\n")
        parts.append(f"```\nbotorch-drbo {name} {' '.join(words)} [OPTIONS]\n```\n\n")
        parts.append(f"{_plain(command.help)}\n\n")
        parts += _listed(own)
        if is_shared:
            parts.append("and [those of the problem](#options-of-the-problem).\n\n")
    parts.append(_PROBLEM)
    parts += _listed(p for p in commands["recommend"].params if p.name in shared)
    return "".join(parts)


def _listed(parameters: Iterable[Any]) -> Iterable[str]:
    """A definition for each parameter."""
    for each in parameters:
        words = [*each.opts, *each.secondary_opts]
        if each.param_type_name == "argument":
            words = [each.name.upper()]
        yield f"{', '.join(f'`{word}`' for word in words)}\n: {_plain(each.help)}\n\n"


def _plain(text: str | None) -> str:
    """Help as Markdown: indented and starred words stay what they are."""
    lines = (line.strip() for line in (text or "").splitlines())
    return re.sub(r"([*<>_])", r"\\\1", "\n".join(lines))
