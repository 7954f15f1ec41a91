"""Every number of a table of README.md and docs/*.md is that of its source."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pandas as pd
import pytest
import torch

from benchmarks.experiments.demo import profits
from benchmarks.run.config import from_toml
from benchmarks.run.world import make_problem
from tests.page_numbers import (
    PAGES,
    ROOT,
    Passage,
    Printed,
    numbers,
    passages,
    text_of,
    wrong_numbers,
)
from tests.page_sources import SOURCES
from tests.page_sources.demo import WORLDS
from tests.page_sources.files import RESULTS

NOT_MEASURED = "not measured: "  # and why a test need not compute it again


@cache
def found(page: str) -> list[Passage]:
    return list(passages(text_of(page)))


@cache
def rows_of(source: str):
    return SOURCES[source]()


FROM_FILES = [
    pytest.param(page, passage, id=f"{page}:{passage.line}")
    for page in PAGES
    for passage in found(page)
    if passage.source and not passage.source.startswith(NOT_MEASURED)
]


@pytest.mark.parametrize(("page", "passage"), FROM_FILES)
def test_numbers_are_those_of_the_source(page: str, passage: Passage):
    assert wrong_numbers(passage, rows_of(passage.source)) == []


@pytest.mark.parametrize(("page", "passage"), FROM_FILES)
def test_any_wrong_number_is_found(page: str, passage: Passage):
    for i, row in enumerate(passage.rows):
        for j, number in enumerate(row):
            digits = f"{number.value + 2 * number.unit:.{_decimals(number)}f}"
            rows = [list(each) for each in passage.rows]
            rows[i][j] = Printed(digits)
            wrong = wrong_numbers(replace(passage, rows=rows), rows_of(passage.source))
            assert len(wrong) == 1 and digits in wrong[0]


def _decimals(number: Printed) -> int:
    return len(f"{number.unit:.12f}".rstrip("0").partition(".")[2])


@pytest.mark.parametrize("page", PAGES)
def test_every_table_of_numbers_names_its_source(page: str):
    without = [
        f"{page}:{passage.line}"
        for passage in found(page)
        if passage.is_table and any(passage.rows) and not passage.source
    ]
    assert without == []


def test_every_source_is_a_committed_file_and_used():
    for source in SOURCES:
        path, _, _ = source.partition(", ")
        assert list(ROOT.glob(path)), source
    assert {passage.source for page in PAGES for passage in found(page)} >= set(SOURCES)


@pytest.mark.parametrize("file", ["shops.csv", "further_shops.csv"])
def test_shops_of_the_demo_earn_what_their_orders_earn(file: str):
    shops = pd.read_csv(RESULTS / "demo" / file)
    problem = make_problem(from_toml("demo").problems[0])
    orders = torch.tensor(shops["copies"].to_numpy()).unsqueeze(-1) / 1000
    for world, factor in zip(WORLDS, (4 / 3, 1.0, 2 / 3, 0.5), strict=True):
        earned = profits(problem, orders, factor)
        assert earned.tolist() == pytest.approx(shops[world].tolist(), abs=0.01)


def test_numbers_of_a_text():
    text = "1,024 of 2e-8, .5 and -5.3 ± 3.0; W1, 0.18.1, `7`, [x](y8.md), $9$, 10%."
    values = [number.value for number in numbers(text)]
    assert values == [1024, 2e-8, 0.5, -5.3, 3.0, 10]


def test_a_number_is_compared_at_its_last_digit():
    assert Printed("441").is_rounded(440.8) and not Printed("441").is_rounded(440.4)
    assert Printed(".50").is_rounded(0.504) and not Printed(".50").is_rounded(0.506)
    assert Printed("2e-8").is_rounded(1.6e-8) and not Printed("2e-8").is_rounded(1e-8)
