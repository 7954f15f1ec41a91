"""The expected outcomes of several methods' recommendations under shifts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import check_level, is_number
from botorch_drbo.adversaries import FittedRound
from botorch_drbo.adversaries.base import reference_contexts
from botorch_drbo.adversaries.dangers import check_share, moved, shifted_column
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import NamedObjective
from botorch_drbo.optimizer.run import Purpose, Run
from botorch_drbo.optimizer.tables import numbered
from botorch_drbo.posterior.mixture import (
    GaussianMixture,
    joint_moments,
    posterior_of_sums,
    thinned,
)
from botorch_drbo.problem import Round, SearchSpace
from botorch_drbo.problem.round import RoundRadius, contexts_within
from botorch_drbo.problem.search_space import check_values
from botorch_drbo.recipes import Recipe, make_recipe
from botorch_drbo.recommendation.comparison import TODAY, Comparison
from botorch_drbo.recommendation.promise import Promise
from botorch_drbo.recommendation.worst_case import worst_case
from botorch_drbo.sampling import isolated_rng
from botorch_drbo.space import Space
from botorch_drbo.space.table import to_frame

if TYPE_CHECKING:
    import pandas as pd

LEAST_OUTCOMES = 5
METHODS = ("erbo", "wdrbo_exact")
_MOST_ROWS = 4096  # of the covariance, of all methods in all worlds
_LEAST_CONTEXTS = 64  # of a world
_SHARED = (
    "reference",
    "half_life",
    "hyperparameters",
    "model",
    "surrogate",
    "feasibility",
    "num_restarts",
    "raw_samples",
    "max_iterations",
)

Shift: TypeAlias = Mapping[str, float] | ContextSet
"""By how much columns of the contexts move, or where they go."""
Methods: TypeAlias = Sequence[str | Recipe]
Shifts: TypeAlias = "Mapping[str, Shift | pd.DataFrame] | Mapping[str, float]"
"""By name; or a single shift, without a name."""


def compared(
    run: Run,
    methods: Methods,
    shifts: Shifts,
    radii: Sequence[RoundRadius],
    *,
    clip: float,
    level: float,
    context_set: ContextSet | None,
) -> Comparison:
    """Let each method recommend by one model, and judge all by its joint posterior."""
    configuration = run.configuration
    space, own = configuration.space, configuration.algorithm
    own_state, level = run.state(Purpose.RECOMMENDATION), check_level(level)
    history, seed = own_state.history, own_state.seed
    if history.t < LEAST_OUTCOMES:
        raise InputDataError(
            f"`compare` needs at least {LEAST_OUTCOMES} outcomes, got {history.t}: "
            "with fewer, the model knows too little to compare methods."
        )
    clip = check_share(clip, "clip", least=0.0)
    recipes = [_as_recipe(method, own) for method in _listed(methods)]
    balls = [WassersteinBall(radius=radius) for radius in _listed_radii(radii)]
    names = _different([recipe.name for recipe in recipes])
    # All that can be wrong is found before anything is fitted or searched.
    for ball in balls:
        ball.check_space(space)
    reference = context_set or own.options.get("reference")
    half_life = own.options.get("half_life")
    named = _by_name(shifts, configuration.named)
    num_worlds = 1 + len(named) + len(balls)
    most = max(_LEAST_CONTEXTS, _MOST_ROWS // (len(recipes) * num_worlds))
    contexts = reference_contexts(history.contexts, space, reference, half_life)
    today = _thinned(contexts, most)
    fixed = {TODAY: today} | {
        name: _thinned(_moved(name, shift, contexts, space, clip), most)
        for name, shift in named.items()
    }
    model, this_round = own.judging_model(own_state), Round(context_set)
    given = [recipe.given(own_state, this_round, decides=False) for recipe in recipes]
    decisions = torch.stack([recipe.decided_by(model, now) for recipe, now in given])
    with isolated_rng(seed, space.bounds.device):
        state = FittedRound(
            model=model,
            history=history,
            space=space,
            seed=seed,
            reference=reference,
            half_life=half_life,
        )
        decided_within = tuple(_radius_of(recipe, state) for recipe in recipes)
        worst = {
            words: [_thinned(_worst(ball, state, x), most) for x in decisions]
            for ball in balls
            for words in [_worst_words(ball, state)]
        }
        worlds = (*fixed, *worst)
        objective = own.options.get("objective")
        where = [
            [
                _that_count(objective, contexts, state, x)
                for contexts in (*fixed.values(), *(row[i] for row in worst.values()))
            ]
            for i, x in enumerate(decisions)
        ]
        sums = _all_sums(state, decisions, where)
        check = own_state.check_if_closed(model, own.judge.judging_surrogate(), today)
    widening = None if check is None else check.widening
    values, gains, costs = (
        part.widened(1.0 if widening is None else widening) for part in sums
    )
    trust = Promise(values, values, widening).words()
    decided = numbered("x", decisions)
    if configuration.named is not None:
        decided = to_frame(decisions, configuration.named.decisions)
    return Comparison(
        methods=names,
        radii=decided_within,
        worlds=worlds,
        decisions=decisions,
        columns={str(name): column.tolist() for name, column in decided.items()},
        values=configuration.outcome.told(values),
        gains=gains,
        costs=costs,
        level=level,
        num_outcomes=history.t,
        outcome=configuration.outcome.name,
        judged_by=_judged_by(objective, configuration.outcome.name),
        trust=trust,
    )


def _all_sums(
    state: FittedRound, decisions: Tensor, where: Sequence[Sequence[ContextSet]]
) -> tuple[GaussianMixture, GaussianMixture, GaussianMixture]:
    """Values and gains, ``m x w``, and costs, ``w``, from one joint posterior."""
    m, w = len(where), len(where[0])
    rows, columns, shares = [], [], []
    for i, x in enumerate(decisions):
        for j, contexts in enumerate(where[i]):
            points, n = contexts.points, contexts.num_points
            rows.append(torch.cat([x.expand(n, -1), points], dim=-1))
            columns.append(torch.full((n,), i * w + j, device=points.device))
            shares.append(contexts.weights)
    column = torch.cat(columns)
    expectations = torch.nn.functional.one_hot(column, m * w).mT.to(decisions)
    expectations = expectations * torch.cat(shares)
    # Equal rows, of methods that agree and worlds that overlap, are one: what two
    # decisions share then cancels exactly.
    Z, inverse = torch.cat(rows).unique(dim=0, return_inverse=True)
    merged = expectations.new_zeros(m * w, len(Z))
    merged = merged.index_add(1, inverse, expectations).unflatten(0, (m, w))
    gains = merged - merged[:1]
    costs = merged[0, :1] - merged[0]
    wanted = torch.cat([merged.flatten(0, 1), gains.flatten(0, 1), costs])
    found = posterior_of_sums(state.model, Z, wanted)
    parts = []
    for start, shape in ((0, (m, w)), (m * w, (m, w)), (2 * m * w, (w,))):
        part = slice(start, start + math.prod(shape))
        parts.append(
            GaussianMixture(
                found.means[:, part].unflatten(-1, shape),
                found.deviations[:, part].unflatten(-1, shape),
            )
        )
    return parts[0], parts[1], parts[2]


def _worst(ball: WassersteinBall, state: FittedRound, x: Tensor) -> ContextSet:
    """The worst distribution in a ball for a decision, by the posterior mean."""
    problem = ball.worst_case_problem(state)
    contexts, robust = worst_case(problem, partial(_mean, state, x), seed=state.seed)
    return _kept(contexts, robust.weights)


def _that_count(
    objective: object, contexts: ContextSet, state: FittedRound, x: Tensor
) -> ContextSet:
    """The contexts over which an objective averages, by the posterior mean."""
    ball = objective.ambiguity_set if isinstance(objective, NamedObjective) else None
    if ball is None:
        return contexts
    mean = _mean(state, x, contexts.points)
    return _kept(contexts, ball.worst_case(mean, contexts.weights).weights)


def _judged_by(objective: object, outcome: str) -> str:
    """What the values are, and what they are not though the run maximises it."""
    if objective is None:
        return f"expected {outcome}"
    if not isinstance(objective, NamedObjective):
        return f"expected {outcome}, not the run's own objective"
    return f"expected {outcome}{objective.of_expected}"


def _mean(state: FittedRound, x: Tensor, contexts: Tensor) -> Tensor:
    Z = torch.cat([x.expand(len(contexts), -1), contexts], dim=-1)
    return joint_moments(state.model, Z)[0]


def _kept(contexts: ContextSet, weights: Tensor) -> ContextSet:
    """Those of positive weight."""
    weights = weights.clamp_min(0.0)
    kept = weights > 0
    return ContextSet(contexts.points[kept], weights[kept] / weights.sum())


def _worst_words(ball: WassersteinBall, state: FittedRound) -> str:
    within = ball.worst_case_problem(state).reach
    return f"worst within {within.removesuffix(' (Wasserstein)')}"


def _radius_of(recipe: Recipe, state: FittedRound) -> str:
    """Within what a method decides, in words, and at what price; empty if nothing."""
    adversary = recipe.options.get("against") or recipe.adversary
    problem = None if adversary is None else adversary.worst_case_problem(state)
    within = "" if problem is None else problem.reach
    if problem is not None and problem.worlds:
        within = f"the worst of: {'; '.join(problem.worlds)}"
    named = recipe.options.get("objective")
    if isinstance(named, NamedObjective):
        within = f"the {named.words}"
    give_up = recipe.options.get("give_up")
    if give_up is None:
        return within
    if isinstance(give_up, Mapping):
        ((outcome, amount),) = give_up.items()
        price = f"{amount:.4g} of {outcome}"
    else:
        price = f"{100 * give_up:.3g}%"
    return f"{within}, giving up at most {price}"


def _moved(
    name: str, shift: Shift, today: ContextSet, space: SearchSpace, clip: float
) -> ContextSet:
    """The distribution as things are, shifted; or another one."""
    if isinstance(shift, ContextSet):
        return contexts_within(shift, space, "context_set")
    by = torch.zeros_like(space.context_bounds[0])
    if not shift:
        raise InputDataError(
            f"The shift {name!r} is empty. Name a context: one of "
            f"{list(space.context_columns)}."
        )
    for column, size in shift.items():
        j, by[j] = shifted_column(f"The shift {name!r}", column, size, space)
    inside = moved(name, by, today, space, clip)
    check_values(inside, space.context_bounds, space.context_values, name)
    return ContextSet(space.snap_contexts(inside), today.weights)


def _by_name(shifts: Shifts, space: Space | None) -> dict[str, Shift]:
    """Each shift under its name; a single shift is named after its columns."""
    if not isinstance(shifts, Mapping):
        raise InputDataError(
            "`shifts` must be a dictionary from names to shifts, or one shift such as "
            f"{{'temp': 6}}, got {type(shifts).__name__}."
        )
    if any(name == TODAY for name in shifts):
        raise InputDataError(f"A shift cannot be called {TODAY!r}.")
    alone = {k: by for k, by in shifts.items() if is_number(by)}
    if alone and len(alone) == len(shifts):
        return {", ".join(f"{name} {by:+g}" for name, by in alone.items()): alone}
    named: dict[str, Shift] = {}
    for name, shift in shifts.items():
        if not isinstance(shift, (Mapping, ContextSet)):
            if space is not None and hasattr(shift, "columns"):
                named[name] = space.context_set(shift)
                continue
            raise InputDataError(
                f"The shift {name!r} must be a dictionary such as {{'temp': 6}} or a "
                f"ContextSet, got {type(shift).__name__}."
            )
        named[name] = shift
    return named


def _as_recipe(method: str | Recipe, own: Recipe) -> Recipe:
    """A method with the run's own options, as far as it has them."""
    if isinstance(method, Recipe):
        return method
    if not isinstance(method, str):
        raise InputDataError(
            f"A method must be the name of a recipe or a Recipe, got {method!r}."
        )
    if method == own.name:
        return own
    recipe, options = make_recipe(method), own.options
    shared = [name for name in _SHARED if name in options]
    if type(recipe.adversary) is type(own.adversary) and "radius" in options:
        shared.append("radius")
    known = {name: options[name] for name in shared if name in recipe.options}
    return recipe.with_options(**known)


def _listed(methods: Methods) -> Sequence[str | Recipe]:
    if isinstance(methods, (str, Recipe)) or not isinstance(methods, Sequence):
        raise InputDataError(
            f"`methods` must be a list of recipes, got {methods!r}. Write it in "
            "brackets."
        )
    if len(methods) < 2:
        raise InputDataError(
            f"`methods` must name two recipes or more, got {len(methods)}: the others "
            "are compared with the first, for example ['erbo', 'wdrbo_exact']."
        )
    return methods


def _listed_radii(radii: Sequence[RoundRadius]) -> Sequence[RoundRadius]:
    if isinstance(radii, str) or not isinstance(radii, Sequence):
        raise InputDataError(
            "`radii` must be a list of radii, such as [0.1, 'sd', {'temp': 6}], got "
            f"{radii!r}. Write it in brackets."
        )
    return radii


def _different(names: Sequence[str]) -> tuple[str, ...]:
    """Names that differ: of equal ones the second gets a number."""
    return tuple(
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    )


def _thinned(contexts: ContextSet, most: int) -> ContextSet:
    """At most so many contexts that represent the others."""
    if contexts.num_points <= most:
        return contexts
    return ContextSet.empirical(thinned(contexts.points, contexts.weights, most)[0])
