"""The record on disk, and on which machine it was made."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

FILE = Path(__file__).with_name("record.json")
_LIBRARIES = ("torch", "gpytorch", "linear_operator", "botorch", "numpy", "scipy")


def machine() -> dict[str, str]:
    """What decides the last bits: the processor, its instructions, the libraries."""
    lines = Path("/proc/cpuinfo")
    models = [
        line.split(":", 1)[1].strip()
        for line in (lines.read_text().splitlines() if lines.exists() else [])
        if line.startswith("model name")
    ]
    return {
        "cpu": models[0] if models else platform.processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
        "arithmetic": _arithmetic(),
    }


def _arithmetic() -> str:
    """The last bits of a few sums: a virtual machine may hide what processor it has."""
    numbers = torch.arange(1, 1601, dtype=torch.double).sqrt().reshape(40, 40) % 1.0
    square = numbers @ numbers.T + torch.eye(40, dtype=torch.double)
    factor = torch.linalg.cholesky(square)
    parts = factor, (-numbers).exp(), numbers.log1p(), numbers.cos(), numbers.sum(0)
    parts = (*parts, torch.linalg.solve_triangular(factor, numbers, upper=False))
    bits = b"".join(part.contiguous().numpy().tobytes() for part in parts)
    return hashlib.sha256(bits).hexdigest()[:16]


def load(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())


def save(file: Path, answers: dict[str, dict[str, Any]]) -> None:
    """One line for each answer, so that a change shows which."""
    groups = []
    for name, group in answers.items():
        rows = [f"{json.dumps(key)}: {json.dumps(row)}" for key, row in group.items()]
        groups.append(f"{json.dumps(name)}: {{\n" + ",\n".join(rows) + "\n}")
    head = f'{{"machine": {json.dumps(machine())},\n"answers": {{\n'
    file.write_text(head + ",\n".join(groups) + "\n}}\n")
