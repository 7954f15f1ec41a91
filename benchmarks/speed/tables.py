"""Reports: tables for the terminal and, as Markdown, for the repository."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.run.markdown import markdown_table


@dataclass(frozen=True)
class Section:
    """A part of a report: what it is about, a table, and what there is to say of it."""

    title: str
    text: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default=())


@dataclass(frozen=True)
class Line:
    """One comparison: what was measured, what came out, what is asked for."""

    what: str
    ours: str
    other: str
    result: str
    target: str


def report(
    console: Console, out: Path, lines: Sequence[Line], *, title: str, about: str
) -> None:
    """Print the lines as a table, and write them to ``out`` as Markdown."""
    rows = [
        (line.what, line.ours, line.other, line.result, line.target) for line in lines
    ]
    head = ("measured", "ours", "against", "result", "asked for")
    section = Section(title, about, head, rows)
    show(console, section)
    write(console, out, "\n".join([f"# {title}", "", *_body(section)]))


def report_sections(
    console: Console, out: Path, sections: Sequence[Section], *, title: str, about: str
) -> None:
    """Write the sections, which have been shown as they came, to ``out``."""
    text = [f"# {title}", "", about]
    for section in sections:
        text += ["", f"### {section.title}", "", *_body(section)]
    write(console, out, "\n".join(text))


def show(console: Console, section: Section) -> None:
    """Print a section as a table."""
    table = Table(title=section.title, caption=section.text, show_lines=True)
    for name in section.head:
        table.add_column(name)
    for row in section.rows:
        table.add_row(*row)
    console.print(table)
    for note in section.notes:
        console.print(note)


def write(console: Console, out: Path, text: str) -> None:
    """Write a report, and say where it is."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text + "\n", encoding="utf-8")
    console.print(f"Written to {out}")


def _body(section: Section) -> list[str]:
    lines = [
        section.text,
        "",
        *markdown_table(section.head, section.rows, left=len(section.head)),
    ]
    for note in section.notes:
        lines += ["", note]
    return lines
