"""Raw results come out of the git history into their places."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.raw import restore
from benchmarks.run.config import ConfigError


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True
    )
    return done.stdout.decode().strip()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A history: raw files, other raw files, then none."""
    git(tmp_path, "init", "-q", "clone")
    clone = tmp_path / "clone"
    folder = clone / "results"
    for name in ("one", "two"):
        (folder / name).mkdir(parents=True)
        (folder / name / "table.md").write_text("kept")
    for content in (b"\x00early", b"\x00late"):
        (folder / "one" / "results.parquet").write_bytes(content)
        (folder / "two" / "regret.png").write_bytes(content)
        git(clone, "add", ".")
        git(clone, "commit", "-qm", "raw")
    git(clone, "rm", "-q", "results/one/results.parquet", "results/two/regret.png")
    (clone / ".gitignore").write_text("*.parquet\n*.png\n")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "none")
    (clone / "more.md").write_text("later")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "later")
    return folder


def test_the_last_ones_and_those_of_a_commit(results: Path):
    one, two = results / "one" / "results.parquet", results / "two" / "regret.png"
    assert restore(results, name="two") == [two]
    assert two.read_bytes() == b"\x00late" and not one.exists()
    assert restore(results) == [one, two]  # what is there stays
    assert one.read_bytes() == b"\x00late"
    assert git(results, "status", "--porcelain") == ""  # nothing is staged
    one.unlink()
    assert restore(results, "HEAD~3", "one") == [one]
    assert one.read_bytes() == b"\x00early"


def test_a_file_that_is_another_stays(results: Path):
    other = results / "two" / "regret.png"
    other.write_bytes(b"mine")
    with pytest.raises(ConfigError, match=r"regret\.png is another than that of"):
        restore(results)
    assert other.read_bytes() == b"mine"
    assert not (results / "one" / "results.parquet").exists()


def test_what_the_history_does_not_have_is_said(results: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match="HEAD has no raw files of any experiment"):
        restore(results, "HEAD")
    with pytest.raises(ConfigError, match="no commit with raw files of three"):
        restore(results, name="three")
    with pytest.raises(ConfigError, match="no commit 0123abc"):
        restore(results, "0123abc")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{results.parent}", "shallow")
    with pytest.raises(ConfigError, match="git fetch --unshallow"):
        restore(tmp_path / "shallow" / "results")


def test_a_shallow_clone_is_served_as_the_sentence_says(results: Path, tmp_path: Path):
    git(results, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{results.parent}", "shallow")
    git(tmp_path / "shallow", "fetch", "-q", "--unshallow", "--filter=blob:none")
    one, _ = restore(tmp_path / "shallow" / "results")
    assert one.read_bytes() == b"\x00late"
