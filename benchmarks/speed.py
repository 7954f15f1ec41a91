"""Times against BoTorch's own idiom, and memory against the budget: ratios in one run.

Everything runs on one thread. What is compared takes turns, repeat by repeat, so that a
busy machine slows both sides; each repeat gives a ratio and the median ratio counts.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from botorch.models import SingleTaskGP
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.runner import one_thread
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.algorithms import History, SearchSpace, make_algorithm
from botorch_drbo.ambiguity import NoAmbiguity
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.test_functions import make_test_function

BETA = 2.25
REPOSITORY = Path(__file__).parent.parent


@dataclass(frozen=True)
class Sizes:
    """Problem sizes: decisions ``b``, contexts ``n``, observations ``t``."""

    b: int = 64
    n: int = 1024
    t: int = 100
    memory_b: int = 16
    memory_n: int = 16_384
    memory_t: int = 1000
    iteration_t: int = 50
    raw_samples: int = 1024
    num_restarts: int = 10


QUICK = Sizes(
    b=2,
    n=8,
    t=6,
    memory_b=2,
    memory_n=64,
    memory_t=10,
    iteration_t=5,
    raw_samples=8,
    num_restarts=2,
)


@dataclass(frozen=True)
class Line:
    """One line of the report: what was measured, what came out, what is asked for."""

    what: str
    ours: str
    other: str
    result: str
    target: str


def run_speed(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure, print a table, write it to ``out`` as Markdown.

    Returns:
        The exit status, 0: a slow machine is not an error.
    """
    console = Console()
    sizes = QUICK if quick else Sizes()
    lines = []
    with one_thread():
        for measure in (measure_expected_ucb, measure_iteration):
            with console.status(measure.__doc__ or ""):
                lines.append(measure(sizes, repeats))
    with console.status(measure_memory.__doc__ or ""):
        lines.append(measure_memory(sizes))
    about = (
        f"`python -m benchmarks speed`, one thread, medians of {repeats} repeats. "
        f"{machine()}."
    )
    report(console, out, lines, title="Speed and memory", about=about)
    return 0


def measure_expected_ucb(sizes: Sizes, repeats: int) -> Line:
    """Expected UCB, forward and backward, against BoTorch's batched posterior."""
    model, contexts, X = _joint_problem(sizes.b, sizes.n, sizes.t)
    acqf = _expected_ucb(model, contexts)

    def ours() -> Tensor:
        return value_and_gradient(acqf, X)

    def idiom() -> Tensor:
        return value_and_gradient(lambda x: botorch_expected_ucb(model, x, contexts), X)

    # Both build their caches now; and they must compute the same thing.
    torch.testing.assert_close(ours(), idiom(), rtol=1e-6, atol=1e-8)
    mine, theirs = alternate([ours, idiom], repeats)
    ratio = statistics.median(b / a for a, b in zip(mine, theirs, strict=True))
    return Line(
        what=f"expected UCB, forward + backward, b={sizes.b}, n={sizes.n}, t={sizes.t}",
        ours=seconds(mine),
        other=f"{seconds(theirs)} (model.posterior of b x n x 1 x d)",
        result=f"{ratio:.3g} times as fast",
        target="at least 8",
    )


def measure_iteration(sizes: Sizes, repeats: int) -> Line:
    """A whole iteration, fit and optimise: WDRBO against GP-UCB on Ackley 2+1."""
    problem = make_test_function("ackley_2_1")
    space = SearchSpace(bounds=problem.bounds, context_bounds=problem.context_bounds)
    options = {"raw_samples": sizes.raw_samples, "num_restarts": sizes.num_restarts}
    names = ("wdrbo", "erbo", "gp_ucb")
    times: dict[str, list[float]] = {name: [] for name in names}
    for repeat in range(repeats):
        generator = torch.Generator().manual_seed(repeat)
        low, high = problem.bounds
        X = low + (high - low) * torch.rand(
            sizes.iteration_t, problem.d_x, generator=generator, dtype=torch.double
        )
        C = problem.sample_contexts(sizes.iteration_t, seed=repeat)
        Y = problem.evaluate(X, C).unsqueeze(-1)
        history = History(X=X, C=C, Y=Y, contexts=C)
        for name in names:
            algorithm = make_algorithm(name, **options)
            start = time.perf_counter()
            algorithm.propose(history, space, seed=repeat)
            times[name].append(time.perf_counter() - start)
    ratios = {
        name: statistics.median(
            a / b for a, b in zip(times[name], times["gp_ucb"], strict=True)
        )
        for name in ("wdrbo", "erbo")
    }
    return Line(
        what=f"whole iteration (fit, {sizes.raw_samples} raw samples, "
        f"{sizes.num_restarts} restarts), Ackley 2+1, t={sizes.iteration_t}",
        ours=f"wdrbo {seconds(times['wdrbo'])}; erbo {seconds(times['erbo'])}",
        other=f"gp_ucb {seconds(times['gp_ucb'])}",
        result=f"wdrbo {ratios['wdrbo']:.2g}, erbo {ratios['erbo']:.2g} times gp_ucb",
        target="wdrbo under 4",
    )


def measure_memory(sizes: Sizes) -> Line:
    """Peak memory of one evaluation, forward and backward, in a process of its own."""
    sent = [sizes.memory_b, sizes.memory_n, sizes.memory_t]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", *map(str, sent)],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise RuntimeError(f"The memory measurement failed:\n{finished.stderr}")
    report = json.loads(finished.stdout)
    used, budget = report["used"] / 2**20, report["budget"] / 2**20
    dense = 8 * sizes.memory_b * sizes.memory_n * sizes.memory_t / 2**20
    return Line(
        what=f"peak memory above the start, b={sizes.memory_b}, n={sizes.memory_n}, "
        f"t={sizes.memory_t}",
        ours=f"{used:.0f} MiB in {report['seconds']:.3g} s",
        other=f"budget {budget:.0f} MiB; one dense b x n x t array {dense:.0f} MiB",
        result=f"{used / budget:.2f} of the budget",
        target="within the budget",
    )


def botorch_expected_ucb(model: SingleTaskGP, X: Tensor, contexts: Tensor) -> Tensor:
    """The idiom to beat: contexts in the batch dimension, q = 1.

    Args:
        model: The model of ``[x, c]``.
        X: Decisions, ``b x 1 x d_x``.
        contexts: ``n x d_c``, equally weighted.

    Returns:
        Mean upper confidence bound of each decision, ``b``.
    """
    b, n = X.shape[0], contexts.shape[0]
    joint = torch.cat(
        [X.expand(b, n, -1), contexts.expand(b, n, -1)], dim=-1
    )  # b x n x d
    posterior = model.posterior(joint.unsqueeze(-2))  # b x n x 1 x d
    sigma = posterior.variance.clamp_min(1e-12).sqrt()
    return (posterior.mean + BETA**0.5 * sigma).flatten(1).mean(-1)


def evaluate_once(b: int, n: int, t: int) -> tuple[Callable[[], Tensor], int]:
    """Expected UCB with its gradient, ready to be called, and its memory budget."""
    model, contexts, X = _joint_problem(b, n, t)
    acqf = _expected_ucb(model, contexts)
    return lambda: value_and_gradient(acqf, X), acqf.memory_budget


def alternate(
    functions: Sequence[Callable[[], object]], repeats: int
) -> list[list[float]]:
    """Seconds of each function, ``repeats`` times, taking turns."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, record in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            record.append(time.perf_counter() - start)
    return times


def machine() -> str:
    """The processor and the versions that the times belong to."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in info.read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}"
        for name in ("torch", "gpytorch", "botorch")
    )
    return (
        f"{cpu}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, {versions}"
    )


def seconds(times: Sequence[float]) -> str:
    """The median, to be read."""
    return f"{statistics.median(times):.3g} s"


def report(
    console: Console, out: Path, lines: Sequence[Line], *, title: str, about: str
) -> None:
    """Print the lines as a table, and write them to ``out`` as Markdown."""
    head = ("measured", "ours", "against", "result", "asked for")
    table = Table(title=title, caption=about, show_lines=True)
    for name in head:
        table.add_column(name)
    rows = [
        (line.what, line.ours, line.other, line.result, line.target) for line in lines
    ]
    for row in rows:
        table.add_row(*row)
    console.print(table)
    text = [
        f"# {title}",
        "",
        about,
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(text) + "\n", encoding="utf-8")
    console.print(f"Written to {out}")


def _joint_problem(b: int, n: int, t: int) -> tuple[SingleTaskGP, Tensor, Tensor]:
    """A model of two decision and one context columns, contexts, decisions."""
    generator = torch.Generator().manual_seed(0)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.double)

    Z = uniform(t, 3)
    Y = torch.sin(5 * Z[:, :1]) * torch.cos(3 * Z[:, 1:2]) + Z[:, 2:]
    model = SingleTaskGP(Z, Y)
    model.eval()
    model.requires_grad_(False)  # as when x is optimised: the model is not
    return model, uniform(n, 1), uniform(b, 1, 2)


def _expected_ucb(model: SingleTaskGP, contexts: Tensor) -> DistributionallyRobustUCB:
    return DistributionallyRobustUCB(
        model,
        beta=BETA,
        context_set=ContextSet(contexts),
        objective=UncertaintyObjective(NoAmbiguity()),
    )


def value_and_gradient(function: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
    """Values and the gradient of their sum, ``b x (1 + d_x)``."""
    leaf = X.clone().requires_grad_(True)
    values = function(leaf)
    (gradient,) = torch.autograd.grad(values.sum(), leaf)
    return torch.cat([values.detach().unsqueeze(-1), gradient.squeeze(-2)], dim=-1)
