r"""The finite setting of the BOCU paper, and regret for any objective over contexts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Generator, Tensor

from benchmarks.problems.gp_prior import GPPriorSample
from benchmarks.problems.laws import discretised_normal, grid_side
from benchmarks.problems.papers import PAPERS
from benchmarks.problems.surrogates import covid_testing, plant_growth
from botorch_drbo._validation import (
    check_count,
    check_finite,
    check_inside,
    check_nonnegative,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.sampling import sobol_in_box
from botorch_drbo.test_functions.base import RobustTestFunction
from botorch_drbo.test_functions.closed_form import closed_form

ObjectiveFunction = Callable[[Tensor, Tensor], Tensor]
"""Scores ``... x n`` and reference weights ``n`` to a number ``...`` to maximise."""

_LENGTHSCALE = 0.1  # of the kernel between contexts, in sides of the context box


def objective_regret(
    values: Tensor,
    weights: Tensor,
    objective: ObjectiveFunction,
    chosen: Tensor | None = None,
) -> Tensor:
    r"""Return how far decisions of a finite set fall short of the best of it.

    .. math:: r(x) = \max_{x'} g(x') - g(x), \quad g(x) = g(f(x, c_1), \dots, f(x, c_n))

    Args:
        values: The function at all decisions and contexts, ``... x M x n``.
        weights: Reference weights, ``n``.
        objective: Any :math:`g` that maps scores ``... x n`` and weights ``n`` to
            ``...``, such as an ``UncertaintyObjective``.
        chosen: Positions among the M decisions, integers ``... x T``; None for all.

    Returns:
        Regrets, never negative, ``... x T`` or ``... x M``.

    Raises:
        BotorchTensorDimensionError: No decisions, or an objective that does not return
            one number for each.
        InputDataError: Values that are not finite, or positions that are not integers
            from 0 to M - 1.

    Example:
        >>> values = torch.tensor([[1.0, 5.0], [2.0, 2.0]])
        >>> uniform = torch.tensor([0.5, 0.5])
        >>> objective_regret(values, uniform, lambda f, p: f @ p)
        tensor([0., 1.])
        >>> objective_regret(values, uniform, lambda f, p: f.amin(-1))
        tensor([1., 0.])

    [Tay2024bocu]_
    """
    check_finite(values, "values")
    if values.ndim < 2 or values.shape[-2] == 0:
        raise BotorchTensorDimensionError(
            "`values` must be `... x M x n` with at least one decision, got shape "
            f"{tuple(values.shape)}."
        )
    with torch.no_grad():
        scores = _scores(objective, values, weights)  # ... x M
        best = scores.amax(-1, keepdim=True)
        if chosen is None:
            return best - scores
        _check_positions(chosen, values.shape[-2], "chosen")
        batch = torch.broadcast_shapes(scores.shape[:-1], chosen.shape[:-1])
        taken = scores.expand(*batch, -1).gather(
            -1, chosen.to(scores.device).long().expand(*batch, -1)
        )
        return best - taken


class BOCUProblem:
    r"""A test function on finitely many decisions and contexts, as in the BOCU paper.

    In the setting of [Tay2024bocu]_ there are 1,024 decisions and a grid of 64
    contexts, the ends of the box included. The optimiser is told a reference
    distribution, a discretised N(.5, .2 I) on contexts scaled to the unit cube (.2 is
    the variance); the contexts that it meets are uniform over the 64. The radius of
    its ambiguity set is the distance between the two. It sees outcomes with noise of
    *standard deviation* .01, and starts from 5 random pairs of decision and context.
    Outcomes are not standardised here. (The plant growth and COVID-19 functions of
    ``preset`` come in standardised units, as in the paper.)

    The ambiguity set and the objective are the user's: they are given as functions of
    numbers, ``radius(ambiguity_set.distance)`` and ``regret(objective, decisions)``.

    Contexts and noise depend on ``seed`` and the step alone, whatever is decided, so
    that two optimisers can be compared on the same luck.

    Args:
        function: The test function.
        seed: Picks the contexts, the noise, the initial pairs, and the Sobol decisions.
        num_decisions: The number of decisions M.
        num_contexts: The number of contexts that the grid has at least.
        noise_std: Standard deviation of the noise; the function's own is not used.
        num_initial: The number of initial pairs.
        decisions: "sobol" for scrambled Sobol points in the decision box, or "grid"
            for a product grid with the ends of the box, which is what the public code
            of the paper uses (32 x 32). A single decision column is always an even
            grid.

    Raises:
        InputDataError: A wrong number, another kind of decisions, or a grid whose
            number of points is not ``num_decisions``.

    Example:
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> problem = BOCUProblem.preset("hartmann_2_1", seed=3)
        >>> problem.candidates.shape, problem.context_set.num_points
        (torch.Size([1024, 2]), 64)
        >>> ball = TotalVariation(problem.radius(TotalVariation(0.0).distance))
        >>> objective = UncertaintyObjective.dro(ball)
        >>> x = problem.candidates[[17, 18]]
        >>> c = problem.sample_contexts(2)
        >>> problem.observe(x, c, step=0).shape
        torch.Size([2, 1])
        >>> problem.regret(objective, x).shape
        torch.Size([2])
    """

    _PRESETS: ClassVar[dict[str, Callable[..., RobustTestFunction]]] = {
        "gp_prior_2_2": GPPriorSample,
        "hartmann_2_1": partial(closed_form, PAPERS["hartmann_2_1"]),
        "plant_growth": partial(plant_growth, standardise=True),
        "covid_testing": covid_testing,
    }

    def __init__(
        self,
        function: RobustTestFunction,
        seed: int = 0,
        *,
        num_decisions: int = 1024,
        num_contexts: int = 64,
        noise_std: float = 0.01,
        num_initial: int = 5,
        decisions: str = "sobol",
    ) -> None:
        self.function = function
        self.seed = check_count(seed, "seed", minimum=0)
        self.noise_std = float(check_nonnegative(noise_std, "noise_std"))
        check_count(num_decisions, "num_decisions", minimum=2)
        check_count(num_contexts, "num_contexts")
        self.context_set = discretised_normal(function.context_bounds, num_contexts)
        self.candidates = _lay_out(
            function.bounds, num_decisions, decisions, self._derived_seed("decisions")
        )
        num_pairs = num_decisions * self.context_set.num_points
        if check_count(num_initial, "num_initial", minimum=0) > num_pairs:
            raise InputDataError(
                f"`num_initial` must be at most the {num_pairs} pairs there are, got "
                f"{num_initial}."
            )
        self.num_initial = num_initial

    @classmethod
    def preset(cls, name: str, seed: int = 0, **options: Any) -> BOCUProblem:
        r"""Return one of the paper's four problems.

        Args:
            name: "gp_prior_2_2" (``seed`` picks the sample too), "hartmann_2_1",
                "plant_growth" or "covid_testing".
            seed: Picks what is random.
            **options: ``path`` of the data file of the last two; the rest goes to
                the constructor.

        Raises:
            InputDataError: There is no such problem.
            FileNotFoundError: Its data file is not there.
        """
        if name not in cls._PRESETS:
            raise InputDataError(
                f"No BOCU problem {name!r}. Choose one of {sorted(cls._PRESETS)}, or "
                "pass a test function to BOCUProblem."
            )
        own: dict[str, Any] = {"seed": seed} if name == "gp_prior_2_2" else {}
        if "path" in options:
            own["path"] = options.pop("path")
        return cls(cls._PRESETS[name](**own), seed, **options)

    @property
    def contexts(self) -> Tensor:
        r"""The contexts, ``n x d_c``."""
        return self.context_set.points

    @property
    def true_weights(self) -> Tensor:
        r"""The true weights of the contexts, ``n``: uniform."""
        return torch.full_like(self.context_set.weights, 1 / len(self.contexts))

    @cached_property
    def kernel_matrix(self) -> Tensor:
        r"""The SE kernel of the contexts, for an MMD ball, ``n x n``.

        Its lengthscale is .1 of the sides of the context box.
        """
        unit = self.context_set.normalised(self.function.context_bounds)
        difference = (unit.unsqueeze(-2) - unit) / _LENGTHSCALE  # n x n x d_c
        return (-0.5 * difference.square().sum(-1)).exp()

    @cached_property
    def table(self) -> Tensor:
        r"""The noise-free function at all pairs, ``M x n``; computed once."""
        with torch.no_grad():
            return self.function.table(self.candidates, self.contexts)

    def radius(self, distance: Callable[[Tensor, Tensor], Tensor]) -> float:
        r"""Return the distance between the reference and the truth.

        Args:
            distance: ``d(p, q)``, such as ``TotalVariation(0.0).distance``.

        Returns:
            The radius of the paper's ambiguity set: the smallest that has the truth.

        Example:
            >>> from botorch_drbo.ambiguity import TotalVariation
            >>> from benchmarks.problems import make
            >>> problem = BOCUProblem(make("hartmann_2_1"))
            >>> round(problem.radius(TotalVariation(0.0).distance), 4)
            0.1576
        """
        return float(distance(self.context_set.weights, self.true_weights))

    def sample_contexts(self, num: int, seed: int | None = None) -> Tensor:
        r"""Draw contexts of the truth, with replacement.

        The first ``k`` of ``num`` draws equal ``k`` draws with the same seed.

        Args:
            num: The number of contexts.
            seed: The seed of the draws; by default that of the problem.

        Returns:
            Contexts, ``num x d_c``.
        """
        check_count(num, "num")
        seed = self._derived_seed("contexts") if seed is None else seed
        generator = Generator().manual_seed(seed)
        uniforms = torch.rand(num, generator=generator, dtype=torch.double)
        return self.contexts[(uniforms * len(self.contexts)).long()]

    def initial(self) -> tuple[Tensor, Tensor, Tensor]:
        r"""Return the initial data: random pairs without replacement, with noise.

        Returns:
            Decisions ``num_initial x d_x``, contexts ``num_initial x d_c``, and
            outcomes ``num_initial x 1``.
        """
        generator = Generator().manual_seed(self._derived_seed("initial"))
        num_pairs = len(self.candidates) * len(self.contexts)
        pairs = torch.randperm(num_pairs, generator=generator)[: self.num_initial]
        x = self.candidates[pairs // len(self.contexts)]
        c = self.contexts[pairs % len(self.contexts)]
        return x, c, self._add_noise(self.function.evaluate(x, c), "initial noise")

    def observe(self, decisions: Tensor, contexts: Tensor, *, step: int) -> Tensor:
        r"""Return noisy outcomes; the noise depends on the seed and the step alone.

        Args:
            decisions: Positions among ``candidates``, integers ``q``, or decisions of
                any kind in the bounds, ``q x d_x``.
            contexts: The contexts met, ``q x d_c``.
            step: Which step of the run this is, from 0.

        Returns:
            Outcomes, ``q x 1``.

        Raises:
            InputDataError: Positions or decisions out of bounds.
            BotorchTensorDimensionError: Wrong shapes.
        """
        check_count(step, "step", minimum=0)
        x = self._decisions(decisions)
        if x.ndim != 2 or contexts.shape != (len(x), self.function.d_c):
            raise BotorchTensorDimensionError(
                f"`contexts` must have one row of {self.function.d_c} columns for each "
                f"of the decisions, got shapes {tuple(contexts.shape)} and "
                f"{tuple(decisions.shape)}."
            )
        return self._add_noise(self.function.evaluate(x, contexts), f"noise {step}")

    def regret(
        self, objective: ObjectiveFunction, decisions: Tensor | None = None
    ) -> Tensor:
        r"""Return how far decisions fall short of the best candidate.

        .. math:: r_t = \max_x g(x) - g(x_t)

        The maximum runs over ``candidates``: a decision between them can have a
        negative regret.

        Args:
            objective: Any g that maps scores ``... x n`` and reference weights ``n`` to
                ``...``, such as an ``UncertaintyObjective``.
            decisions: Positions among ``candidates``, integers ``...``, or decisions,
                ``... x d_x``; None for all candidates.

        Returns:
            Regrets, ``...``.

        Raises:
            InputDataError: Positions or decisions out of bounds.
            BotorchTensorDimensionError: Wrong shapes, or an objective that does not
                return one number for each decision.
        """
        weights = self.context_set.weights
        if decisions is None:
            return objective_regret(self.table, weights, objective)
        with torch.no_grad():
            best = _scores(objective, self.table, weights).amax()
            if not decisions.is_floating_point():
                _check_positions(decisions, len(self.candidates), "decisions")
                values = self.table[decisions.long()]
            else:
                x = self._decisions(decisions)
                values = self.function.evaluate(x.unsqueeze(-2), self.contexts)
            return best - _scores(objective, values, weights)

    def _decisions(self, decisions: Tensor) -> Tensor:
        if not decisions.is_floating_point():
            _check_positions(decisions, len(self.candidates), "decisions")
            return self.candidates[decisions.long()]
        check_inside(
            decisions.reshape(-1, decisions.shape[-1] if decisions.ndim else 1),
            self.function.bounds,
            "decisions",
            "bounds",
        )
        return decisions.to(self.candidates)

    def _add_noise(self, values: Tensor, purpose: str) -> Tensor:
        generator = Generator().manual_seed(self._derived_seed(purpose))
        noise = torch.randn(values.shape, generator=generator, dtype=torch.double)
        return (values + self.noise_std * noise.to(values)).unsqueeze(-1)

    def _derived_seed(self, purpose: str) -> int:
        # Hashed, so that neighbouring seeds and steps are unrelated.
        text = f"{self.function.name}|{self.seed}|{purpose}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:4], "big") >> 1


def _lay_out(bounds: Tensor, num: int, kind: str, seed: int) -> Tensor:
    """Return the decisions, ``num x d_x``."""
    if kind not in ("sobol", "grid"):
        raise InputDataError(f'`decisions` must be "sobol" or "grid", got {kind!r}.')
    dim = bounds.shape[-1]
    if kind == "sobol" and dim > 1:
        return sobol_in_box(num, bounds, seed)
    side = grid_side(num, dim)
    if side**dim != num:
        raise InputDataError(
            f"A grid of {dim} columns cannot have `num_decisions` = {num} points. Take "
            f'{side**dim} ({side} a side), or decisions="sobol".'
        )
    return ContextSet.grid(bounds, side).points


def _scores(objective: ObjectiveFunction, values: Tensor, weights: Tensor) -> Tensor:
    """Return the objective of ``... x n`` values, ``...``, as one call."""
    scores = objective(values, weights.to(values))
    if scores.shape != values.shape[:-1]:
        raise BotorchTensorDimensionError(
            "`objective` must return one number for each decision, shape "
            f"{tuple(values.shape[:-1])}, got {tuple(scores.shape)}."
        )
    return scores


def _check_positions(positions: Tensor, num: int, name: str) -> None:
    """Raise unless all are integers from 0 to ``num - 1``."""
    if positions.is_floating_point() or positions.dtype == torch.bool:
        raise InputDataError(
            f"`{name}` must be integer positions, got dtype {positions.dtype}."
        )
    if positions.numel() and not (positions.min() >= 0 and positions.max() < num):
        raise InputDataError(
            f"`{name}` must be positions from 0 to {num - 1}, got "
            f"{positions.min().item()} to {positions.max().item()}."
        )
