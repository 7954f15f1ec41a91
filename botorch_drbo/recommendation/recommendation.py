"""A recommended decision with its predicted values, as an object and as text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, NamedTuple, Self, TypeVar, final

import torch
from torch import Tensor

from botorch_drbo.ambiguity import SolverStatus
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.round import Held
from botorch_drbo.recommendation.model_check import ModelCheck, known, laid_out
from botorch_drbo.recommendation.moved_contexts import MovedContext, moved_words
from botorch_drbo.recommendation.price import Price
from botorch_drbo.recommendation.promise import (
    LEVEL,
    Later,
    Promise,
    interval_words,
    share_words,
    shown,
)
from botorch_drbo.recommendation.stability import Stability
from botorch_drbo.recommendation.worst_case import WorldValue

if TYPE_CHECKING:
    import pandas as pd


_NUM_CONTEXTS = 3


def row_words(values: Mapping[str, object]) -> str:
    """Values by name, as reports show them."""
    return ", ".join(f"{name} = {shown(value)}" for name, value in values.items())


class Certainty(NamedTuple):
    """How far the values of a recommendation can be believed."""

    promise: Promise | None = None
    model_check: ModelCheck | None = None

    def mirrored(self) -> Certainty:
        """The same of minus the outcome."""
        promise, check = self
        return Certainty(promise and promise.mirrored(), check and check.mirrored())


_UNKNOWN = Later.of(Certainty())
_Row = TypeVar("_Row", "Tensor", "pd.DataFrame")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Assessment(ABC, Generic[_Row]):
    r"""What is expected of a decision: a row of tensors, or of a table with names.

    Its fields are those of ``Recommendation`` that have no columns.
    """

    x: _Row
    objective: float
    expected_value: float
    worst_case_value: float
    worst_case_status: SolverStatus
    feasibility: float | None = None
    feasible: bool | None = None
    stability: Stability[_Row] | None = None
    searched: str = ""
    num_outcomes: int | None = None
    held: Held | None = None
    certainty: Later[Certainty] = _UNKNOWN
    level: float = LEVEL
    beyond: str = ""
    moved: tuple[MovedContext, ...] = ()
    price: Price[_Row] | None = None
    worlds: tuple[WorldValue, ...] = ()
    direction: str = ""
    decided_for: str = ""

    @property
    def promise(self) -> Promise | None:
        """What the model believes of both values; None if a recipe states nothing."""
        return self.certainty.value.promise

    @property
    def model_check(self) -> ModelCheck | None:
        """How well the model predicts outcomes that it has not seen, if that is known.

        The model is fitted to five folds when this, an interval or the promise is read
        for the first time, by ``print`` above all.
        """
        return self.certainty.value.model_check

    @property
    def expected_interval(self) -> tuple[float, float] | None:
        """The interval of the expected value with probability ``level``, by the model.

        Its lower and upper end in your sign and units; None without a ``promise``.
        """
        return self.promise and self.promise.expected.interval(self.level)

    @property
    def worst_case_interval(self) -> tuple[float, float] | None:
        """The same of the worst-case value."""
        return self.promise and self.promise.worst_case.interval(self.level)

    @property
    def rival(self) -> _Row | None:
        """The decision that is better at a larger radius, or None."""
        return None if self.stability is None else self.stability.rival

    def with_check(self, change: Callable[[ModelCheck], ModelCheck]) -> Self:
        """The same with the check of the model changed, if there is one."""

        def changed(known: Certainty) -> Certainty:
            check = known.model_check
            return known._replace(model_check=check and change(check))

        return replace(self, certainty=self.certainty.then(changed))

    @abstractmethod
    def _values(self, x: _Row) -> dict[str, object]:
        """A decision by name."""

    def _summary(
        self,
        outcome: str,
        contexts: Sequence[Mapping[str, object]],
        before: Sequence[float],
        after: Sequence[float],
    ) -> str:
        """About six lines: the decision, its values, the contexts that hurt."""
        gains = [b - a for a, b in zip(before, after, strict=True)]
        order = sorted(range(len(gains)), key=lambda i: -gains[i])
        hurt = [
            f"{row_words(contexts[i])}: weight {after[i]:.3f}, {before[i]:.3f} in the "
            "reference"
            for i in order[:_NUM_CONTEXTS]
            if gains[i] > 1e-6
        ]
        exact = self.worst_case_status is SolverStatus.EXACT
        note = "" if exact else " (a bound: the solver did not converge)"
        promise, price, stability = self.promise, self.price, self.stability
        of_expected, of_worst = " (no interval: the recipe states none)", ""
        if promise is not None:
            share = f"{100 * self.level:.3g}%"
            within = f"{share}: {interval_words(promise.expected, self.level)}"
            of_expected = f" ({within}, {promise.words()})"
            of_worst = f" ({share}: {interval_words(promise.worst_case, self.level)})"
        rival = {} if self.rival is None else self._values(self.rival)
        return laid_out(
            {
                "decision": [row_words(self._values(self.x))],
                "model": [known(self.num_outcomes, self.model_check)],
                "decided for": [self._decided_for],
                f"expected {outcome}": [f"{shown(self.expected_value)}{of_expected}"],
                f"worst-case {outcome}": [
                    f"{shown(self.worst_case_value)}{of_worst}{note}"
                ],
                "against": self._against(),
                "price": []
                if price is None
                else price.words(row_words(self._values(price.best)), self.level),
                "worst case over": [self.searched],
                "feasible": [self._feasible()],
                "answer holds": [stability.words(row_words(rival))]
                if stability
                else [],
                "compared with": [stability.compared] if stability else [],
                "contexts that hurt": []
                if self.worlds
                else hurt or ["none: the worst case is the reference"],
                "beyond those seen": [self.beyond],
                "contexts moved": [moved_words(self.moved)],
            }
        )

    def _against(self) -> list[str]:
        """Which of the named distributions is worst, and how it is in the others."""
        if not self.worlds:
            return [self.direction]
        each = [
            f"{world.name}: {shown(world.expected)}"
            + (
                ""
                if world.regret is None
                else f" ({shown(world.regret)} below the best)"
            )
            for world in self.worlds
        ]
        return [f"{each[0]}, the worst of {len(each)}", *each[1:]]

    def _feasible(self) -> str:
        probability = self.feasibility
        if probability is None:
            return ""
        # A probability that is rounded to one would read as certainty.
        size = f"{probability:.3f}" if probability < 0.9995 else "above 0.999"
        shortage = "" if self.feasible else ", TOO LITTLE: nothing better was found"
        measured = "" if self.held is None else f"; {self.held.words()}"
        return f"with probability {size}{shortage}{measured}"

    @property
    def _decided_for(self) -> str:
        """What was said in words, and how much of it there is."""
        if not self.decided_for.startswith("share"):
            return self.decided_for and f"the {self.decided_for}"
        return f"the {self.decided_for}: {share_words(self.objective)} expected"

    def _headline(self, x: object) -> str:
        """The decision and its values, on one line."""
        return (
            f"{type(self).__name__}(x={x}, "
            f"expected_value={self.expected_value:.6g}, "
            f"worst_case_value={self.worst_case_value:.6g}, "
            f"worst_case_status={self.worst_case_status.name})"
        )


@final
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Recommendation(Assessment[Tensor]):
    r"""The decision that a recipe would implement now, and what to expect of it.

    All values are predictions: they are computed from the model's posterior mean.

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
      says nothing about other contexts. These sets assume that no other contexts occur.
    - ``stable_opt`` is every distribution on its box of one standard deviation, which
      is the ``worst_case_box``.

    Attributes:
        x: The decision, ``d_x``.
        objective: The recipe's own objective at ``x`` on the posterior mean.
        expected_value: Posterior mean of ``f(x, c)``, averaged over the context set.
        worst_case_value: The expectation under the worst distribution found.
        worst_case_weights: That distribution, weights on the context set, ``n``.
        context_set: The contexts of the worst case with their reference weights, which
            are zero for contexts that only the adversary uses.
        worst_case_box: The box that was searched for contexts, ``2 x d_c``; None if
            those of the reference are all.
        worst_case_status: EXACT if ``worst_case_value`` is the exact minimum for the
            posterior mean over the context set, else it is a certified lower bound of
            that. It says nothing of the model's error, nor of the search for contexts.
        feasibility: The probability of meeting all outcome constraints, by their
            models, under the worst distribution for that; None without constraints.
        feasible: Whether it reaches the recipe's level ``feasibility``. If not, no
            decision that does was found, and this is the one with the largest
            probability, whatever its value. None without constraints.
        stability: From which radius another decision has the better worst case: one
            that was told, or with ``candidates`` one of the list. None for recipes
            without a radius.
        radius: That of the set of these distributions, by column one; None for a set
            without a radius.
        searched: Over which distributions the worst case was searched, in words.
        num_outcomes: The number of outcomes to which the model was fitted.
        held: In how many of the trials told the outcome constraints held; None without
            constraints.
        certainty: ``promise`` and ``model_check``, made when one of them is first read:
            the first is what the model believes of both values, from which intervals of
            any level are taken, ``promise.expected.interval(0.5)``; None if a recipe of
            your own states nothing. The second is how well the model predicts outcomes
            that it has not seen; None if there is no closed form. Until then the model
            is kept.
        level: The level of ``expected_interval`` and ``worst_case_interval``.
        beyond: Which share of the worst distribution lies beyond the contexts that have
            an outcome, and how far, in words; empty if it is under 5%.
        moved: The context columns that the decisions predict, which no value here
            allows for.
        price: What of the expectation is given up, and what that buys; None where no
            limit was set.
        worlds: What is expected in each distribution of a danger, the worst first.
        direction: Where the worst distribution moves the mean of the contexts, in
            words; empty where it hardly does.
        decided_for: What is maximised, where it was said in words, such as "worst
            fifth", of which the worst case is then; of a share, ``objective`` is its
            size.
    """

    worst_case_weights: Tensor
    context_set: ContextSet
    worst_case_box: Tensor | None
    radius: float | None = None

    def _values(self, x: Tensor) -> dict[str, object]:
        return {f"x{j + 1}": value for j, value in enumerate(x.tolist())}

    def __str__(self) -> str:
        """About six lines: the decision, its values, and the contexts that hurt.

        These are the three that gain the most weight in the worst case, compared with
        the reference.
        """
        # Atoms of the distribution may coincide.
        points, inverse = self.context_set.points.unique(dim=0, return_inverse=True)
        nothing = torch.zeros(len(points)).to(points)
        before = nothing.index_add(0, inverse, self.context_set.weights)
        after = nothing.index_add(0, inverse, self.worst_case_weights)
        contexts = [
            {f"c{j + 1}": value for j, value in enumerate(row)}
            for row in points.tolist()
        ]
        return self._summary("value", contexts, before.tolist(), after.tolist())

    def __repr__(self) -> str:
        """The decision and its values, on one line."""
        return self._headline(self.x.tolist())
