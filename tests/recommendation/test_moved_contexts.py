"""A context that the decision moves is said; one that it does not move never is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

from botorch_drbo import Category, ContextSet, NamedOptimizer, RobustOptimizer, Space
from botorch_drbo.cli.commands import app
from botorch_drbo.optimizer.decisions import moved_in
from botorch_drbo.optimizer.ledger import Ledger
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.problem import SearchSpace
from botorch_drbo.recommendation.moved_contexts import moved_contexts
from botorch_drbo.report import write_report
from tests.models import UNIT

QUICK: dict[str, Any] = {"num_restarts": 1, "raw_samples": 16, "surrogate": "rbf"}
Draw = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]


def space_of(levels: list[int], met: list[int]) -> SearchSpace:
    """Columns with so many levels; numbers of the unit interval where zero."""
    box, context_box = (
        torch.tensor([[0.0] * len(ks), [float(max(k - 1, 1)) for k in ks]]).double()
        for ks in (levels, met)
    )
    kinds, met_kinds = ({j: k for j, k in enumerate(ks) if k} for ks in (levels, met))
    return SearchSpace(box, context_box, categories=kinds, context_categories=met_kinds)


def columns(levels: list[int], num: int, generator: torch.Generator) -> Tensor:
    """Independent columns of these kinds."""
    draws = [
        torch.randint(k, (num,), generator=generator).double()
        if k
        else torch.rand(num, generator=generator, dtype=torch.double)
        for k in levels
    ]
    return torch.stack(draws, dim=-1)


def independent(levels: list[int], met: list[int]) -> Draw:
    return lambda num, g: (columns(levels, num, g), columns(met, num, g))


def followed(num: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Contexts that wander, and decisions that follow the last one."""
    C = torch.randn(num, 1, generator=g, dtype=torch.double).cumsum(0)
    return C.roll(1, 0) + 0.1 * torch.rand(num, 1, generator=g, dtype=torch.double), C


def settled(num: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Contexts with a trend, and decisions that settle."""
    X = columns([0, 0], num, g)
    X[num // 3 :] = 0.7 + 0.05 * X[num // 3 :]
    trend = torch.linspace(0.0, 8.0, num, dtype=torch.double).unsqueeze(-1)
    return X, trend + torch.randn(num, 1, generator=g, dtype=torch.double)


def replicated(num: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """Each decision measured thrice, in one context."""
    X, C = columns([0, 0], num // 3 + 1, g), columns([0], num // 3 + 1, g)
    return X.repeat(3, 1)[:num], C.repeat(3, 1)[:num]


def priced(num: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    """The example that the README had: demand = 110 - 1.25 price, 5 more or less."""
    X, noise = columns([0, 0], num, g), columns([0], num, g)
    return X, (110.0 - 1.25 * (10.0 + 80.0 * X[:, :1]) + 10.0 * noise - 5.0) / 100.0


def share_named(draw: Draw, space: SearchSpace, num: int, times: int) -> float:
    """The share of data sets with a column that is named."""
    generator = torch.Generator().manual_seed(num)
    named = [moved_contexts(*draw(num, generator), space) for _ in range(times)]
    return sum(map(bool, named)) / times


@pytest.mark.parametrize("num", [8, 11, 20, 60, 200])
@pytest.mark.parametrize(
    ("draw", "space"),
    [
        (independent([0], [0]), space_of([0], [0])),
        (independent([0] * 4, [0] * 6), space_of([0] * 4, [0] * 6)),
        (independent([9, 5, 0], [4, 0]), space_of([9, 5, 0], [4, 0])),
        (followed, space_of([0], [0])),
        (settled, space_of([0, 0], [0])),
        (replicated, space_of([0, 0], [0])),
    ],
    ids=["numbers", "columns", "categories", "followed", "settled", "replicated"],
)
def test_what_no_decision_moves_is_named_in_one_of_twenty_at_most(
    draw: Draw, space: SearchSpace, num: int
) -> None:
    # Of 60 data sets at a rate of 2%, more than five are named once in 1,000.
    assert share_named(draw, space, num, 60) <= 5 / 60


@pytest.mark.parametrize("in_order", [False, True])
def test_what_a_price_does_to_demand_is_found(in_order: bool) -> None:
    def draw(num: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
        X, C = priced(num, g)
        rows = X[:, 0].argsort() if in_order else slice(None)
        return X[rows], C[rows]

    space = space_of([0, 0], [0])
    assert share_named(draw, space, 15, 40) > 0.9
    assert share_named(draw, space, 40, 40) == 1.0


def test_classes_that_follow_classes_are_found_and_the_others_are_not() -> None:
    g = torch.Generator().manual_seed(0)
    X, C = columns([3, 0], 60, g), columns([3, 0], 60, g)
    C[:45, 0] = X[:45, 0]
    X, C = X[(order := torch.randperm(60, generator=g))], C[order]
    (found,) = moved_contexts(X, C, space_of([3, 0], [3, 0]))
    assert found.column == "c1"
    # By hand, the share of the rows left out that the indicators explain.
    known, wanted = (
        torch.nn.functional.one_hot(v[:, 0].long(), 3).double().numpy() for v in (X, C)
    )
    missed = spread = 0.0
    for i in range(60):
        others = [k for k in range(60) if k != i]
        same = [k for k in others if (known[k] == known[i]).all()]
        missed += ((wanted[i] - wanted[same].mean(0)) ** 2).sum()
        spread += ((wanted[i] - wanted[others].mean(0)) ** 2).sum()
    assert found.share == pytest.approx(1.0 - missed / spread, abs=0.1)


def test_the_share_is_that_of_fits_without_each_row() -> None:
    X, C = priced(16, torch.Generator().manual_seed(2))
    (found,) = moved_contexts(X, C, space_of([0, 0], [0]))

    def unit(v: Tensor) -> Tensor:
        return (v - v.mean(0)) / v.std(0, correction=0)

    chosen = torch.cat([unit(X), unit(unit(X).square())], dim=-1)[1:]
    met, before = unit(C)[1:], unit(C)[:-1]
    time = torch.arange(15).double().unsqueeze(-1)
    known = torch.cat([torch.ones_like(time), time, before], dim=-1)

    def missed(penalty: float | None) -> float:
        """Squared errors of ridge regressions that were not told the row."""
        inputs = known if penalty is None else torch.cat([known, chosen], dim=-1)
        sizes = torch.zeros(inputs.shape[-1]).double()
        sizes[3:] = penalty or 0.0
        total = 0.0
        for row in range(15):
            Z, c = (v[torch.arange(15) != row] for v in (inputs, met))
            solved = torch.linalg.solve(Z.mT @ Z + sizes.diag(), Z.mT @ c)
            total += (met[row] - inputs[row] @ solved).square().item()
        return total

    share = 1.0 - min(missed(1.0), missed(10.0)) / missed(None)
    assert found.share == pytest.approx(share, abs=1e-9)


def test_columns_that_never_change_and_few_rows_say_nothing() -> None:
    g = torch.Generator().manual_seed(0)
    X, C = priced(30, g)
    space = space_of([0, 0], [0])
    assert moved_contexts(X, C, space)
    assert not moved_contexts(X, C * 0.0 + 0.3, space)
    assert not moved_contexts(X * 0.0 + 0.3, C, space)
    assert not moved_contexts(X[:7], C[:7], space)
    assert not moved_contexts(X[:0], C[:0], space)


def shop(num: int = 30) -> NamedOptimizer:
    X, C = priced(num, torch.Generator().manual_seed(3))
    names = {"price": X[:, 0] * 80 + 10, "stock": X[:, 1], "demand": C[:, 0] * 100}
    df = pd.DataFrame({**names, "profit": names["price"] * names["stock"]})
    return NamedOptimizer.from_dataframe(
        df,
        decisions={"price": (10, 90), "stock": (0, 1)},
        contexts={"demand": (-15, 115)},
        outcome="profit",
        algorithm="erbo",
        **QUICK,
    )


def test_the_recommendation_and_the_check_say_the_column_its_share_and_what_to_do() -> (
    None
):
    opt = shop()
    best, check = opt.recommend(), opt.check()
    for text in (str(best), str(check)):
        (line,) = (t for t in text.splitlines() if t.startswith("contexts moved"))
        size = f"{100 * best.moved[0].share:.0f}"
        assert f"the decisions predict {size}% of demand in rows left out" in line
        assert "take as the context what causes it" in line
    assert check.moved == best.moved


def told(opt: RobustOptimizer, how: str) -> RobustOptimizer:
    """Thirty trials whose contexts are what was decided, or nearly."""
    g = torch.Generator().manual_seed(1)
    reference = ContextSet(UNIT)
    for _ in range(30):
        noise = 0.01 * torch.rand(1, generator=g, dtype=torch.double)
        if how == "known":
            c = torch.rand(1, generator=g, dtype=torch.double)
            opt.ask(context=c)
            x = c
        elif how == "forecast":
            x = opt.ask(context_set=reference)
            c = 0.9 * x + noise
        else:
            x = opt.ask()
            c = 0.9 * x + noise
        opt.tell(x, c.reshape(1, 1), (x * c).sum())
    return opt


@pytest.mark.parametrize("how", ["known", "forecast", "met"])
def test_only_contexts_count_of_which_the_decisions_knew_nothing(
    how: str,
) -> None:
    opt = told(RobustOptimizer("erbo", UNIT, UNIT, num_initial=30, **QUICK), how)
    assert bool(opt.recommend().moved) is (how == "met")


@pytest.mark.parametrize("chosen", [False, True])
def test_contexts_that_were_chosen_do_not_count(chosen: bool) -> None:
    opt = RobustOptimizer("erbo", UNIT, UNIT, **QUICK)
    X, C = priced(20, torch.Generator().manual_seed(5))
    trials = [
        Trial(number=i, x=X[i, :1], c=C[i], chosen_context=C[i] if chosen else None)
        for i in range(20)
    ]
    opt._run.ledger = Ledger(opt.space, trials)
    assert bool(moved_in(opt._run)) is not chosen


def test_contexts_of_an_adaptive_run_are_not_named() -> None:
    opt = RobustOptimizer("erbo", UNIT, UNIT, num_initial=4, seed=2, **QUICK)
    C = columns([0], 16, torch.Generator().manual_seed(4))
    for c in C.split(1):
        x = opt.ask()
        opt.tell(x, c, -(x - c).square().sum())
    assert opt.recommend().moved == ()


def test_categories_and_units_are_those_of_the_space() -> None:
    space = Space({"ad": Category(["no", "yes"])}, {"visits": (0.0, 500.0)})
    g = torch.Generator().manual_seed(0)
    X = columns([2], 24, g)
    C = 100.0 + 200.0 * X + 20.0 * columns([0], 24, g)
    (found,) = moved_contexts(X, C, space.search_space)
    assert found.column == "visits" and found.share > 0.95


def test_the_report_and_the_commands_say_it_too(tmp_path: Path) -> None:
    opt = shop()
    (tmp_path / "shop.csv").write_text(opt.history.to_csv(index=False))
    size = f"{100 * opt.recommend().moved[0].share:.0f}"

    def said(*words: str) -> str:
        done = CliRunner().invoke(app, [*words])
        assert done.exit_code == 0, done.output
        return " ".join(done.stdout.replace("\n# ", " ").split())

    data = str(tmp_path / "shop.csv")
    sentence = f"decisions predict {size}% of demand in rows left out"
    assert sentence in said("init", data, "--contexts", "demand")
    quick = ("--algorithm", "erbo", "--surrogate", "rbf")
    for command in ("check", "recommend"):
        found = json.loads(said(command, data, *quick, "--json"))
        assert found["contexts_moved"]["demand"] > 0.9
    write_report(opt, tmp_path / "page.html", q=1)
    page = " ".join((tmp_path / "page.html").read_text().split())
    assert f"The {sentence}" in page


def test_init_says_nothing_of_a_file_of_empty_cells(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("price,demand,profit\n1,,2\n2,3,\n,5,\n4,6,\n")
    done = CliRunner().invoke(app, ["init", str(path), "--contexts", "demand"])
    assert done.exit_code == 0, done.output
    assert "predict" not in done.stdout
