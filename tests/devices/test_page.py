"""docs/gpu.md has the table of reads, and its command finds tests."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.devices.reads import READS, READS_ON_CUDA

EVERY_READ = READS | READS_ON_CUDA

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gpu.md").read_text()


def test_the_table_is_that_of_the_tests():
    rows = re.findall(r"^\| `(.*?)` \| (.*?) \|$", PAGE, re.MULTILINE)
    assert dict(rows) == EVERY_READ


def test_every_place_exists():
    for place in EVERY_READ:
        if place != "outside":
            file, function = place.split(":")
            text = (ROOT / "botorch_drbo" / file).read_text()
            assert f"def {function}(" in text, place


def test_the_command_finds_tests_that_need_a_gpu():
    ((folders, chosen),) = re.findall(r'python -m pytest (.*?) -k "(.*?)" -rs', PAGE)
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--co", "-q", "-k", chosen, *folders.split()],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    assert "test_nothing_waits_on_a_gpu" in found
    assert "test_cuda" in found
