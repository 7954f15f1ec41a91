"""The next decision and the recommendation, as functions of the recorded run alone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.exceptions.warnings import BotorchWarning
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_level, shown
from botorch_drbo.adversaries import Adversary
from botorch_drbo.adversaries.empirical import AroundContexts
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.calibrate.budget import RobustnessProfile
from botorch_drbo.contexts import ContextSet
from botorch_drbo.objectives import NamedObjective
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.events import as_rows
from botorch_drbo.optimizer.ledger import Ledger, recognised
from botorch_drbo.optimizer.run import Purpose, Run
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.optimizer.wells import Plate, listable, spread, used_up, wells_of
from botorch_drbo.posterior.mixture import joint_moments
from botorch_drbo.problem import Round, SearchSpace
from botorch_drbo.problem.feasible import all_decisions, joint_sample, sample
from botorch_drbo.recipes import Recipe
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recipes.robust_recipe import RobustRecipe
from botorch_drbo.recommendation import ModelCheck, Recommendation
from botorch_drbo.recommendation.model_check import beyond_seen, new_levels
from botorch_drbo.recommendation.moved_contexts import MovedContext, moved_contexts
from botorch_drbo.recommendation.price import GiveUp
from botorch_drbo.recommendation.price_curve import PriceCurve
from botorch_drbo.recommendation.promise import LEVEL
from botorch_drbo.sampling import derive_seed, isolated_rng, sobol_in_box
from botorch_drbo.search.candidates import best_rows, check_candidates, redrawn, without

_NOTICED = 0.1  # of a deviation: a mean that moves less is not spoken of


@dataclass(frozen=True)
class DecidedBy:
    """How a recommendation is decided; None for as the recipe says."""

    # Against what.
    against: Adversary | AmbiguitySet | None = None
    # At what price.
    give_up: GiveUp | None = None
    # What is best in the worst of all.
    criterion: str | None = None
    # What is maximised, in words.
    objective: str | None = None


@dataclass(frozen=True)
class InitialDesign:
    """A scrambled Sobol sequence of what may be decided, or a shuffled list."""

    space: SearchSpace
    num_initial: int
    seed: int
    # Whether contexts are points of the same sequence.
    joint: bool = False

    def share(self, q: int, ledger: Ledger, *, needs_data: bool) -> int:
        """How many of the next ``q`` decisions belong to the design."""
        t = len(ledger.standing.complete)
        waits = needs_data and t == 0
        if waits and self.num_initial > 0:
            return q
        missing = self.num_initial - t - len(ledger.pending)
        return min(max(missing, 0), q)

    def points(self, first: int, num: int, failed: Tensor) -> Tensor:
        """Points ``first, first + 1, ...`` of the Sobol sequence, ``num x d_x``.

        Where values are few a point can be one that has ``failed``: it is replaced.
        """
        x = self._sequence(first, num)[:, : self.space.d_x]
        return redrawn(x, failed, self.space, self.seed, first)

    def contexts(self, x: Tensor, num_asked: int) -> Tensor:
        """The contexts that belong to decisions, ``q x d_x`` to ``q x d_c``."""
        box, d_x = self.space.joint_bounds, self.space.d_x
        found = x.new_full((len(x), self.space.d_c), torch.nan).to(box)
        if self.joint and num_asked:
            pairs = self._sequence(0, num_asked)
            same = (x.to(box).unsqueeze(1) == pairs[:, :d_x]).all(-1)  # q x num_asked
            known = same.any(-1)
            found[known] = pairs[same[known].int().argmax(-1), d_x:]
        return found

    def chosen_contexts(self, first: int, num: int) -> Tensor:
        """Contexts ``num x d_c`` for a laboratory, of points ``first, first + 1, ...``.

        Those of the joint sequence, or of a sequence of their own.
        """
        if self.joint:
            return self._sequence(first, num)[:, self.space.d_x :]
        box = self.space.context_bounds
        if num == 0:
            return box[:0]
        points = sobol_in_box(num, box, self.seed + 1, skip=first)
        return self.space.snap_contexts(points)

    def _sequence(self, first: int, num: int) -> Tensor:
        """``num x d_x``, or ``num x (d_x + d_c)``."""
        space = self.space
        bounds = space.joint_bounds if self.joint else space.bounds
        if num == 0:
            return bounds[:0]
        if not space.is_box or (self.joint and space.context_values):
            points = joint_sample if self.joint else sample
            return points(space, first + num, self.seed)[first:]
        return sobol_in_box(num, bounds, self.seed, skip=first)

    def rows(self, candidates: Tensor, first: int, num: int, taken: Tensor) -> Tensor:
        """The same for a list: it is shuffled once, and ``first`` rows are behind."""
        m = len(candidates)
        position = torch.randperm(m, generator=torch.Generator().manual_seed(self.seed))
        wait = ((position - first) % m).to(candidates.device)
        return best_rows(candidates, -wait, num, taken)


def next_decisions(
    run: Run,
    q: int,
    candidates: Tensor | None,
    this_round: Round,
    *,
    choose_context: bool,
    plate: Plate | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The next decisions: first the initial design's, then the algorithm's.

    Shapes: ``candidates``: ``m x d_x``, returns ``q x d_x``, and ``q x d_c`` contexts
    if they are chosen.
    """
    space, ledger, plate = run.configuration.space, run.ledger, plate or Plate()
    num_asked = ledger.standing.num_asked
    # Refuses what the algorithm cannot use at once, not only after the design.
    algorithm, state = run.configuration.algorithm.given(
        run.state(Purpose.PROPOSAL), this_round, decides=True
    )
    _warn_of_threshold(_named(algorithm, DecidedBy()), run)
    known = state.space.known_context
    X_pending = which_may_meet(ledger.pending, known, space)
    failed = which_may_meet(ledger.failed, known, space)
    design = design_of(run.configuration)
    per = plate.contexts_per_decision * plate.replicates  # wells of one decision
    num_wells = q // plate.replicates
    num_design = -(-design.share(q, ledger, needs_data=algorithm.needs_data) // per)
    num = -(-q // per)
    if candidates is not None:
        may_repeat = algorithm.may_repeat or choose_context
        different = max(num_design, 1) if may_repeat else q
        candidates = check_candidates(candidates, space, different)
        candidates = recognised(candidates, [*ledger.failed, *ledger.pending], space)
    contexts, taken = space.context_bounds[:0], space.joint_bounds[:0]
    if choose_context:
        algorithm.check_uses_contexts("choose_context")
        contexts = _choosable(run, this_round)
        taken = wells_of(ledger.trials, space)
        listed = all_decisions(space) if candidates is None else candidates
        plate.check_enough(num_wells, listed, taken, contexts)
        spent = used_up(taken, contexts, plate.contexts_per_decision)
        failed = torch.cat([failed, spent])
        if listed is not None:
            listed = without(listed, spent)
            # A search avoids what is spent only as long as it finds others.
            few = len(listed) <= num + len(ledger.pending)
            candidates = listed if few or candidates is not None else None

    def decide(num: int, num_design: int, listed: Tensor | None, x: Tensor) -> Tensor:
        """Further decisions, the first ones by the design."""
        if listed is None:
            new = design.points(num_asked, num_design, failed)
        else:
            avoided = torch.cat([failed, ledger.X_pending])
            new = design.rows(listed, num_asked + len(x), num_design, avoided)
            if not algorithm.may_repeat:
                listed = without(listed, new)
        if num_design == num:
            return new
        avoiding = replace(state, history=replace(state.history, failed=failed))
        waiting = torch.cat([X_pending, x, new])
        proposed = algorithm.proposed(avoiding, num - num_design, waiting, listed)
        return torch.cat([new, proposed])

    if plate.at_most:
        x = plate.limited(
            listable(candidates, space),
            num,
            lambda left, x: decide(1, int(len(x) < num_design), left, x),
        )
    else:
        x = decide(num, num_design, candidates, space.bounds[:0])
    _warn_of_repetition(x[: num_design if algorithm.may_repeat else num])
    if not choose_context:
        return x, None
    x = x.repeat_interleave(plate.contexts_per_decision, dim=0)[:num_wells]
    first = min(num_design * plate.contexts_per_decision, num_wells)
    if run.configuration.scope is None and plate.contexts_per_decision == 1:
        chosen = design.chosen_contexts(num_asked, first)
    else:
        chosen = spread(x[:first], taken, contexts, run.configuration.seed)
    if first < num_wells:
        rows = torch.cat([x[:first], chosen], dim=-1)
        pending = torch.cat([wells_of(ledger.pending, space), rows])
        taken = torch.cat([taken, rows])
        found = algorithm.chosen_contexts(state, x[first:], pending, taken)
        chosen = torch.cat([chosen, found])
    times = plate.replicates
    return x.repeat_interleave(times, dim=0), chosen.repeat_interleave(times, dim=0)


def _warn_of_repetition(x: Tensor) -> None:
    """Say where decisions, ``n x d_x``, are fewer than was asked for."""
    different = len((x + 0.0).unique(dim=0))
    if different < len(x):
        warnings.warn(
            f"Of the {len(x)} decisions asked for only {different} "
            f"{'differs' if different == 1 else 'differ'}: no others were found that "
            "the variables and their constraints allow. Ask for fewer, or widen bounds "
            "and constraints.",
            BotorchWarning,
            stacklevel=4,
        )


def which_may_meet(
    trials: Sequence[Trial], known: Tensor | None, space: SearchSpace
) -> Tensor:
    """Decisions of trials, ``m x d_x``, that may meet this context, in their order.

    A decision that waits for another context than the one that is known, or has failed
    in another one, says nothing about what is best for this one, and may be asked
    again. A host may know of a failed trial only in part: then nothing is avoided.
    """
    rows = [
        t.x
        for t in trials
        if t.x.isfinite().all()
        and (
            known is None
            # NaN is equal to nothing, and contradicts nothing.
            or (context := t.c if t.c is not None else t.known_context) is None
            or not ((context < known) | (context > known)).any()
        )
    ]
    return torch.stack(rows) if rows else space.bounds[:0]


def _choosable(run: Run, this_round: Round) -> Tensor:
    """The contexts of the reference, ``n x d_c``, each once.

    Chosen contexts tell nothing about the distribution of the observed ones.
    """
    own = run.configuration.algorithm.options.get("reference")
    reference = this_round.context_set or own
    if reference is None and not run.ledger.standing.seen:
        raise InputDataError(
            "`choose_context=True`: the world has shown no context yet, and a context "
            "that was chosen says nothing about those that it will show. Give the "
            "optimizer a `scope` (or its algorithm a `reference`), or this round a "
            "`context_set`."
        )
    if reference is None:
        return run.ledger.history.contexts.unique(dim=0)
    points = reference.points[reference.weights > 0.0]
    return points.to(run.configuration.space.bounds).unique(dim=0)


def design_of(configuration: Configuration) -> InitialDesign:
    """The design that a run begins with."""
    return InitialDesign(
        configuration.space,
        configuration.num_initial,
        derive_seed(configuration.seed, Purpose.DESIGN, 0),
        joint=configuration.initial_design == "sobol_joint",
    )


def recommended(
    run: Run,
    candidates: Tensor | None,
    this_round: Round,
    level: float = LEVEL,
    decided: DecidedBy = DecidedBy(),
) -> Recommendation:
    """The decision to implement now, its values in the user's sign.

    Shapes: ``candidates``: ``m x d_x``.
    """
    level = check_level(level)
    configuration = run.configuration
    recipe, state = _decided_by(run, this_round, decided)
    named = _named(recipe, decided)
    _warn_of_threshold(named, run)
    best = recipe.recommended(state, candidates)
    trials, moved = tuple(run.ledger.standing.complete), moved_in(run)
    best = best.with_check(lambda check: replace(check, trials=trials, moved=moved))
    told = configuration.outcome.told
    worst = ContextSet(best.context_set.points, best.worst_case_weights.clamp_min(0.0))
    best = replace(
        best,
        level=level,
        certainty=best.certainty.then(told),
        beyond=beyond_seen(worst, run.ledger.history.C, configuration.space),
        moved=moved,
        worlds=tuple(
            world._replace(expected=told(world.expected)) for world in best.worlds
        ),
        direction=""
        if best.worlds
        else mean_moved(
            best.context_set, worst, run, listed=this_round.context_set is not None
        ),
    )
    turned = ["price", "expected_value", "worst_case_value"]
    if named is not None:  # a share has no unit, and words have no radius to speak of
        best = replace(
            best,
            decided_for=named.words,
            searched=named.where,
            stability=None,
        )
    if named is None or named.threshold is None:
        turned.append("objective")
    return configuration.outcome.turned(best, *turned)


def priced(
    run: Run, this_round: Round, level: float, decided: DecidedBy
) -> PriceCurve[Tensor]:
    """The worst case by its price, in the user's sign."""
    outcome = run.configuration.outcome
    recipe, state = _decided_by(run, this_round, decided)
    named = _named(recipe, decided)
    if named is not None and named.threshold is not None:
        raise UnsupportedError(
            f"A price curve is of worst cases, and `objective='{named.words}'` is "
            "none. `recommend(give_up=...)` decides at one price."
        )
    if not isinstance(recipe, ModelBasedRecipe):
        raise UnsupportedError(
            f"`{recipe.name}` has no model of its own to find prices by. Take `erbo`, "
            "which is told the same."
        )
    return outcome.told(recipe.priced(state, check_level(level), outcome.name))


def _decided_by(
    run: Run, this_round: Round, decided: DecidedBy
) -> tuple[Recipe, FittedState]:
    """The recipe of an evaluation with another danger, price or criterion."""
    recipe, state = _evaluated(run, this_round)
    said = {field.name: getattr(decided, field.name) for field in fields(decided)}
    given = {name: value for name, value in said.items() if value is not None}
    if not given:
        return recipe, state
    instead = sorted({"against", "objective"} & set(given))
    if this_round.radius is not None and instead:
        raise InputDataError(
            f"Got `{instead[0]}` and `radius`: the radius is that of the recipe's own "
            "set. Give it with the other set: `against=WassersteinBall(radius=...)`."
        )
    if "objective" in given:
        recipe, given = _in_words(recipe, run.configuration, given)
    elif "against" in given and "objective" in recipe.options:
        given["objective"] = None
    lacking = sorted(set(given) - set(recipe.options))
    if lacking:
        raise UnsupportedError(
            f"`{recipe.name}` takes no {' and no '.join(f'`{n}`' for n in lacking)}. "
            "Recipes that do are for instance `erbo`, `wdrbo_exact` and `dro`."
        )
    recipe = recipe.with_options(**given)
    run.configuration.check_decided(recipe)
    return recipe, state


def _in_words(
    recipe: Recipe, configuration: Configuration, given: dict[str, Any]
) -> tuple[Recipe, dict[str, Any]]:
    """The recipe that decides for words, and what is given as options that it has."""
    others = sorted({"against", "criterion"} & set(given))
    if others:
        raise InputDataError(
            f"Got `objective` and `{others[0]}`: both say what is decided for. Leave "
            "one out."
        )
    named = NamedObjective(given["objective"])
    named.check_direction(maximize=configuration.maximize)
    if not isinstance(recipe, RobustRecipe) or not recipe.uses_contexts:
        raise UnsupportedError(
            f"`{recipe.name}` cannot decide for `objective='{named.words}'`: it has no "
            "model of the outcome in each context. Take a recipe that has one, such as "
            "`erbo`."
        )
    ball, alone = named.ambiguity_set, recipe.adversary.believes_reference
    if ball is None and not (alone and getattr(recipe.policy, "bounds_shares", False)):
        # A share is of the posterior, whatever the recipe learns for.
        fitted = recipe.surrogate is recipe.model is recipe.hyperparameters is None
        recipe = recipe.with_options(
            adversary="empirical",
            policy="confidence_bound",
            surrogate=recipe.default_surrogate if fitted else recipe.surrogate,
        )
    if ball is None or ("objective" in recipe.options and alone):
        return recipe, {**given, "objective": named, "against": None}
    return recipe, {
        **{name: value for name, value in given.items() if name != "objective"},
        "against": AroundContexts(ambiguity_set=ball, contexts_complete=True),
    }


def _named(recipe: Recipe, decided: DecidedBy) -> NamedObjective | None:
    """What is maximised, if it was said in words."""
    given = decided.objective or recipe.options.get("objective")
    if given is None or isinstance(given, NamedObjective):
        return given
    return NamedObjective(given) if isinstance(given, str) else None


def _warn_of_threshold(named: NamedObjective | None, run: Run) -> None:
    """Say where a share is of values that were never seen."""
    outcomes = run.ledger.history.Y
    if named is None or (tau := named.threshold) is None or not len(outcomes):
        return
    low, high = outcomes.min().item(), outcomes.max().item()
    if not low <= tau <= high:
        warnings.warn(
            f"The threshold {tau:g} of `objective='{named.words}'` lies outside the "
            f"outcomes so far, {low:g} to {high:g}: that share is extrapolated. "
            "Correct it if it is a slip.",
            BotorchWarning,
            stacklevel=4,
        )


def mean_moved(
    reference: ContextSet, worst: ContextSet, run: Run, *, listed: bool
) -> str:
    """Where a worst distribution moves the mean of each column, in words."""
    space, sd = run.configuration.space, reference.std
    by = worst.mean - reference.mean
    parts = []
    for j, column in enumerate(space.context_columns):
        if j in space.context_categories or by[j].abs() < _NOTICED * sd[j]:
            continue
        way, size = "higher" if by[j] > 0.0 else "lower", by[j].abs().item()
        if j in space.context_logarithms:  # of a factor the share that it adds or takes
            parts.append(f"{column} {shown(100 * abs(by[j].expm1().item()), 3)}% {way}")
        elif sd[j] > 0.0:
            parts.append(f"{column} {shown(size, 3)} {way}")
    if not parts:
        return ""
    whose = "in the reference"
    if run.configuration.scope is not None:
        whose = "in the scope"
    elif not listed and run.configuration.algorithm.options.get("reference") is None:
        whose = "seen"
    return f"on average {' and '.join(parts)} than {whose}"


def checked(run: Run, asked: ContextSet | None) -> ModelCheck:
    """What ``recommended`` says of its model, in the user's sign."""
    configuration, history = run.configuration, run.ledger.history
    algorithm, state = configuration.algorithm, run.state(Purpose.RECOMMENDATION)
    algorithm.check_has_outcomes(history)
    asked = asked or algorithm.options.get("reference")
    if asked is None:
        asked = ContextSet(history.contexts if len(history.contexts) else history.C)
    model, surrogate = (
        algorithm.judging_model(state),
        algorithm.judge.judging_surrogate(),
    )
    with isolated_rng(state.seed, state.space.bounds.device):
        check = state.check(model, surrogate, asked)
        named = configuration.named
        names = [] if named is None else [*named.decisions, *named.contexts]
        levels = new_levels(surrogate, history, state.space, names)
    check = replace(
        check,
        new_levels=levels,
        trials=tuple(run.ledger.standing.complete),
        moved=moved_in(run),
        context_names=state.space.context_columns,
        outcome_name="outcome" if named is None else named.outcome,
    )
    return configuration.outcome.told(check)


def moved_in(run: Run) -> tuple[MovedContext, ...]:
    """The contexts that the decisions predict, by trials that knew nothing of them.

    None where a scope is served: then it is the user who chooses contexts.
    """
    if run.configuration.scope is not None:
        return ()
    met = [
        (t.x, t.c)
        for t in run.ledger.trials
        if t.c is not None
        and t.status != "withdrawn"
        and t.chosen_context is None
        and t.known_context is None
        and not t.has_forecast
        and t.x.isfinite().all()  # a host may know a failed one in part
    ]
    if not met:
        return ()
    X, C = (torch.stack(rows) for rows in zip(*met, strict=True))
    return moved_contexts(X, C, run.configuration.space)


def fitted(run: Run) -> Model:
    """The model by which ``recommended`` judges, of outcomes to be maximised."""
    return run.configuration.algorithm.judging_model(run.state(Purpose.RECOMMENDATION))


def predicted(run: Run, X: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of the outcome, ``m`` each, in the user's sign."""
    joint, model = torch.cat([X, C], dim=-1), fitted(run)
    with isolated_rng(0, joint.device), torch.no_grad():
        mean, variance = joint_moments(model, joint)
    return run.configuration.outcome.told(mean), variance


def _evaluated(run: Run, this_round: Round) -> tuple[Recipe, FittedState]:
    """The recipe and the state of a round that evaluates decisions."""
    state = run.state(Purpose.RECOMMENDATION)
    return run.configuration.algorithm.given(state, this_round, decides=False)


def profiled(
    run: Run,
    x: Tensor,
    other: Tensor | None,
    this_round: Round,
    *,
    target: float | None,
    radii: Tensor | None,
    ambiguity_set: AmbiguitySet | None,
) -> RobustnessProfile:
    """The worst case of a decision by radius, its values in the user's sign.

    Shapes: ``x``: ``1 x d_x``.
    """
    configuration = run.configuration
    recipe, state = _evaluated(run, this_round)
    if not isinstance(recipe, ModelBasedRecipe):
        raise UnsupportedError(
            f"`{recipe.name}` has no model of its own to take a profile from. Use "
            "`dro`, which is told the same and takes any ambiguity set."
        )
    outcome = configuration.outcome
    found = recipe.profiled(
        state,
        _one_decision(x, configuration, "x"),
        other=None if other is None else _one_decision(other, configuration, "other"),
        target=outcome.told(target),
        radii=radii,
        ambiguity_set=ambiguity_set,
    )
    signed = ("values", "expected_value", "other_values", "target", "belief")
    return outcome.turned(found, *signed)


def _one_decision(x: Tensor, configuration: Configuration, name: str) -> Tensor:
    """One decision of the box, ``d_x``, in the dtype of the bounds."""
    bounds = configuration.space.bounds
    rows = as_rows(x, bounds, name, "bounds")
    if len(rows) != 1:
        raise BotorchTensorDimensionError(
            f"`{name}` must be one decision, got {len(rows)} rows."
        )
    return rows[0].to(bounds).clamp(bounds[0], bounds[1])
