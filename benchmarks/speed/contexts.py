"""Questions that differ in their contexts: categories, long lists, several columns."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import torch

from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe

RECIPE = "wdrbo_exact"
_D_X, _NOISE = 2, 0.1


@dataclass(frozen=True)
class Question:
    """An ask or a recommendation after ``t`` outcomes, its own fit included."""

    what: Literal["ask", "recommend"]
    t: int
    # Context columns that are numbers.
    d_c: int = 1
    # Of one more column, a category; 0 for no such column.
    levels: int = 0
    # Contexts of a reference that is given; 0 for the contexts seen.
    given: int = 0
    # Raw samples and restarts; None for the defaults.
    effort: tuple[int, int] | None = None

    def data(self, seed: int) -> tuple[History, SearchSpace]:
        """A smooth function with noise, decisions and contexts anywhere in the box."""
        generator = torch.Generator().manual_seed(seed)
        X = torch.rand(self.t, _D_X, generator=generator).double()
        C = contexts(self.t, self.d_c, self.levels, generator)
        Y = (4.0 * X[:, 0] + 2.0 * C[:, 0]).sin() - (X[:, 1] - 0.4).square()
        Y = Y + (C[:, : self.d_c] * X[:, :1]).mean(-1) * 0.5
        if self.levels:
            Y = Y + 0.3 * torch.cos(2.0 * C[:, -1] + 3.0 * X[:, 1])
        Y = Y + _NOISE * torch.randn(self.t, generator=generator).double()
        unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        box = unit.expand(2, self.d_c)
        categories = {}
        if self.levels:
            last = torch.tensor([[0.0], [self.levels - 1.0]], dtype=torch.double)
            box, categories = torch.cat([box, last], -1), {self.d_c: self.levels}
        space = SearchSpace(unit.expand(2, _D_X), box, context_categories=categories)
        return History(X=X, C=C, Y=Y.unsqueeze(-1), contexts=C), space

    def seconds(self, seed: int = 0) -> float:
        """Processor seconds of the answer."""
        data, reference = self.data(seed), None
        if self.given:
            generator = torch.Generator().manual_seed(seed + 1)
            points = contexts(self.given, self.d_c, self.levels, generator)
            reference = ContextSet(points)
        recipe = make_recipe(RECIPE, reference=reference)
        if self.effort is not None:
            raw, restarts = self.effort
            recipe = recipe.with_options(raw_samples=raw, num_restarts=restarts)
        start = time.process_time()
        if self.what == "ask":
            recipe.propose(*data, seed=seed)
        else:
            recipe.recommend(*data, seed=seed)
        return time.process_time() - start


def contexts(n: int, d_c: int, levels: int, generator: torch.Generator) -> torch.Tensor:
    """Numbers around the middle of their box, and a category that is any of them."""
    C = 0.5 + 0.2 * torch.randn(n, d_c, generator=generator).double()
    C = C.clamp(0.0, 1.0)
    if not levels:
        return C
    level = torch.randint(levels, (n, 1), generator=generator)
    return torch.cat([C, level.double()], dim=-1)
