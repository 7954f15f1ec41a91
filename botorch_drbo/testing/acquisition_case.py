"""One acquisition function for the contract tests, and a small problem."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.acquisition import RobustAcquisitionFunction
from botorch_drbo.contexts import ContextSet
from botorch_drbo.testing.models import known_model

X_BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
C_BOUNDS = torch.tensor([[-1.0], [3.0]], dtype=torch.double)
FAMILY = (
    "X_pending",
    "context_indices",
    "memory_budget",
    "method",
    "num_pending_contexts",
    "posterior_transform",
)


@dataclass(frozen=True)
class AcquisitionCase:
    r"""One acquisition function of a contract.

    Args:
        name: Its name in messages of failing tests.
        make: From a model, ``beta`` and a ``ContextSet`` to the function; it passes on
            the options named in ``takes``. The model is one of two decisions in the
            unit box and a context in [-1, 3].
        takes: The options of ``RobustAcquisitionFunction`` that ``make`` passes on;
            what needs another one is not tested.
        rounding: By how much a value may differ when it is asked again; only a set
            that starts from what it solved before is not exact.
        memory_budgets: So few bytes, for each method of the posterior, that it has to
            work in blocks.

    Example:
        >>> from botorch_drbo.acquisition import DistributionallyRobustUCB
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> from botorch_drbo.testing import AcquisitionCase
        >>> from botorch_drbo.testing.acquisition_case import contexts, gp, rows
        >>> case = AcquisitionCase(
        ...     "ucb",
        ...     lambda model, beta, contexts, **options: DistributionallyRobustUCB(
        ...         model,
        ...         beta,
        ...         contexts,
        ...         UncertaintyObjective.dro(TotalVariation(0.3)),
        ...         **options,
        ...     ),
        ... )
        >>> case.make(gp(), 2.0, contexts())(rows()).shape
        torch.Size([5])
    """

    name: str
    make: Callable[..., RobustAcquisitionFunction]
    takes: Collection[str] = FAMILY
    rounding: float = 0.0
    memory_budgets: Mapping[str, int] = field(
        default_factory=lambda: {"exact": 2000, "generic": 30_000}
    )


def contexts(dtype: torch.dtype = torch.double, n: int = 6) -> ContextSet:
    """Weighted contexts in [-1, 3]."""
    generator = torch.Generator().manual_seed(5)
    points = -1 + 4 * torch.rand(n, 1, generator=generator, dtype=torch.double)
    weights = torch.rand(n, generator=generator, dtype=torch.double)
    return ContextSet(points.to(dtype), weights.to(dtype))


def data(t: int = 12, dtype: torch.dtype = torch.double) -> tuple[Tensor, Tensor]:
    r"""Observations of two decisions in the unit box and a context in [-1, 3].

    Args:
        t: How many.
        dtype: Of the tensors.

    Returns:
        Joint inputs ``t x 3`` and outcomes ``t x 1``.
    """
    generator = torch.Generator().manual_seed(7)
    Z = torch.rand(t, 3, generator=generator, dtype=torch.double)
    Z[:, 2] = -1 + 4 * Z[:, 2]
    Y = -(Z[:, :2] - 0.6).square().sum(-1, True) * 4 + Z[:, :1] * Z[:, 2:].sin()
    return Z.to(dtype), Y.to(dtype)


def gp(dtype: torch.dtype = torch.double) -> SingleTaskGP:
    """A Gaussian process on them, with known hyper-parameters."""
    return known_model(*data(dtype=dtype), noise=1e-3)


def rows(b: int = 5, dtype: torch.dtype = torch.double) -> Tensor:
    """Decisions, ``b x 1 x 2``."""
    generator = torch.Generator().manual_seed(9)
    return torch.rand(b, 1, 2, generator=generator, dtype=torch.double).to(dtype)


def made(
    case: AcquisitionCase,
    model: Model,
    *,
    beta: float | Tensor = 2.25,
    context_set: ContextSet | None = None,
    **options: Any,
) -> RobustAcquisitionFunction:
    r"""The function of a case.

    Args:
        case: The case.
        model: The model.
        beta: As the function takes it.
        context_set: The contexts; None for ``contexts()``.
        **options: Options of the family.
    """
    context_set = contexts() if context_set is None else context_set
    return case.make(model, beta, context_set, **options)
