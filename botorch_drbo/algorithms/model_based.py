"""Recipes that fit a Gaussian process and optimise an acquisition function."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, cast

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import gen_batch_initial_conditions, optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_drbo._validation import check_inside
from botorch_drbo.acquisition import DistributionallyRobustUCB
from botorch_drbo.algorithms.base import Algorithm
from botorch_drbo.algorithms.candidates import best_row, score, without
from botorch_drbo.algorithms.data import History, Recommendation, SearchSpace
from botorch_drbo.algorithms.hyperparameters import FixedHyperparameters
from botorch_drbo.algorithms.outcome_units import level_and_unit, scaled_model
from botorch_drbo.algorithms.unit_cube import InUnitCube
from botorch_drbo.algorithms.worst_case import Judge, worst_case
from botorch_drbo.ambiguity import AmbiguitySet, TotalVariation
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.schedules import Schedule, as_schedule

# Decisions nearer than this (largest coordinate difference, in sides of the box) are
# not asked while one of them is pending.
_SEPARATION = 0.01
# At a kink L-BFGS-B would spend most of its evaluations on digits that no one needs.
_LINE_SEARCH = {"maxls": 8, "factr": 1e9}
_NEIGHBOURHOOD = 0.05  # half-width, in sides of the box, of the search for a new one


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelBasedAlgorithm(Algorithm):
    r"""Model the outcome of ``[x, c]``, maximise an acquisition function in ``x``.

    The model is BoTorch's ``SingleTaskGP`` with inputs normalised by the bounds and
    outcomes standardised, fitted from scratch at each call: what a call returns does
    not depend on the calls before it. The ascent sees the box of decisions as the unit
    cube and the acquisition function in units of the model's prior: what a call returns
    does not depend on the units of ``x``, ``c`` and ``y`` either.

    Args:
        reference: The context distribution if it is known (the general setting);
            None to estimate it from the contexts seen (the data-driven setting).
        hyperparameters: Those of the model if they are known: then nothing is fitted,
            and outcomes are not standardised by their own spread.
        num_restarts: Starting points of the gradient ascent in ``x``.
        raw_samples: Sobol points from which the starting points are picked.
        max_iterations: L-BFGS-B iterations per ascent.

    Raises:
        InputDataError: An option outside its range.
    """

    uses_contexts: ClassVar[bool] = True
    """Whether the model that drives the search has the context among its inputs."""

    reference: ContextSet | None = None
    hyperparameters: FixedHyperparameters | None = None
    num_restarts: int = 10
    raw_samples: int = 1024
    max_iterations: int = 200

    def __post_init__(self) -> None:
        """Check the options."""
        if self.reference is not None and not isinstance(self.reference, ContextSet):
            raise InputDataError(
                "`reference` must be a ContextSet or None, got "
                f"{type(self.reference).__name__}. See ContextSet.from_distribution."
            )
        if self.hyperparameters is not None and not isinstance(
            self.hyperparameters, FixedHyperparameters
        ):
            raise InputDataError(
                "`hyperparameters` must be FixedHyperparameters or None, got "
                f"{type(self.hyperparameters).__name__}."
            )
        check_counts(
            num_restarts=self.num_restarts,
            raw_samples=self.raw_samples,
            max_iterations=self.max_iterations,
        )
        if self.raw_samples < self.num_restarts:
            raise InputDataError(
                f"`raw_samples` ({self.raw_samples}) must be at least `num_restarts` "
                f"({self.num_restarts}): the restarts are picked from them."
            )

    @abstractmethod
    def exploring(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""Build the acquisition function that finds the next decision.

        Args:
            model: The fitted model, of ``[x, c]`` or of ``x`` (see ``uses_contexts``).
            history: What has been observed.
            space: The boxes of decisions and contexts.
            X_pending: Pending decisions, ``m x d_x``; within a batch also those that
                come before.
            seed: Decides every random draw.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """

    @abstractmethod
    def exploiting(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> AcquisitionFunction:
        r"""Build the objective of the posterior mean, for recommendations.

        Args:
            model: The fitted model, of ``[x, c]`` or of ``x`` (see ``uses_contexts``).
            history: What has been observed.
            space: The boxes of decisions and contexts.
            seed: Decides every random draw.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """

    @abstractmethod
    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The reference distribution on a list of contexts, and the set around it.

        Args:
            model: The fitted model of ``[x, c]``.
            history: What has been observed.
            space: The boxes of decisions and contexts.
            seed: Decides every random draw.

        Returns:
            The reference distribution and the set around it.
        """

    def judge(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> Judge:
        r"""What the worst case of a recommendation is a minimum over.

        By default that of ``robust_set``, with the whole box of contexts in reach if
        the set lets mass go anywhere (``AmbiguitySet.reaches_unseen``). A recipe whose
        set knows its contexts by a matrix says here how it is made.

        Args:
            model: The fitted model of ``[x, c]``.
            history: What has been observed.
            space: The boxes of decisions and contexts.
            seed: Decides every random draw.

        Returns:
            The reference distribution, the set around it, and where mass may go.
        """
        return Judge.of(*self.robust_set(model, history, space, seed=seed), space)

    def data_contexts(self, history: History, space: SearchSpace) -> ContextSet:
        """The given reference distribution, or else the empirical one."""
        if self.reference is None:
            return ContextSet.empirical(history.contexts)
        if self.reference.dim != space.d_c:
            raise BotorchTensorDimensionError(
                f"`reference` has {self.reference.dim} context columns, "
                f"`context_bounds` has {space.d_c}."
            )
        points = self.reference.points.to(space.bounds)
        check_inside(points, space.context_bounds, "reference", "context_bounds")
        return ContextSet(points, self.reference.weights.to(space.bounds))

    def _propose(
        self,
        history: History,
        space: SearchSpace,
        *,
        q: int,
        X_pending: Tensor | None,
        seed: int,
        candidates: Tensor | None,
    ) -> Tensor:
        model = self._model(history, space, self.uses_contexts)
        pending = (
            space.bounds.new_empty(0, space.d_x) if X_pending is None else X_pending
        )
        chosen: list[Tensor] = []
        # One by one, each seeing those before it as pending. This is what
        # optimize_acqf(sequential=True) does, but it also serves analytic acquisition
        # functions, which take their pending decisions at construction only.
        for _ in range(q):
            acqf = self.exploring(
                model,
                history,
                space,
                X_pending=pending if len(pending) else None,
                seed=seed,
            )
            if candidates is None:
                tops, values = self._ascend(acqf, space, seed)
                x = _best_new(
                    acqf, tops, values, pending, space, seed, self.raw_samples
                )
            else:
                x = best_row(candidates, score(acqf, candidates), pending)
                candidates = without(candidates, x)
            chosen.append(x)
            pending = torch.cat([pending, x])
        return torch.cat(chosen)

    def _recommend(
        self,
        history: History,
        space: SearchSpace,
        *,
        seed: int,
        candidates: Tensor | None,
    ) -> Recommendation:
        model = self._model(history, space, self.uses_contexts)
        acqf = self.exploiting(model, history, space, seed=seed)
        if candidates is None:
            # The best decision tried so far is a start too: the answer is never worse.
            tried = history.X.unique(dim=0)
            start = tried[score(acqf, tried).argmax()].reshape(1, 1, -1)
            start = start.clamp(space.bounds[0], space.bounds[1])
            tops, values = self._ascend(acqf, space, seed, start)
            tops = tops.clamp(space.bounds[0], space.bounds[1])
        else:
            tops, values = candidates, score(acqf, candidates)
        best = values.argmax()
        x = tops[best]  # d_x
        joint = model if self.uses_contexts else self._model(history, space, True)

        def mean(contexts: Tensor) -> Tensor:  # n x d_c -> n, differentiable
            Z = torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)
            return joint.posterior(Z.unsqueeze(-2)).mean.flatten()

        judge = self.judge(joint, history, space, seed=seed)
        with torch.no_grad():
            reference = judge.contexts
            expected = (reference.weights * mean(reference.points)).sum()
        contexts, robust = worst_case(judge, mean, seed=seed)
        return Recommendation(
            x=x,
            objective=values[best].item(),
            expected_value=expected.item(),
            worst_case_value=robust.value.item(),
            worst_case_weights=robust.weights,
            context_set=contexts,
            worst_case_box=judge.box,
            worst_case_status=robust.status,
        )

    def _model(
        self, history: History, space: SearchSpace, uses_contexts: bool
    ) -> SingleTaskGP:
        inputs, bounds = history.X, space.bounds
        if uses_contexts:
            inputs = torch.cat([history.X, history.C], dim=-1)
            bounds = space.joint_bounds
        if self.hyperparameters is not None:
            model = self.hyperparameters.model(
                inputs, history.Y, bounds, space.d_x + space.d_c
            )
        else:
            transform = Normalize(inputs.shape[-1], bounds=bounds)
            units = level_and_unit(history.Y)
            model = scaled_model(inputs, history.Y, *units, input_transform=transform)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            model.eval()
        return model.requires_grad_(False)  # only x is differentiated from here on

    def _ascend(
        self,
        acqf: AcquisitionFunction,
        space: SearchSpace,
        seed: int,
        start: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Maximise from several starts: ``r x d_x`` candidates and ``r`` values."""
        cube = InUnitCube(acqf, space.bounds)
        options = {"seed": seed, "maxiter": self.max_iterations, **_LINE_SEARCH}
        # What optimize_acqf would do, but ranked without the exact values.
        starts = gen_batch_initial_conditions(
            cast(AcquisitionFunction, cube.ranking),  # it is called, no more
            bounds=cube.bounds,
            q=1,
            num_restarts=self.num_restarts,
            raw_samples=self.raw_samples,
            options=options,
        )
        if start is not None:
            starts = torch.cat([cube.to_cube(start), starts])
        candidates, _ = optimize_acqf(
            cube,
            bounds=cube.bounds,
            q=1,
            num_restarts=len(starts),
            batch_initial_conditions=starts,
            return_best_only=False,
            # Robust objectives have kinks, at which a line search may give up. Where it
            # stopped is a candidate all the same: no reason to start all over.
            retry_on_optimization_warning=False,
            options=options,
        )
        tops = cube.to_box(candidates).squeeze(-2)
        return tops, score(acqf, tops)


@dataclass(frozen=True, kw_only=True, eq=False)
class AcquisitionAlgorithm(ModelBasedAlgorithm):
    r"""One acquisition function for both: with ``beta`` to explore, with 0 to judge.

    Args:
        beta: Exploration in BoTorch's convention, ``mu + sqrt(beta) * sigma``: a
            number, or a schedule in the number of outcomes.

    Raises:
        InputDataError: An option outside its range.
    """

    beta: Schedule | float = 2.25

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        as_schedule(self.beta, "beta")

    @abstractmethod
    def acquisition(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        beta: float,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""Build the acquisition function.

        Args:
            model: The fitted model, of ``[x, c]`` or of ``x`` (see ``uses_contexts``).
            history: What has been observed.
            space: The boxes of decisions and contexts.
            beta: The exploration of this round; 0 asks for the posterior mean.
            X_pending: Pending decisions, ``m x d_x``.
            seed: Decides every random draw.

        Returns:
            A function of ``b x 1 x d_x`` decisions.
        """

    def exploring(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""The acquisition function with the ``beta`` of this round."""
        beta = as_schedule(self.beta)(history.t)
        return self.acquisition(
            model, history, space, beta=beta, X_pending=X_pending, seed=seed
        )

    def exploiting(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> AcquisitionFunction:
        r"""The acquisition function with ``beta`` zero."""
        return self.acquisition(
            model, history, space, beta=0.0, X_pending=None, seed=seed
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RobustSetAlgorithm(AcquisitionAlgorithm):
    r"""Maximise the worst confidence bound over an ambiguity set on a list of contexts.

    A recipe of this kind says what its contexts and its ambiguity set are, in
    ``robust_set``; that is all.
    """

    def acquisition(
        self,
        model: SingleTaskGP,
        history: History,
        space: SearchSpace,
        *,
        beta: float,
        X_pending: Tensor | None,
        seed: int,
    ) -> AcquisitionFunction:
        r"""The worst expected upper confidence bound over ``robust_set``."""
        contexts, ambiguity = self.robust_set(model, history, space, seed=seed)
        return DistributionallyRobustUCB(
            model, beta, contexts, UncertaintyObjective(ambiguity), X_pending=X_pending
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class AmbiguityOptions(ModelBasedAlgorithm):
    r"""Any ambiguity set around the contexts seen, with a radius that may change.

    Args:
        ambiguity_set: The set; a copy is made for each radius. One that knows its
            contexts (the kernel matrix of ``MaximumMeanDiscrepancy``, the cost of
            ``Wasserstein``, most descriptions in cvxpy) needs a ``reference`` on those
            contexts.
        radius: A number, or a schedule in the number of contexts seen; None for the
            radius of the set.

    Raises:
        InputDataError: An option outside its range.
    """

    ambiguity_set: AmbiguitySet = field(default_factory=lambda: TotalVariation(0.2))
    radius: Schedule | float | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if not isinstance(self.ambiguity_set, AmbiguitySet):
            raise InputDataError(
                "`ambiguity_set` must be an AmbiguitySet, got "
                f"{type(self.ambiguity_set).__name__}. For example TotalVariation(0.2)."
            )
        if self.radius is not None:
            as_schedule(self.radius, "radius")

    def robust_set(
        self, model: SingleTaskGP, history: History, space: SearchSpace, *, seed: int
    ) -> tuple[ContextSet, AmbiguitySet]:
        r"""The contexts seen, or the reference, and the set."""
        return self.data_contexts(history, space), self.sized_set(history)

    def sized_set(self, history: History) -> AmbiguitySet:
        """The set with the radius of this round."""
        if self.radius is None:
            return copy.deepcopy(self.ambiguity_set)  # one round knows of no other
        radius = as_schedule(self.radius)(len(history.contexts))
        return self.ambiguity_set.with_radius(radius)


def sobol_contexts(space: SearchSpace, num: int, seed: int) -> Tensor:
    """Scrambled Sobol contexts that fill the context bounds, ``num x d_c``."""
    lower, upper = space.context_bounds
    sobol = SobolEngine(space.d_c, scramble=True, seed=seed)
    unit = sobol.draw(num, dtype=torch.double).to(lower)
    return lower + unit * (upper - lower)


def check_counts(**counts: int) -> None:
    """Raise if an option that counts something is not a positive integer."""
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputDataError(f"`{name}` must be a positive integer, got {count!r}.")


def _best_new(
    acqf: AcquisitionFunction,
    candidates: Tensor,
    values: Tensor,
    pending: Tensor,
    space: SearchSpace,
    seed: int,
    num_samples: int,
) -> Tensor:
    """The best candidate (``1 x d_x``) that does not lie at a pending decision.

    Pending decisions repel the next one by as much as is still unknown. That can be
    next to nothing, late in a run; and a sample path knows nothing of them. Then the
    best is taken from a sample around the pending decision and over the whole box.
    """
    lower, side = space.bounds[0], space.bounds[1] - space.bounds[0]

    def distance(points: Tensor) -> Tensor:  # n x d_x -> n
        gaps = torch.cdist(points / side, pending / side, p=torch.inf)
        return gaps.amin(-1)

    best = candidates[values.argmax()].unsqueeze(0)
    if len(pending) == 0 or distance(best) > _SEPARATION:
        return best
    unit = SobolEngine(space.d_x, scramble=True, seed=seed).draw(num_samples).to(lower)
    near = best + _NEIGHBOURHOOD * (2 * unit - 1) * side
    sample = torch.cat([near, lower + unit * side]).clamp(lower, space.bounds[1])
    with torch.no_grad():
        values = torch.cat([values, acqf(sample.unsqueeze(-2))])
    sample = torch.cat([candidates, sample])
    new = distance(sample) > _SEPARATION
    if not new.any():  # the box is full of pending decisions: take the widest gap
        return sample[distance(sample).argmax()].unsqueeze(0)
    return sample[torch.where(new, values, -torch.inf).argmax()].unsqueeze(0)
