"""Journals read back, for the tests of this folder."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo.optimizer import RobustOptimizer


def resume_quietly(path: Path, **checks: Any) -> RobustOptimizer:
    with warnings.catch_warnings():
        warnings.simplefilter("error", BotorchWarning)
        return RobustOptimizer.resume(path, **checks)
