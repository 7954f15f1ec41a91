"""The searched Lipschitz constant against the maximum on a dense grid."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from rich.console import Console
from torch import Tensor

from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from botorch_drbo.acquisition.analytic import ConfidenceScore
from botorch_drbo.lipschitz.sampled import LipschitzConstant
from botorch_drbo.posterior import MarginalPosterior, marginal_posterior
from botorch_drbo.posterior.view import ALL

POINTS_PER_SIDE = {1: 4001, 2: 161, 3: 41}
KERNELS = ("RBF", "Matern-5/2", "Matern-3/2")
ONE_STEP = "RBF, one step"  # what WDRBO asks for with one context column
DECISIONS = 12
NOISES = (1e-4, 1e-2, 1e-1, 1e-6)

BOUND = ConfidenceScore(torch.tensor(1.5, dtype=torch.double), 1e-12)


def run_lipschitz(out: Path, *, models: int) -> int:
    """Measure the shortfall of ``L(x)``, and write a table to ``out``.

    Returns:
        The exit status, 0.
    """
    console, rows = Console(), []
    for d_c, per_side in POINTS_PER_SIDE.items():
        with one_thread(), working(console, f"{d_c} context columns"):
            found = {name: [] for name in KERNELS}
            if d_c == 1:
                found[ONE_STEP] = []
            for seed in range(max(3, models // d_c)):
                kernel = KERNELS[seed % 3]
                found[kernel].append(shortfall(seed, d_c, kernel, per_side))
                if d_c == 1 and kernel == "RBF":
                    quick = {"num_sobol": 384, "num_starts": 1, "num_ascent_steps": 1}
                    short = shortfall(seed, d_c, kernel, per_side, **quick)
                    found[ONE_STEP].append(short)
            for name, parts in found.items():
                values = torch.cat(parts).clamp_min(0.0)
                quantiles = values.quantile(
                    torch.tensor([0.5, 0.9, 0.99, 1.0]).double()
                )
                cells = [f"{100 * q:.2g}%" for q in quantiles.tolist()]
                over = (values > 0.02).double().mean().item()
                rows.append([d_c, name, len(values), *cells, f"{100 * over:.2g}%"])
    head = "| d_c | kernel | decisions | median | 90% | 99% | largest | over 2% |\n"
    rule = "|" + "---:|" * 8 + "\n"
    body = "".join("| " + " | ".join(map(str, row)) + " |\n" for row in rows)
    text = (
        "# Shortfall of the searched Lipschitz constant\n\n"
        f"`python -m benchmarks lipschitz --models {models}`\n\n{head}{rule}{body}"
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    console.print(text)
    return 0


def shortfall(
    seed: int, d_c: int, kernel: str, per_side: int, **options: int
) -> Tensor:
    """``1 - L / (maximum on a dense grid)`` for the decisions of one random model."""
    generator = torch.Generator().manual_seed(seed)
    d_x = 1 + seed % 2
    posterior, observed = _random_posterior(generator, seed, kernel, d_x, d_c)
    X = torch.rand(DECISIONS, d_x, generator=generator, dtype=torch.double)
    box = torch.stack([torch.zeros(d_c), torch.ones(d_c)]).double()
    search = LipschitzConstant(box, support=observed, scales=None, **options)
    here = posterior.over(search.candidates).at(X)
    with torch.no_grad():
        found = search(lambda c=None: BOUND.slope(here.slopes(ALL if c is None else c)))
    return 1 - found / _grid_maximum(posterior, X, d_c, per_side)


def _random_posterior(
    generator: torch.Generator, seed: int, kernel: str, d_x: int, d_c: int
) -> tuple[MarginalPosterior, Tensor]:
    d = d_x + d_c
    t = int(torch.randint(3, 60, (1,), generator=generator))
    Z = torch.rand(t, d, generator=generator, dtype=torch.double)
    waves = 6 * torch.randn(4, d, generator=generator, dtype=torch.double)
    Y = (Z @ waves.mT).sin().sum(-1, keepdim=True)
    base = {
        "RBF": RBFKernel(ard_num_dims=d),
        "Matern-5/2": MaternKernel(nu=2.5, ard_num_dims=d),
        "Matern-3/2": MaternKernel(nu=1.5, ard_num_dims=d),
    }[kernel]
    model = SingleTaskGP(Z, Y, covar_module=ScaleKernel(base))
    spread = torch.rand(d, generator=generator, dtype=torch.double)
    base.lengthscale = torch.exp(2.2 * spread + math.log(0.12))  # .12 to 1.1
    model.likelihood.initialize(noise=NOISES[seed % 4])
    return marginal_posterior(model, list(range(d_x, d))), Z[:, d_x:]


def _grid_maximum(
    posterior: MarginalPosterior, X: Tensor, d_c: int, per_side: int
) -> Tensor:
    side = torch.linspace(0, 1, per_side, dtype=torch.double)
    grid = torch.cartesian_prod(*[side] * d_c).reshape(-1, d_c)
    best = torch.zeros(len(X), dtype=torch.double)
    for chunk in grid.split(20_000):
        slopes = BOUND.slope(posterior.over(chunk).at(X).slopes())  # b x k x d_c
        best = torch.maximum(best, slopes.norm(dim=-1).amax(-1))
    return best
