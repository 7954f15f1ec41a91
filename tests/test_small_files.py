"""No large file enters the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / ".ci" / "small_files"


def test_a_large_tracked_file_is_named(tmp_path: Path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name, size in (
        ("at.bin", 200_000),
        ("ab\u00fcve.bin", 200_001),
        ("no.bin", 10**6),
    ):
        (tmp_path / name).write_bytes(b"0" * size)

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPT)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    subprocess.run(["git", "add", "at.bin"], cwd=tmp_path, check=True)
    assert run().returncode == 0
    subprocess.run(["git", "add", "ab\u00fcve.bin"], cwd=tmp_path, check=True)
    found = run()
    assert found.returncode == 1
    assert found.stdout == "ab\u00fcve.bin: 200,001 bytes, more than 200,000\n"
