"""A file that a spreadsheet or a hand has damaged is refused, and never half read."""

from __future__ import annotations

from pathlib import Path

import pytest
from botorch.exceptions.errors import InputDataError

from botorch_drbo.cli.columns import parse_variable
from botorch_drbo.cli.csv_file import CsvFile
from botorch_drbo.cli.options import Options
from botorch_drbo.cli.problem import Problem
from botorch_drbo.space import Continuous, Integer


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.csv"


HEAD = "price,note,profit\n"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ('20,"good,1\n30,bad,2\n', "line 2, column `note`: a quotation mark"),
        ('20,,1\n30,"bad,2', "line 3, column `note`"),
        ('"20,,1\n30,,2\n', "line 2, column `price`"),
        ('20,,"1\n', "line 2, column `profit`"),
        ('20,"good"bad,1\n', "line 2: a quotation mark"),
        ('20,"good,1\n30,"bad",2\n', "line 2, column `note`"),
        ('20, "good,1\n30,,2\n', "line 2, column `note`"),
        ('20,"' + "x" * 200_000 + "\n", "line 2, column"),
    ],
)
def test_an_open_quotation_mark_is_refused_where_it_opens(
    path: Path, rows: str, words: str
) -> None:
    with pytest.raises(InputDataError, match=words):
        CsvFile.read(write(path, HEAD + rows))


def test_an_open_quotation_mark_of_the_header_is_refused(path: Path) -> None:
    with pytest.raises(InputDataError, match="line 1, column 2: a quotation mark"):
        CsvFile.read(write(path, 'price,"note,profit\n20,,1\n'))


def test_a_row_over_several_lines_is_a_row_and_is_told(path: Path) -> None:
    """Two marks far apart may be a note, or two mistakes: nobody can know."""
    file = CsvFile.read(write(path, HEAD + '20,"good,1\n30,so",3\n40,"a ""b""",5\n'))
    assert file.lines == [
        (2, ["20", "good,1\n30,so", "3"]),
        (4, ["40", 'a "b"', "5"]),
    ]
    assert len(file.notes) == 1
    assert "lines 2 to 3 are one row, column `note`" in file.notes[0]
    problem = Problem.parse(
        Options(
            data=path,
            decisions=["price=10:90"],
            contexts=["profit=0:9"],
            outcome="note",
        )
    )
    assert file.notes[0] in problem.notes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("price;demand;profit\n20,5;3;1\n", "semicolons, not with commas"),
        ('"price";"profit"\n20,5;1\n', "semicolons"),
        ("sep=;\nprice;profit\n20;1\n", "semicolons"),
        ("price;profit\n20,5;1,5\n", "semicolons"),
        ("price;demand, kg;profit\n20;3;1\n", "semicolons"),
        ("price\tprofit\n20\t1\n", "tabs"),
        ("price,demand,profit\n20,5,3,1\n", "line 2: has 4 cells.*decimal point"),
        ("price,profit\n20,1\n".encode("utf-16"), "UTF-8"),
        ("price,profit\n20,1\n".encode("utf-16-le"), "UTF-8"),
        ("prix,bénéfice\n20,1\n".encode("latin-1"), "UTF-8"),
        (b"PK\x03\x04\x00\x00", "UTF-8"),
        ("price,price\n1,2\n", "more than once"),
        ("\n ,\n", "empty"),
    ],
)
def test_a_file_of_another_kind_is_recognised(
    path: Path, text: str | bytes, words: str
) -> None:
    with pytest.raises(InputDataError, match=words):
        CsvFile.read(write(path, text))


def test_names_may_have_the_marks_of_others(path: Path) -> None:
    file = CsvFile.read(write(path, "x;1,y;2,z;3\n1,2,3\n"))
    assert file.header == ["x;1", "y;2", "z;3"]


def test_columns_without_a_name_may_be_several(path: Path) -> None:
    file = CsvFile.read(write(path, "price,,profit,\n20,,1,\n"))
    assert file.column("profit") == {2: "1"}


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ('"20,5"', "line 2, column `price`: must be a number, got '20,5'.*comma"),
        ('"1,200.5"', "comma"),
        ("1_5", "line 2, column `price`: must be a number, got '1_5'"),
        ("nan", "must be a number, got 'nan'"),
        ("inf", "must be a number"),
        ("1e400", "must be a number, got '1e400'"),
        ("-1e99999999999999999999", "must be a number"),
        (400 * "9", "must be a number"),
        ("20 EUR", "must be a number, got '20 EUR'.*without a unit"),
        ("0x10", "must be a number"),
        ("\uff12\uff10", "must be a number"),
    ],
)
def test_a_number_is_digits_and_a_point(path: Path, cell: str, words: str) -> None:
    file = CsvFile.read(write(path, f"price,profit\n{cell},1\n"))
    with pytest.raises(InputDataError, match=words):
        file.frame({"price": Continuous(0.0, 99.0)})
    with pytest.raises(InputDataError, match=words.replace("`price`", "`p`")):
        CsvFile.read(write(path, f"x,p\n1,{cell}\n")).frame({"p": None})


@pytest.mark.parametrize(
    ("word", "number"), [("1e2", 100.0), ("-.5", -0.5), ("+3.", 3.0), ("1.5E-1", 0.15)]
)
def test_numbers_as_programs_write_them(path: Path, word: str, number: float) -> None:
    file = CsvFile.read(write(path, f"price,profit\n{word},1\n"))
    assert file.frame({"price": None}).price.tolist() == [number]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({2: "20", 3: "20,5"}, r"line 3, column `p`: '20,5' is not a number.*comma"),
        ({2: "20,5", 3: "30,5"}, "line 2.*comma"),
        ({2: "1_5", 3: "20"}, "line 2, column `p`: '1_5' is not a number"),
        ({2: "20", 3: "30", 4: "n/a"}, "line 4, column `p`: 'n/a' is not a number"),
        ({2: "20", 3: "30", 4: "1e999"}, "line 4, column `p`: '1e999' is not a number"),
        ({2: "20", 3: "20.0"}, "too few to guess"),
    ],
)
def test_a_column_of_numbers_with_a_mistake_is_no_category(
    cells: dict[int, str], words: str
) -> None:
    with pytest.raises(InputDataError, match=words):
        parse_variable("p", cells)


def test_whole_numbers_alone_are_an_integer() -> None:
    assert parse_variable("p", {2: "3", 3: "", 4: "30"}) == ("p", Integer(3, 30))
    assert parse_variable("p", {2: "3", 3: "3.5"}) == ("p", Continuous(3.0, 3.5))


@pytest.mark.parametrize("text", ["p=1_0:90", "p=1_0:90:int", "p=1_0,5:ordinal"])
def test_bounds_are_digits_and_a_point(text: str) -> None:
    with pytest.raises(InputDataError, match="numbers"):
        parse_variable(text)


def test_bounds_with_decimal_commas_are_told_so() -> None:
    with pytest.raises(InputDataError, match="decimal points"):
        parse_variable("p=10,5:90,5")


def test_what_is_appended_has_the_line_ends_of_the_file(path: Path) -> None:
    file = CsvFile.read(write(path, "\ufeffprice,note\r\n20,x\r\n30,y"))
    file.append([{"price": "40"}, {"price": "50"}])
    assert path.read_bytes().decode("utf-8-sig") == (
        "price,note\r\n20,x\r\n30,y\r\n40,\r\n50,\r\n"
    )


def test_a_file_that_was_changed_meanwhile_is_left_alone(path: Path) -> None:
    file = CsvFile.read(write(path, "price,note\n20,x\n"))
    write(path, "price,note\n20,z\n")
    with pytest.raises(InputDataError, match="was changed by another program"):
        file.append([{"price": "40"}])
    assert path.read_text() == "price,note\n20,z\n"
