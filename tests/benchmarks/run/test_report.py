"""Estimates in print, and a page with what stands beside it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from matplotlib import pyplot as plt

from benchmarks.run.report import Estimate, Report, Table, estimate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Estimate(1.23456, 0.0234), "1.235 ± 0.023"),
        (Estimate(123.456, 7.89), "123.5 ± 7.9"),
        (Estimate(123.456, 78.9), "123 ± 79"),
        (Estimate(1.0, 0.0), "1"),
        (Estimate(1 / 3, None), "0.3333"),
    ],
)
def test_estimates_in_print(value, text):
    assert str(value) == text


def test_standard_error():
    values = [1.0, 2.0, 4.0]
    assert estimate(values).error == pytest.approx(
        torch.tensor(values).std().item() / math.sqrt(3)
    )


def test_a_report_is_written_with_its_pictures_and_texts(tmp_path: Path):
    figure = plt.figure()
    table = Table(["name", "a", "b"], [["x", "1", "2"]], "**Numbers**", left=2)
    report = Report("Title", ["Text.", table], {"a.png": figure}, {"b.csv": "1,2\n"})
    assert report.write(tmp_path / "new" / "table.md") == tmp_path / "new" / "table.md"
    assert (tmp_path / "new" / "table.md").read_text() == (
        "# Title\n\nText.\n\n**Numbers**\n\n"
        "| name | a | b |\n|---|---|---:|\n| x | 1 | 2 |\n"
    )
    assert (tmp_path / "new" / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "new" / "b.csv").read_text() == "1,2\n"
    assert not plt.fignum_exists(figure.number)
