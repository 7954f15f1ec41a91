"""The accuracy of the product path: its moments against ``model.posterior``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel
from rich.console import Console
from torch import Tensor

from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.speed.tables import Section, report_sections, show
from botorch_drbo.posterior import marginal_posterior
from botorch_drbo.posterior.product import ProductView

NOISE = 1e-6
DECISIONS = 3


@dataclass(frozen=True)
class Case:
    """A model and a set of contexts."""

    t: int
    d_c: int
    n: int
    lengthscale: float
    distinct: int | None = None  # training contexts, if few of them are different


CASES = (
    Case(100, 1, 1024, 0.35),
    Case(500, 1, 1024, 0.3),
    Case(500, 1, 1024, 0.3, distinct=7),
    Case(500, 1, 8192, 0.3),
    Case(100, 2, 1024, 0.7),
    Case(120, 2, 1024, 0.7),
    Case(60, 1, 5000, 3.0),
)
QUICK = (Case(20, 1, 128, 0.5),)


def run_accuracy(out: Path, *, quick: bool) -> int:
    """Compare, print a table, write it to ``out`` as Markdown.

    Returns:
        The exit status, 0.
    """
    console = Console()
    cases = QUICK if quick else CASES
    with one_thread(), working(console, "comparing with model.posterior"):
        rows = [compare(case) for case in cases]
    section = Section(
        title="Errors",
        text=(
            "Of the mean in units of the largest outcome, of the variance in units of "
            "the prior's: the largest over all pairs. `exact` is the exact path."
        ),
        head=[
            "t",
            "d_c",
            "n",
            "lengthscale",
            "r",
            "mean",
            "variance",
            "mean, exact",
            "variance, exact",
        ],
        rows=rows,
    )
    show(console, section)
    about = (
        "`python -m benchmarks accuracy`: the product view against `model.posterior`, "
        f"one RBF kernel, noise variance {NOISE:g}, t inputs uniform in the unit cube, "
        f"{DECISIONS} decisions, the first quarter of the n contexts repeated."
    )
    report_sections(console, out, [section], title="How exact", about=about)
    return 0


def compare(case: Case) -> list[str]:
    """One line of the table."""
    model, X, contexts = make_case(case)
    columns = [2 + i for i in range(case.d_c)]
    product, exact = (
        marginal_posterior(model, columns, method=method).over(contexts)
        for method in ("product", "exact")
    )
    with torch.no_grad():
        wanted = naive_moments(model, X, contexts)
        found = [product.at(X).moments(), exact.at(X).moments()]
    scales = model.train_targets.abs().max(), 1.0
    errors = [
        f"{((ours - theirs).abs().max() / scale).item():.0e}"
        for moments in found
        for ours, theirs, scale in zip(moments, wanted, scales, strict=True)
    ]
    t = f"{case.t}"
    if case.distinct is not None:
        t += f", {case.distinct} different contexts"
    sizes = [t, f"{case.d_c}", f"{case.n}", f"{case.lengthscale:g}"]
    rank = f"{product.size}" if isinstance(product, ProductView) else "exact"
    return [*sizes, rank, *errors]


def make_case(case: Case) -> tuple[SingleTaskGP, Tensor, Tensor]:
    """A model of two decision columns, decisions and contexts."""
    generator = torch.Generator().manual_seed(0)
    d = 2 + case.d_c
    Z = torch.rand(case.t, d, generator=generator, dtype=torch.double)
    if case.distinct is not None:
        few = Z[: case.distinct, 2:]
        Z[:, 2:] = few[torch.arange(case.t) % case.distinct]
    Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * (4 * Z[:, 2:]).cos().sum(-1, keepdim=True)
    kernel = RBFKernel(ard_num_dims=d)
    kernel.lengthscale = torch.tensor(case.lengthscale)
    model = SingleTaskGP(Z, Y, covar_module=kernel, outcome_transform=None)
    model.likelihood.initialize(noise=NOISE)
    X = torch.rand(DECISIONS, 2, generator=generator, dtype=torch.double)
    contexts = torch.rand(case.n, case.d_c, generator=generator, dtype=torch.double)
    quarter = case.n // 4
    contexts[quarter : 2 * quarter] = contexts[:quarter]
    return model.eval(), X, contexts


def naive_moments(
    model: SingleTaskGP, X: Tensor, contexts: Tensor
) -> tuple[Tensor, Tensor]:
    """BoTorch's own moments, one point after the other."""
    pairs = torch.cat(
        [
            X.unsqueeze(1).expand(-1, len(contexts), -1),
            contexts.expand(len(X), -1, -1),
        ],
        dim=-1,
    )
    posterior = model.posterior(pairs.unsqueeze(-2))
    return posterior.mean[..., 0, 0], posterior.variance[..., 0, 0]
