"""Raw results out of the git history: rows and pictures that ``HEAD`` does not have."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.run.config import ConfigError

KINDS = (".parquet", ".png")
LAST = "last"


def restore(results: Path, commit: str = LAST, name: str = "") -> list[Path]:
    """Write the raw files of a commit where they were.

    Args:
        results: The folder of all results, in a clone with its history.
        commit: One that has them, or ``last``: the last one that does.
        name: An experiment; all if empty.

    Returns:
        The files.

    Raises:
        ConfigError: The history does not have them, or another file is in a place.
            Nothing has changed then.
    """
    if commit == LAST:
        commit = _before_they_left(results, name)
    listed = _git(results, "ls-tree", "-r", "-z", commit, f"./{name}")
    if listed is None:
        raise ConfigError(f"The history of {results} has no commit {commit}. {_WHOLE}")
    blobs = {}
    for entry in listed.decode().split("\0")[:-1]:
        about, _, file = entry.partition("\t")
        if file.endswith(KINDS):
            blobs[results / file] = about.split()[2]
    if not blobs:
        raise ConfigError(
            f"{commit} has no raw files of {name or 'any experiment'}: give a commit "
            f"that has, or {LAST!r}."
        )
    missing = {path: blob for path, blob in blobs.items() if not path.exists()}
    for path in blobs.keys() - missing.keys():
        here = _git(results, "hash-object", "--no-filters", str(path.resolve()))
        if here is None or here.decode().strip() != blobs[path]:
            raise ConfigError(
                f"{path} is another than that of {commit}: move it away first."
            )
    for path, blob in missing.items():
        content = _git(results, "cat-file", "blob", blob)
        if content is None:
            raise ConfigError(f"git cannot bring {path} of {commit}. {_WHOLE}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return sorted(blobs)


_WHOLE = (
    "A clone of depth 1 has only the last commit: `git fetch --unshallow "
    "--filter=blob:none` brings the others, without their files."
)


def _before_they_left(results: Path, name: str) -> str:
    """The last commit that has raw files: before one that took rows away."""
    for kind in KINDS:
        file = f":(glob)./{name or '.'}/**/*{kind}"
        about = ("--no-renames", "--diff-filter=D", "--format=%H", "--", file)
        if found := _git(results, "log", "-1", *about):
            return f"{found.decode().strip()}^"
    raise ConfigError(
        f"The history of {results} has no commit with raw files of "
        f"{name or 'any experiment'}. {_WHOLE}"
    )


def _git(folder: Path, *arguments: str) -> bytes | None:
    """What git prints; None if it fails."""
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True)
    return done.stdout if done.returncode == 0 else None
