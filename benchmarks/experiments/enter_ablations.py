"""Importing this enters the ablations into ``ALGORITHMS``."""

from benchmarks.experiments.ablations import (
    DRBOMMDDiagonal,
    StableOptShifted,
    WDRBODetached,
)
from botorch_drbo.algorithms import ALGORITHMS

for recipe in (WDRBODetached, StableOptShifted, DRBOMMDDiagonal):
    ALGORITHMS[recipe.name] = recipe
