"""What is to be maximised over a list of contexts, in a user's words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import final

from botorch.exceptions.errors import InputDataError, UnsupportedError

from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ConditionalValueAtRisk,
    FullSimplex,
    NoAmbiguity,
)
from botorch_drbo.codec.objects import storable
from botorch_drbo.objectives.uncertainty import Objective, UncertaintyObjective

OBJECTIVES = (
    "mean, worst fifth (or half, third, quarter, tenth, or worst 30%), minimum (of "
    "costs: maximum), share above 60 (of costs: share below 60)"
)
"""What may be written."""
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_WORST = re.compile(rf"worst (?:({'|'.join(_PARTS)})|({_NUMBER}) ?%)", re.ASCII)
_SHARE = re.compile(rf"share (above|below) ({_NUMBER})", re.ASCII)


@storable
@final
@dataclass(frozen=True)
class NamedObjective:
    r"""An objective by the words of a user, over the reference distribution.

    ==================  ===========================================================
    words               what is maximised
    ==================  ===========================================================
    ``mean``            the expectation
    ``worst fifth``     the mean of the worst fifth: conditional value at risk
    ``minimum``         the worst context; of costs ``maximum``
    ``share above 60``  the expected share of the contexts where the outcome is above
                        60; of costs ``share below 60``
    ==================  ===========================================================

    The share is :math:`\sum_i w_i\, \Phi\big( (\mu_i - 60) / \sigma_i \big)` by the
    posterior, see ``ShareAboveUCB``. The worst of outcomes that are minimised are the
    highest ones.

    Args:
        words: See above; also ``worst 30%``, ``worst half``, ``worst third``, ``worst
            quarter`` and ``worst tenth``.

    Raises:
        InputDataError: Other words, or a share that is not above 0 and at most 100%.

    Example:
        >>> from botorch_drbo.objectives import NamedObjective
        >>> NamedObjective("worst fifth").ambiguity_set
        ConditionalValueAtRisk(0.8)
    """

    words: str

    def __post_init__(self) -> None:
        """Read the words."""
        words = self.words
        if isinstance(words, str):
            words = " ".join(words.lower().replace("_", " ").split())
            object.__setattr__(self, "words", words)
            if words in ("mean", "minimum", "maximum") or self._share is not None:
                return
            if self._worst is not None and 0.0 < self._worst <= 1.0:
                return
        raise InputDataError(
            f"There is no `objective` {self.words!r}. What can be maximised: "
            f"{OBJECTIVES}."
        )

    @cached_property
    def _worst(self) -> float | None:
        """The share of the contexts that counts, of ``worst ...``."""
        found = _WORST.fullmatch(self.words)
        if found is None:
            return None
        return float(found[2]) / 100.0 if found[2] else 1.0 / _PARTS[found[1]]

    @cached_property
    def _share(self) -> tuple[str, float] | None:
        """``above`` or ``below``, and the threshold, of ``share ...``."""
        found = _SHARE.fullmatch(self.words)
        return None if found is None else (found[1], float(found[2]))

    @property
    def low_is_good(self) -> bool | None:
        """Whether it is one of outcomes that are minimised; None for of both."""
        if self.words in ("minimum", "maximum"):
            return self.words == "maximum"
        return None if self._share is None else self._share[0] == "below"

    @property
    def threshold(self) -> float | None:
        """That of a share in the user's sign; None for what is no share."""
        return None if self._share is None else self._share[1]

    @property
    def tau(self) -> float | None:
        """The threshold where high is good: of costs minus the user's."""
        threshold = self.threshold
        return -threshold if self.low_is_good and threshold is not None else threshold

    @property
    def ambiguity_set(self) -> AmbiguitySet | None:
        """The set whose worst case it is; None for a share, which is of no set."""
        if self._share is not None:
            return None
        if self._worst is not None:
            return ConditionalValueAtRisk(1.0 - self._worst)
        return NoAmbiguity() if self.words == "mean" else FullSimplex()

    @property
    def of_expected(self) -> str:
        """What stands behind an expected outcome over the contexts that count."""
        if self._share is not None:
            return f", not the {self.words}"
        if self._worst is not None:
            return f" over the {self.words} of the contexts"
        return "" if self.words == "mean" else " in the worst context"

    @property
    def where(self) -> str:
        """Over which of the contexts the outcome counts, in words."""
        if self._worst is not None:
            return f"the {self.words} of the listed contexts"
        alone = self.words in ("minimum", "maximum")
        return f"{'the worst' if alone else 'all'} of the listed contexts"

    @property
    def later(self) -> str:
        """What to do where a recipe cannot learn for it."""
        return f"learn without it and decide by `recommend(objective='{self.words}')`"

    def __call__(self, ambiguity_set: AmbiguitySet) -> Objective:
        r"""The objective of scores.

        Args:
            ambiguity_set: That of an adversary, which believes the reference.

        Returns:
            The worst case over the set of its own.

        Raises:
            UnsupportedError: A share, which needs deviations beside means.
        """
        own = self.ambiguity_set
        if own is None:
            raise UnsupportedError(
                f"`objective='{self.words}'` is of a posterior, not of a sample path "
                "or a score. Take the policy `confidence_bound`, as `erbo` has it, or "
                f"{self.later}."
            )
        return UncertaintyObjective.dro(own)

    def check_direction(self, *, maximize: bool) -> None:
        r"""Refuse the best case in place of the worst one.

        Args:
            maximize: Whether high outcomes are good.

        Raises:
            InputDataError: Words of the other direction.
        """
        if self.low_is_good in (None, not maximize):
            return
        swapped = {
            "minimum": "maximum",
            "maximum": "minimum",
            "above": "below",
            "below": "above",
        }
        instead = " ".join(swapped.get(word, word) for word in self.words.split())
        goal = "maximised" if maximize else "minimised"
        raise InputDataError(
            f"`objective='{self.words}'` is of the good outcomes, where the outcome is "
            f"{goal}. Write `objective='{instead}'`."
        )
