"""Instances with a certified worst case, which another program has found."""

from __future__ import annotations

import json
from typing import Any

import torch

from tests.data import DATA, needs

REFERENCE = "inner_reference.json"
TENSORS = ("f", "p", "M", "cost", "q")
needs_reference = needs(REFERENCE)


def instances(distance: str) -> list[dict[str, Any]]:
    """All instances of one distance, arrays as tensors."""
    every = json.loads((DATA / REFERENCE).read_text())["instances"]
    chosen = [i for i in every if i["distance"] == distance]
    assert len(chosen) >= 8
    for i in chosen:
        for name in TENSORS:
            if i.get(name) is not None:
                i[name] = torch.tensor(i[name], dtype=torch.double)
    return chosen
