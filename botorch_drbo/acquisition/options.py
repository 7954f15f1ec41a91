"""The common options of each family of acquisition functions, with their types."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TypedDict

from botorch.acquisition.objective import PosteriorTransform
from torch import Tensor

from botorch_drbo.posterior.factory import Method


class ContextOptions(TypedDict, total=False):
    r"""Options of every acquisition function over contexts.

    Args:
        context_indices: The model's input columns that hold the context; by default
            the last ``d_c``.
        posterior_transform: Combines several outputs into one, or changes the sign.
            Sample paths take a ``ScalarizedPosteriorTransform`` of one weight: -1
            minimises.
        memory_budget: Bytes for the temporaries of posterior and paths.
    """

    context_indices: Sequence[int] | None
    posterior_transform: PosteriorTransform | None
    memory_budget: int


class MomentOptions(ContextOptions, total=False):
    r"""Options of what follows from moments: those of ``ContextOptions``, and these.

    Args:
        num_pending_contexts: The number of contexts that represent the unknown context
            of each pending decision.
        num_inputs: The number of columns of ``[x, c]``, for a model that does not state
            it.
        method: How moments are computed; see ``marginal_posterior``.
    """

    num_pending_contexts: int
    num_inputs: int | None
    method: Method


class PosteriorOptions(MomentOptions, total=False):
    r"""Options of bounds of a posterior: those of ``MomentOptions``, and one more.

    Args:
        X_pending: Decisions ``m x d_x`` that are being evaluated.
    """

    X_pending: Tensor | None


class ConfidenceBoundOptions(PosteriorOptions, total=False):
    r"""Keyword options of every confidence bound.

    Args:
        misspecification: The largest difference between the outcome and a function that
            the model can represent, in the units of y; see ``EnlargedConfidenceUCB``.

    Example:
        >>> from botorch_drbo.acquisition.options import ConfidenceBoundOptions
        >>> options: ConfidenceBoundOptions = {"method": "exact", "misspecification": 1}
        >>> sorted(options)
        ['method', 'misspecification']
    """

    misspecification: float | Tensor


class PathOptions(ContextOptions, total=False):
    r"""Keyword options of every average over sample paths.

    Args:
        num_paths: The number of sample paths ``S``.
        num_features: Random features of each path's prior part.
        seed: The seed of the paths; None draws one from torch's generator.

    Example:
        >>> from botorch_drbo.acquisition.options import PathOptions
        >>> options: PathOptions = {"num_paths": 16, "seed": 0}
        >>> sorted(options)
        ['num_paths', 'seed']
    """

    num_paths: int
    num_features: int
    seed: int | None


def with_options(kind: type) -> inspect.Signature:
    """The signature of a class that hands ``**options`` on to the one above, with them.

    Args:
        kind: A class with a constructor of its own.

    Returns:
        Its own parameters, and in place of ``**options`` the keywords of the class
        above that it does not name itself.
    """
    _, *own = inspect.signature(kind.__init__).parameters.values()
    if not own or own[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        return inspect.Signature(own)
    *own, _ = own
    named = {parameter.name for parameter in own}
    above = inspect.signature(kind.__mro__[1]).parameters.values()
    handed_on = [
        parameter
        for parameter in above
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        and parameter.name not in named
    ]
    return inspect.Signature([*own, *handed_on])
