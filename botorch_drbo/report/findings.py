"""All numbers of a report, computed once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypeVar, final

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError

from botorch_drbo._validation import counted
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.calibrate.budget import RobustnessProfile
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.plotting.scope import MOST_CONTEXTS, Scope
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.problem.feasible import all_decisions
from botorch_drbo.problem.round import RoundRadius, in_widths, in_words
from botorch_drbo.recommendation.importance import (
    Importance,
    Slice,
    importance,
    slice_through,
)
from botorch_drbo.recommendation.model_check import ModelCheck, squares
from botorch_drbo.recommendation.price import belief_of_loss
from botorch_drbo.recommendation.price_curve import PriceCurve
from botorch_drbo.recommendation.promise import LEVEL, shown
from botorch_drbo.recommendation.recommendation import row_words
from botorch_drbo.sampling import isolated_rng
from botorch_drbo.space import Category, NamedRecommendation, Variable
from botorch_drbo.space.table import to_tensor
from botorch_drbo.surrogate.cross_validation import cross_validated
from botorch_drbo.surrogate.fit import joint_data

if TYPE_CHECKING:
    import pandas as pd


def movement(
    optimizer: NamedOptimizer, radius: RoundRadius | None
) -> Callable[[float], str] | None:
    """How far the contexts move, on average, within a radius."""
    space = optimizer.named_space.search_space
    recipe = optimizer.algorithm
    own = recipe.options.get("against") or getattr(recipe, "adversary", None)
    given = getattr(own, "radius", None) if radius is None else radius
    if isinstance(given, Mapping):
        widths = in_widths(given, space)
    elif given == "sd":
        return lambda size: counted(size, "standard deviation") if size else "nothing"
    elif isinstance(own, WassersteinBall):
        widths = torch.ones(space.d_c, dtype=torch.double)
    else:
        return None
    return lambda size: in_words((size * widths).tolist(), space) if size else "nothing"


_NUM_VALUES = 5  # of a number
_MOST_COLUMNS = 4  # each value is a search


def policies(
    optimizer: NamedOptimizer,
    reference: ContextSet,
    *,
    context_set: ContextSet | None = None,
    radius: RoundRadius | None = None,
) -> dict[str, pd.DataFrame]:
    """Look up the decision for values of each context column alone."""
    found = {}
    named = optimizer.named_space.contexts
    for j, (name, variable) in enumerate(list(named.items())[:_MOST_COLUMNS]):
        values = looked_up(variable, reference.points[:, j])
        table = optimizer.policy({name: values}, context_set=context_set, radius=radius)
        found[name] = table[[name, *optimizer.named_space.decisions]]
    return found


def looked_up(variable: Variable, expected: torch.Tensor) -> list[object]:
    """Values of a context column that a table of decisions is made for."""
    listed = variable.values
    if listed is not None and len(listed) <= 12:
        return variable.decode(torch.tensor(list(listed), dtype=torch.double))
    low, high = expected.min().item(), expected.max().item()
    grid = torch.linspace(low, high, _NUM_VALUES, dtype=torch.double)
    if listed is not None:
        numbers = torch.tensor(list(listed), dtype=torch.double)
        nearest = (grid.unsqueeze(-1) - numbers).abs().argmin(-1)
        return variable.decode(numbers[nearest.unique()])
    exact = variable.decode(grid.unique())
    if variable.logarithmic or high <= low:
        return exact
    digits = 2 - math.floor(math.log10(high - low))
    return [min(max(round(v, digits), exact[0]), exact[-1]) for v in exact]


@final
@dataclass(frozen=True)
class TrialGain:
    r"""What another trial could gain.

    .. math:: E[\max(D, 0)], \qquad D = \sum_i w_i\,(f(x', c_i) - f(x, c_i))

    of the next decision to try, ``x'``, and the recommended one, ``x``, with the
    weights of its worst case. Within a price ``x`` is the decision with the best
    expectation, and the weights are those of the reference. It is what to know ``D``
    would be worth; one outcome tells less.
    """

    # That expectation, in the units of the outcome.
    gain: float
    # The standard deviation of ``D``.
    spread: float

    @classmethod
    def of(
        cls,
        optimizer: NamedOptimizer,
        best: NamedRecommendation,
        proposed: pd.DataFrame | str,
    ) -> TrialGain | None:
        """By the model; None without a proposal, or where what is best is no sum."""
        has_regret = any(world.regret is not None for world in best.worlds)
        if isinstance(proposed, str) or best.promise is None or has_regret:
            return None
        if best.decided_for.startswith("share"):
            return None
        price, space = best.price, optimizer.named_space
        now, column = best.x, "worst_case_weight"
        if price is not None:
            now, column = price.best, "reference_weight"
        contexts = space.context_set(best.contexts, column)
        x, new = (to_tensor(rows, space.decisions, "x")[0] for rows in (now, proposed))
        belief = belief_of_loss(optimizer.tensors.model, contexts, new, x)
        belief = belief.widened(best.promise.widening or 1.0)
        gain, spread = belief.expected_gain.item(), belief.deviation.item()
        return cls(gain, spread)

    def words(self, outcome: str, tried: pd.DataFrame) -> str:
        """What the first of the decisions to try could gain."""
        row = row_words(tried.to_dict("records")[0])
        gain, spread = (
            shown(float(f"{size:.2g}")) for size in (self.gain, self.spread)
        )
        return (
            f"to know exactly what {row} is worth would gain {gain} of {outcome} on "
            f"average (± {spread} is not known of it); one outcome tells less"
        )


MULTIPLES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Of the recipe's radius, at which the worst case is found."""
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Of the weight that another context takes, where a recipe has no radius."""
STEPS = 6
"""After which a report says that one more is done."""
_Found = TypeVar("_Found")
Rounded: TypeAlias = "Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]"


@final
@dataclass(frozen=True, eq=False)
class Findings:
    """What a report says."""

    # What a better worst case costs; None where neither danger nor price was named.
    curve: PriceCurve[pd.DataFrame] | None
    # How the decision does on each context; None where they are no list of categories.
    scope: Scope | None
    # The run.
    optimizer: NamedOptimizer
    # The decision to implement.
    best: NamedRecommendation
    # Its worst case by radius, or why there is none.
    profile: RobustnessProfile | str
    # Where the profile is known: multiples of the radius, or shares of the weight if
    # the recipe has no radius.
    steps: tuple[float, ...]
    # That one; zero if there is none.
    radius: float
    # For each context column the decision by its value, or why not.
    policies: dict[str, pd.DataFrame] | str
    # One for each decision variable.
    slices: list[Slice]
    # Which columns matter.
    importance: Importance
    # What to try next, or why nothing is proposed.
    next_decisions: pd.DataFrame | str
    # What the first of them could gain; None where that is not known.
    trial: TrialGain | None
    # Where the data are from.
    source: str
    # The measured constraints in words; empty if none were stated.
    limits: Sequence[str]
    # Decisions in the digits of the source; None for four significant ones.
    rounded: Rounded | None
    # The share that the model explains without the row that dwarfs all others; None
    # where none does, or the surrogate is not fitted again.
    explained_without: float | None
    # The line of each trial in the source; None for a table in Python.
    lines: Sequence[int] | None
    # From a radius to how far the contexts move; None where the radius is in no units
    # of the contexts.
    moved_by: Callable[[float], str] | None
    # When the report was made.
    date: datetime

    @classmethod
    def of(
        cls,
        optimizer: NamedOptimizer,
        *,
        context_set: ContextSet | None = None,
        radius: RoundRadius | None = None,
        level: float = LEVEL,
        q: int = 3,
        source: str = "",
        limits: Sequence[str] = (),
        rounded: Rounded | None = None,
        lines: Sequence[int] | None = None,
        done: Callable[[], None] = lambda: None,
    ) -> Findings:
        """Ask an optimizer; nothing is recorded. ``done`` is called after each step."""
        if not isinstance(optimizer, NamedOptimizer):
            raise InputDataError(
                f"A report needs a NamedOptimizer, got {type(optimizer).__name__}: it "
                "names every variable. Make one from a Space of named variables."
            )
        tensors = optimizer.tensors
        found = tensors.recommend(context_set=context_set, radius=radius, level=level)
        done()
        model, space = tensors.model, optimizer.space
        has_weight = found.context_set.weights > 0
        reference = ContextSet(
            found.context_set.points[has_weight], found.context_set.weights[has_weight]
        )
        widening = found.promise.widening if found.promise else None
        slices = [
            slice_through(
                model,
                space,
                found.x,
                reference,
                column,
                widening=1.0 if widening is None else widening,
                level=level,
            )
            for column in range(space.d_x)
        ]
        done()
        own = 0.0 if found.decided_for else found.radius or 0.0
        steps = MULTIPLES if own > 0.0 else SHARES
        # Total variation counts weight twice: where it leaves and where it goes.
        radii = torch.tensor(steps, dtype=torch.double) * (own if own > 0.0 else 2.0)
        given = {"context_set": context_set, "radius": radius}
        profile = result_or_reason(
            lambda: tensors.robustness_profile(
                found.x,
                radii=radii,
                ambiguity_set=None if own > 0.0 else TotalVariation(0.0),
                context_set=context_set,
                radius=radius if own > 0.0 else None,
            )
        )
        done()
        best = NamedRecommendation.of(found, optimizer.named_space)
        without = _explained_without(optimizer, found.model_check)
        if lines is not None:
            best = best.with_check(lambda check: check.by_lines(lines))
        scope = None
        contexts = optimizer.named_space.contexts.values()
        listed = all(isinstance(variable, Category) for variable in contexts)
        if listed and 1 < len(best.contexts) <= MOST_CONTEXTS:
            scope = Scope.of(optimizer, best)
        every = all_decisions(optimizer.named_space.search_space)
        num = q if every is None else min(q, len(every))
        proposed = result_or_reason(lambda: optimizer.preview(num, **given))
        trial = TrialGain.of(optimizer, best, proposed)
        done()
        if rounded is not None:
            best = with_words(best, rounded)
            if not isinstance(proposed, str):
                proposed = rounded(proposed, optimizer.pending)
        options = optimizer.algorithm.options
        insured = any(options.get(name) for name in ("against", "give_up"))
        insured = insured and not found.decided_for.startswith("share")
        curve = optimizer.price_curve(**given, level=level) if insured else None
        done()
        by_context = result_or_reason(lambda: policies(optimizer, reference, **given))
        done()
        return cls(
            curve=curve,
            scope=scope,
            optimizer=optimizer,
            best=best,
            profile=profile,
            steps=steps,
            radius=own,
            policies=by_context,
            slices=slices if tensors.maximize else [s.mirrored() for s in slices],
            importance=importance(model, space, reference),
            next_decisions=proposed,
            trial=trial,
            source=source,
            limits=limits,
            rounded=rounded,
            explained_without=without,
            lines=lines,
            moved_by=movement(optimizer, radius),
            date=datetime.now(),
        )

    @property
    def beliefs(self) -> list[GaussianMixture]:
        """What the model believes of the worst case at each step of the profile.

        Those without a shift and at the radius are the ones of the recommendation.
        """
        profile, promise = self.profile, self.best.promise
        if isinstance(profile, str) or profile.belief is None or promise is None:
            raise RuntimeError("A profile of a model states what it believes.")
        drawn = profile.belief.widened(promise.widening or 1.0)
        known = {0.0: promise.expected}
        if self.has_radius:
            known[1.0] = promise.worst_case
        return [known.get(step, drawn[i]) for i, step in enumerate(self.steps)]

    @property
    def has_radius(self) -> bool:
        """Whether the recipe has a radius above zero."""
        return self.radius > 0.0

    def reach(self, times: float) -> str | None:
        """How far the contexts move at a multiple of the radius, if it has units."""
        if not self.has_radius or self.moved_by is None:
            return None
        return self.moved_by(times * self.radius)

    def in_digits(self, x: pd.DataFrame) -> pd.DataFrame:
        """Decisions in the digits of the source, each row for itself."""
        if self.rounded is None:
            return x.map(shown)
        import pandas as pd

        rows = [x.iloc[i : i + 1] for i in range(len(x))]
        return pd.concat([self.rounded(row, x.iloc[:0]) for row in rows])

    @property
    def row_name(self) -> str:
        """What the number of a row is: that of a trial, or of a line."""
        return "trial" if self.lines is None else "line"

    def row(self, trial: int) -> int:
        """The number by which the row of a trial is named."""
        return trial if self.lines is None else self.lines[trial]


def with_words(best: NamedRecommendation, rounded: Rounded) -> NamedRecommendation:
    """The same, its decisions as they are written."""
    stability, price = best.stability, best.price
    if price is not None:
        price = replace(price, best=rounded(price.best, best.x.iloc[:0]))
    if stability is not None and stability.rival is not None:
        stability = replace(stability, rival=rounded(stability.rival, best.x.iloc[:0]))
    x = rounded(best.x, best.x.iloc[:0])
    return replace(best, x=x, stability=stability, price=price)


def _explained_without(
    optimizer: NamedOptimizer, check: ModelCheck | None
) -> float | None:
    """The share that a model explains if it is not told the row that dwarfs others.

    None too where the surrogate is not fitted again.
    """
    if check is None or check.dwarfing is None:
        return None
    tensors, space = optimizer.tensors, optimizer.space
    kept = torch.ones(len(check.trials), dtype=torch.bool)
    kept[check.trials.index(check.dwarfing)] = False
    data = joint_data(tensors.history, space).of_rows(kept)
    with isolated_rng(0, space.bounds.device):
        held = cross_validated(optimizer.algorithm.judge.judging_surrogate(), data)
    if held is None:
        return None
    missed, total = squares(held.outcomes, held.predicted.mean, held.fold)
    return (1.0 - missed.sum() / total.sum()).item()


def result_or_reason(compute: Callable[[], _Found]) -> _Found | str:
    """A result, or the message of a recipe that cannot compute it."""
    try:
        return compute()
    except UnsupportedError as error:
        return str(error)
