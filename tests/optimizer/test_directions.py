"""Where a worst distribution moves the contexts, in words that are true of the list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from botorch_drbo import Category, NamedOptimizer, Space
from botorch_drbo.adversaries import WassersteinBall
from botorch_drbo.report.findings import Findings
from botorch_drbo.space import Continuous, Log
from tests.models import uniform

FEW: dict[str, Any] = {"surrogate": "botorch", "num_restarts": 1, "raw_samples": 32}
SPACE = Space(
    {"x": (-0.1, 0.3)}, {"rpm": Log(10.0, 1e4), "load": (0.0, 9e4)}, outcome="y"
)


def run(**options: Any) -> NamedOptimizer:
    opt = NamedOptimizer("erbo", SPACE, **FEW, **options)
    rpm, load = 10.0 ** (1.0 + 3.0 * uniform(12)), 9e4 * uniform(12, seed=1)
    c = pd.DataFrame({"rpm": rpm, "load": load})
    x = pd.DataFrame({"x": 0.4 * uniform(12, seed=2) - 0.1})
    opt.tell(x, c, (rpm.log() + load / 2e4).tolist())
    return opt


@pytest.mark.parametrize(
    ("options", "whose"),
    [
        ({}, "seen"),
        ({"scope": {"rpm": [50.0, 2e3], "load": [2e4, 8e4]}}, "in the scope"),
        (
            {
                "reference": SPACE.context_set(
                    pd.DataFrame({"rpm": [50.0, 2e3], "load": [2e4, 8e4]})
                )
            },
            "in the reference",
        ),
    ],
)
def test_a_move_is_told_from_the_list_that_it_is_of(
    options: dict[str, Any], whose: str
) -> None:
    best = run(**options).recommend(against=WassersteinBall(radius="sd"))
    assert best.direction.endswith(f" lower than {whose}")
    assert "e+" not in best.direction and "times" not in best.direction
    # The geometric mean, by hand.
    logs = np.log(np.array(best.contexts["rpm"].tolist()))
    before, after = (
        float(logs @ best.contexts[f"{name}_weight"].to_numpy())
        for name in ("reference", "worst_case")
    )
    assert f"rpm {-100.0 * np.expm1(after - before):.3g}% lower" in best.direction


def test_the_rounding_error_of_zero_is_zero() -> None:
    noise = -0.3 + 3 * 0.1
    assert noise != 0.0
    decoded = Continuous(-0.3, 0.1).decode(torch.tensor([noise, 1e-9, torch.nan]))
    assert decoded[0] == 0.0 and decoded[1] != 0.0 and decoded[2] is None
    # Tiny units keep their numbers.
    tiny = torch.tensor([2.776e-17], dtype=torch.double)
    assert Continuous(0.0, 1e-15).decode(tiny) == tiny.tolist()


def test_a_report_asks_for_no_more_than_there_is(
    recwarn: pytest.WarningsRecorder,
) -> None:
    space = Space({"x": Category(["a", "b"])}, {"c": Category(["u", "v"])}, outcome="y")
    opt = NamedOptimizer("erbo", space, **FEW)
    opt.tell(
        pd.DataFrame({"x": ["a", "b"] * 3}),
        pd.DataFrame({"c": ["u", "u", "v", "v", "u", "v"]}),
        [1.0, 2.0, 3.0, 5.0, 1.1, 5.2],
    )
    Findings.of(opt, q=3)
    assert not [w for w in recwarn if "asked for" in str(w.message)]
