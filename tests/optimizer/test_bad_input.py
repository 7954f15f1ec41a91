"""Every wrong call is a clear error and changes nothing, in memory or on the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError

from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.recipes.random_search import RandomSearch
from tests.optimizer.journals import sealed

UNIT = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
X = torch.tensor([[0.5, 0.5]], dtype=torch.double)
C = torch.tensor([[5.0]], dtype=torch.double)
NAN, INF = float("nan"), float("inf")
SHAPE, DATA = BotorchTensorDimensionError, InputDataError

CALLS: dict[str, tuple[Callable[[RobustOptimizer], Any], type[Exception], str]] = {
    "ask zero": (lambda o: o.ask(0), DATA, "`q`"),
    "ask negative": (lambda o: o.ask(-2), DATA, "`q`"),
    "ask float": (lambda o: o.ask(1.0), DATA, "`q`"),  # pyright: ignore
    "ask bool": (lambda o: o.ask(True), DATA, "`q`"),
    "x nan": (lambda o: o.tell(X * NAN, C, 1.0), DATA, "`x`.*NaN"),
    "x infinite": (lambda o: o.tell(X + INF, C, 1.0), DATA, "`x`.*infinite"),
    "x columns": (lambda o: o.tell(X[:, :1], C, 1.0), SHAPE, "`x`.*2 columns"),
    "x vector": (lambda o: o.tell(torch.rand(3), C, 1.0), SHAPE, "`x`.*2 columns"),
    "x 3-d": (lambda o: o.tell(X.unsqueeze(0), C, 1.0), SHAPE, "`x`"),
    "x empty": (lambda o: o.tell(X[:0], C[:0], X[:0, 0]), SHAPE, "`x`"),
    "x outside": (lambda o: o.tell(X + 1, C, 1.0), DATA, "`x`.*outside `bounds`"),
    "x integer": (lambda o: o.tell(X.long(), C, 1.0), DATA, "`x`.*floating"),
    "x list": (lambda o: o.tell([0.5, 0.5], C, 1.0), DATA, "`x`.*Tensor"),  # pyright: ignore
    "c nan": (lambda o: o.tell(X, C * NAN, 1.0), DATA, "`c`.*NaN"),
    "c columns": (lambda o: o.tell(X, X, 1.0), SHAPE, "`c`.*1 columns"),
    "c outside": (lambda o: o.tell(X, -C, 1.0), DATA, "`c`.*outside `context_bounds`"),
    "c integer": (lambda o: o.tell(X, C.int(), 1.0), DATA, "`c`.*floating"),
    "c one row for many": (
        lambda o: o.tell(X.repeat(40, 1), torch.rand(40), torch.rand(40)),
        SHAPE,
        r"`c` must have 1 columns, got shape \(40,\).*unsqueeze",
    ),
    "rows": (lambda o: o.tell(X, C.repeat(2, 1), 1.0), SHAPE, "one row per trial"),
    "y nan": (lambda o: o.tell(X, C, NAN), DATA, "`y`.*NaN"),
    "y infinite": (lambda o: o.tell(X, C, torch.tensor([INF])), DATA, "`y`"),
    "y too large": (lambda o: o.tell(X, C, 10**400), DATA, "`y` must be a finite"),
    "y_variance too large": (
        lambda o: o.tell(X, C, 1.0, y_variance=10**400),
        DATA,
        "`y_variance` must be a finite",
    ),
    "constraints too large": (
        lambda o: o.tell(X, C, 1.0, constraints=10**400),
        DATA,
        "`constraints` must be a finite",
    ),
    "y integer": (lambda o: o.tell(X, C, torch.tensor([1])), DATA, "`y`.*floating"),
    "y string": (lambda o: o.tell(X, C, "1"), DATA, "`y`.*Tensor"),  # pyright: ignore
    "y bool": (lambda o: o.tell(X, C, True), DATA, "`y`.*Tensor"),
    "y too many": (lambda o: o.tell(X, C, torch.rand(2)), SHAPE, "`y`.*1 trials"),
    "y row": (
        lambda o: o.tell(X.repeat(2, 1), C.repeat(2, 1), torch.rand(1, 2)),
        SHAPE,
        "`y`.*2 trials",
    ),
    "y one for two": (
        lambda o: o.tell(X.repeat(2, 1), C.repeat(2, 1), 1.0),
        SHAPE,
        "`y`.*2 trials",
    ),
    "one bad row of two": (
        lambda o: o.tell(torch.cat([X, X + 1]), C.repeat(2, 1), torch.rand(2)),
        DATA,
        r"`x`.*rows \[1\]",
    ),
    "closes_pending": (
        lambda o: o.tell(X, C, 1.0, closes_pending="no"),  # pyright: ignore
        DATA,
        "closes_pending",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_bad_call_changes_nothing(toy: Any, tmp_path: Path, case: str) -> None:
    call, error, message = CALLS[case]
    path = tmp_path / "run.jsonl"
    with toy.make("random", journal=path) as opt:
        opt.ask(2)
        opt.tell(X, C, 1.0)
        state, content = opt.state_dict(), path.read_bytes()
        with pytest.raises(error, match=message):
            call(opt)
        assert opt.state_dict() == state
        assert path.read_bytes() == content
        opt.tell(X, C, 1.0)  # and it still works


CONSTRUCTIONS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "unknown name": ({"algorithm": "bo"}, DATA, "choices are"),
    "no algorithm": ({"algorithm": 3}, DATA, "name or a Recipe"),
    "algorithm class": ({"algorithm": RandomSearch}, DATA, "name or a Recipe"),
    "misspelt name": ({"algorithm": "wdrb"}, DATA, "Did you mean `wdrbo`"),
    "unknown option": ({"radios": 1.0}, DATA, "no option radios"),
    "misspelt option": ({"raw_sample": 1}, DATA, "Did you mean `raw_samples`"),
    "misspelt argument": ({"num_inital": 1}, DATA, "Did you mean `num_initial`"),
    "minimize": ({"minimize": True}, DATA, "Did you mean `maximize=False`"),
    "lists arguments": (
        {"x": 0},
        DATA,
        r"'seed', 'journal', 'maximize', 'num_initial'",
    ),
    "negative radius": (
        {"algorithm": "wdrbo", "radius": -1},
        DATA,
        "^`radius` must not be negative",
    ),
    "option twice": (
        {"algorithm": RandomSearch(), "num_restarts": 1},
        DATA,
        "ready-made",
    ),
    "bounds reversed": ({"bounds": UNIT.flip(0)}, DATA, "`bounds`.*below"),
    "bounds equal": ({"bounds": UNIT * 0}, DATA, "`bounds`.*below"),
    "bounds nan": ({"bounds": UNIT * NAN}, DATA, "`bounds`.*NaN"),
    "bounds infinite": ({"bounds": UNIT / 0.0}, DATA, "`bounds`"),
    "bounds integer": ({"bounds": UNIT.long()}, DATA, "`bounds`.*floating"),
    "bounds half": ({"bounds": UNIT.half()}, DATA, "float64 or float32"),
    "bounds shape": ({"bounds": torch.rand(3, 2)}, SHAPE, "`2 x d`"),
    "bounds vector": ({"bounds": UNIT[:, 0]}, SHAPE, "`bounds`"),
    "bounds list": ({"bounds": [[0.0], [1.0]]}, DATA, "Tensor"),
    "context_bounds reversed": (
        {"context_bounds": UNIT.flip(0)},
        DATA,
        "`context_bounds`.*below",
    ),
    "context_bounds shape": (
        {"context_bounds": torch.rand(1, 2)},
        SHAPE,
        "`context_bounds`",
    ),
    "seed negative": ({"seed": -1}, DATA, "`seed`"),
    "seed float": ({"seed": 0.5}, DATA, "`seed`"),
    "maximize": ({"maximize": 1}, DATA, "`maximize`"),
    "num_initial negative": ({"num_initial": -1}, DATA, "`num_initial`"),
    "num_initial float": ({"num_initial": 2.0}, DATA, "`num_initial`"),
}


@pytest.mark.parametrize("case", CONSTRUCTIONS)
def test_bad_construction_leaves_no_file(tmp_path: Path, case: str) -> None:
    arguments, error, message = CONSTRUCTIONS[case]
    good = {"algorithm": "erbo", "bounds": UNIT, "context_bounds": UNIT[:, :1]}
    path = tmp_path / "run.jsonl"
    with pytest.raises(error, match=message):
        RobustOptimizer(**{**good, **arguments}, journal=path)
    assert not path.exists()


BEYOND_C: list[Any] = []
for _ in range(100_000):
    BEYOND_C = [BEYOND_C]


def with_config(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda s: {**s, "config": {**s["config"], **changes}}


def with_box(name: str, numbers: Any, dtype: Any = "float64") -> Any:
    return with_config(**{name: {"tensor": numbers, "dtype": dtype}})


def with_options(options: Any) -> Callable[[dict[str, Any]], Any]:
    return with_config(algorithm={"name": "wdrbo", "options": options})


def rows(numbers: Any) -> Any:
    """Stored numbers."""
    return {"tensor": numbers, "dtype": "float64"}


def with_event(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda s: {**s, "events": [s["events"][0], {**s["events"][1], **changes}]}


STATES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "not a dictionary": (lambda s: [], "state_dict"),
    "another format": (lambda s: {**s, "format": "x"}, "state_dict"),
    "another version": (lambda s: {**s, "version": 99}, "version 99"),
    "no events": (lambda s: {**s, "events": None}, "events"),
    "no configuration": (lambda s: {**s, "config": None}, "configuration"),
    "configuration lacks": (lambda s: {**s, "config": {}}, "configuration"),
    "unknown dtype": (
        with_box("bounds", [[0, 0], [1, 1]], "int99"),
        "no dtype",
    ),
    "integer dtype": (with_box("bounds", [[0, 0], [1, 1]], "int8"), "`bounds`.*int8"),
    "another problem": (with_box("bounds", [[0], [1]]), "Event 1 .* does not fit"),
    "configuration of the future": (with_config(feature=1), r"missing: \['feature'\]"),
    "unknown event": (
        lambda s: {**s, "events": [{**s["events"][0], "event": "shout"}]},
        "shout",
    ),
    "event lacks": (lambda s: {**s, "events": [{"event": "tell"}]}, "Event 1"),
    "event is a number": (lambda s: {**s, "events": [3]}, "Event 1"),
    "event with text": (
        lambda s: {**s, "events": [{**s["events"][0], "x": rows([["a", "b"]])}]},
        "Event 1",
    ),
    "bounds ragged": (with_box("bounds", [[0.0, 0.0], [1.0]]), "`bounds`.*one length"),
    "bounds huge": (with_box("bounds", [[0, 0], [10**400, 1]]), "`bounds.*too large"),
    "bounds deep": (with_box("bounds", BEYOND_C), "too deep"),
    "bounds true": (with_box("bounds", [[False, -1.0], [True, 1.0]]), "`bounds.*False"),
    "bounds null": (with_config(context_bounds=None), "`context_bounds`"),
    "dtype a list": (with_box("bounds", [[0], [1]], ["float64"]), "no dtype"),
    "no size of the design": (with_config(num_initial=None), "`num_initial`"),
    "seed null": (with_config(seed=None), "`seed`"),
    "no options": (with_options(None), "configuration.*options"),
    "options a list": (with_options([1]), "configuration.*options"),
    "option huge": (
        with_options({"beta": 10**400}),
        "configuration.*`beta` must be a finite number",
    ),
    "option deep": (with_options({"beta": BEYOND_C}), "too deep"),
    "schedule null": (
        with_options({"radius": {"__schedule__": None}}),
        "configuration.*`radius`",
    ),
    "contexts ragged": (
        with_options({"reference": {"__context_set__": {"points": [[1.0], []]}}}),
        "configuration",
    ),
    "algorithm null": (
        with_config(algorithm=None),
        "configuration.*recipe has",
    ),
    "algorithm a list": (
        with_config(algorithm={"name": ["wdrbo"], "options": {}}),
        "configuration.*recipe has a name",
    ),
    "event ragged": (
        with_event(x=rows([[0.5, 0.0], [0.5]])),
        "Event 2 .*`x`.*one length",
    ),
    "event huge": (with_event(y=rows([10**400])), "Event 2 .*`y`.*too large"),
    "event deep": (with_event(c=rows(BEYOND_C)), "checksum|too deep"),
    "event not finite": (with_event(y=rows([NAN])), "Event 2 .*`y`.*NaN"),
    "event true": (with_event(y=rows([True])), "Event 2 .*`y`.*True"),
    "event flag": (with_event(closes_pending=1), "Event 2 .*`closes_pending`"),
    "event y missing rows": (with_event(y=rows([])), "Event 2 .*`y`"),
    "event of the future": (with_event(lost=True), "Event 2 .*lost"),
    "event of another kind": (
        lambda s: {**s, "events": [{**s["events"][0], "this_round": 3}]},
        "Event 1 .*`this_round`",
    ),
    "event variance alone": (
        with_event(y=None, y_variance=rows([0.5])),
        "Event 2 .*`y_variance` without `y`",
    ),
    "event constraints alone": (
        with_event(y=None, constraints=rows([[0.5]])),
        "Event 2 .*`constraints` without `y`",
    ),
    "withdrawn trial": (
        lambda s: {**s, "events": [{"event": "withdraw", "number": 1, "trial": 7}]},
        "Event 1 .*no trial 7",
    ),
    "withdrawn text": (
        lambda s: {**s, "events": [{"event": "withdraw", "number": 1, "trial": "7"}]},
        "Event 1 .*`trial`",
    ),
    "event number": (with_event(number=3), "Event 2 .*number must be 2"),
    "event kind a list": (with_event(event=["tell"]), "Event 2 .*no event"),
}


@pytest.mark.parametrize("case", STATES)
def test_bad_state(toy: Any, case: str) -> None:
    spoil, message = STATES[case]
    opt = toy.make("random")
    toy.run(opt, 0, 1)
    spoilt = spoil(opt.state_dict())
    if isinstance(spoilt, dict):
        with pytest.raises(InputDataError):  # under a checksum that does not fit
            RobustOptimizer.from_state_dict({**spoilt, "check": "0" * 16})
        spoilt = sealed(spoilt)
    with pytest.raises(InputDataError, match=message):
        RobustOptimizer.from_state_dict(spoilt)
