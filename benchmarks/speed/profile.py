"""Where the time of the ascent goes: posterior, inner solve, or everything around."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from unittest import mock

import torch
from botorch.optim import optimize
from botorch_drbo.posterior.confidence_bounds import (
    ConfidenceBounds,
    ExpectedBounds,
    OwnBoundSlopes,
)
from botorch_drbo.posterior.hand import HandInterpolant

from benchmarks.speed.iterations import Search, make_history
from benchmarks.speed.sections import REST, Stopwatch
from benchmarks.speed.tables import Section
from benchmarks.speed.timing import readable
from botorch_drbo.acquisition import DistributionallyRobustUCB, LipschitzPenalizedUCB
from botorch_drbo.acquisition.base import RobustAcquisitionFunction
from botorch_drbo.algorithms import ModelBasedAlgorithm, make_algorithm
from botorch_drbo.ambiguity._equal_weights import EqualWeights
from botorch_drbo.posterior import ContextInterpolant, ProductPosterior

RECIPES = ("sbo_kde", "drbo_kde", "drbo_mmd", "erbo", "wdrbo")
LIMIT = 0.2  # of the ascent, outside posterior and inner solve
START = "choice of the starts"
POSTERIOR, INNER, LIPSCHITZ = "posterior", "worst case", "Lipschitz search"
GLUE, ENGINE, SCIPY = "rest of the acquisition function", "autograd", "L-BFGS-B"
_REST = "BoTorch's loop around it"
_NEEDED = (POSTERIOR, INNER, LIPSCHITZ)
_OF_HAND = ("lowest_bound", "pull")
_BOUNDS = ("confidence_bounds", "expected_bound")
_PARTS = (*_NEEDED, GLUE, ENGINE, SCIPY, REST)


@dataclass(frozen=True)
class Profile:
    """Seconds by part, summed over runs; evaluations of the acquisition function."""

    name: str
    path: str
    seconds: dict[str, float]
    evaluations: int
    runs: int

    @property
    def ascent(self) -> float:
        """Seconds of everything but the choice of the starts."""
        return sum(self.seconds.get(part, 0.0) for part in _PARTS)

    def share(self, *parts: str) -> float:
        """The share of the ascent that some parts take."""
        return sum(self.seconds.get(part, 0.0) for part in parts) / self.ascent

    @property
    def outside(self) -> float:
        """The share outside posterior and inner solve."""
        return 1.0 - self.share(*_NEEDED)


def measure_profile(name: str, *, t: int, search: Search, runs: int) -> Profile:
    """Profile the ascent of one recipe on Ackley 2+1, over ``runs`` histories."""
    recipe = make_algorithm(
        name, raw_samples=search.raw_samples, num_restarts=search.num_restarts
    )
    assert isinstance(recipe, ModelBasedAlgorithm)
    watch = Stopwatch(closed=frozenset({START, LIPSCHITZ}))
    for seed in range(runs):
        history, space = make_history(t, seed)
        model = recipe._model(history, space, recipe.uses_contexts)
        acqf = recipe.exploring(model, history, space, X_pending=None, seed=seed)
        assert isinstance(acqf, RobustAcquisitionFunction)
        recipe._ascend(acqf, space, seed)  # caches are built outside
        with watch.running(), watched(acqf, watch):
            recipe._ascend(acqf, space, seed)
    return Profile(
        name=name,
        path=acqf.posterior.path,
        seconds=dict(watch.seconds),
        evaluations=watch.calls[GLUE] // runs,
        runs=runs,
    )


@contextmanager
def watched(acqf: RobustAcquisitionFunction, watch: Stopwatch) -> Iterator[None]:
    """Make parts of everything that the ascent of ``acqf`` calls."""
    with ExitStack() as stack:

        def replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
            stack.enter_context(mock.patch.object(owner, name, function))

        def replace_part(owner: Any, name: str, part: str) -> None:
            replace(owner, name, watch.part(part, getattr(owner, name)))

        replace(acqf, "forward", watch.whole(GLUE, acqf.forward))
        for owner, name in _ways_to_moments(acqf.posterior):
            replace_part(owner, name, POSTERIOR)
        if isinstance(acqf, LipschitzPenalizedUCB):
            replace_part(acqf.lipschitz, "forward", LIPSCHITZ)
            replace_part(acqf.lipschitz, "tops", LIPSCHITZ)
            for name in ("slopes", "own_slopes"):
                replace_part(HandInterpolant, name, LIPSCHITZ)
            replace_part(OwnBoundSlopes, "backward", LIPSCHITZ)
        if isinstance(acqf, DistributionallyRobustUCB):
            replace_part(acqf.objective, "forward", INNER)
            for name in ("forward", "backward"):
                replace_part(EqualWeights, name, INNER)
        replace_part(torch.autograd, "grad", ENGINE)
        replace_part(optimize, "gen_batch_initial_conditions", START)
        replace_part(import_module("scipy.optimize._lbfgsb"), "setulb", SCIPY)
        yield


def _ways_to_moments(posterior: Any) -> list[tuple[Any, str]]:
    """What an acquisition function calls: the product path has more to offer."""
    calls = [(posterior, "forward")]
    if isinstance(posterior, ProductPosterior):
        calls += [(posterior, name) for name in ("interpolant", "rows_by_hand")]
        calls += [(ContextInterpolant, name) for name in _BOUNDS]
        calls += [(posterior, "by_hand")]
        calls += [(HandInterpolant, name) for name in (*_BOUNDS, *_OF_HAND)]
        calls += [(ExpectedBounds, "backward"), (ConfidenceBounds, "backward")]
    return calls


def profile_section(profiles: Sequence[Profile], *, t: int, search: Search) -> Section:
    """One line per recipe."""
    head = ["recipe", "one ascent", "evaluations", *_PARTS[:-1], _REST]
    head += ["outside posterior and inner solve", "before: choice of the starts"]
    body = [
        [
            f"{profile.name} ({profile.path})",
            readable(profile.ascent / profile.runs),
            str(profile.evaluations),
            *(_percent(profile.share(part)) for part in _PARTS),
            f"{_percent(profile.outside)}: "
            + ("met" if profile.outside <= LIMIT else "**missed**"),
            readable(profile.seconds[START] / profile.runs),
        ]
        for profile in profiles
    ]
    return Section(
        title="Where the time of an ascent goes",
        text=(
            f"One L-BFGS run with {search.num_restarts} restarts on Ackley 2+1 after "
            f"t = {t} outcomes: shares of its processor time, forward and backward, "
            f"over {profiles[0].runs} histories. The Lipschitz search, the inner solve "
            "of `wdrbo`, calls the posterior too: this is counted as the search. "
            f"`{ENGINE}` is what PyTorch's engine takes beside the backward pass "
            f"itself, `{SCIPY}` scipy's code. Asked for: at most "
            f"{LIMIT:.0%} outside posterior and inner solve."
        ),
        head=head,
        rows=body,
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%" if share else ""
