"""Few values, some of them pending and some failed: what is asked next."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution
from torch import Tensor
from typer.testing import CliRunner

from botorch_drbo import Category, Integer, NamedOptimizer, Ordinal, Space
from botorch_drbo.cli.commands import app
from botorch_drbo.integrations.optuna import RobustSampler
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recipes.phased import PhasedUncertaintySampling
from botorch_drbo.search.candidates import score, without
from botorch_drbo.surrogate import FixedHyperparameters

QUICK: dict[str, Any] = {"num_restarts": 2, "raw_samples": 32}
PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-2)
UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)
BOX = SearchSpace(UNIT, UNIT)
RECIPES = {
    "erbo": {},
    "wdrbo": {},
    "ts_erbo": {"num_features": 32},
    "ei_erbo": {"num_paths": 8},
    "regret_balancing": {"reward_range": (-2.0, 2.0)},
}


def uniform(num: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(num, 1, generator=generator, dtype=torch.double)


X, C = uniform(8), uniform(8, 1)
HISTORY = History(X=X, C=C, Y=torch.sin(6 * X) * (0.5 + C), contexts=C)


def masks(pattern: tuple[str, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Which are free, pending, failed; all are free where none is."""
    pending, failed = (torch.tensor([s == kind for s in pattern]) for kind in "pf")
    free = ~(pending | failed)
    return free if free.any() else ~free, pending, failed


@pytest.mark.parametrize("name", RECIPES)
@given(
    pattern=st.integers(1, 5).flatmap(
        lambda n: st.tuples(*n * [st.sampled_from("-pf")])
    ),
    seed=st.integers(0, 3),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_the_row_of_a_list_that_the_policy_ranks_best(
    name: str, pattern: tuple[str, ...], seed: int
) -> None:
    recipe = make_recipe(name, hyperparameters=PRIOR, **QUICK, **RECIPES[name])
    assert isinstance(recipe, ModelBasedRecipe)
    rows = uniform(len(pattern), 10 + seed)
    free, pending, failed = masks(pattern)
    known = History(X=X, C=C, Y=HISTORY.Y, contexts=C, failed=rows[failed])
    x = recipe.propose(known, BOX, X_pending=rows[pending], candidates=rows, seed=seed)
    model = recipe.fitted(HISTORY, BOX, uses_contexts=recipe.uses_contexts)
    torch.manual_seed(seed)
    state = recipe.state_of(model, HISTORY, BOX, seed)
    acqf = recipe.exploring(state, rows[pending] if pending.any() else None)
    worth = torch.where(free, score(acqf, rows), -torch.inf)
    assert torch.equal(x[0], rows[int(worth.argmax())])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_chance_skips_what_is_pending_or_failed(size: int) -> None:
    recipe, rows = make_recipe("random"), uniform(size, 3)
    for pattern in product("-pf", repeat=size):
        free, pending, failed = masks(pattern)
        known = History(X=X, C=C, Y=HISTORY.Y, contexts=C, failed=rows[failed])
        x = recipe.propose(known, BOX, X_pending=rows[pending], candidates=rows)
        assert x.item() in rows[free], pattern


@pytest.mark.parametrize("t", [0, 7])
def test_phases_skip_what_failed_of_what_survives(t: int) -> None:
    """What is pending they may ask again; what is discarded stays out."""
    recipe = PhasedUncertaintySampling(hyperparameters=PRIOR)
    rows, seen = uniform(4, 3), History(X[:t], C[:t], HISTORY.Y[:t], C[:t])
    survivors = recipe.state(seen, BOX, candidates=rows).survivors
    for pattern in product("-f", repeat=4):
        failed = rows[masks(pattern)[2]]
        allowed = without(survivors, failed)
        allowed = allowed if len(allowed) else survivors
        x = recipe.propose(replace(seen, failed=failed), BOX, candidates=rows)
        assert x.item() in allowed, pattern


SPACES = {
    "category": ({"k": Category(["a", "b", "c"])}, 3),
    "whole numbers": ({"k": Integer(3, 6)}, 4),
    "ordinal": ({"k": Ordinal([1, 2, 5, 50, 51])}, 5),
    "mixed": ({"k": Category(["a", "b"]), "n": Integer(0, 1)}, 4),
}


@pytest.mark.parametrize("design", [0, 6])
@pytest.mark.parametrize("algorithm", ["erbo", "ts_erbo", "random"])
@pytest.mark.parametrize("kind", SPACES)
def test_failed_values_are_asked_again_once_all_have_failed(
    kind: str, algorithm: str, design: int
) -> None:
    decisions, size = SPACES[kind]
    options = {} if algorithm == "random" else {"hyperparameters": PRIOR, **QUICK}
    space = Space(decisions, {"c": (0.0, 1.0)})
    opt = NamedOptimizer(algorithm, space, num_initial=design, **options)
    first = {
        name: kind.decode(torch.tensor([kind.bounds[0]]).double())[0]
        for name, kind in space.decisions.items()
    }
    opt.tell(first, {"c": 0.5}, 1.0)
    failed: list[tuple[object, ...]] = []
    for _ in range(size):
        x = opt.ask()
        failed.append(tuple(x.iloc[0]))
        opt.tell(x, None, failed=True)
    assert len(set(failed)) == size  # each value once
    x = opt.ask(2 * size)
    assert set(x.itertuples(index=False, name=None)) <= set(failed)


def asked(rows: int, kinds: list[str]) -> list[dict[str, Any]]:
    """Trials of two arms, of which 'good' earns ten more."""
    noise, contexts = uniform(rows, 3), uniform(rows)
    return [
        {
            "k": kinds[i % 2],
            "c": contexts[i].item(),
            "y": 10.0 * (kinds[i % 2] == "good") + 0.1 * noise[i].item(),
        }
        for i in range(rows)
    ]


@pytest.mark.parametrize("kinds", [["bad", "good"], ["good", "bad"]])
def test_the_best_of_two_arms_once_both_are_pending(kinds: list[str]) -> None:
    space = Space({"k": Category(kinds)}, {"c": (0.0, 1.0)})
    opt = NamedOptimizer("erbo", space, **QUICK)
    for row in asked(20, kinds):
        opt.tell({"k": row["k"]}, {"c": row["c"]}, row["y"])
    assert opt.ask(6).k.tolist() == ["good", "bad", *4 * ["good"]]
    assert opt.ask(2).k.tolist() == ["good", "good"]
    opt.tell(opt.pending, None, failed=True)
    assert opt.ask().k.item() == "good"


def test_the_same_in_optuna_and_on_the_command_line(tmp_path: Path) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    arms = {"k": CategoricalDistribution(["bad", "good"])}
    sampler = RobustSampler(
        {"c": FloatDistribution(0.0, 1.0)}, "erbo", search_space=arms, **QUICK
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    rows = asked(20, ["bad", "good"])
    for row in rows:
        study.add_trial(
            optuna.trial.create_trial(
                params={"k": row["k"]},
                distributions=dict(arms),
                value=row["y"],
                user_attrs={"c": row["c"]},
            )
        )
    expected = ["good", "bad", *4 * ["good"]]
    assert [study.ask(dict(arms)).params["k"] for _ in range(6)] == expected
    path = tmp_path / "arms.csv"
    lines = [f"{row['k']},{row['c']},{row['y']}" for row in rows]
    path.write_text("\n".join(["k,c,y", *lines, ""]))
    words = ["--decisions", "k=bad,good", "--contexts", "c=0:1", "--outcome", "y"]
    call = ["suggest", str(path), *words, "--algorithm", "erbo", "-q", "6"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    found = [line.split(",")[0] for line in path.read_text().splitlines()[-6:]]
    assert found == expected


def hill(n: float) -> float:
    return -(((n - 505) / 300.0) ** 2)


@pytest.mark.parametrize("variable", [Integer(0, 1000), (0.0, 1000.0)])
def test_a_lost_measurement_leaves_no_hole(variable: Any) -> None:
    """The optimum is near the trial that failed, which is not asked again itself."""
    opt = NamedOptimizer(
        "erbo",
        Space({"n": variable}, {"t": (0.0, 1.0)}),
        num_initial=0,
        num_restarts=4,
        raw_samples=64,
    )
    for x, t in zip(uniform(14).flatten(), uniform(14, 1).flatten(), strict=True):
        n = int(1000 * x)
        opt.tell({"n": n}, {"t": t.item()}, hill(n))
    lost = opt.ask().n.item()
    assert abs(lost - 505) < 20  # else this says nothing
    opt.tell({"n": lost}, {"t": 0.5}, failed=True)
    found = []
    for t in uniform(9, 5).flatten()[:4].tolist():
        x = opt.ask()
        found.append(x.n.item())
        opt.tell(x, {"t": t}, hill(found[-1]))
    assert min(abs(n - 505) for n in found) <= 3
    assert min(abs(n - lost) for n in found) >= 1


def test_a_failed_row_of_a_list_is_found_again_within_a_millionth() -> None:
    rows = {"x": [0.2, 0.5, 0.8]}
    opt = NamedOptimizer("random", Space({"x": (0.0, 1.0)}, {"c": (0.0, 1.0)}))
    for x in (0.2, 0.8 + 1e-8):
        opt.tell({"x": x}, None, failed=True)
    for _ in range(3):
        assert opt.ask(1, rows).x.tolist() == [0.5]
        opt.withdraw(len(opt.trials) - 1)
