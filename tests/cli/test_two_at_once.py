"""Two suggestions for one file at the same moment: two processes, two decisions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo.cli.csv_file import CsvFile

CSV = "price,weather,profit\n20.5,sun,1.5\n30,rain,2.5\n40,sun,2\n35,rain,1\n25,sun,1\n"
WORDS = ["--decisions", "price=10:90", "--contexts", "weather=sun,rain"]
WORDS += ["--outcome", "profit", "--algorithm", "dro"]

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="there is no flock on Windows"
)


def start(path: Path) -> subprocess.Popen[str]:
    program = "from botorch_drbo.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, "suggest", str(path), *WORDS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_the_second_one_waits_and_keeps_apart(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    with CsvFile.locked(path, lambda: None):  # both come while the file is taken
        both = [start(path), start(path)]
        for process in both:
            assert process.stderr is not None
            assert "Waiting for another" in process.stderr.readline()
        assert path.read_text() == CSV
    for process in both:
        shown, errors = process.communicate(timeout=300)
        assert process.returncode == 0 and "Appended" in shown, errors
    text = path.read_text()
    assert text.startswith(CSV)
    first, second = text[len(CSV) :].splitlines()
    assert first != second and first.endswith(",,") and second.endswith(",,")
    assert len(first.split(",")) == len(second.split(",")) == 3


def test_a_file_that_another_one_replaced_is_locked_anew(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    calls: list[int] = []

    def replaced() -> None:  # by an editor, while waiting for the lock
        calls.append(1)
        new = tmp_path / "new.csv"
        new.write_text(CSV)
        new.replace(path)
        outer.close()

    outer = path.open("r+b")
    import fcntl

    fcntl.flock(outer, fcntl.LOCK_EX)
    with CsvFile.locked(path, replaced), path.open("rb") as file:
        with pytest.raises(BlockingIOError):  # the file of that name is what is locked
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert calls == [1]


def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def refuse(file: object, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    path = tmp_path / "data.csv"
    path.write_text(CSV)
    monkeypatch.setattr(fcntl, "flock", refuse)
    entered = False
    with pytest.warns(BotorchWarning, match="cannot be locked.*not supported"):
        with CsvFile.locked(path, lambda: None):
            entered = True
    assert entered
