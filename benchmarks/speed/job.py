"""The job that is timed: expected UCB over many contexts, and who can do it.

The model is BoTorch's default ``SingleTaskGP`` with two decision columns, its
hyper-parameters where their priors put them: nothing depends on a fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from gpytorch.kernels import Kernel
from torch import Tensor

from benchmarks.speed.timing import value_and_gradient
from benchmarks.speed.work import Work, dense_work, product_work
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.ambiguity import NoAmbiguity
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective, UncertaintyObjective
from botorch_drbo.posterior.factory import Method
from botorch_drbo.posterior.product import ProductView

BETA = 2.25
METHODS: tuple[Method, ...] = tuple(m for m in get_args(Method) if m != "auto")
"""The ways to the posterior that can be asked for."""
D_X = 2
_SLICE = 2**28  # bytes of one N x t x d array of BoTorch's, above which it is sliced

Side = Callable[[], Tensor]


@dataclass(frozen=True)
class Job:
    """Decisions ``b``, contexts ``n``, observations ``t``, context columns ``d_c``."""

    b: int
    n: int
    t: int
    d_c: int = 1

    @property
    def d(self) -> int:
        """The model's input columns."""
        return D_X + self.d_c

    @property
    def pairs(self) -> int:
        """Pairs of decision and context."""
        return self.b * self.n

    def __str__(self) -> str:
        """As in the tables."""
        return f"({self.b}, {self.n}, {self.t}, {self.d_c})"


class Problem:
    """A job with a model, contexts ``n x d_c`` and decisions ``b x 1 x d_x``.

    Args:
        job: The sizes.
        device: Where everything lies.
        kernel: The model's, if it is not BoTorch's default.
    """

    def __init__(
        self, job: Job, device: str = "cpu", *, kernel: Kernel | None = None
    ) -> None:
        """Draw data, contexts and decisions."""
        generator = torch.Generator().manual_seed(0)

        def uniform(*shape: int) -> Tensor:
            return torch.rand(*shape, generator=generator, dtype=torch.double)

        Z = uniform(job.t, job.d)
        Y = torch.sin(5 * Z[:, :1]) * torch.cos(3 * Z[:, 1:2]) + Z[:, 2:].sum(-1, True)
        self.job = job
        self.contexts = uniform(job.n, job.d_c).to(device)
        self.X = uniform(job.b, 1, D_X).to(device)
        self.model = SingleTaskGP(Z.to(device), Y.to(device), covar_module=kernel)
        self.model.eval()
        self.model.requires_grad_(False)  # as when x is optimised: the model is not

    @cached_property
    def auto(self) -> DistributionallyRobustUCB:
        """Our acquisition function, as a user gets it."""
        return self.acquisition()

    def acquisition(
        self, method: Method = "auto", objective: Objective | None = None
    ) -> DistributionallyRobustUCB:
        """Our acquisition function; the expectation, if no other objective is given."""
        return DistributionallyRobustUCB(
            self.model,
            beta=BETA,
            context_set=ContextSet(self.contexts),
            objective=objective or UncertaintyObjective(NoAmbiguity()),
            method=method,
        )

    def ours(self, method: Method) -> Side | None:
        """Value and gradient by a method of ours; None if it does not take the job."""
        try:
            acqf = self.auto if method == "auto" else self.acquisition(method)
        except UnsupportedError:
            return None
        if method != "auto" and acqf.view.method != method:
            return None  # it hands the job over to another one
        return lambda: value_and_gradient(acqf, self.X)

    def anew(self) -> Side:
        """The same as auto, with everything that it keeps computed again."""
        return lambda: value_and_gradient(self.acquisition(), self.X)

    @property
    def chosen(self) -> str:
        """The method that auto takes."""
        return self.auto.view.method

    def idiom(self) -> Side:
        """Value and gradient by BoTorch, in slices of decisions if memory asks."""
        job = self.job
        per_decision = 8 * job.n * job.t * job.d
        slices = self.X.split(max(1, _SLICE // per_decision))

        def expected_ucb(x: Tensor) -> Tensor:
            return botorch_expected_ucb(self.model, x, self.contexts)

        return lambda: torch.cat([value_and_gradient(expected_ucb, x) for x in slices])

    def gemm(self) -> Side:
        """The floor of the dense method: ``(b n x t) @ (t x t)``, once."""
        job = self.job
        left = torch.rand(job.pairs, job.t).to(self.X)
        right = torch.rand(job.t, job.t).to(self.X)
        product = torch.empty_like(left)
        return lambda: torch.mm(left, right, out=product)

    def work(self) -> dict[str, Work]:
        """Flops and bytes of the dense method, and of the product view if it serves."""
        job = self.job
        found = {"dense": dense_work(job.pairs, job.t, job.d)}
        view = self.auto.view
        if isinstance(view, ProductView):
            found["product"] = product_work(job.b, job.n, job.t, job.d, view.size)
        return found


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
