"""Worst cases that another program finds."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from torch import Tensor


def worst_case_in_total_variation(f: Tensor, p: Tensor, radius: float) -> float:
    """The smallest expectation within a total variation distance, by HiGHS."""
    n, eye = len(f), np.eye(len(f))
    # Variables q and u with u >= |q - p|.
    solved = linprog(
        np.concatenate([f.numpy(), np.zeros(n)]),
        A_ub=np.block([[eye, -eye], [-eye, -eye], [np.zeros(n), np.ones(n)]]),
        b_ub=np.concatenate([p.numpy(), -p.numpy(), [radius]]),
        A_eq=np.concatenate([np.ones(n), np.zeros(n)])[None],
        b_eq=[1.0],
        method="highs",
    )
    assert solved.status == 0
    return solved.fun
