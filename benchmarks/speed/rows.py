"""Thousands of rows: their cost in factorisations, the error of inducing points."""

from __future__ import annotations

import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from botorch.exceptions.warnings import InputDataWarning
from botorch.posteriors import GPyTorchPosterior
from rich.console import Console

from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import machine
from benchmarks.speed.tables import Section, report_sections, show
from benchmarks.speed.timing import busy, digits
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.surrogate import SURROGATES, GaussianProcess, Surrogate
from botorch_drbo.surrogate.botorch_default import BoTorchDefault
from botorch_drbo.surrogate.fit import joint_data

RECIPE = "wdrbo"
LIMIT = 300.0  # factorisations, for an ask and for a recommendation
_D_X, _D_C, _NOISE = 3, 2, 0.1


@dataclass(frozen=True)
class Sizes:
    """After how many outcomes, by which surrogates."""

    exact: Sequence[tuple[str, int]] = (
        ("botorch", 1000),
        ("ensemble", 1000),
        ("botorch", 2000),
    )
    compared: int = 3000
    inducing: Sequence[int] = (5000, 20000, 50000)

    def limited(self, most: int | None, surrogate: str | None) -> Sizes:
        """Part of them; a comparison of 0 is none.

        Args:
            most: Outcomes at most; None for all.
            surrogate: The only one of the exact models; None for all.
        """
        most = sys.maxsize if most is None else most
        return Sizes(
            tuple(
                (name, t)
                for name, t in self.exact
                if t <= most and surrogate in (None, name)
            ),
            self.compared if self.compared <= most else 0,
            tuple(t for t in self.inducing if t <= most),
        )


QUICK = Sizes((("botorch", 30),), 60, (70, 140))


def make_rows(t: int, seed: int = 0) -> tuple[History, SearchSpace]:
    """A smooth function of three decisions and two contexts, with noise of 0.1."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(t, _D_X, generator=generator).double()
    C = torch.rand(t, _D_C, generator=generator).double()
    Y = (4.0 * X[:, 0] + 2.0 * C[:, 0]).sin() + (5.0 * X[:, 1] * C[:, 1]).cos()
    Y = Y - 3.0 * (X[:, 2] - 0.4).square()
    Y = Y + _NOISE * torch.randn(t, generator=generator).double()
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    space = SearchSpace(unit.expand(2, _D_X), unit.expand(2, _D_C))
    return History(X=X, C=C, Y=Y.unsqueeze(-1), contexts=C), space


def run_row_speed(
    out: Path,
    *,
    repeats: int,
    quick: bool,
    most: int | None = None,
    surrogate: str | None = None,
) -> int:
    """Measure, print tables, write them to ``out`` as Markdown.

    Args:
        out: The report file.
        repeats: Of a factorisation, for its median.
        quick: Tiny sizes.
        most: Without what has more outcomes; None for all.
        surrogate: The only one of the exact models; None for all.

    Returns:
        The exit status, 0: a slow machine is not an error.
    """
    console, load = Console(), busy()
    sizes = (QUICK if quick else Sizes()).limited(most, surrogate)
    limited = "" if most is None else f" --most {most}"
    limited += "" if surrogate is None else f" --surrogate {surrogate}"
    measured: list[Callable[[], Section]] = []
    if sizes.inducing:
        measured.append(lambda: inducing_section(sizes.inducing, quick=quick))
    if sizes.compared:
        measured.append(lambda: accuracy_section(sizes.compared))
    if sizes.exact:
        measured.append(lambda: exact_section(sizes.exact, repeats))
    sections = []
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)  # of `max_exact`
        ask(make_rows(8), "botorch")  # what a first call does beside
        for measure in measured:
            with working(console, "thousands of rows"):
                sections.append(measure())
            show(console, sections[-1])
    about = (
        "**Tiny sizes, to see that it runs: the times mean nothing.** "
        * quick
        + f"`python -m benchmarks speed rows{' --quick' * quick}{limited}`: a smooth "
        "function of three decisions and two contexts, uniform inputs, noise of a "
        f"deviation of {_NOISE:g}; `{RECIPE}` with default options. Processor seconds "
        "of a thread. "
        f"{machine()}. {load}"
    )
    title = "Thousands of rows"
    report_sections(console, out, sections, title=title, about=about)
    return 0


def exact_section(pairs: Sequence[tuple[str, int]], repeats: int) -> Section:
    """Fit, ask and recommendation in Cholesky factorisations of ``t x t``."""
    rows, asks = [], []
    for name, t in pairs:
        data, recipe = make_rows(t), make_recipe(RECIPE, surrogate=name)
        parts: list[Callable[[], object]] = [
            lambda d=data, n=name: SURROGATES[n].fit(joint_data(*d)),
            lambda d=data, n=name: ask(d, n),
            lambda d=data, r=recipe: r.recommend(*d, seed=0),
        ]
        units, times = [factorisation(t, repeats)], []
        for part in parts:
            times.append(processor(part))
            units.append(factorisation(t, repeats))
        unit = statistics.median(units)  # the load changes between the parts
        fit, asked, found = times
        asks += [asked / unit, found / unit]
        rows.append(
            [f"{name}, t = {t:,}", f"{1e3 * unit:.1f} ms"]
            + [f"{each:.1f} s ({digits(each / unit)})" for each in (fit, asked, found)]
        )
    verdict = "met" if max(asks) <= LIMIT else "**missed**"
    return Section(
        title="Exact models",
        text="Processor seconds, and in brackets how many Cholesky factorisations of "
        "`t x t` they are, timed in the same process before, between and after them.",
        head=[
            "surrogate, outcomes",
            "one factorisation",
            "the fit",
            "an ask",
            "a recommendation",
        ],
        rows=rows,
        notes=[
            f"Asked for: at most {LIMIT:g} factorisations for an ask and for a "
            f"recommendation; they take {digits(min(asks))} to {digits(max(asks))}: "
            f"{verdict}."
        ],
    )


def accuracy_section(t: int) -> Section:
    """The model of inducing points against the exact one, on rows that neither saw."""
    data, new = joint_data(*make_rows(t)), joint_data(*make_rows(1000, seed=1))
    pairs: list[tuple[str, Surrogate]] = []
    for name, kind in (
        ("botorch", BoTorchDefault),
        ("matern", GaussianProcess),
    ):
        pairs += [
            (f"{name}, exact", kind(max_exact=t)),
            (f"{name}, inducing points", kind(max_exact=t - 1)),
        ]
    rows = []
    for name, surrogate in pairs:
        start = time.process_time()
        model = surrogate.fit(data)
        fitted = time.process_time() - start
        with torch.no_grad():
            latent = model.posterior(new.inputs)
            noisy = model.posterior(new.inputs, observation_noise=True)
        deviation = cast(GPyTorchPosterior, noisy).variance.sqrt()
        error = new.outcomes - cast(GPyTorchPosterior, latent).mean
        score = error / deviation
        rows.append(
            [
                name,
                f"{fitted:.1f} s",
                f"{error.square().mean().sqrt():.4f}",
                f"{cast(GPyTorchPosterior, latent).variance.sqrt().mean():.4f}",
                f"{100 * (score.abs() < 1.96).double().mean():.1f}%",
                f"{(0.5 * score.square() + deviation.log()).mean():.4f}",
            ]
        )
    return Section(
        title="What inducing points lose",
        text=f"Fitted to {t:,} outcomes, asked for 1,000 others. The error of a model "
        f"that knows the function is the noise, {_NOISE:g}.",
        head=[
            "model",
            "the fit",
            "root mean square error",
            "mean deviation, without noise",
            "in the 95% interval",
            "minus log density, less a constant",
        ],
        rows=rows,
    )


def inducing_section(sizes: Sequence[int], *, quick: bool) -> Section:
    """Beyond ``max_exact``: time and memory by the number of rows."""
    surrogate = BoTorchDefault(max_exact=50) if quick else BoTorchDefault()
    rows = []
    for t in sizes:
        data = make_rows(t)
        reference = ContextSet(data[0].C[:256])
        start = time.process_time()
        surrogate.fit(joint_data(*data))
        fitted = time.process_time()
        ask(data, surrogate, reference)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        rows.append(
            [
                f"{t:,}",
                f"{fitted - start:.1f} s",
                f"{time.process_time() - fitted:.1f} s",
                f"{peak:,.0f} MiB",
            ]
        )
    return Section(
        title="Inducing points",
        text="`botorch` beyond its `max_exact`: hyper-parameters of 1,000 rows, all "
        "rows summed up at 512 points at most. The ask, with its own fit, looks at 256 "
        "contexts. The peak is that of the whole process so far.",
        head=["outcomes", "the fit", "an ask", "peak memory"],
        rows=rows,
    )


def ask(
    data: tuple[History, SearchSpace],
    surrogate: Surrogate | str,
    reference: ContextSet | None = None,
) -> None:
    """From the outcomes to the decision."""
    recipe = make_recipe(RECIPE, surrogate=surrogate, reference=reference)
    recipe.propose(*data, seed=0)


def factorisation(t: int, repeats: int) -> float:
    """Processor seconds of a Cholesky factorisation of ``t x t``, the median."""
    A = torch.rand(t, t, generator=torch.Generator().manual_seed(0)).double()
    A = A @ A.mT / t + torch.eye(t).double()
    return statistics.median(
        processor(lambda: torch.linalg.cholesky(A)) for _ in range(repeats)
    )


def processor(function: Callable[[], object]) -> float:
    """Seconds of the processor."""
    start = time.process_time()
    function()
    return time.process_time() - start
