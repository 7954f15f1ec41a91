"""Damaged files of every kind: one of our errors, or what was written.

Journals and states have their own: ``tests/optimizer/test_damage.py``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from botorch.exceptions.errors import InputDataError

from benchmarks.run.config import ConfigError, from_toml
from benchmarks.run.storage import RunKey, load, run_file, save, stored_rows
from botorch_drbo.cli.csv_file import CsvFile
from botorch_drbo.cli.problem import read_problem
from tests.attacks.counted import count, num_cases
from tests.benchmarks.run.test_storage import HEADER, RUN

CSV = b"""field,sort,dose,rain,soil,yield
N1,A,0.01,80,clay,5.1
N2,"B, late",20,140,sand,6.0
N3,A,0.5,200,sand,6.4
"""
TOML = b"""outcome = "yield"
minimize = false
limits = ["rain <= 300"]
radius = 0.2
[decisions]
sort = {Category = ["A", "B, late"]}
dose = {Log = [0.01, 100]}
[contexts]
rain = [0, 300]
soil = {Category = ["clay", "sand"]}
"""
CONFIG = b"""problems = ["newsvendor"]
algorithms = ["erbo", {name = "random"}]
baseline = "erbo"
[smoke]
seeds = 1
iterations = 2
options = { num_restarts = 1 }
[laptop]
seeds = [0, 3]
iterations = 30
"""
WORDS = [b'"', b",", b"\n", b"=", b"[", b"]", b"{", b"}", b"nan", b"1e999", b"-0"]
WORDS += [b"\xff", b"\x00", b"\r", b"'", b"rain", b"[contexts]\n", b"[decisions]\n"]
WORDS += [b"\xef\xbb\xbf", b"99999999999999999999999", b"true", b"yield", b'""', b"#"]


def damaged(content: bytes, chance: random.Random) -> bytes:
    """One to four cuts, doublings, foreign words, flipped bits."""
    for _ in range(chance.randint(1, 4)):
        a, b = sorted(chance.randrange(len(content) + 1) for _ in range(2))
        b = min(b, a + chance.choice([1, 1, 3, 20, 10**6]))
        match chance.randrange(5):
            case 0:
                content = content[:a] + content[b:]
            case 1:
                content = content[:b] + content[a:]
            case 2:
                content = content[:a] + chance.choice(WORDS) + content[a:]
            case 3:
                content = content[:a] + chance.choice(WORDS) + content[b:]
            case 4 if a < len(content):
                flipped = content[a] ^ 1 << chance.randrange(8)
                content = content[:a] + bytes([flipped]) + content[a + 1 :]
        content = content or b"\n"
    return content


def attack(
    name: str,
    content: bytes,
    path: Path,
    read: Callable[[Path], object],
    error: type[Exception],
    num: int,
) -> int:
    """How many were refused; another error than ours fails."""
    chance = random.Random(num)
    refused = 0
    for _ in range(num):
        path.write_bytes(damaged(content, chance))
        count(f"damaged {name}")
        try:
            read(path)
        except error as caught:
            assert len(str(caught)) > 20
            refused += 1
    return refused


NUM = num_cases(300, 3_000)


def test_csv(tmp_path):
    path = tmp_path / "data.csv"
    refused = attack("CSV files", CSV, path, CsvFile.read, InputDataError, NUM)
    assert refused > NUM / 10


def test_problem_toml(tmp_path):
    (tmp_path / "data.csv").write_bytes(CSV)
    data = CsvFile.read(tmp_path / "data.csv")

    def read(path):
        return read_problem(path, data)

    path = tmp_path / "problem.toml"
    path.write_bytes(TOML)
    assert read_problem(path, data).decisions
    refused = attack("problem.toml files", TOML, path, read, InputDataError, NUM)
    assert refused > NUM / 3


def test_benchmark_configs(tmp_path):
    def read(path):
        return from_toml(path, "smoke")

    path = tmp_path / "mine.toml"
    path.write_bytes(CONFIG)
    assert read(path)
    refused = attack("benchmark configs", CONFIG, path, read, ConfigError, NUM)
    assert refused > NUM / 3


def test_parquet(tmp_path):
    path = run_file(tmp_path, RunKey("newsvendor", "random", 0))
    save(RUN, path)
    assert len(stored_rows(path, HEADER)) == 2
    content = path.read_bytes()

    def read(path):
        stored_rows(path, HEADER)
        load(path)

    assert attack("Parquet files", content, path, read, ConfigError, NUM) > NUM / 3
