"""Whose losses are compared with whose: the claims of ``claims.md``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.experiments.claims.learn import COMMON
from benchmarks.study.cases import Case


@dataclass(frozen=True)
class Pick:
    """Whose recommendations.

    Args:
        learner: Whose rows they are made from.
        told: How many.
        surrogate: Fitted to them.
        rule: What recommends.
    """

    learner: str
    told: int
    surrogate: str
    rule: str

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """Their rows of the table of ``judged``, by case and seed."""
        rows: Any = table
        for name in ("learner", "told", "surrogate", "rule"):
            rows = rows[rows[name] == getattr(self, name)]
        return rows.set_index(["case", "seed"])


def common(rule: str, told: int = 30, surrogate: str = "ensemble") -> Pick:
    """A rule on the common data."""
    return Pick(COMMON, told, surrogate, rule)


OWN = {  # each method's own runs: the surrogate and the rule that recommends
    "erbo": ("ensemble", "expected"),
    "erbo, botorch": ("botorch", "expected"),
    "edrbo": ("kernels", "expected"),
    "wdrbo_exact, sd": ("ensemble", "robust"),
    "stable_opt": ("ensemble", "box"),
    COMMON: ("ensemble", "expected"),
}


def own(learner: str, told: int = 15) -> Pick:
    """A method after its own run."""
    return Pick(learner, told, *OWN[learner])


Cases = Callable[[Case], bool]


def everywhere(case: Case) -> bool:
    """All cases."""
    return True


def tense(case: Case) -> bool:
    """Those with tension."""
    return case.tension


def relaxed(case: Case) -> bool:
    """Those without."""
    return not case.tension


def unseen(case: Case) -> bool:
    """Those that are not in the development set."""
    return not case.seen


@dataclass(frozen=True)
class Claim:
    """One claim: that the first loses less than the second.

    Args:
        text: In a line.
        first: Whose losses.
        second: Less whose.
        laws: Under which: columns of ``judged``, whose differences are added.
        cases: Which cases count.
        excluded: The claim does not hold if the interval is above this.
    """

    text: str
    first: Pick
    second: Pick
    laws: tuple[str, ...]
    cases: Cases = everywhere
    excluded: float = -5.0


CLAIMS: Sequence[Claim] = (
    Claim(
        '`erbo` with "ensemble" loses less than with "botorch" if nothing shifts',
        own("erbo"),
        own("erbo, botorch"),
        ("settled",),
    ),
    Claim(
        "*robust* loses less than *expected* if the mean moves badly by 2 sd",
        common("robust"),
        common("expected"),
        ("shifted",),
        tense,
    ),
    Claim(
        "what *robust* costs if nothing shifts is less than what it saves then",
        common("robust"),
        common("expected"),
        ("settled", "shifted"),
        tense,
        excluded=0.0,
    ),
    Claim(
        '`edrbo` loses less than `erbo` with "ensemble" if nothing shifts',
        own("edrbo"),
        own("erbo"),
        ("settled",),
    ),
    Claim(
        "*box* loses less than *expected* under the rare bad regime",
        common("box"),
        common("expected"),
        ("rare",),
    ),
)

AFTER_60 = Claim(  # added before those runs, and judged by itself
    "*Robust* loses less than *expected* on the cases with tension if the mean moves "
    "badly by 2 sd",
    common("robust", 60),
    common("expected", 60),
    ("shifted",),
    tense,
)


def _after(told: int) -> tuple[Claim, ...]:
    """Four questions about own runs of so many outcomes."""
    saves = ("shifted",)
    plain, robust = own("erbo", told), own("wdrbo_exact, sd", told)
    decided = Pick("erbo", told, "ensemble", "robust")  # learnt by `erbo`
    return (
        Claim(
            "`wdrbo_exact, sd` loses less than `erbo` if the mean moves badly by 2 sd",
            robust,
            plain,
            saves,
            tense,
        ),
        Claim(
            "what it costs if nothing shifts is less than what it saves then",
            robust,
            plain,
            ("settled", "shifted"),
            tense,
            excluded=0.0,
        ),
        Claim(
            "*robust* loses less than *expected*, both from the rows of `erbo`, if the "
            "mean moves badly by 2 sd",
            decided,
            plain,
            saves,
            tense,
        ),
        Claim(
            "`wdrbo_exact, sd` loses less than *robust* from the rows of `erbo`, if "
            "the mean moves badly by 2 sd",
            robust,
            decided,
            saves,
            tense,
        ),
    )


LONGER: Mapping[str, Claim] = {  # added before those runs, judged together
    f"{number}, {told} outcomes": claim
    for told in (30, 60)
    for number, claim in enumerate(_after(told), start=1)
}
