"""Thompson sampling for any objective over contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self, Unpack, final

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from botorch_drbo._validation import check_count
from botorch_drbo.acquisition.decisions import DecisionAcquisitionFunction
from botorch_drbo.acquisition.inputs import PathOptions, check_objective
from botorch_drbo.adversaries.base import FittedRound
from botorch_drbo.adversaries.empirical import AroundContexts
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.ambiguity.base import Solver
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import Objective, UncertaintyObjective
from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET
from botorch_drbo.posterior.freshness import TrainingData
from botorch_drbo.posterior.models import only_model
from botorch_drbo.sample_paths import sample_paths
from botorch_drbo.sample_paths.posterior_paths import supports_paths


@final
class RobustThompsonSampling(DecisionAcquisitionFunction):
    r"""TS-BOCU: Thompson sampling, the objective of sample paths of the posterior.

    .. math::
        \alpha(x_1, \dots, x_q) = \sum_{j=1}^q
            g\big( f_j(x_j, c_1), \dots, f_j(x_j, c_n);\ w \big), \qquad
        f_1, \dots, f_q \sim \text{posterior, independent}

    ``g`` is any objective of decision and context: expected, worst-case, sensitivity,
    satisficing. Each decision is chosen with its posterior probability of being the
    best one.

    A path is one function of decision and context, drawn when this object is made and
    kept until ``redraw``: the value is deterministic in ``X`` and has gradients.
    Training the model afterwards does not change the paths: call ``redraw``. If the
    training data of the model change (``set_train_data``, or in place), the paths are
    no longer samples of its posterior, and calls raise an error until ``redraw``.

    With ``num_paths = q`` there are ``q`` independent paths, one decision for each: a
    parallel batch. The terms of the sum can be maximised separately, so the decisions
    may also be found one at a time, with one path and another seed for each. Pending
    decisions have no effect, because the next path is independent.

    Args:
        model: A fitted ``SingleTaskGP`` of the joint input ``[x, c]``, or a
            ``ModelEnsemble``: each path is one of a member that the seed draws.
        context_set: The reference distribution, ``n`` contexts of ``d_c`` columns.
        objective: Collapses ``... x n`` scores and the weights to ``...``.
        num_paths: ``q``, the number of decisions that are chosen together.
        num_features: Random Fourier features of a path.
        seed: The seed of the paths; None to draw a seed from torch's generator.
        context_indices: The model's input columns that hold the context; by
            default the last ``d_c``.
        posterior_transform: A weight and an offset for the outcome; a weight of -1
            minimises it.
        memory_budget: Bytes for the temporaries of the paths.

    Raises:
        InputDataError: A wrong context set or objective, or an invalid count or seed.
        BotorchTensorDimensionError: Context columns that do not fit the model, or
            an ambiguity set of other contexts.
        UnsupportedError: A model without sample paths, or a transform that is not
            a ``ScalarizedPosteriorTransform`` of one weight.

    Example:
        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch_drbo import ContextSet
        >>> from botorch_drbo.acquisition import RobustThompsonSampling
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> Z = torch.rand(8, 2, dtype=torch.double)  # decision, context
        >>> acqf = RobustThompsonSampling(
        ...     SingleTaskGP(Z, Z.sum(dim=-1, keepdim=True)),
        ...     context_set=ContextSet.empirical(Z[:, 1:]),
        ...     objective=UncertaintyObjective.gen(TotalVariation(0.5)),
        ...     seed=0,
        ... )
        >>> from botorch.optim import optimize_acqf
        >>> box = torch.tensor([[0.0], [1.0]], dtype=torch.double)  # of decisions alone
        >>> x, _ = optimize_acqf(acqf, bounds=box, q=1, num_restarts=2, raw_samples=16)
        >>> x.shape
        torch.Size([1, 1])

    TS-BOCU [Tay2024bocu]_. There a path is a draw from the joint posterior at all pairs
    of a finite set; here it is a function, so that the decision may be continuous.
    """

    def __init__(
        self,
        model: Model,
        context_set: ContextSet,
        objective: Objective,
        *,
        num_paths: int = 1,
        num_features: int = 1024,
        seed: int | None = None,
        context_indices: Sequence[int] | None = None,
        posterior_transform: PosteriorTransform | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        reason = supports_paths(only_model(model), posterior_transform)
        if reason is not None:
            raise UnsupportedError(
                "Thompson sampling needs sample paths, and cannot draw them from this "
                f"model: {reason}. Fit a single-output SingleTaskGP with RBF or Matern "
                "kernels, or use DistributionallyRobustUCB, which takes any model."
            )
        super().__init__(
            model,
            context_set,
            context_indices=context_indices,
            posterior_transform=posterior_transform,
        )
        for name, count in (
            ("num_paths", num_paths),
            ("num_features", num_features),
            ("memory_budget", memory_budget),
        ):
            check_count(count, name)
        self.objective = check_objective(objective, context_set)
        self.num_paths = num_paths
        self.num_features = num_features
        self.memory_budget = memory_budget
        self.redraw(seed)

    @classmethod
    def from_contexts(
        cls,
        model: Model,
        contexts: Tensor,
        context_bounds: Tensor,
        *,
        ambiguity_set: AmbiguitySet | None = None,
        sensitivity_weight: float = 0.0,
        solver: Solver = "exact",
        **options: Unpack[PathOptions],
    ) -> Self:
        r"""TS-BOCU from the contexts seen, which are all that there are, as there.

        Args:
            model: A fitted single-output model of ``[x, c]``.
            contexts: The contexts seen so far, ``t x d_c``, equally likely.
            context_bounds: The box of possible contexts, ``2 x d_c``.
            ambiguity_set: The set around them; ``TotalVariation(0.2)`` by default.
            sensitivity_weight: The weight of the sensitivity beside the worst case: 1
                for the paper's GEN, 0 for its DRO.
            solver: How the worst case of a path is found; ``"cvxpylayers"`` is for
                checks: ten times slower and more.
            options: The options of every average over paths; see ``PathOptions``.

        Returns:
            The acquisition function.

        Raises:
            InputDataError: Contexts outside their bounds, or wrong options.
        """
        around = AroundContexts(contexts_complete=True)
        if ambiguity_set is not None:
            around = replace(around, ambiguity_set=ambiguity_set)
        state = FittedRound.of_contexts(model, contexts, context_bounds)
        problem = around.search_problem(state)
        objective = UncertaintyObjective(
            problem.ambiguity_set, 1.0, sensitivity_weight, solver
        )
        return cls(model, problem.listed(), objective, **options)

    def redraw(self, seed: int | None = None) -> None:
        r"""Draw new paths from the current model.

        Args:
            seed: The seed of the paths; None to draw a seed from torch's generator. The
                seed in use is the attribute ``seed``.

        Raises:
            InputDataError: A seed that is not an integer, or negative.
        """
        if seed is None:
            seed = int(torch.randint(2**31, ()))
        self.seed = check_count(seed, "seed", minimum=0)
        self.paths = sample_paths(
            self.model,
            self.context_indices,
            num_paths=self.num_paths,
            num_features=self.num_features,
            seed=self.seed,
            posterior_transform=self.posterior_transform,
            memory_budget=self.memory_budget,
        )
        self._drawn_from = TrainingData(self.model)

    def _condition(self, pending: Tensor | None) -> None:
        """The same path would be maximal at the same place."""
        if pending is not None:
            raise UnsupportedError(
                "Thompson sampling takes no pending decisions. For a batch set "
                "`num_paths=q` and optimise jointly; while others are pending call "
                "`redraw()`, which draws another path."
            )

    # BoTorch types its decorator for the base class only.
    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def forward(self, X: Tensor) -> Tensor:
        r"""Evaluate the acquisition function.

        Args:
            X: Decisions, ``b x q x d_x`` with ``q = num_paths``.

        Returns:
            The sum over the paths, each at its own decision, ``b``.

        Raises:
            BotorchTensorDimensionError: Other columns, or another ``q``.
            UnsupportedError: The model has other training data than when the paths
                were drawn.
        """
        values = self._on_paths(X)
        return self.objective(values, self.context_set.weights.to(X)).sum(-1)

    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def ranking(self, X: Tensor) -> Tensor:
        r"""Evaluate a cheap ranking of decisions, used to choose starting points.

        A lower bound of the objective on the same paths, where the ambiguity set has
        one that costs less.

        Args:
            X: Decisions, ``b x q x d_x`` with ``q = num_paths``.

        Returns:
            One number per batch, ``b``, without a gradient.

        Raises:
            BotorchTensorDimensionError: As ``forward``.
            UnsupportedError: As ``forward``.
        """
        with torch.no_grad():
            values, weights = self._on_paths(X), self.context_set.weights.to(X)
            return self.objective.lower_bound(values, weights).sum(-1)

    def _on_paths(self, X: Tensor) -> Tensor:
        """The values of each path at its own decision, ``b x q x n``."""
        self._check_decisions(X)
        if not self._drawn_from.same():
            raise UnsupportedError(
                "The training data of the model have changed since the sample paths "
                "were drawn, so they are no draws of its posterior any more. Call "
                "`redraw()` to draw new ones, or `redraw(seed)` from a seed of yours."
            )
        if X.shape[-2] != self.num_paths:
            raise BotorchTensorDimensionError(
                f"`X` must have q = {self.num_paths} decisions per batch, one for each "
                f"path, got shape {tuple(X.shape)}. Set `num_paths={X.shape[-2]}`."
            )
        return self.paths.own(X, self.context_set.points.to(X))
