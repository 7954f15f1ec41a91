"""A CSV file of trials: read as it is, appended to with the digits that it has."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo.cli.columns import as_decimal, as_number, read_cell
from botorch_drbo.problem.equalities import EXACT
from botorch_drbo.problem.feasible import feasible
from botorch_drbo.space import Category, Continuous, Integer, Log, Space, Variable
from botorch_drbo.space.table import to_tensor

if TYPE_CHECKING:
    import pandas as pd


_SED = {"\t": "\\t"}
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class CsvFile:
    """The header and the lines of a file."""

    # Where it is.
    path: Path
    # Its bytes.
    content: bytes
    # The names of the columns.
    header: list[str]
    # The cells of each row, and the number of the line on which it begins.
    lines: list[tuple[int, list[str]]]
    # What a reader may have missed: rows that are longer than a line.
    notes: list[str]

    @classmethod
    def read(cls, path: Path) -> CsvFile:
        """Read a file; a row has as many cells as the header."""
        content = path.read_bytes()
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputDataError(_no_text(path)) from error
        if "\0" in text:
            raise InputDataError(_no_text(path))
        _check_separator(path, text)
        rows, notes = _rows(path, text)
        if not rows:
            raise InputDataError(
                f"{path} is empty. Write a first line with the names of the columns: "
                "decisions, contexts and the outcome, with commas in between."
            )
        header = rows[0][1]
        twice = sorted({name for name in header if name and header.count(name) > 1})
        if twice:
            raise InputDataError(f"{path} has the columns {twice} more than once.")
        for number, row in rows[1:]:
            if len(row) != len(header):
                raise InputDataError(
                    f"{path}, line {number}: has {len(row)} cells, and the header has "
                    f"{len(header)}. Write numbers with a decimal point, not with a "
                    "comma, and put a text with a comma in quotation marks."
                )
        return cls(path, content, header, rows[1:], notes)

    def column(self, name: str) -> dict[int, str]:
        """The cells of a column by the numbers of their lines."""
        j = self.header.index(name)
        return {number: row[j] for number, row in self.lines}

    def numbers_by(self, name: str) -> dict[str, dict[str, float]]:
        """Numbers by the names in a column, or in the first one if there is none."""
        key = name if name in self.header else self.header[0]
        found: dict[str, dict[str, float]] = {}
        for line, level in self.column(key).items():
            if not level or level in found:
                what = f"{level!r} has a row already" if level else "no name"
                raise InputDataError(
                    f"{self.path}, line {line}, column `{key}`: {what}. Give each "
                    "level one row."
                )
            found[level] = {}
            for other in (name for name in self.header if name != key):
                number = as_number(word := self.column(other)[line])
                if number is None:
                    raise InputDataError(
                        f"{self.path}, line {line}, column `{other}`: must be a "
                        f"number, got {word!r}. Write texts as columns of 0 and 1, "
                        "and leave out a column that is not known of every level."
                    )
                found[level][other] = number
        return found

    def frame(
        self, variables: Mapping[str, Variable | None], texts: Sequence[str] = ()
    ) -> pd.DataFrame:
        """The rows as a table, labelled by their lines; empty cells are missing."""
        wanted = [*variables, *texts]
        missing = [name for name in wanted if name not in self.header]
        if missing:
            raise InputDataError(
                f"{self.path} has no column `{missing[0]}`. It has {self.header}."
            )
        columns = {
            name: [
                read_cell(word, variable, f"line {number}, column `{name}`:")
                for number, word in self.column(name).items()
            ]
            for name, variable in variables.items()
        }
        for name in texts:
            columns[name] = [word or None for word in self.column(name).values()]
        numbers = [number for number, _ in self.lines]
        return pd.DataFrame(columns, index=pd.Index(numbers, name="line"), dtype=object)

    @staticmethod
    @contextmanager
    def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
        """Keep other suggestions for a file away, from before it is read to the end.

        Nobody else is kept away: the lock is advisory (``flock``; none on Windows), and
        ``append`` looks whether the file still is as it was read.
        """
        if sys.platform == "win32":
            yield
            return
        import fcntl  # not on Windows

        while True:
            with path.open("r+b") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    waiting()
                    fcntl.flock(file, fcntl.LOCK_EX)
                except OSError as error:
                    warnings.warn(
                        f"{path} cannot be locked ({error}); make sure that no other "
                        "`suggest` writes to it.",
                        BotorchWarning,
                        stacklevel=3,
                    )
                # An editor may have put another file in its place meanwhile.
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    yield
                    return

    def append(self, rows: Sequence[Mapping[str, str]]) -> None:
        """Add rows at the end; columns without a value stay empty."""
        end = b"\r\n" if b"\r\n" in self.content else b"\n"
        text = io.StringIO(newline="")
        csv.DictWriter(
            text, self.header, extrasaction="ignore", lineterminator=end.decode()
        ).writerows(rows)
        ended = self.content.endswith((b"\n", b"\r"))
        with self.path.open("r+b") as file:
            if file.read() != self.content:
                raise InputDataError(
                    f"{self.path} was changed by another program while decisions were "
                    "computed, so nothing was written. Run `suggest` again."
                )
            file.write((b"" if ended else end) + text.getvalue().encode())


def _rows(path: Path, text: str) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """Cells without the spaces around them, and the first line of each row; notes."""
    lines = io.StringIO(text, newline="").readlines()
    reader = csv.reader(lines, strict=True, skipinitialspace=True)
    rows: list[tuple[int, list[str]]] = []
    notes: list[str] = []
    while True:
        first = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            location = _open_cell(lines[first - 1], rows)
            raise InputDataError(
                f"{path}, line {first}{location}: a quotation mark is not closed, or "
                "there is text next to a quoted cell. A cell that begins with a "
                "quotation mark must end with one; inside it, write the mark twice."
            ) from error
        if row is None:
            return rows, notes
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        long = [j for j, cell in enumerate(cells) if len(cell.splitlines()) > 1]
        if long:
            notes.append(
                f"{path}: lines {first} to {reader.line_num} are one row"
                f"{_column(rows, long[0])} has them in quotation marks"
            )
        rows.append((first, cells))


def _open_cell(line: str, rows: list[tuple[int, list[str]]]) -> str:
    """The column in which a quotation mark opens on a line and does not close."""
    if line.count('"') % 2 == 0:
        return ""
    cells = next(csv.reader([line[: csv.field_size_limit()]], skipinitialspace=True))
    return _column(rows, len(cells) - 1)


def _column(rows: list[tuple[int, list[str]]], j: int) -> str:
    header = rows[0][1] if rows else []
    return f", column `{header[j]}`" if j < len(header) else f", column {j + 1}"


def _check_separator(path: Path, text: str) -> None:
    lines = [line for line in text.splitlines() if line.strip()][:2]
    if lines and "," not in lines[0]:
        del lines[1:]  # its numbers may have as many decimal commas
    for separator, name in _OTHER_SEPARATORS.items():
        if lines and all(line.count(separator) > line.count(",") for line in lines):
            raise InputDataError(
                f"{path} is written with {name}, not with commas, and its numbers "
                "perhaps with decimal commas, as spreadsheets do in many countries. "
                "Save it with commas and decimal points. In a shell, if no text in it "
                f"has a comma: sed 's/,/./g; s/{_SED.get(separator, separator)}/,/g' "
                f"{shlex.quote(str(path))} > new.csv"
            )


def _no_text(path: Path) -> str:
    return (
        f"{path} is no text in UTF-8. Save it as `CSV UTF-8` (a spreadsheet offers "
        "this as a file type; an .xlsx file is no CSV file)."
    )


@contextmanager
def lines_of(path: Path) -> Iterator[None]:
    """Say of which file a line or a column is, that an error or a warning names."""
    try:
        yield
    except InputDataError as error:
        # The name of a table is that of an argument which nobody has typed here.
        message = re.sub(r"^`\w+`, (?=line |column )", "", str(error))
        if not message.startswith(("line ", "column ")):
            raise
        raise InputDataError(f"{path}, {message}") from error


_STEP, _STEP_OF_AN_EMPTY_COLUMN = 1e-2, 1e-4  # of the side of a box, at most
_SIGNIFICANT = 3  # digits of a logarithmic number, at least
_MOST_SIGNIFICANT = 17  # digits of a number, as many as tell any two apart
_MOST_ROUNDED = 10  # columns: two choices for each


def in_digits(
    x: pd.DataFrame, pending: pd.DataFrame, file: CsvFile, space: Space
) -> list[dict[str, str]]:
    """Decisions as they are written: rounded to the digits of their columns.

    Each number becomes the nearest one with so many digits, or the next one on its
    other side where bounds, constraints or pending decisions leave no choice. If that
    does not help either, the decision keeps all its digits. A number of an interval is
    rounded to a hundredth of its bounds at the coarsest, whatever its column holds.
    """
    names = list(space.decisions)
    taken = _points(pending, space)
    ahead = _points(x, space)
    cells = {name: [*filter(None, file.column(name).values())] for name in names}
    written: list[dict[str, str]] = []
    for row in x.to_dict("records"):
        ahead = ahead[1:]
        options = [_options(row[n], space.decisions[n], cells[n]) for n in names]
        if sum(len(words) > 1 for words in options) > _MOST_ROUNDED:
            options = [words[:1] for words in options]
        exact = tuple(_exact(row[name]) for name in names)
        tried = [*product(*options), exact]
        columns = {
            name: [
                word if isinstance(space.decisions[name], Category) else float(word)
                for word in words
            ]
            for name, words in zip(names, zip(*tried, strict=True), strict=True)
        }
        X = to_tensor(columns, space.decisions, "x")
        allowed = feasible(space.search_space, X, EXACT).tolist()
        points, apart = X.tolist(), [*taken, *ahead]
        free = (i for i, ok in enumerate(allowed) if ok and points[i] not in apart)
        i = next(free, len(tried) - 1)
        taken.append(points[i])
        written.append(dict(zip(names, tried[i], strict=True)))
    return written


def in_full(table: pd.DataFrame) -> list[dict[str, str]]:
    """Rows as they are written with all digits."""
    return [
        {str(name): _exact(value) for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def as_values(
    words: Mapping[str, str], variables: Mapping[str, Variable]
) -> dict[str, str | float | int]:
    """Words as JSON has them: the name of a category, a whole number, or a number."""
    found: dict[str, str | float | int] = {}
    for name, word in words.items():
        if isinstance(variables[name], Category):
            found[name] = word
        else:
            number = float(word)
            whole = number.is_integer() and abs(number) < 2**53
            found[name] = int(number) if whole else number
    return found


def _points(x: pd.DataFrame, space: Space) -> list[list[float]]:
    return to_tensor(x, space.decisions, "x").tolist()


def _options(value: object, variable: Variable, cells: Sequence[str]) -> list[str]:
    """The nearest numbers with the digits of a column, the nearest first."""
    if not isinstance(value, (int, float)):  # the name of a category
        return [_exact(value)]
    if not isinstance(variable, (Continuous, Log)):
        digits = _decimals(cells) if isinstance(variable, Integer) else 0
        digits = min(digits, _MOST_SIGNIFICANT)
        return [f"{value:.{digits}f}" if digits else _exact(value)]
    lower, upper = variable.lower, variable.upper
    if isinstance(variable, Log):
        significant = max([_SIGNIFICANT, *map(_num_digits, cells)])
        significant = min(significant, _MOST_SIGNIFICANT)
        digits = significant - 1 - math.floor(math.log10(value))
    else:
        step = _STEP if cells else _STEP_OF_AN_EMPTY_COLUMN
        digits = math.ceil(-math.log10(step * (upper - lower)))
        lead = math.floor(math.log10(max(abs(lower), abs(upper))))
        digits = max(min(_decimals(cells), _MOST_SIGNIFICANT - 1 - lead), digits)
    digits = max(0, digits)
    near = Decimal(f"{value:.{digits}f}") + 0  # a zero without a sign
    unit = Decimal(1).scaleb(-digits)
    words = [f"{n:f}" for n in (near, near + unit.copy_sign(Decimal(value) - near))]
    inside = [word for word in words if lower <= float(word) <= upper]
    return inside or [_exact(value)]


def _decimals(cells: Sequence[str]) -> int:
    """The most digits behind the point."""
    return max([0, *(_digits_behind(as_decimal(word)) for word in cells)])


def _digits_behind(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # a finite number
    return -exponent


def _num_digits(word: str) -> int:
    return len(as_decimal(word).normalize().as_tuple().digits)


def _exact(value: object) -> str:
    """All digits, and none behind the point of a whole number."""
    return f"{value!r}".removesuffix(".0") if isinstance(value, float) else str(value)
