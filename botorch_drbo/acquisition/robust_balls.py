"""DRBO-KDE and DRBO-MMD: the worst case over the balls of two papers."""

from __future__ import annotations

from typing import Self, Unpack, final

from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.acquisition.inputs import ConfidenceBoundOptions
from botorch_drbo.acquisition.upper_confidence_bound import ObjectiveUCB
from botorch_drbo.adversaries.base import FittedRound
from botorch_drbo.adversaries.kernels import (
    KernelDensityBall,
    MMDBall,
    density_ball,
    grid_ball,
)
from botorch_drbo.ambiguity.base import Solver
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.schedules import MMDRadius, Schedule


@final
class KernelDensityRobustUCB(ObjectiveUCB):
    r"""DRBO-KDE: the worst case over a total variation ball around a density estimate.

    .. math::
        \alpha(x) = \min \{ E_q[s(x, c)] : \| q - \hat p_{\mathrm{KDE}} \|_1 \le
        \epsilon \}, \qquad s = \mu + \sqrt\beta\,\sigma

    The reference is a sample of the density, and the adversary may also put mass on the
    lowest score outside it: the paper's floor, here with its gradient.
    ``from_contexts`` draws 1,024 contexts from a Gaussian kernel density estimate with
    Silverman's bandwidth, takes 1,024 Sobol contexts for the floor and the radius
    ``t^(-2 / (4 + d_c))``: what the recipe ``drbo_kde`` maximises.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The sample of the density estimate, ``n`` contexts.
        radius: The largest l1 distance, twice the share of mass that may move.
        outside_contexts: Contexts ``m x d_c`` for the floor; None for none but the
            sample.
        solver: ``"exact"``, one sort; or ``"cvxpylayers"``, a cone program for each
            decision, for checks: hundreds of times slower.
        options: The options of every confidence bound:
            ``botorch_drbo.acquisition.inputs.ConfidenceBoundOptions``.

    Raises:
        InputDataError: A negative beta or radius, or a wrong context set.
        BotorchTensorDimensionError: Context columns that do not fit the model.
        UnsupportedError: A model that is not single-output.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo.acquisition import KernelDensityRobustUCB
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)  # of each column
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> model = SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True))
        >>> acqf = KernelDensityRobustUCB.from_contexts(model, Z[:, 1:], unit)
        >>> from botorch.optim import optimize_acqf
        >>> x, _ = optimize_acqf(acqf, bounds=unit, q=1, num_restarts=2, raw_samples=16)
        >>> x.shape
        torch.Size([1, 1])

    [Huang2024sbokde]_. There each decision is a convex program (Proposition 2, the
    dual), solved here by one sort.
    """

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        radius: float | Tensor,
        outside_contexts: Tensor | None = None,
        *,
        solver: Solver = "exact",
        **options: Unpack[ConfidenceBoundOptions],
    ) -> None:
        objective = UncertaintyObjective.dro(density_ball(radius), solver)
        super().__init__(
            model, beta, context_set, objective, outside_contexts, **options
        )

    @classmethod
    def from_contexts(
        cls,
        model: Model,
        contexts: Tensor,
        context_bounds: Tensor,
        *,
        beta: float | Tensor = 2.25,
        radius: Schedule | float | None = None,
        num_contexts: int = 1024,
        num_outside: int = 1024,
        seed: int = 0,
        solver: Solver = "exact",
        **options: Unpack[ConfidenceBoundOptions],
    ) -> Self:
        r"""DRBO-KDE from the contexts seen: density, floor and radius as in the paper.

        Args:
            model: A fitted single-output model of ``[x, c]``.
            contexts: The contexts seen so far, ``t x d_c``.
            context_bounds: The box of possible contexts, ``2 x d_c``; the sample is
                clipped to it.
            beta: The squared width of the confidence bound; the paper's 1.5 is 2.25.
            radius: A number, or a schedule in ``t``; None for ``KernelDensityRadius``.
            num_contexts: Draws from the density estimate.
            num_outside: Sobol contexts for the floor.
            seed: Decides both.
            solver: As for the class.
            options: The options of every confidence bound.

        Returns:
            The acquisition function.

        Raises:
            InputDataError: Contexts outside their bounds, or wrong options.
        """
        adversary = KernelDensityBall(
            radius=radius, num_contexts=num_contexts, num_outside=num_outside
        )
        state = FittedRound.of_contexts(model, contexts, context_bounds, seed=seed)
        problem = adversary.search_problem(state)
        return cls(
            model,
            beta,
            problem.contexts,
            problem.ambiguity_set.radius,
            problem.outside,
            solver=solver,
            **options,
        )


@final
class MaximumMeanDiscrepancyRobustUCB(ObjectiveUCB):
    r"""DRBO-MMD: the worst case over a ball of the model's own kernel, on a grid.

    .. math::
        \alpha(x) = \min \{ q^\top s(x, C) :
        \sqrt{(p - q)^\top K (p - q)} \le \epsilon \}, \qquad
        s = \mu + \sqrt\beta\,\sigma

    ``from_contexts`` takes the product grid of at least 100 points over the box, counts
    each context seen at its nearest point, the model's kernel between contexts and the
    radius ``(2 + sqrt(2 log 10)) / sqrt(t)``: what the recipe ``drbo_mmd`` maximises.
    For the first 17 contexts the ball is then nearly the whole simplex.

    Args:
        model: A fitted single-output BoTorch model of the joint input ``[x, c]``.
        beta: The squared width of the confidence bound, BoTorch's convention.
        context_set: The reference distribution on the grid, ``n`` contexts.
        radius: The largest maximum mean discrepancy.
        kernel_matrix: The kernel between the contexts of the set, ``n x n``.
        solver: ``"exact"``, or ``"cvxpylayers"``, a cone program for each decision,
            for checks: a thousand times slower.
        options: The options of every confidence bound:
            ``botorch_drbo.acquisition.inputs.ConfidenceBoundOptions``.

    Raises:
        InputDataError: A negative beta or radius, a wrong context set, or a matrix
            that is no kernel's.
        BotorchTensorDimensionError: Context columns that do not fit the model, or a
            matrix of other contexts.
        UnsupportedError: A model that is not single-output.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo.acquisition import MaximumMeanDiscrepancyRobustUCB
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)  # of each column
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> model = SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True))
        >>> acqf = MaximumMeanDiscrepancyRobustUCB.from_contexts(
        ...     model, Z[:, 1:], unit, radius=0.1
        ... )
        >>> from botorch.optim import optimize_acqf
        >>> x, _ = optimize_acqf(acqf, bounds=unit, q=1, num_restarts=2, raw_samples=16)
        >>> x.shape
        torch.Size([1, 1])

    [Kirschner2020drbo]_. Their code takes the diagonal of the grid if ``d_c > 1``.
    """

    def __init__(
        self,
        model: Model,
        beta: float | Tensor,
        context_set: ContextSet,
        radius: float | Tensor,
        kernel_matrix: Tensor,
        *,
        solver: Solver = "exact",
        **options: Unpack[ConfidenceBoundOptions],
    ) -> None:
        ball = grid_ball(radius, kernel_matrix)
        objective = UncertaintyObjective.dro(ball, solver)
        super().__init__(model, beta, context_set, objective, **options)

    @classmethod
    def from_contexts(
        cls,
        model: Model,
        contexts: Tensor,
        context_bounds: Tensor,
        *,
        beta: float | Tensor = 2.25,
        radius: Schedule | float | None = None,
        num_contexts: int = 100,
        solver: Solver = "exact",
        **options: Unpack[ConfidenceBoundOptions],
    ) -> Self:
        r"""DRBO-MMD from the contexts seen: grid, kernel and radius as in the paper.

        Args:
            model: A fitted model of ``[x, c]`` with a kernel. One that is no product
                is taken at the centre of the decisions that the model was fitted to.
            contexts: The contexts seen so far, ``t x d_c``.
            context_bounds: The box of possible contexts, ``2 x d_c``.
            beta: The squared width of the confidence bound.
            radius: A number, or a schedule in ``t``; None for ``MMDRadius``.
            num_contexts: The size of the grid, rounded up to a power ``d_c``.
            solver: As for the class.
            options: The options of every confidence bound.

        Returns:
            The acquisition function.

        Raises:
            InputDataError: Contexts outside their bounds, or wrong options.
            UnsupportedError: A model without a kernel.
        """
        adversary = MMDBall(
            radius=MMDRadius() if radius is None else radius, num_contexts=num_contexts
        )
        state = FittedRound.of_contexts(
            model,
            contexts,
            context_bounds,
            context_indices=options.get("context_indices"),
        )
        problem = adversary.search_problem(state)
        ball = problem.ambiguity_set
        return cls(
            model,
            beta,
            problem.contexts,
            ball.radius,
            ball.get_buffer("kernel_matrix"),
            solver=solver,
            **options,
        )
