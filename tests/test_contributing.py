"""CONTRIBUTING.md names the layers that `make lint` holds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_table_of_layers_is_that_of_the_import_contract():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = project["tool"]["importlinter"]["contracts"][0]
    layers = [set(re.findall(r"\w+", line)) for line in contract["layers"]]
    text = (ROOT / "CONTRIBUTING.md").read_text().split("| layer | what it knows |")[1]
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    assert [set(re.findall(r"`(\w+)`", row)) for row in rows] == layers
