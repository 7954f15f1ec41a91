"""Plates: decisions and contexts chosen together, many at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError

from botorch_drbo import Category, NamedOptimizer, RobustOptimizer, Space
from botorch_drbo.space import Log
from tests.data import DATA, needs

DECISIONS = {
    "ligand": Category(list("ABCDE")),
    "base": Category(list("pqrs")),
    "solvent": Category(["DMF", "THF", "MeCN"]),
}
CONTEXTS = {
    "electrophile": Category(["Cl", "Br", "I", "OTf"]),
    "nucleophile": Category(["BOH2", "BPin", "BF3K"]),
}
COLUMNS = [*DECISIONS, *CONTEXTS]
UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)


def reactions(num: int = 30) -> pd.DataFrame:
    """Random rows of a table that is additive, with interactions and noise."""
    draw = torch.Generator().manual_seed(3)
    variables = {**DECISIONS, **CONTEXTS}
    table = pd.DataFrame(index=range(num))
    total = 40.0 + 4.0 * torch.randn(num, generator=draw)
    for name, variable in variables.items():
        codes = torch.randint(len(variable.choices), (num,), generator=draw)
        total += 12.0 * torch.randn(len(variable.choices), generator=draw)[codes]
        total += 2.0 * torch.sin(codes * total)
        table[name] = [variable.choices[int(code)] for code in codes]
    table["yield"] = total.tolist()
    return table


def started(num: int = 30, algorithm: str = "erbo", **options: Any) -> NamedOptimizer:
    return NamedOptimizer.from_dataframe(
        reactions(num),
        decisions=DECISIONS,
        contexts=CONTEXTS,
        outcome="yield",
        algorithm=algorithm,
        scope="uniform",
        **{"surrogate": "botorch", "num_restarts": 2, "raw_samples": 32, **options},
    )


def plate(opt: NamedOptimizer, q: int, **given: Any) -> pd.DataFrame:
    """A plate, one row for each well."""
    x, c = opt.ask(q, choose_context=True, **given)
    return pd.concat([x, c], axis=1)


@pytest.mark.parametrize("algorithm", ["erbo", "dro", "ei_integral"])
def test_a_plate_of_eight_is_on_many_substrates(algorithm: str) -> None:
    options = {} if algorithm != "ei_integral" else {"hyperparameters": None}
    opt = started(algorithm=algorithm, **options)
    wells = plate(opt, 8)
    assert len(wells[[*CONTEXTS]].drop_duplicates()) >= 6


def test_no_well_comes_twice() -> None:
    opt = started()
    done = reactions()[COLUMNS].drop_duplicates()
    # The first plate is pending while the second is asked.
    plates = [plate(opt, q, contexts_per_decision=4) for q in (8, 12)]
    assert not pd.concat([done, *plates]).duplicated().any()


@pytest.mark.parametrize("num", [0, 30])
def test_each_decision_is_tried_in_as_many_contexts(num: int) -> None:
    opt = started(num)
    wells = plate(opt, 24, contexts_per_decision=4)
    by_decision = wells.groupby([*DECISIONS])
    assert len(by_decision) == 6 and (by_decision.size() == 4).all()
    assert not wells.duplicated().any()
    assert len(plate(opt, 6, contexts_per_decision=4)) == 6  # the last one has two
    if not num:  # the design covers the scope
        assert (wells.groupby([*CONTEXTS]).size() == 2).all()


@pytest.mark.parametrize("num", [0, 30])
def test_a_column_has_at_most_so_many_levels(num: int) -> None:
    opt, most = started(num), {"solvent": 1, "ligand": 2}
    wells = plate(opt, 8, contexts_per_decision=2, at_most=most)
    assert wells["solvent"].nunique() == 1 and wells["ligand"].nunique() <= 2
    assert len(wells[[*DECISIONS]].drop_duplicates()) == 4
    x = opt.ask(3, at_most={"base": 1})  # of decisions alone too
    assert x["base"].nunique() == 1 and len(x.drop_duplicates()) == 3


@pytest.mark.parametrize("num", [0, 30])
def test_decisions_are_those_in_the_cupboard(num: int) -> None:
    stock = pd.DataFrame(
        {"ligand": ["A", "C"], "base": ["p", "q"], "solvent": ["DMF", "THF"]}
    )
    wells = plate(started(num), 10, contexts_per_decision=5, candidates=stock)
    assert len(wells.merge(stock)) == 10 and not wells.duplicated().any()


def test_replicates_are_asked_for() -> None:
    wells = plate(started(), 12, contexts_per_decision=2, replicates=3)
    assert (wells.groupby(COLUMNS).size() == 3).all()
    assert len(wells[[*DECISIONS]].drop_duplicates()) == 2


def small(num: int) -> tuple[NamedOptimizer, pd.DataFrame]:
    """Two decisions in three contexts: six wells, of which some are done."""
    space = Space(
        {"x": Category(["a", "b"])}, {"c": Category(["u", "v", "w"])}, outcome="y"
    )
    opt = NamedOptimizer(
        "erbo", space, scope="uniform", surrogate="botorch", raw_samples=16
    )
    done = pd.DataFrame({"x": list("aaabbb"), "c": list("uvwuvw")}).head(num)
    if num:
        opt.tell(done, done, [float(i) for i in range(num)])
    return opt, done


@pytest.mark.parametrize("num", [0, 3])
def test_all_wells_are_asked_for_before_one_is_refused(num: int) -> None:
    opt, done = small(num)
    wells = [done]
    for i in range(6 - num):
        x, c = opt.ask(choose_context=True)
        wells.append(pd.concat([x, c], axis=1))
        if i % 2:  # some are pending, some are told
            opt.tell(x, c, 1.0 * i)
    assert len(pd.concat(wells).drop_duplicates()) == 6
    left = "Asked for 1 well, and none is left: each of 2 decisions .* of 3 contexts"

    with pytest.raises(InputDataError, match=left):
        opt.ask(choose_context=True)


def test_a_plate_that_is_too_large_says_what_is_left() -> None:
    opt, _ = small(2)
    left = r"4 wells, and 3 can be had: 1 decision .* 3 contexts \(4 wells"
    with pytest.raises(InputDataError, match=left):
        opt.ask(4, choose_context=True, contexts_per_decision=3)
    assert len(opt.ask(3, choose_context=True, contexts_per_decision=3)[0]) == 3
    fewer, _ = small(0)
    with pytest.raises(InputDataError, match="fewer, say `contexts_per_decision=2`, "):
        fewer.ask(4, choose_context=True)
    assert len(fewer.ask(4, choose_context=True, contexts_per_decision=2)[0]) == 4
    with pytest.raises(InputDataError, match="fewer, say `contexts_per_decision=3`, "):
        small(0)[0].ask(6, choose_context=True, contexts_per_decision=2)
    left = "3 wells, and 1 can be had: 1 decision .* 1 context "
    with pytest.raises(InputDataError, match=left):
        opt.ask(3, choose_context=True)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"contexts_per_decision": 13}, "`contexts_per_decision` is 13, and there are 12"),
    ({"contexts_per_decision": 0}, "`contexts_per_decision`"),
    ({"contexts_per_decision": 2, "choose_context": False}, "choose_context=True"),
    ({"replicates": 2, "choose_context": False}, "contexts are not chosen"),
    ({"replicates": 3}, "8 wells are no multiple of 3 `replicates`. Ask for 6"),
    ({"at_most": {"solvant": 2}}, "`solvant`, which is not.*Did you mean `solvent`"),
    ({"at_most": {"nucleophile": 2}}, "`nucleophile`, which is not a decision"),
    ({"at_most": {"solvent": 0}}, "at_most"),
    ({"at_most": {"solvent": 1, "ligand": 1}}, "`at_most` leaves 4 decisions"),
]


@pytest.mark.parametrize(("given", "message"), BAD)
def test_what_is_no_plate_is_refused(given: dict[str, Any], message: str) -> None:
    opt = started()
    with pytest.raises(InputDataError, match=message):
        opt.ask(8, **{"choose_context": True, **given})
    assert len(opt.trials) == 30


def test_numbers_of_an_interval_are_no_list() -> None:
    opt = RobustOptimizer("erbo", UNIT, UNIT, scope=UNIT, num_initial=2)
    with pytest.raises(InputDataError, match="`at_most` needs decisions"):
        opt.ask(2, choose_context=True, at_most={"x1": 1})
    x, c = opt.ask(4, choose_context=True, contexts_per_decision=2)
    assert x[::2].equal(x[1::2]) and sorted(c.flatten().tolist()) == [0, 0, 1, 1]


def test_a_plate_is_told_in_any_order() -> None:
    opt = started()
    wells = plate(opt, 8, contexts_per_decision=4, replicates=2)
    shuffled = wells.sample(frac=1.0, random_state=0)
    opt.tell(shuffled, shuffled, list(range(8)))
    assert not len(opt.pending)
    for trial in opt.trials[-8:]:
        assert trial.chosen_context is not None and trial.c is not None
        assert trial.c.equal(trial.chosen_context)


def made_reactions() -> tuple[pd.DataFrame, dict[str, Category], dict[str, Category]]:
    return reactions(), DECISIONS, CONTEXTS


def suzuki_reactions() -> tuple[pd.DataFrame, dict[str, Category], dict[str, Category]]:
    table = pd.read_csv(DATA / "reactions_suzuki_30_rows.csv")
    kinds = {n: Category(sorted(set(table[n]))) for n in list(table)[:-1]}
    decisions = {n: kinds[n] for n in list(kinds)[:3]}
    return table, decisions, {n: kinds[n] for n in list(kinds)[3:]}


@pytest.mark.parametrize(
    "reactions",
    [
        made_reactions,
        pytest.param(
            suzuki_reactions, marks=needs("reactions_suzuki_30_rows.csv"), id="suzuki"
        ),
    ],
)
@pytest.mark.parametrize("algorithm", ["erbo", "ei_integral"])
def test_a_plate_of_eight_takes_six_substrates_of_twelve(
    reactions: Callable[[], Any], algorithm: str
) -> None:
    """Seven of the eight were one substrate where each decision chose by itself."""
    table, decisions, contexts = reactions()
    opt = NamedOptimizer.from_dataframe(
        table,
        decisions=decisions,
        contexts=contexts,
        outcome="yield",
        algorithm=algorithm,
        scope="uniform",
        surrogate="botorch",
        num_initial=0,
    )
    x, c = opt.ask(8, choose_context=True)
    assert len(c.drop_duplicates()) >= 6
    assert len(x.drop_duplicates()) == 8


def test_numbers_of_the_scope_come_back_as_they_were_typed() -> None:
    """Also on a logarithmic scale, so that no well is asked for twice."""
    speeds = [20.0, 500.0, 9e3]
    space = Space({"dose": Log(0.3, 30.0)}, {"rpm": Log(10.0, 1e4)}, outcome="y")
    opt = NamedOptimizer(
        "erbo", space, scope={"rpm": speeds}, surrogate="botorch", raw_samples=16
    )
    stock, wells = pd.DataFrame({"dose": [0.7, 11.1]}), []
    for i in range(6):
        x, c = opt.ask(choose_context=True, candidates=stock)
        wells.append((x["dose"].iloc[0], c["rpm"].iloc[0]))
        opt.tell(x, c, 1.0 * i)
    assert sorted(wells) == [(d, r) for d in (0.7, 11.1) for r in speeds]
    with pytest.raises(InputDataError, match="none is left"):
        opt.ask(choose_context=True, candidates=stock)
