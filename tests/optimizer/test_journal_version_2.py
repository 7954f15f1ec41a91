"""What 0.2.0 stored is read, and decides as what is made and told the same today."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo import NamedOptimizer, RobustOptimizer
from botorch_drbo.ambiguity import MaximumMeanDiscrepancy
from tests.optimizer.stored_runs import REFERENCE as FORECAST
from tests.optimizer.stored_runs import RUNS, events_of_every_kind, plain, play

DATA = Path(__file__).parent / "data"  # written by 0.2.0
STATES: dict[str, Any] = json.loads((DATA / "version_2.json").read_text())


def of_old(state: dict[str, Any]) -> RobustOptimizer | NamedOptimizer:
    kind = NamedOptimizer if "space" in state["config"] else RobustOptimizer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # other versions
        return kind.from_state_dict(state)


def of_today(name: str) -> RobustOptimizer | NamedOptimizer:
    opt = RUNS[name]()
    play(opt, name)
    return opt


def check_same(old: Any, new: Any, rounding: float) -> None:
    """The same entries, numbers up to rounding."""
    if isinstance(old, dict):
        assert old.keys() == new.keys()
        for key, value in old.items():
            check_same(value, new[key], rounding)
    elif isinstance(old, list):
        assert len(old) == len(new)
        for one, other in zip(old, new, strict=True):
            check_same(one, other, rounding)
    elif isinstance(old, float):
        assert new == pytest.approx(old, rel=rounding, abs=0.0)
    else:
        assert type(new) is type(old) and new == old


def test_every_run_is_there() -> None:
    assert list(STATES) == list(RUNS)
    assert {state["version"] for state in STATES.values()} == {2}


@pytest.mark.parametrize("name", [n for n in RUNS if not n.endswith("mmd")])
def test_old_states_are_read(name: str) -> None:
    old, new = of_old(STATES[name]).state_dict(), of_today(name).state_dict()
    assert old["config"] == new["config"]
    # Decisions are among the events; another torch ends its searches elsewhere.
    same = STATES[name]["environment"]["torch"] == torch.__version__
    check_same(old["events"], new["events"], 1e-13 if same else 1e-2)


@pytest.mark.parametrize("name", ["dro_mmd", "dro_minimax_mmd"])
def test_old_balls_of_mmd_keep_their_numbers(name: str) -> None:
    """Their records have no kernel matrix, but what was made of it."""
    balls = []
    for opt in (of_old(STATES[name]), of_today(name)):
        modules = opt.algorithm.options["ambiguity_set"].modules()
        balls += [m for m in modules if isinstance(m, MaximumMeanDiscrepancy)]
    old, new = balls
    for held in ("radius", "spectrum", "factor"):
        # The last digit of today's is the processor's.
        torch.testing.assert_close(
            getattr(old, held), getattr(new, held), rtol=1e-13, atol=1e-15
        )


DECIDES = [
    "random",
    "erbo",
    "wdrbo_exact",
    "drbo_kde",
    "ts_bocu",
    "phased_gp_us",
    "ec_wdrbo",
    "regret_balancing",
    "dro_mmd",
    "dro_cvar_of_another_radius",
    "dro_wasserstein",
    "dro_total_variation_float32",
    "float32",
    "perturbation",
    "named",
]


@pytest.mark.parametrize("name", DECIDES)
def test_old_states_decide_the_same(name: str) -> None:
    old, new = of_old(STATES[name]).ask(), of_today(name).ask()
    assert type(old) is type(new)
    if isinstance(old, pd.DataFrame):
        pd.testing.assert_frame_equal(old, new)
    else:
        assert torch.equal(old, new)


def test_an_old_journal_is_read_and_continued(path: Path) -> None:
    old = (DATA / "version_2.jsonl").read_bytes()
    path.write_bytes(old)
    same = plain("dro", num_initial=8, reference=FORECAST)
    # 0.2.0 took a decision told in bfloat16 for the one that was asked.
    events_of_every_kind(same, rounded=torch.double)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        with RobustOptimizer.resume(path) as opt:
            assert opt.state_dict()["events"] == same.state_dict()["events"]
            assert path.read_bytes() == old
            x = opt.ask(context_set=FORECAST)
            assert torch.equal(x, same.ask(context_set=FORECAST))
            events = opt.state_dict()["events"]
        assert path.read_bytes().startswith(old)
        with RobustOptimizer.resume(path) as opt:  # new lines after old ones
            assert opt.state_dict()["events"] == events
