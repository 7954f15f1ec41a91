"""The observations: decisions, contexts, outcomes, measured constraints."""

from __future__ import annotations

from dataclasses import dataclass

from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_drbo._validation import (
    check_finite,
)


@dataclass(frozen=True)
class Held:
    """The number of trials in which outcome constraints held (few if a sign is wrong).

    Attributes:
        measured: The number of trials with measured constraints.
        together: The number of them in which all constraints held.
        each: The same for each constraint alone.
    """

    measured: int
    together: int
    each: tuple[int, ...]

    def words(self) -> str:
        """Say it as the report of a recommendation does."""
        text = f"held in {self.together} of {self.measured} trials told"
        if len(self.each) == 1:
            return text
        return f"all {text}, one by one in {', '.join(map(str, self.each))}"


@dataclass(frozen=True, eq=False)
class ConstraintData:
    r"""Trials with measured outcome constraints.

    Attributes:
        X: Executed decisions, ``s x d_x``.
        C: The contexts of these trials, ``s x d_c``.
        G: The measured value of each constraint, ``s x k``; it holds where not
            negative.

    Raises:
        BotorchTensorDimensionError: The numbers of rows do not fit.
        InputDataError: Not floating point, NaN or infinite entries.
    """

    X: Tensor
    C: Tensor
    G: Tensor

    def __post_init__(self) -> None:
        """Check that the tensors belong together."""
        shapes = [tuple(getattr(self, name).shape) for name in ("X", "C", "G")]
        for name in ("X", "C", "G"):
            check_finite(getattr(self, name), name)
        if {len(shape) for shape in shapes} != {2} or len({s[0] for s in shapes}) > 1:
            raise BotorchTensorDimensionError(
                "`X`, `C` and `G` must be `s x d_x`, `s x d_c` and `s x k`, got shapes "
                f"{', '.join(map(str, shapes))}."
            )

    def held(self) -> Held:
        """The number of trials in which the constraints were met."""
        met = self.G >= 0
        each = tuple(met.sum(0).tolist())
        return Held(len(met), int(met.all(-1).sum()), each)


@dataclass(frozen=True, eq=False)
class History:
    r"""What has been observed.

    Recipes receive outcomes to be maximised. ``RobustOptimizer.history`` has the user's
    sign.

    Attributes:
        X: Executed decisions that have an outcome, ``t x d_x``.
        C: The contexts of these trials, ``t x d_c``.
        Y: Their outcomes, ``t x 1``.
        contexts: Every observed context, the oldest first, also those without an
            outcome yet, ``s x d_c``. They describe the context distribution. Contexts
            that were chosen, as in a laboratory, are not included.
        Yvar: The variances of the noise in the outcomes, ``t x 1``; None if they are
            not known.
        constraints: Trials whose outcome constraints were measured, with an outcome or
            without one; None if there are no such constraints.
        baseline: The decisions that an improvement has to beat, ``m x d_x``; None for
            all of ``X``.
        failed: Decisions of trials that will never have an outcome, ``m x d_x``; None
            for none. They teach nothing, but are not proposed as long as there are
            others.

    Raises:
        BotorchTensorDimensionError: The numbers of rows or columns do not fit.
        InputDataError: Not floating point, NaN or infinite entries.

    Example:
        >>> import torch
        >>> from botorch_drbo.problem import History
        >>> X, C, Y = torch.rand(4, 2), torch.rand(4, 1), torch.rand(4, 1)
        >>> History(X=X, C=C, Y=Y, contexts=C).t
        4
    """

    X: Tensor
    C: Tensor
    Y: Tensor
    contexts: Tensor
    Yvar: Tensor | None = None
    constraints: ConstraintData | None = None
    baseline: Tensor | None = None
    failed: Tensor | None = None

    def __post_init__(self) -> None:
        """Check that the tensors belong together."""
        for name in ("X", "C", "Y", "contexts", "Yvar", "failed"):
            if name in ("Yvar", "failed") and getattr(self, name) is None:
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
