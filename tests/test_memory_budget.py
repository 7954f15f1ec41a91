"""A memory budget of 64 MB is kept by every question that is asked of a run."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from benchmarks.speed.contexts import Question, contexts
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.problem.round import ConstraintData
from botorch_drbo.recipes import make_recipe
from tests.memory import Peak, set_default_budget

BUDGET = 2**26


def given(n: int, d_c: int) -> ContextSet:
    """A reference of so many contexts."""
    return ContextSet(contexts(n, d_c, 0, torch.Generator().manual_seed(1)))


def mixed(history: History, space: SearchSpace) -> tuple[History, SearchSpace]:
    """With a whole number in place of the first column, a category and a limit."""
    X, C = history.X, history.C
    whole, level = (9 * X[:, :1]).round(), (4 * X[:, 1:]).round()
    limit = X[:, :1] + C[:, :1] - 0.3
    X = torch.cat([whole, X[:, 1:], level], dim=-1)
    box = torch.tensor([[0.0, 0.0, 0.0], [9.0, 1.0, 4.0]], dtype=torch.double)
    return (
        History(
            X=X, C=C, Y=history.Y, contexts=C, constraints=ConstraintData(X, C, limit)
        ),
        SearchSpace(
            box, space.context_bounds, discrete={0: range(10)}, categories={2: 5}
        ),
    )


def data(t: int, d_c: int, kinds: bool) -> tuple[History, SearchSpace]:
    """Outcomes, and the boxes."""
    found = Question("ask", t, d_c=d_c).data(0)
    return mixed(*found) if kinds else found


def asked(
    name: str, q: int, t: int, n: int, d_c: int, *, kinds: bool = False
) -> Tensor:
    """The decisions of a plate."""
    recipe = make_recipe(name, reference=given(n, d_c), raw_samples=16, num_restarts=2)
    return recipe.propose(*data(t, d_c, kinds), q=q, seed=0)


def recommended(
    name: str, n: int, d_c: int, *, printed: bool = False, kinds: bool = False
) -> Tensor:
    """A recommendation and its worst case; printed, its intervals are read."""
    recipe = make_recipe(
        name,
        reference=given(n, d_c),
        surrogate="botorch",
        raw_samples=32,
        num_restarts=4,
    )
    found = recipe.recommend(*data(60, d_c, kinds), seed=0)
    ends = ()
    if printed:
        assert found.promise is not None
        ends = found.promise.expected.interval(0.9)
    return torch.cat([found.x, found.x.new_tensor([found.worst_case_value, *ends])])


PATHS: dict[str, Callable[[], Tensor]] = {
    "a plate of 8": partial(asked, "drbo_kde", 8, 40, 512, 3),
    "a plate of 32": partial(asked, "drbo_kde", 32, 40, 512, 3),
    "slopes": partial(asked, "wdrbo", 1, 100, 512, 3),
    "mixed columns and a limit": partial(asked, "drbo_kde", 1, 40, 512, 3, kinds=True),
    "a long list on a line": partial(asked, "wdrbo_exact", 1, 60, 1300, 1),
    "contexts that hurt, on a line": partial(recommended, "wdrbo_exact", 1024, 1),
    "contexts that hurt, in a box": partial(recommended, "drbo_kde", 4096, 2),
    "intervals": partial(recommended, "erbo", 4096, 1, printed=True),
    "intervals, of mixed columns": partial(
        recommended, "erbo", 4096, 1, printed=True, kinds=True
    ),
    "rivals": partial(recommended, "dro", 4096, 2, printed=True),
}
# The others took more with any budget: matrices of contexts by contexts.
MORE_WITHOUT = ("a plate of 8", "a plate of 32", "slopes", "mixed columns and a limit")


def measured(path: Callable[[], Tensor], budget: int) -> tuple[Tensor, int]:
    """The answer, and the bytes of all tensors that lived at once."""
    gc.collect()
    with pytest.MonkeyPatch.context() as patch, Peak() as peak:
        set_default_budget(patch, budget)
        found = path()
    return found, peak.bytes


@pytest.mark.parametrize("name", PATHS)
def test_64_mb_are_kept(name: str) -> None:
    """By all tensors that are made, what stays of inputs and results among them."""
    found, peak = measured(PATHS[name], BUDGET)
    expected, without = measured(PATHS[name], 2**30)
    assert peak <= BUDGET
    assert without > BUDGET or name not in MORE_WITHOUT
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
