"""What goes into a recipe and what comes out: search space, history, recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo._validation import check_bounds, check_finite
from botorch_drbo.algorithms.stability import Stability
from botorch_drbo.algorithms.summary import hurting_contexts, named
from botorch_drbo.ambiguity import SolverStatus
from botorch_drbo.contexts import ContextSet


@dataclass(frozen=True, eq=False)
class SearchSpace:
    r"""The box of decisions and the box of contexts.

    Attributes:
        bounds: Lower and upper bounds of the decision, ``2 x d_x``.
        context_bounds: Lower and upper bounds of the context, ``2 x d_c``.
        known_context: What is known of this round's context, ``d_c``, NaN where it is
            not known; None if nothing is.

    Raises:
        BotorchTensorDimensionError: A tensor is not ``2 x d``.
        InputDataError: Bounds that are not finite floating point numbers, are
            reversed, or differ in dtype or device.

    Example:
        >>> unit = torch.tensor([[0.0], [1.0]])
        >>> SearchSpace(bounds=unit, context_bounds=unit).d_x
        1
    """

    bounds: Tensor
    context_bounds: Tensor
    known_context: Tensor | None = None

    def __post_init__(self) -> None:
        """Check the bounds."""
        check_bounds(self.bounds, "bounds")
        check_bounds(self.context_bounds, "context_bounds")
        if (self.bounds.dtype, self.bounds.device) != (
            self.context_bounds.dtype,
            self.context_bounds.device,
        ):
            raise InputDataError(
                "`bounds` and `context_bounds` must have one dtype and one device, got "
                f"{self.bounds.dtype} on {self.bounds.device} and "
                f"{self.context_bounds.dtype} on {self.context_bounds.device}. Convert "
                "one of them with `.to(...)`."
            )

    @property
    def d_x(self) -> int:
        """The number of decision variables."""
        return self.bounds.shape[-1]

    @property
    def d_c(self) -> int:
        """The number of context variables."""
        return self.context_bounds.shape[-1]

    @property
    def context_reach(self) -> Tensor:
        """The contexts that this round may show: a point where they are known."""
        return self.with_known(self.context_bounds)

    @property
    def known_columns(self) -> list[int]:
        """The context columns that are known in this round."""
        if self.known_context is None:
            return []
        return (~self.known_context.isnan()).nonzero().flatten().tolist()

    def with_known(self, contexts: Tensor) -> Tensor:
        """Contexts ``... x d_c``, with what is known in its columns."""
        known = self.known_context
        if known is None:
            return contexts
        return torch.where(known.isnan(), contexts, known)

    @property
    def joint_bounds(self) -> Tensor:
        """Bounds of the model's inputs ``[x, c]``, ``2 x (d_x + d_c)``."""
        return torch.cat([self.bounds, self.context_bounds], dim=-1)


@dataclass(frozen=True, eq=False)
class History:
    r"""What has been observed.

    A recipe is given outcomes to maximise. ``RobustOptimizer.history`` holds them in
    the user's own sign.

    Attributes:
        X: Executed decisions that have an outcome, ``t x d_x``.
        C: The contexts of these trials, ``t x d_c``.
        Y: Their outcomes, ``t x 1``.
        contexts: Every context that the world has shown, the oldest first, also those
            whose outcome is still out, ``s x d_c``. They describe the context
            distribution. Contexts that were chosen, in a laboratory, are not among
            them.
        Yvar: The variances of the noise in the outcomes, ``t x 1``; None if they are
            not known.

    Raises:
        BotorchTensorDimensionError: The numbers of rows or columns do not fit.
        InputDataError: Not floating point, NaN or infinite entries.

    Example:
        >>> X, C, Y = torch.rand(4, 2), torch.rand(4, 1), torch.rand(4, 1)
        >>> History(X=X, C=C, Y=Y, contexts=C).t
        4
    """

    X: Tensor
    C: Tensor
    Y: Tensor
    contexts: Tensor
    Yvar: Tensor | None = None

    def __post_init__(self) -> None:
        """Check that the tensors belong together."""
        for name in ("X", "C", "Y", "contexts", "Yvar"):
            if name == "Yvar" and self.Yvar is None:
                continue
            values = check_finite(getattr(self, name), name)
            if values.ndim != 2:
                raise BotorchTensorDimensionError(
                    f"`{name}` must be a matrix with one row per trial, got shape "
                    f"{tuple(values.shape)}."
                )
        t = self.X.shape[0]
        if self.C.shape[0] != t or self.Y.shape != (t, 1):
            raise BotorchTensorDimensionError(
                "`X`, `C` and `Y` must be `t x d_x`, `t x d_c` and `t x 1`, got shapes "
                f"{tuple(self.X.shape)}, {tuple(self.C.shape)}, {tuple(self.Y.shape)}."
            )
        if self.Yvar is not None and self.Yvar.shape != (t, 1):
            raise BotorchTensorDimensionError(
                f"`Yvar` must be `t x 1`, one variance for each of {t} outcomes, got "
                f"shape {tuple(self.Yvar.shape)}."
            )
        if self.contexts.shape[1] != self.C.shape[1]:
            raise BotorchTensorDimensionError(
                f"`contexts` must be `s x {self.C.shape[1]}`, got shape "
                f"{tuple(self.contexts.shape)}. Pass `contexts=C` if every context "
                "has its outcome, and the world chose it."
            )

    @property
    def t(self) -> int:
        """The number of outcomes."""
        return self.X.shape[0]


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation:
    r"""The decision that a recipe would implement now, and what to expect of it.

    All values are of the model's posterior mean: what the truth keeps of them depends
    on the model.

    ``worst_case_value`` is the expectation under ``worst_case_weights``, a distribution
    inside the recipe's ambiguity set, and the least of all distributions in the set on
    the contexts of ``context_set`` (if ``worst_case_status`` is EXACT; else a certified
    lower bound of it). Which contexts these are depends on the set:

    - A Wasserstein, total variation, maximum-mean-discrepancy or Neyman chi-squared
      ball lets mass go to contexts that were never seen. The whole ``worst_case_box``
      was searched for the contexts that lower the value most, and those that carry
      mass stand at the end of ``context_set``, with reference weight zero. A search is
      finite: the value is an upper bound of the infimum over the box, and close to it.
    - For all other sets the list of contexts is part of the definition, and
      ``worst_case_box`` is None: ``NoAmbiguity``, Kullback-Leibler, modified
      chi-squared and CVaR give mass to no context without reference weight,
      ``FullSimplex`` is every distribution on the contexts of the list,
      and a cost or kernel matrix, or a description in cvxpy, that was passed to ``dro``
      says nothing about other contexts. There the world is supposed to show no others.
    - ``stable_opt`` is every distribution on its box of one standard deviation, which
      is the ``worst_case_box``.

    Attributes:
        x: The decision, ``d_x``.
        objective: The recipe's own objective at ``x`` on the posterior mean.
        expected_value: Posterior mean of ``f(x, c)``, averaged over the context set.
        worst_case_value: The same under the worst distribution found.
        worst_case_weights: That distribution, weights on the context set, ``n``.
        context_set: The contexts that the worst case lives on, with their reference
            weights; those that only the adversary uses have none.
        worst_case_box: The box that was searched for contexts, ``2 x d_c``; None if
            those of the reference are all.
        worst_case_status: Whether ``worst_case_value`` is the exact minimum over the
            context set, or a certified lower bound of it.
        stability: From which radius another decision has the better worst case: one
            that was told, or with ``candidates`` one of the list. None for recipes
            without a radius.
    """

    x: Tensor
    objective: float
    expected_value: float
    worst_case_value: float
    worst_case_weights: Tensor
    context_set: ContextSet
    worst_case_box: Tensor | None
    worst_case_status: SolverStatus
    stability: Stability | None = None

    def report(
        self,
        decisions: Sequence[str] | None = None,
        contexts: Sequence[str] | None = None,
    ) -> str:
        r"""Say it in about six lines: the decision, its values, what hurts it.

        Args:
            decisions: Names of the decision variables, ``d_x``; by default
                ``x1, x2, ...``.
            contexts: Names of the context variables, ``d_c``; by default
                ``c1, c2, ...``.

        Returns:
            Lines of text, what ``print`` shows. The contexts that hurt are the three
            that gain the most weight in the worst case, compared with the reference.
        """
        points = self.context_set.points
        d_x, d_c = len(self.x), points.shape[-1]
        hurt = hurting_contexts(
            points,
            self.context_set.weights,
            self.worst_case_weights,
            contexts or [f"c{j + 1}" for j in range(d_c)],
        )
        exact = self.worst_case_status is SolverStatus.EXACT
        note = "exact" if exact else "a bound: the solver did not converge"
        decisions = decisions or [f"x{j + 1}" for j in range(d_x)]
        rows = {
            "decision": named(self.x, decisions),
            "expected value": f"{self.expected_value:.4g}",
            "worst-case value": f"{self.worst_case_value:.4g} ({note})",
            "contexts that hurt": ("\n" + 20 * " ").join(hurt),
        }
        if self.stability is not None:
            rival = self.stability.rival
            words = "" if rival is None else named(rival, decisions)
            rows["answer holds"] = self.stability.words(words)
        return "\n".join(f"{name:<20}{text}" for name, text in rows.items())

    def __str__(self) -> str:
        """The report."""
        return self.report()

    def __repr__(self) -> str:
        """The decision and its values, on one line."""
        return (
            f"Recommendation(x={self.x.tolist()}, "
            f"expected_value={self.expected_value:.6g}, "
            f"worst_case_value={self.worst_case_value:.6g}, "
            f"worst_case_status={self.worst_case_status.name})"
        )
