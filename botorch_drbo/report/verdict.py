"""How far a model can be trusted, in sentences for decision makers."""

from __future__ import annotations

from botorch_drbo.recommendation.model_check import (
    FEW_OUTCOMES,
    ModelCheck,
    know_nothing,
)

_WORDS = ((0.8, "good"), (0.5, "fair"), (0.3, "weak"), (-float("inf"), "poor"))


def grade(check: ModelCheck) -> str:
    """One sentence: good, fair, weak or poor, and the share that is explained."""
    t, share = len(check.outcomes), check.explained
    if t < FEW_OUTCOMES:
        return f"The model {know_nothing(t)}."
    if share != share:
        return "All outcomes are equal: the model has nothing to explain."
    word = next(word for least, word in _WORDS if share >= least)
    explained = check.share_of("the differences between outcomes that it has not seen")
    return f"The model is {word}: it {explained}."


def verdict(check: ModelCheck) -> str:
    """The grade, the scale of it, and how many intervals missed."""
    t = len(check.outcomes)
    if t < FEW_OUTCOMES:
        return f"{grade(check)} What follows says little yet."
    return (
        f"{grade(check)} From 80% it is called good, from 50% fair, from 30% weak, "
        f"below that poor. {check.num_outside} of {t} outcomes lie outside their 95% "
        f"interval; about {0.05 * t:.2g} should."
    )
