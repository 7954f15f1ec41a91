"""All runs: the modules enter theirs when they are imported."""

from __future__ import annotations

from tests.transcripts import commands, hosts, recipes, tables, tensors
from tests.transcripts.transcript import RUNS

__all__ = ["RUNS", "commands", "hosts", "recipes", "tables", "tensors"]
