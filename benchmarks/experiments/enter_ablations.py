"""Importing this enters the ablations into ``ALGORITHMS``."""

from benchmarks.experiments.ablations import (
    DRBOMMDDiagonal,
    StableOptShifted,
    WDRBODetached,
)
from botorch_drbo.recipes import ALGORITHMS

for recipe in (WDRBODetached, StableOptShifted, DRBOMMDDiagonal):
    ALGORITHMS[recipe.name] = recipe
