"""Damage of any kind: one clear error, or exactly the run that was stored."""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo import ContextSet
from botorch_drbo.ambiguity import ConditionalValueAtRisk
from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.schedules import InverseSquareRoot
from botorch_drbo.surrogate import FixedHyperparameters
from tests.attacks.counted import count, num_cases
from tests.optimizer.journals import resealed, sealed


def some_run(toy: Any, path: Path | None = None) -> RobustOptimizer:
    """Every kind of event and field; 'random' and 'dro' differ in what they store."""
    opt = toy.make("random", journal=path, num_initial=9)
    x = opt.ask(2)
    opt.tell(x[:1], toy.contexts(1))
    opt.tell(x[:1], toy.contexts(1), 0.1 + 0.2)
    opt.ask(actions=torch.tensor([[0.25, -0.5], [0.75, 0.5]]).double())
    opt.tell(x[1:], toy.contexts(2)[1:], -1e-300, closes_pending=False)
    return opt


def same_or_refused(load: Callable[[], RobustOptimizer], state: dict[str, Any]) -> bool:
    """Whether it was refused; any other error, or another run, fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        try:
            with load() as opt:
                assert opt.state_dict() == state
        except InputDataError as error:
            assert len(str(error)) > 60
            return True
    return False


def test_no_flipped_bit_changes_a_journal(toy: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with some_run(toy, path) as opt:
        state = opt.state_dict()
    content = path.read_bytes()
    chance = random.Random(0)
    bits = 8 * len(content)
    for bit in chance.sample(range(bits), num_cases(500, bits)):
        count("journals with a flipped bit")
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        refused = same_or_refused(lambda: RobustOptimizer.resume(path), state)
        assert refused, bit
        assert path.read_bytes() == damaged


def test_no_flipped_bit_changes_a_torn_journal(toy: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with some_run(toy, path):
        pass
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    with RobustOptimizer.resume(path) as opt:
        state = opt.state_dict()
    torn = b"".join(lines[:-1]) + lines[-1][:-25]
    chance = random.Random(1)
    for bit in chance.sample(range(8 * len(torn)), 200):
        damaged = bytearray(torn)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        before_the_tear = bit // 8 < len(torn) - len(lines[-1]) + 25
        refused = same_or_refused(lambda: RobustOptimizer.resume(path), state)
        assert refused == before_the_tear, bit


def test_no_flipped_bit_changes_a_state(toy: Any) -> None:
    state = some_run(toy).state_dict()
    text = json.dumps(state).encode()
    chance = random.Random(2)
    refused = 0
    for bit in chance.sample(range(8 * len(text)), 2_000):
        damaged = bytearray(text)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            loaded = json.loads(damaged)
        except ValueError:
            continue  # the user's own json.loads has seen it
        refused += same_or_refused(
            lambda loaded=loaded: RobustOptimizer.from_state_dict(loaded), state
        )
    assert refused > 500


def test_state_survives_stores_that_do_not_keep_order_or_floats(toy: Any) -> None:
    state = some_run(toy).state_dict()

    def stored(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: stored(value[key]) for key in sorted(value, reverse=True)}
        if isinstance(value, list):
            return [stored(entry) for entry in value]
        if isinstance(value, float) and value.is_integer():
            return int(value)  # JavaScript
        return value

    with RobustOptimizer.from_state_dict(stored(state)) as opt:
        assert opt.state_dict() == state


BOMBS: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, -1e308, 1e-320, 10**400),
    *(-(10**400), 2**63, 2**64, float("nan"), float("inf"), "", "x", "nan", "1"),
    *("float32", "ask", "tell", "\ud800", [], {}, [[]], [{}], {"x": 1}, [None]),
    *([0.5], [[0.5]], [[0.5, 0.5]], [[0.5, 0.5], [0.5]], [["a"]], [[None, 1.0]]),
    *({"__schedule__": {}}, {"__schedule__": None}, {"__context_set__": []}),
    *({"__ambiguity_set__": {"type": "KullbackLeibler"}}, {"__hyperparameters__": 3}),
]


def nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def entries(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a JSON value with each of its keys."""
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from entries(value[key])


def mutate(value: Any, chance: random.Random) -> Any:
    """One to three changes of type, value, nesting, length or key, anywhere."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        found = list(entries(value))
        if not found:
            break
        where, key = chance.choice(found)
        kind = chance.randrange(7)
        if kind <= 2:
            where[key] = copy.deepcopy(chance.choice(BOMBS))
        elif kind == 3:
            where[key] = nested(chance.choice([1, 2, 90, 200]), where[key])
        elif kind == 4:
            other, of = chance.choice(found)
            where[key] = copy.deepcopy(other[of])
        elif kind == 5:
            del where[key]
        elif isinstance(where, list):
            where.insert(key, copy.deepcopy(where[key]))
        else:
            where[chance.choice(["x", "y", "c", "dtype", "format", "new"])] = where[key]
    return value


def stored_states(toy: Any) -> Iterator[dict[str, Any]]:
    """States whose options are of every kind that can be stored."""
    reference = ContextSet(torch.rand(3, 1).double(), torch.rand(3).double())
    options: list[dict[str, Any]] = [
        {"algorithm": "random"},
        {
            "algorithm": "wdrbo",
            "radius": InverseSquareRoot(0.3),
            "reference": reference,
            "hyperparameters": FixedHyperparameters((0.3, 0.2, 0.1), 0.01),
        },
        {"algorithm": "dro", "ambiguity_set": ConditionalValueAtRisk(0.8)},
        {"algorithm": "regret_balancing"},
    ]
    for arguments in options:
        opt = toy.make(**arguments)
        x = opt.ask(2)
        opt.tell(x[:1], toy.contexts(1))
        opt.tell(x, toy.contexts(2), torch.tensor([0.5, 0.25]))
        opt.ask(actions=torch.tensor([[0.25, -0.5], [0.75, 0.5]]).double())
        yield opt.state_dict()


def test_only_clear_errors_come_out_of_a_mutated_run(toy: Any, tmp_path: Path) -> None:
    num = num_cases(25, 1_500)
    chance = random.Random(num)
    path = tmp_path / "run.jsonl"
    refused = 0
    # Under checksums that fit, so that the mutants reach what is behind them.
    for state in stored_states(toy):
        header = {k: state[k] for k in ("version", "config", "environment")}
        header["format"] = "botorch_drbo journal"
        for _ in range(num):
            mutant = sealed(mutate(state, chance))
            lines = mutate([header, *state["events"]], chance)
            stored = resealed([json.dumps(line).encode() for line in lines])
            path.write_bytes(b"".join(line + b"\n" for line in stored))
            content = path.read_bytes()
            count("damaged states and journals", 2)
            for load in (
                lambda m=mutant: RobustOptimizer.from_state_dict(m),
                lambda: RobustOptimizer.resume(path),
            ):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", BotorchWarning)
                    try:
                        load().close()
                    except InputDataError:
                        refused += 1
            assert path.read_bytes() == content
    assert refused > 5 * num  # of 8


@pytest.mark.parametrize("depth", [900, 100_000])
def test_nesting_without_end_is_a_damaged_line(
    toy: Any, tmp_path: Path, depth: int
) -> None:
    path = tmp_path / "run.jsonl"
    with some_run(toy, path) as opt:
        header = json.dumps({**json.loads(path.read_text().splitlines()[0])})
        state = opt.state_dict()
    deep = "[" * depth + "]" * depth
    path.write_text(header.replace('"seed": 0', f'"seed": {deep}') + "\n")
    with pytest.raises(InputDataError, match="journal"):
        RobustOptimizer.resume(path)
    path.write_text(f"{header}\n{deep}\n")
    with pytest.raises(InputDataError, match=r"Line 2|Line 1"):
        RobustOptimizer.resume(path)
    seed: Any = nested(depth, 0)
    state["config"]["seed"] = seed
    with pytest.raises(InputDataError, match=r"too deeply|checksum"):
        RobustOptimizer.from_state_dict(state)


@pytest.mark.parametrize(
    ("event", "words"),
    [(None, "None"), (7.5, "7.5"), ("x" * 999, f"'{'x' * 79}"), ([[]], "a list")],
)
def test_what_is_no_event_is_said_in_few_words(
    toy: Any, tmp_path: Path, event: Any, words: str
) -> None:
    with some_run(toy, tmp_path / "run.jsonl") as opt:
        state: dict[str, Any] = opt.state_dict()
    spoilt = {**state, "events": [*state["events"][:2], event]}
    with pytest.raises(InputDataError) as error:
        RobustOptimizer.from_state_dict(sealed(spoilt))
    said = str(error.value)
    assert said.startswith("Event 3 of the state does not fit its configuration: ")
    assert f"It must be a JSON object, got {words}. It is" in said
