"""Each cell of the tables in docs/botorch.md, and that the page has these tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError

from tests.botorch.compatibility import (
    FAMILIES,
    MODELS,
    TOOLS,
    Row,
    as_markdown,
    contexts,
    plain,
)
from tests.botorch.own_tests import REASONS
from tests.contracts.view_case import joined, model_moments
from tests.models import uniform

PAGE = Path(__file__).parents[2] / "docs" / "botorch.md"


def cells(rows: Sequence[Row]) -> list:
    """Every row with every acquisition function."""
    return [
        pytest.param(row, answer, make, id=f"{row.run.__name__}-{name}")
        for row in rows
        for family, answer in zip(FAMILIES, row.cells, strict=True)
        for name, make in FAMILIES[family].items()
    ]


def test_the_page_has_the_tables():
    page = PAGE.read_text()
    for first, rows in (("BoTorch's", TOOLS), ("model", MODELS)):
        assert as_markdown(first, rows) in page, "run tests.botorch.compatibility"


def test_the_page_says_why_tests_of_botorch_fail():
    page = " ".join(PAGE.read_text().split())
    assert [reason for reason in REASONS.values() if reason not in page] == []


@pytest.mark.parametrize("row, answer, make", cells(TOOLS))
def test_tool(row: Row, answer, make):
    """A tool asserts itself what must hold; on `[x, c]` it wraps what it is given."""

    def made(q: int = 1):
        return make(plain()[0], q)

    if answer == "no":
        with pytest.raises(UnsupportedError, match=row.refusal):
            row.run(made)
    else:
        row.run(made)


@pytest.mark.parametrize("row, answer, make", cells(MODELS))
def test_model(row: Row, answer, make):
    model, options = row.run()
    if answer == "no":
        options.pop("num_inputs", None)  # those that refuse have no such argument
        with pytest.raises(UnsupportedError, match=row.refusal):
            make(model, 1, **options)
        return
    X = uniform(4, 1, 2, seed=3).requires_grad_()
    acqf = make(model, 1, **options)
    values = acqf(X)
    (gradient,) = torch.autograd.grad(values.sum(), X)
    assert values.shape == (4,) and bool(torch.isfinite(values).all())
    assert bool(torch.isfinite(gradient).all()) and bool((gradient != 0).any())


DR_UCB = partial(FAMILIES["confidence bounds"]["DistributionallyRobustUCB"], q=1)
TAKEN = [row for row in MODELS if row.cells[0] == "yes"]


@pytest.mark.parametrize("row", TAKEN, ids=lambda row: row.run.__name__)
def test_worst_bound_of_botorchs_posterior(row: Row):
    """Of each model of an ensemble on its own, and then the mean over them."""
    model, options = row.run()
    X = uniform(4, 1, 2, seed=3)
    found = DR_UCB(model, **options)(X)
    transform = options.get("posterior_transform")
    with torch.no_grad():
        pairs = joined(X.squeeze(1), contexts().points, [2])
        mean, variance = model_moments(model, pairs, transform)
        worst = (mean + (2.0 * variance).sqrt()).amin(-1)
    expected = worst.mean(-1) if worst.ndim == 2 else worst
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
