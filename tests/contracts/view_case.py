"""One posterior view for the contract tests, and the same by autograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from torch import Tensor

from botorch_drbo.posterior import MarginalPosterior, View

Moments = tuple[Tensor, Tensor]


def joined(X: Tensor, contexts: Tensor, columns: Sequence[int]) -> Tensor:
    r"""All pairs of decisions and contexts, in the model's order of columns.

    Args:
        X: Decisions, ``b x d_x``.
        contexts: ``k x d_c``, or ``b x k x d_c`` with contexts of each decision's own.
        columns: The model's columns that hold the context.

    Returns:
        Joint inputs, ``b x k x d``.
    """
    d = X.shape[-1] + len(columns)
    others = [i for i in range(d) if i not in columns]
    joint = X.new_empty(len(X), contexts.shape[-2], d)
    joint[..., others] = X.unsqueeze(-2)
    joint[..., list(columns)] = contexts.to(X)
    return joint


def model_moments(
    model: Model, joint: Tensor, transform: PosteriorTransform | None = None
) -> Moments:
    r"""BoTorch's own moments, each pair a q-batch of one.

    Args:
        model: The model.
        joint: Joint inputs, ``b x k x d``.
        transform: Combines several outputs into one, or changes the sign.

    Returns:
        Means and variances, each ``b x k``; ``b x S x k`` of an ensemble.
    """
    posterior = cast(
        GPyTorchPosterior,
        model.posterior(joint.unsqueeze(-2), posterior_transform=transform),
    )
    mean, variance = (
        found.squeeze(-1).squeeze(-1).movedim(1, -1)
        for found in (posterior.mean, posterior.variance)
    )
    return mean, variance


def weighted(parts: Sequence[Tensor]) -> Tensor:
    r"""A few numbers for each decision that show all of its moments or slopes.

    Args:
        parts: Moments or slopes, each ``b x ...``.

    Returns:
        A weighted mean of each part, ``len(parts) x b``.
    """
    generator = torch.Generator().manual_seed(7)
    sums = []
    for part in parts:
        shape = part.shape[1:]
        weights = torch.rand(*shape, generator=generator, dtype=torch.double)
        sums.append((part * weights / weights.sum()).flatten(1).sum(-1))
    return torch.stack(sums)


@dataclass(frozen=True)
class PosteriorViewCase:
    r"""One posterior on one model.

    Args:
        name: Its name in messages of failing tests.
        model: Makes the model, with at least three inputs.
        posterior: From the model and a memory budget in bytes (None for the usual one)
            to the posterior under test.
        X: Three or more decisions, ``b x d_x``, in float64.
        contexts: Sixty or so, ``n x d_c``, in float64.
        columns: The model's columns that hold the context.
        moments: From model and joint inputs to the right moments; by default those of
            ``model.posterior``.
        tolerance: How near moments have to be, relative to the largest.
        derivatives: How many derivatives in ``X`` the moments have: 0, 1 or 2. Ask for
            fewer where they are too rough to be compared with finite differences.
        memory_budget: So few bytes that the posterior has to work in blocks; None for
            one that has none.
        thorough: Whether the slower tests run too: Jacobians, blocks.
        jointly_gaussian: Whether outcomes at several contexts are; else ``integral``
            has to refuse.
    """

    name: str
    model: Callable[[], Model]
    posterior: Callable[[Model, int | None], MarginalPosterior]
    X: Tensor
    contexts: Tensor
    columns: Sequence[int] = (2,)
    moments: Callable[[Model, Tensor], Moments] = model_moments
    tolerance: float = 1e-8
    derivatives: int = 2
    memory_budget: int | None = None
    thorough: bool = True
    jointly_gaussian: bool = True


class ViewUnderTest:
    r"""A case with its model made, and the right answers.

    Args:
        case: The case.
    """

    def __init__(self, case: PosteriorViewCase) -> None:
        self.case = case
        self.model = case.model()
        self.X, self.contexts = case.X, case.contexts
        with torch.no_grad():
            found = self.expected(self.X, self.contexts)
        # The largest outcome, and the prior's variance or nearly so.
        self.scales = [part.abs().max().item() for part in found]

    def posterior(self, memory_budget: int | None = None) -> MarginalPosterior:
        r"""The posterior under test.

        Args:
            memory_budget: In bytes; None for the usual one.
        """
        return self.case.posterior(self.model, memory_budget)

    def view(
        self, contexts: Tensor | None = None, memory_budget: int | None = None
    ) -> View:
        r"""Its view.

        Args:
            contexts: ``n x d_c``; None for those of the case.
            memory_budget: In bytes; None for the usual one.
        """
        contexts = self.contexts if contexts is None else contexts
        return self.posterior(memory_budget).over(contexts)

    def expected(self, X: Tensor, contexts: Tensor) -> Moments:
        r"""The right moments, of inputs in the model's dtype.

        Args:
            X: ``b x d_x``.
            contexts: ``k x d_c`` or ``b x k x d_c``.
        """
        joint = joined(X, contexts, self.case.columns)
        return self.case.moments(self.model, joint.to(next(self.model.parameters())))

    def expected_slopes(self, X: Tensor, contexts: Tensor) -> list[Tensor]:
        r"""The right moments, and autograd through them.

        Args:
            X: ``b x d_x``.
            contexts: ``k x d_c`` or ``b x k x d_c``.

        Returns:
            Two moments ``b (x S) x k`` and their slopes ``b (x S) x k x d_c``.
        """
        own = contexts.expand(len(X), *contexts.shape[-2:]).clone().requires_grad_()
        found = self.expected(X, own)
        slopes = []
        for part in found:
            gradients = [
                torch.autograd.grad(member.sum(), own, retain_graph=True)[0]
                for member in (part.unbind(1) if part.ndim == 3 else [part])
            ]
            slopes.append(torch.stack(gradients, 1) if part.ndim == 3 else gradients[0])
        return [part.detach() for part in (*found, *slopes)]

    def assert_moments(
        self, found: Sequence[Tensor], expected: Sequence[Tensor]
    ) -> None:
        r"""Assert that moments are right.

        Args:
            found: Means and variances.
            expected: What they should be.
        """
        for a, b, scale in zip(found, expected, self.scales, strict=True):
            assert a.shape == b.shape
            assert (a - b).abs().max() <= self.case.tolerance * scale
        assert (found[1] >= 0).all()

    def assert_slopes(
        self, found: Sequence[Tensor], expected: Sequence[Tensor]
    ) -> None:
        r"""Assert that moments and slopes are right.

        Args:
            found: Means, variances, and the slopes of both.
            expected: What they should be.
        """
        self.assert_moments(found[:2], expected[:2])
        for a, b in zip(found[2:], expected[2:], strict=True):
            assert a.shape == b.shape
            assert (a - b).abs().max() <= 10 * self.case.tolerance * b.abs().max()
            assert b.abs().max() > 0

    def own(self, k: int = 4) -> Tensor:
        r"""Contexts of each decision's own, inside the box of those of the case.

        Args:
            k: How many.

        Returns:
            ``b x k x d_c``.
        """
        generator = torch.Generator().manual_seed(5)
        shape = (len(self.X), k, self.contexts.shape[-1])
        share = torch.rand(shape, generator=generator, dtype=torch.double)
        low, high = self.contexts.amin(0), self.contexts.amax(0)
        return low + (high - low) * (0.05 + 0.9 * share)
