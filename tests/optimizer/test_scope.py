"""A scope: the contexts that a decision must serve, whatever contexts were seen."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)

from botorch_drbo import Category, ContextSet, NamedOptimizer, RobustOptimizer, Space
from botorch_drbo.optimizer.configuration import Scope

LIGANDS, SOLVENTS = ["PPh3", "SPhos", "XPhos"], ["DMF", "THF"]
SUBSTRATES = ["a", "b", "c", "d"]
SPACE = Space(
    {"ligand": Category(LIGANDS), "solvent": Category(SOLVENTS)},
    {"substrate": Category(SUBSTRATES)},
    outcome="yield",
)
FEW = {"surrogate": "botorch", "num_restarts": 2, "raw_samples": 16}
UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)


def reactions() -> pd.DataFrame:
    """Twelve reactions, most of them of the substrate ``a``."""
    draw = torch.Generator().manual_seed(1)
    rows = [
        (ligand, solvent, substrate)
        for ligand in LIGANDS
        for solvent, substrate in (
            ("DMF", "a"),
            ("THF", "a"),
            ("DMF", "b"),
            ("THF", SUBSTRATES[1 + LIGANDS.index(ligand)]),
        )
    ]
    table = pd.DataFrame(rows, columns=["ligand", "solvent", "substrate"])
    table["yield"] = (100 * torch.rand(len(rows), generator=draw)).tolist()
    return table


def started(scope: Scope | None, algorithm: str = "erbo") -> NamedOptimizer:
    return NamedOptimizer.from_dataframe(
        reactions(),
        decisions=SPACE.decisions,
        contexts=SPACE.contexts,
        outcome="yield",
        algorithm=algorithm,
        scope=scope,
        **FEW,
    )


def means(opt: NamedOptimizer, weights: dict[str, float]) -> pd.Series:
    """The weighted mean of each decision over levels, by single predictions."""
    found = {}
    for ligand in LIGANDS:
        for solvent in SOLVENTS:
            x = {"ligand": ligand, "solvent": solvent}
            found[ligand, solvent] = sum(
                weight * opt.predict(x, {"substrate": level})["mean"].item()
                for level, weight in weights.items()
            )
    return pd.Series(found)


EQUAL = dict.fromkeys(SUBSTRATES, 0.25)
SHARES = {"b": 0.2, "d": 0.8}
SCOPES: list[tuple[Scope, dict[str, float]]] = [
    ("uniform", EQUAL),
    (pd.DataFrame({"substrate": SUBSTRATES}), EQUAL),
    (pd.DataFrame({"substrate": ["b", "d"], "weight": [1, 4]}), SHARES),
    ({"substrate": ["d", "b"], " Weight": [8.0, 2.0]}, SHARES),
    (SPACE.context_set({"substrate": ["b", "d"]}, [0.2, 0.8]), SHARES),
    (torch.tensor([[1.0], [3.0]]).double(), {"b": 0.5, "d": 0.5}),
]


def test_a_context_that_is_called_weight_is_a_context() -> None:
    space = Space({"x": (0.0, 1.0)}, {"weight": (1.0, 9.0)}, outcome="y")
    opt = NamedOptimizer("erbo", space, scope={"weight": [2.0, 8.0]}, **FEW)
    x, weights = pd.DataFrame({"x": [0.1, 0.5, 0.9]}), {"weight": [1.0, 5.0, 9.0]}
    opt.tell(x, weights, [1.0, 2.0, 3.0])
    contexts = opt.recommend().contexts
    assert sorted(contexts["weight"]) == [2.0, 8.0]
    assert list(contexts["reference_weight"]) == [0.5, 0.5]


@pytest.mark.parametrize(("scope", "weights"), SCOPES)
def test_the_mean_over_a_scope_decides(scope: Scope, weights: dict[str, float]) -> None:
    opt = started(scope)
    best, by_hand = opt.recommend(), means(opt, weights)
    assert best.expected_value == pytest.approx(by_hand.max(), abs=1e-6)
    assert tuple(best.x.iloc[0]) == by_hand.idxmax()


@pytest.mark.parametrize(("scope", "weights"), SCOPES)
def test_a_recommendation_may_serve_another_scope(
    scope: Scope, weights: dict[str, float]
) -> None:
    opt = started(None)
    best = opt.recommend(scope=scope)
    assert best.expected_value == pytest.approx(means(opt, weights).max(), abs=1e-6)
    with pytest.raises(InputDataError, match="Got `context_set` and `scope`"):
        opt.recommend(scope=scope, context_set=SPACE.context_set({"substrate": ["a"]}))


def test_without_a_scope_the_substrate_seen_most_counts_most() -> None:
    seen = reactions()["substrate"].value_counts(normalize=True).to_dict()
    opt = started(None)
    best = opt.recommend().expected_value
    assert best == pytest.approx(means(opt, seen).max(), abs=1e-6)


def test_a_scope_is_that_of_check_and_of_compare() -> None:
    opt = started("uniform")
    compared = opt.compare(["erbo", "dro"])
    assert compared.values[0][0].mean.item() == pytest.approx(
        means(opt, EQUAL).max(), abs=1e-6
    )
    # A level that was never tried is a fourth of this scope.
    untried = NamedOptimizer("erbo", SPACE, scope="uniform", **FEW)
    rows = reactions().query("substrate != 'd'")
    untried.tell(rows, rows, rows["yield"], closes_pending=False)
    assert untried.check().unseen == pytest.approx(0.25)


@pytest.mark.parametrize("named", [True, False])
def test_a_journal_keeps_the_scope(tmp_path: Path, named: bool) -> None:
    path = tmp_path / "run.jsonl"
    kind = NamedOptimizer if named else RobustOptimizer
    if named:
        opt = NamedOptimizer("erbo", SPACE, journal=path, scope="uniform", **FEW)
        expected = torch.arange(4.0).double().unsqueeze(-1)
    else:
        expected = torch.tensor([[0.2], [0.7]]).double()
        opt = RobustOptimizer("erbo", UNIT, UNIT, journal=path, scope=expected, **FEW)
    opt.close()
    stored = json.loads(json.dumps(opt.state_dict()))
    for again in (kind.resume(path), kind.from_state_dict(stored)):
        reference = again.algorithm.options["reference"]
        torch.testing.assert_close(reference.points, expected)
        assert again.state_dict()["config"] == opt.state_dict()["config"]
        again.close()


BAD: list[tuple[Scope, str]] = [
    (pd.DataFrame({"substrate": ["a", "z"]}), "`scope`, row 1, column `substrate`.*z"),
    (pd.DataFrame({"substrate": []}), "`scope` has no rows"),
    (pd.DataFrame({"substrat": ["a"]}), "`scope` has no column `substrate`"),
    ({"substrate": ["a", "b"], "weight": [0, 0]}, "`scope`.*not all zero"),
    ({"substrate": ["a"], "weight": [1], "Weight": [1]}, "'weight' and 'Weight'.*one"),
    ({"substrate": ["a", "b"], "weight": [2, -1]}, "`scope`.*must not be negative"),
    ({"substrate": ["a", "b"], "weight": [1, None]}, "`scope`, row 1, column `weight`"),
    ("even", "the one word for a scope is 'uniform'"),
    (ContextSet(torch.tensor([[7.0]]).double()), "`scope`"),
    (ContextSet(torch.tensor([[0.0, 1.0]]).double()), "`scope` has 2 context columns"),
]


@pytest.mark.parametrize(("scope", "message"), BAD)
def test_what_is_no_scope_is_refused(scope: Scope, message: str) -> None:
    with pytest.raises((InputDataError, BotorchTensorDimensionError), match=message):
        NamedOptimizer("erbo", SPACE, scope=scope)


def test_a_scope_has_no_levels_where_a_context_is_a_number() -> None:
    with pytest.raises(InputDataError, match="Give a table of the contexts"):
        RobustOptimizer("erbo", UNIT, UNIT, scope="uniform")


def test_a_scope_needs_a_recipe_that_looks_at_contexts() -> None:
    with pytest.raises(UnsupportedError, match="`scope` is no use to `gp_ucb`"):
        NamedOptimizer("gp_ucb", SPACE, scope="uniform")
    reference = ContextSet(torch.tensor([[0.0]]).double())
    with pytest.raises(InputDataError, match="Got `scope` and `reference`"):
        NamedOptimizer("erbo", SPACE, scope="uniform", reference=reference)


def test_decisions_do_not_predict_contexts_that_somebody_chose() -> None:
    x = torch.rand(20, 1, generator=torch.Generator().manual_seed(0)).double()
    for scope, is_said in ((None, True), (UNIT, False)):
        opt = RobustOptimizer("erbo", UNIT, UNIT, scope=scope, **FEW)
        opt.tell(x, 0.9 * x, x, closes_pending=False)
        assert bool(opt.recommend().moved) is is_said


def test_what_a_scope_makes_void_or_cannot_list_is_said() -> None:
    space = Space({"x": (0.0, 1.0)}, {"rain": (0.0, 9.0), "soil": Category(["a", "b"])})
    with pytest.raises(InputDataError, match="takes any number of an interval"):
        NamedOptimizer("erbo", space, scope="uniform")
    listed = {"rain": [1.0, 2.0], "soil": ["a", "b"]}
    with pytest.raises(InputDataError, match="Got `scope` and `half_life`"):
        NamedOptimizer("erbo", space, scope=listed, half_life=5.0)
