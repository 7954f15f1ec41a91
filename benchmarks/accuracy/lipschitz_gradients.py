"""The accuracy of ``L(x)`` and its gradient, against an oracle that shares no code."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from rich.console import Console
from torch import Tensor

from benchmarks.accuracy.lipschitz_oracle import Oracle
from botorch_drbo import ContextSet
from botorch_drbo.acquisition import LipschitzPenalizedUCB

T = 30
DECISIONS = 5  # of each model
NOISES = (1e-4, 1e-2, 1e-1, 1e-6)
WIDTH = 1.5
PER_SIDE = {1: 2001, 2: 161, 3: 41}
CASES = ((1, "RBF"), (2, "RBF"), (3, "RBF"), (2, "Matern-5/2"))
HEAD = (
    "| d_c | kernel | decisions | value: median | largest | over .1% | over 2% "
    "| gradient: median | 99% | largest | over .1% | ties |\n"
)


def run_gradients(out: Path, *, models: int) -> int:
    """Measure the errors, and write a table to ``out``.

    Returns:
        The exit status, 0.
    """
    table = gradient_table(models=models)
    command = f"python -m benchmarks lipschitz --models {models} --gradients {out.name}"
    text = f"# Errors of the Lipschitz constant\n\n`{command}`\n\n{table}"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    Console().print(text)
    return 0


def gradient_table(*, models: int) -> str:
    """Relative errors of ``L(x)`` and its gradient as WDRBO sees them, in Markdown."""
    rows = []
    for d_c, kernel in CASES:
        found = [errors(seed, d_c, kernel) for seed in range(models)]
        value, gradient, tied = (torch.cat(part) for part in zip(*found, strict=True))
        gradient = gradient[~tied]
        cells = [
            _percent(value.median()),
            _percent(value.max()),
            (value > 1e-3).sum().item(),
            (value > 0.02).sum().item(),
            _percent(gradient.median()),
            _percent(gradient.quantile(0.99)),
            _percent(gradient.max()),
            (gradient > 1e-3).sum().item(),
            tied.sum().item(),
        ]
        rows.append([d_c, kernel, len(value), *cells])
    body = "".join("| " + " | ".join(map(str, row)) + " |\n" for row in rows)
    return HEAD + "|" + "---:|" * 12 + "\n" + body


def errors(
    seed: int, d_c: int, kernel: str, *, decisions: int = DECISIONS
) -> tuple[Tensor, Tensor, Tensor]:
    """Of the value ``b``, of the gradient ``b``; and which decisions are tied."""
    model, acqf, X = make_problem(seed, d_c, kernel, decisions=decisions)
    leaf = X.clone().requires_grad_()
    value = acqf.lipschitz_constant(leaf)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    truth = Oracle(model, WIDTH, X.shape[-1]).steepest(X, PER_SIDE[d_c])
    of_value = (1 - value.detach() / truth.value).abs()
    of_gradient = (gradient - truth.gradient).norm(dim=-1)
    return of_value, of_gradient / truth.gradient.norm(dim=-1), truth.tied


def make_problem(
    seed: int, d_c: int, kernel: str, *, t: int = T, decisions: int = DECISIONS
) -> tuple[SingleTaskGP, LipschitzPenalizedUCB, Tensor]:
    """A random model of lengthscales .12 to 1.1, WDRBO over it, and decisions."""
    generator = torch.Generator().manual_seed(seed)
    d_x = 1 + seed % 2
    d = d_x + d_c
    Z = torch.rand(t, d, generator=generator, dtype=torch.double)
    waves = 6 * torch.randn(4, d, generator=generator, dtype=torch.double)
    Y = (Z @ waves.mT).sin().sum(-1, keepdim=True)
    base = {
        "RBF": RBFKernel(ard_num_dims=d),
        "Matern-5/2": MaternKernel(nu=2.5, ard_num_dims=d),
    }[kernel]
    model = SingleTaskGP(
        Z, Y, covar_module=ScaleKernel(base), outcome_transform=None
    ).double()
    spread = torch.rand(d, generator=generator, dtype=torch.double)
    base.lengthscale = torch.exp(2.2 * spread + math.log(0.12))
    model.likelihood.initialize(noise=NOISES[seed % 4])
    acqf = LipschitzPenalizedUCB(
        model,
        beta=WIDTH**2,
        context_set=ContextSet.empirical(Z[:, d_x:]),
        radius=0.1,
        context_bounds=torch.tensor([[0.0], [1.0]]).repeat(1, d_c).double(),
    )
    X = torch.rand(decisions, d_x, generator=generator, dtype=torch.double)
    return model, acqf, X


def _percent(share: Tensor) -> str:
    return f"{100 * share.item():.2g}%"
