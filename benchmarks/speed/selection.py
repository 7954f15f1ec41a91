"""Times of choosing by variance: one row more per choice, against a new factor each."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from rich.console import Console
from torch import Tensor

from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import machine
from benchmarks.speed.tables import Line, report
from benchmarks.speed.timing import alternate, digits, seconds
from botorch_drbo.confidence import information_gain, maximum_information_gain
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes.phased import PhasedUncertaintySampling
from botorch_drbo.surrogate import FixedHyperparameters

LENGTHSCALE, NOISE, LIMIT = 0.3, 0.01, 2.0


@dataclass(frozen=True)
class SelectionSizes:
    """Candidates and choices; an episode has a power of two."""

    gain_candidates: int = 2048
    gain_choices: int = 200
    episode_candidates: int = 4096
    episode_choices: int = 256


QUICK = SelectionSizes(20, 5, 30, 8)


def run_selection_speed(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure, print a table, write it to ``out`` as Markdown.

    Returns:
        The exit status, 0: a slow machine is not an error.
    """
    console = Console()
    sizes = QUICK if quick else SelectionSizes()
    lines = []
    with one_thread():
        for measure in (measure_maximum_gain, measure_episode):
            with working(console, measure.__doc__ or ""):
                lines.append(measure(sizes, repeats))
    about = (
        f"`python -m benchmarks speed selection`, one thread, medians of {repeats} "
        f"repeats that take turns. {machine()}."
    )
    report(console, out, lines, title="Choosing by variance", about=about)
    return 0


def measure_maximum_gain(sizes: SelectionSizes, repeats: int) -> Line:
    """Greedy maximum information gain."""
    candidates = _uniform(sizes.gain_candidates, 2)
    kernel, num = _kernel(), sizes.gain_choices

    def ours() -> Tensor:
        return candidates[
            maximum_information_gain(kernel, candidates, num, NOISE).indices
        ]

    return _line("maximum information gain", ours, kernel, candidates, num, repeats)


def measure_episode(sizes: SelectionSizes, repeats: int) -> Line:
    """An episode of phased uncertainty sampling, from its history to its decisions."""
    candidates, num = _uniform(sizes.episode_candidates, 2), sizes.episode_choices
    unit = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    space = SearchSpace(bounds=unit, context_bounds=unit[:, :1])
    recipe = PhasedUncertaintySampling(
        hyperparameters=FixedHyperparameters(
            lengthscale=LENGTHSCALE, noise_variance=NOISE
        ),
        confidence_width=100.0,  # nobody is discarded: the list stays long
    )
    X = candidates[: num - 1]  # all episodes before this one
    C = X[:, :1]
    history = History(X=X, C=C, Y=X.sum(-1, keepdim=True), contexts=C)

    def ours() -> Tensor:
        return recipe.propose(history, space, q=num, candidates=candidates)

    what = "phased_gp_us, an episode with the replay of all before"
    return _line(what, ours, _kernel(), candidates, num, repeats)


def choose_from_scratch(
    kernel: Kernel, candidates: Tensor, num: int, noise: float
) -> Tensor:
    """The greedy choice with a new factor at each step; kernel rows are kept.

    Args:
        kernel: With a constant variance.
        candidates: ``N x d``.
        num: How many are chosen.
        noise: The noise variance.

    Returns:
        The choices, ``num x d``.
    """
    rows = candidates.new_empty(num, len(candidates))
    chosen: list[int] = []
    with torch.no_grad():
        prior = _evaluate(kernel, candidates[:1], candidates[:1]).squeeze()
        variance = prior.expand(len(candidates))
        for t in range(num):
            chosen.append(int(variance.argmax()))
            point = candidates[chosen[-1:]]
            rows[t] = _evaluate(kernel, point, candidates).squeeze(0)
            known = rows[: t + 1]
            own = known[:, chosen] + noise * torch.eye(t + 1).to(known)
            root = torch.linalg.cholesky(own)
            half = torch.linalg.solve_triangular(root, known, upper=False)
            variance = prior - half.square().sum(0)
    return candidates[chosen]


def _line(
    what: str,
    ours: Callable[[], Tensor],
    kernel: Kernel,
    candidates: Tensor,
    num: int,
    repeats: int,
) -> Line:
    def scratch() -> Tensor:
        return choose_from_scratch(kernel, candidates, num, NOISE)

    # Where two variances are equal the choices may differ, but not what they tell us.
    gains = [
        information_gain(_evaluate(kernel, chosen, chosen), NOISE)
        for chosen in (ours(), scratch())
    ]
    torch.testing.assert_close(gains[0], gains[1], rtol=1e-3, atol=0.0)
    mine, theirs = alternate([ours, scratch], repeats)
    ratio = statistics.median(b / a for a, b in zip(mine, theirs, strict=True))
    met = statistics.median(mine) < LIMIT
    return Line(
        what=f"{what}: {num} choices from {len(candidates)}",
        ours=seconds(mine),
        other=f"{seconds(theirs)} (factored anew at each choice)",
        result=f"{digits(ratio)} times as fast",
        target=f"under {LIMIT:g} s: {'met' if met else 'missed'}",
    )


def _kernel() -> Kernel:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale = torch.tensor(LENGTHSCALE, dtype=torch.double)
    kernel.outputscale = torch.tensor(1.0, dtype=torch.double)
    return kernel.requires_grad_(False)


def _evaluate(kernel: Kernel, left: Tensor, right: Tensor) -> Tensor:
    return cast(Callable[..., Any], kernel)(left, right).to_dense()


def _uniform(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(*shape, generator=generator, dtype=torch.double)
