"""A CSV file of trials: read as it is, and only ever appended to."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from botorch.exceptions.errors import InputDataError

from botorch_drbo.cli.columns import as_cell
from botorch_drbo.space import Variable


@dataclass(frozen=True)
class CsvFile:
    """The header and the lines of a file.

    Attributes:
        path: Where it is.
        header: The names of the columns.
        lines: The cells of each row, and the number of its line in the file.
    """

    path: Path
    header: list[str]
    lines: list[tuple[int, list[str]]]

    @classmethod
    def read(cls, path: Path) -> CsvFile:
        """Read a file; a row has as many cells as the header.

        Raises:
            InputDataError: No such file, an empty one, a name twice, or a row with
                another number of cells.
        """
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputDataError(f"{path} cannot be read: {error}") from error
        reader = csv.reader(io.StringIO(text, newline=""))
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
        rows = [(number, row) for number, row in rows if any(row)]
        if not rows:
            raise InputDataError(
                f"{path} is empty. Write a first line with the names of the columns: "
                "decisions, contexts and the outcome, with commas in between."
            )
        header = rows[0][1]
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise InputDataError(f"{path} has the columns {twice} more than once.")
        for number, row in rows[1:]:
            if len(row) != len(header):
                raise InputDataError(
                    f"{path}, line {number}: has {len(row)} cells, and the header has "
                    f"{len(header)}."
                )
        return cls(path, header, rows[1:])

    def column(self, name: str) -> list[str]:
        """The cells of a column; none if there is no such column."""
        if name not in self.header:
            return []
        j = self.header.index(name)
        return [row[j] for _, row in self.lines]

    def frame(self, variables: Mapping[str, Variable | None]) -> pd.DataFrame:
        """The rows as a table, labelled by their lines; empty cells are missing.

        Args:
            variables: The columns; None for one that is just numbers.

        Raises:
            InputDataError: A column that the file does not have.
        """
        missing = [name for name in variables if name not in self.header]
        if missing:
            raise InputDataError(
                f"{self.path} has no column `{missing[0]}`. It has {self.header}."
            )
        columns = {
            name: [as_cell(word, variable) for word in self.column(name)]
            for name, variable in variables.items()
        }
        numbers = [number for number, _ in self.lines]
        return pd.DataFrame(columns, index=pd.Index(numbers), dtype=object)

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows at the end; columns without a value stay empty."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        for row in rows:
            writer.writerow([_word(row.get(name, "")) for name in self.header])
        with self.path.open("r+b") as file:
            file.seek(-1, io.SEEK_END)
            ended = file.read(1) == b"\n"
            file.write((("" if ended else "\n") + text.getvalue()).encode())


def _word(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)
