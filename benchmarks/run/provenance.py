"""The origin of a result: versions, the commit, the machine and its load."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from functools import cache
from pathlib import Path

import botorch_drbo

LIBRARIES = ("torch", "gpytorch", "botorch")


def versions() -> dict[str, str]:
    """Of this library, and of those that its numbers depend on."""
    found = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"botorch_drbo": botorch_drbo.__version__, **found}


@cache
def commit() -> str:
    """The commit of the working tree, with a + if files have changed; empty if none."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        found = subprocess.run(
            [*git, "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""  # an unpacked archive, or no git: the versions are all that is known
    return found.stdout.strip()


def load() -> float:
    """How many processes have wanted a core in the last minute, by the cores."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


@cache
def machine() -> str:
    """The processor and the versions that times belong to."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in info.read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    libraries = ", ".join(f"{name} {versions()[name]}" for name in LIBRARIES)
    return (
        f"{cpu}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, {libraries}"
    )
