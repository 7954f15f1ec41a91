"""The sampler inside a real Optuna study."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import optuna
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.exceptions.warnings import InputDataWarning
from optuna import Study
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from torch import Tensor

from botorch_drbo import ContextSet, NamedOptimizer, RobustOptimizer
from botorch_drbo.ambiguity import FullSimplex
from botorch_drbo.integrations.optuna import Columns, RobustSampler, recommend, tell
from botorch_drbo.space import Category, Continuous, Log, Ordinal, Space
from botorch_drbo.testing.fixtures import PRIOR, SMALL
from tests.products import FEW, each_recipe, one_model

optuna.logging.set_verbosity(optuna.logging.ERROR)

# Known hyper-parameters go to corners; `hyperparameters=None` fits them.
QUICK = {"hyperparameters": PRIOR, **SMALL, "max_iterations": 10}
CONTEXTS = {"c": FloatDistribution(0.0, 10.0)}
SPACE: dict[str, BaseDistribution] = {
    "a": FloatDistribution(0.0, 1.0),
    "b": FloatDistribution(-1.0, 1.0),
}
BOUNDS = torch.tensor([[0.0, -1.0], [1.0, 1.0]], dtype=torch.double)
CONTEXT_BOUNDS = torch.tensor([[0.0], [10.0]], dtype=torch.double)


def sampler(algorithm: str = "wdrbo", **options: object) -> RobustSampler:
    settings = {"search_space": SPACE, "num_initial": 3, **options}
    if algorithm != "random":
        settings = {**QUICK, **settings}
    return RobustSampler(CONTEXTS, algorithm, **settings)


def study_with(chosen: RobustSampler, **options: object) -> Study:
    return optuna.create_study(**{"direction": "maximize", **options}, sampler=chosen)


def loss(params: dict[str, float], c: float) -> float:
    return (params["a"] - c / 10.0) ** 2 + params["b"] ** 2


def context(number: int) -> float:
    return (3.7 * number + 1.0) % 10.0


def rounds(study: Study, number: int, sign: float = -1.0) -> list[dict[str, float]]:
    """Ask, meet a context, tell."""
    asked = []
    for _ in range(number):
        trial = study.ask(SPACE)
        asked.append(trial.params)
        c = context(trial.number)
        tell(study, trial, {"c": c}, sign * loss(trial.params, c))
    return asked


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_what_is_maximised_is_said_in_words(direction: str) -> None:
    sign = -1.0 if direction == "maximize" else 1.0
    chosen = sampler("erbo", objective="worst fifth")
    study = study_with(chosen, direction=direction)
    rounds(study, 6, sign)
    best = recommend(study).details
    assert best.decided_for == "worst fifth"
    assert sign * (best.worst_case_value - best.expected_value) > 0.0
    words = {"maximize": "share below 0", "minimize": "share above 0"}[direction]
    wrong = study_with(sampler("erbo", objective=words), direction=direction)
    with pytest.raises(InputDataError, match="is of the good outcomes"):
        rounds(wrong, 6, sign)


def decision(params: dict[str, float]) -> Tensor:
    return torch.tensor([[params[name] for name in SPACE]], dtype=torch.double)


def point(c: float) -> Tensor:
    return torch.tensor([[c]], dtype=torch.double)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_study_recommends_what_the_optimizer_does_of_the_same_events(
    direction: str,
) -> None:
    study = study_with(sampler(), direction=direction)
    sign = -1.0 if direction == "maximize" else 1.0
    rounds(study, 4, sign)
    failed, late, running = (study.ask(SPACE) for _ in range(3))
    tell(study, failed, {"c": 9.0}, state=TrialState.FAIL)
    tell(study, late, {"c": 9.5})
    pruned = study.ask(SPACE)
    pruned.report(-5.0, step=0)
    tell(study, pruned, {"c": 8.5}, state=TrialState.PRUNED)

    opt = RobustOptimizer(
        "wdrbo", BOUNDS, CONTEXT_BOUNDS, maximize=direction == "maximize", **QUICK
    )
    for trial in study.trials:
        if trial.number == running.number:
            continue
        opt.tell(
            decision(trial.params),
            point(trial.user_attrs["c"]),
            trial.value if trial.state == TrialState.COMPLETE else None,
            failed=trial.state in (TrialState.FAIL, TrialState.PRUNED),
            closes_pending=False,
        )
    ours, theirs = recommend(study), opt.recommend()
    assert ours.expected_value == pytest.approx(theirs.expected_value, abs=1e-4)
    assert ours.worst_case_value == pytest.approx(theirs.worst_case_value, abs=1e-4)
    torch.testing.assert_close(decision(ours.params)[0], theirs.x, rtol=0.0, atol=1e-2)
    worse = ours.expected_value - ours.worst_case_value
    assert worse > 0.0 if direction == "maximize" else worse < 0.0


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_both_directions_ask_the_same(direction: str) -> None:
    study = study_with(sampler(), direction=direction)
    rounds(study, 5, -1.0 if direction == "maximize" else 1.0)
    mirrored = study_with(sampler(), direction="maximize")
    assert rounds(mirrored, 5) == [t.params for t in study.trials]


def test_the_robust_decision_where_the_rivals_recommend_the_other_end() -> None:
    """``2 x (c - 0.5)`` and contexts about 0.5: any shift to the left hurts."""
    contexts = {"c": FloatDistribution(0.0, 1.0)}
    space = {"x": FloatDistribution(0.0, 1.0)}
    study = study_with(
        RobustSampler(contexts, "wdrbo", search_space=space, radius=0.3, **QUICK)
    )
    for c in (0.3, 0.75, 0.5, 0.8, 0.4, 0.65, 0.6, 0.7):
        trial = study.ask(space)
        tell(study, trial, {"c": c}, 2.0 * trial.params["x"] * (c - 0.5))
    assert recommend(study).params["x"] < 0.05
    assert study.best_params["x"] > 0.3


@pytest.mark.parametrize("name", each_recipe())
def test_every_recipe_by_its_name(name: str) -> None:
    options = {"reward_range": (-2.0, 0.0)} if name == "regret_balancing" else {}
    given = {} if name == "random" else {"num_restarts": 1, "raw_samples": 8}
    options |= given | FEW.get(name, {}) | one_model(name)
    study = study_with(
        RobustSampler(CONTEXTS, name, search_space=SPACE, num_initial=2, **options)
    )
    asked = rounds(study, 3)
    assert all(SPACE[n]._contains(v) for params in asked for n, v in params.items())


def test_running_trials_are_avoided() -> None:
    study = study_with(sampler())
    rounds(study, 4)
    asked = torch.cat([decision(study.ask(SPACE).params) for _ in range(3)])
    assert torch.pdist(asked).min() > 0.01


def test_a_running_trial_is_avoided_before_it_has_suggested_all() -> None:
    study = study_with(sampler())
    rounds(study, 4)
    half = study.ask({"a": SPACE["a"]})
    other = study.ask(SPACE)
    whole = {**half.params, "b": half.suggest_float("b", -1.0, 1.0)}
    assert (decision(other.params) - decision(whole)).norm() > 0.01


def test_trials_in_threads_differ() -> None:
    study = study_with(sampler())

    def objective(trial: optuna.Trial) -> float:
        params = {n: trial.suggest_float(n, d.low, d.high) for n, d in SPACE.items()}
        trial.set_user_attr("c", context(trial.number))
        return -loss(params, context(trial.number))

    study.optimize(objective, n_trials=6, n_jobs=2)
    assert [t.state for t in study.trials] == 6 * [TrialState.COMPLETE]
    assert torch.pdist(torch.cat([decision(t.params) for t in study.trials])).min() > 0


def test_a_context_that_is_known_before_decides() -> None:
    space = {"a": FloatDistribution(0.0, 1.0)}
    study = study_with(sampler("erbo", search_space=space, num_initial=10))
    for number in range(10):
        trial, c = study.ask(space), context(number)
        tell(study, trial, {"c": c}, -loss({**trial.params, "b": 0.0}, c))
    for c in (2.0, 8.0):
        trial = study.ask()
        trial.set_user_attr("c", c)
        assert trial.suggest_float("a", 0.0, 1.0) == pytest.approx(c / 10.0, abs=0.2)
        assert recommend(study, {"c": c}).params["a"] == pytest.approx(c / 10, abs=0.1)


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder}/study.db"


def journal(folder: Path) -> JournalStorage:
    return JournalStorage(JournalFileBackend(f"{folder}/study.log"))


@pytest.mark.parametrize("storage", [sqlite, journal])
def test_a_stored_study_goes_on_as_the_uninterrupted_one(
    storage: Callable[[Path], str | JournalStorage], tmp_path: Path
) -> None:
    uninterrupted = rounds(study_with(sampler()), 6)
    begun = study_with(sampler(), storage=storage(tmp_path), study_name="s")
    assert rounds(begun, 4) == uninterrupted[:4]
    resumed = optuna.load_study(
        study_name="s", storage=storage(tmp_path), sampler=sampler()
    )
    assert rounds(resumed, 2) == uninterrupted[4:]


@pytest.mark.slow
def test_another_process_goes_on(tmp_path: Path) -> None:
    uninterrupted = rounds(study_with(sampler()), 5)
    begun = study_with(sampler(), storage=sqlite(tmp_path), study_name="s")
    rounds(begun, 4)
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import optuna, test_optuna as t
study = optuna.load_study(
    study_name="s", storage={sqlite(tmp_path)!r}, sampler=t.sampler()
)
print(t.rounds(study, 1))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(uninterrupted[4:])


def test_a_late_outcome_by_the_number_of_its_trial(tmp_path: Path) -> None:
    study = study_with(sampler(), storage=sqlite(tmp_path), study_name="s")
    study.ask(SPACE)
    tell(study, 0, {"c": 4.0})
    tell(study, 0, {"c": 4.0}, value=-1.0)
    assert study.trials[0].user_attrs == {"c": 4.0}
    assert study.trials[0].state == TrialState.COMPLETE
    with pytest.raises(InputDataError, match="no trial 1 among"):
        tell(study, 1, {"c": 4.0})


def test_an_enqueued_decision_is_taken_and_counts() -> None:
    study = study_with(sampler(hyperparameters=None))
    study.enqueue_trial({"a": 0.5, "b": 0.0})
    assert rounds(study, 1) == [{"a": 0.5, "b": 0.0}]
    without = study_with(sampler(hyperparameters=None))
    assert rounds(study, 3) != rounds(without, 4)[1:]


def test_the_seed_decides_and_nothing_else() -> None:
    chosen = [sampler(hyperparameters=None, seed=seed) for seed in (0, 1)]
    copy = pickle.loads(pickle.dumps(chosen[0]))
    first, same, other = (
        rounds(study_with(each), 4) for each in (chosen[0], copy, chosen[1])
    )
    assert first == same
    assert all(a != b for a, b in zip(first, other, strict=True))


@pytest.mark.slow
def test_every_kind_of_number_and_names() -> None:
    """The same as an optimizer of a space with these kinds."""
    contexts = {"load": FloatDistribution(1e-2, 1e2, log=True)}
    space = {
        "rate": FloatDistribution(1e-4, 1.0, log=True),
        "width": IntDistribution(1, 64, log=True),
        "size": IntDistribution(2, 20, step=2),
        "share": FloatDistribution(0.0, 1.0, step=0.25),
        "method": CategoricalDistribution(["fast", None]),
    }
    weeks = torch.tensor([[0.1], [1.0], [10.0]], dtype=torch.double)
    chosen = RobustSampler(
        contexts,
        "wdrbo",
        search_space=space,
        num_initial=3,
        reference=ContextSet(weeks),
        **QUICK,
    )
    study = study_with(chosen, direction="minimize")
    named = Space(
        {
            "rate": Log(1e-4, 1.0),
            "width": Continuous(0.0, math.log(64.0)),
            "size": Ordinal(range(2, 21, 2)),
            "share": Ordinal([0.0, 0.25, 0.5, 0.75, 1.0]),
            "method": Category(["fast", "None"]),
        },
        {"load": Log(1e-2, 1e2)},
    )
    reference = ContextSet(weeks.log())
    opt = NamedOptimizer("wdrbo", named, maximize=False, reference=reference, **QUICK)
    for load in (0.1, 1.0, 10.0, 1.0, 0.5):
        trial = study.ask(space)
        params = trial.params
        assert all(
            space[n]._contains(space[n].to_internal_repr(v)) for n, v in params.items()
        )
        assert isinstance(params["size"], int) and isinstance(params["width"], int)
        y = (math.log(params["rate"]) + 4.0) ** 2 + (params["size"] / 9.0 - load) ** 2
        tell(study, trial, {"load": load}, y)
        row = {**params, "width": math.log(params["width"])}
        row["method"] = str(row["method"])
        opt.tell(row, {"load": load}, y, closes_pending=False)
    best = recommend(study)
    row = {**best.params, "width": math.log(best.params["width"])}
    row["method"] = str(row["method"])
    theirs = opt.recommend(candidates=pd.DataFrame([row]))
    # Both search for the worst distribution, and from different starts.
    assert best.worst_case_value == pytest.approx(theirs.worst_case_value, rel=1e-4)
    low, high = best.expected_interval
    assert low < best.expected_value < high
    low, high = best.worst_case_interval
    assert low < best.worst_case_value < high
    assert best.expected_value == pytest.approx(theirs.expected_value, rel=1e-6)
    assert best.details.contexts["load"].between(1e-2, 1e2).all()
    assert f"rate = {best.params['rate']:.4g}" in str(best)


def test_a_context_of_names() -> None:
    contexts = {"weather": CategoricalDistribution(["sun", "rain"])}
    space = {"ice": FloatDistribution(0.0, 1.0)}
    chosen = RobustSampler(
        contexts,
        "dro",
        search_space=space,
        num_initial=5,
        ambiguity_set=FullSimplex(),
        **QUICK,
    )
    study = study_with(chosen)
    for weather in ("sun", "sun", "rain", "sun", "rain", "sun"):
        trial = study.ask(space)
        ice = trial.params["ice"]
        tell(study, trial, {"weather": weather}, ice if weather == "sun" else -ice)
    assert recommend(study).params["ice"] < 0.1
    assert recommend(study, {"weather": "sun"}).params["ice"] > 0.9
    with pytest.warns(InputDataWarning, match="'weather' of trial 6 must be one of"):
        tell(study, study.ask(space), {"weather": "snow"}, 0.0)


def test_without_a_search_space_the_first_trial_is_random_then_all_are_modelled() -> (
    None
):
    study = study_with(sampler(search_space=None))
    assert rounds(study, 4) == rounds(study_with(sampler(search_space=None)), 4)
    a, b = (study.trials[0].params[name] for name in SPACE)
    assert a != pytest.approx((b + 1.0) / 2.0)  # not the same draw twice
    assert "botorch_drbo:a" not in study.trials[0].system_attrs
    assert "botorch_drbo:a" in study.trials[1].system_attrs
    trial = study.ask()
    with pytest.raises(UnsupportedError, match=r"'extra'.*leaves none to chance"):
        trial.suggest_float("extra", 0.0, 1.0)


def test_a_parameter_with_one_value_is_no_dimension() -> None:
    space = {"a": FloatDistribution(0.0, 1.0), "one": IntDistribution(3, 3)}
    study = study_with(sampler("erbo", search_space=None))
    for _ in range(3):
        trial = study.ask(space)
        tell(study, trial, {"c": 1.0}, trial.params["a"])
    assert trial.params["one"] == 3
    assert list(recommend(study).params) == ["a"]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((CONTEXTS, "wdrboo"), {}, InputDataError, "Did you mean `wdrbo`"),
        ((CONTEXTS,), {"radios": 1.0}, InputDataError, "Did you mean `radius`"),
        ((CONTEXTS,), {"maximize": False}, InputDataError, "host's own problem"),
        ((CONTEXTS,), {"seed": -1}, InputDataError, "`seed`"),
        ((CONTEXTS,), {"outside": "drop"}, InputDataError, "'raise', 'skip' or 'clip'"),
        (({},), {}, InputDataError, "`contexts` must be a dictionary"),
        (
            ({"w": CategoricalDistribution(["sun", "rain"])}, "wdrbo"),
            {},
            UnsupportedError,
            "`wdrbo` needs contexts that are numbers",
        ),
        (
            (CONTEXTS,),
            {"search_space": {"k": (0.0, 1.0)}},
            UnsupportedError,
            "`search_space` has 'k', a tuple",
        ),
        (
            (CONTEXTS,),
            {"search_space": {"c": FloatDistribution(0, 1)}},
            InputDataError,
            r"\['c'\] are parameters and contexts",
        ),
        (
            (CONTEXTS,),
            {"reference": ContextSet(torch.tensor([[11.0]]).double())},
            InputDataError,
            "`reference`.*11",
        ),
        (
            (CONTEXTS,),
            {"reference": ContextSet(torch.rand(3, 2).double())},
            BotorchTensorDimensionError,
            r"`reference` must have 1 columns, \['c'\]",
        ),
    ],
)
def test_what_is_refused_at_construction(
    arguments: tuple, options: dict, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        RobustSampler(*arguments, **options)


def test_several_objectives_are_refused() -> None:
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler())
    with pytest.raises(UnsupportedError, match="2 objectives"):
        study.ask(SPACE)


def test_constraints_are_refused() -> None:
    study = study_with(sampler())
    trial = study.ask(SPACE)
    trial.set_constraint("cost", 1.0)
    tell(study, trial, {"c": 1.0}, 0.0)
    with pytest.raises(UnsupportedError, match="Trial 0 has constraints"):
        study.ask(SPACE)


def test_tell_refuses_and_records_nothing() -> None:
    study = study_with(sampler(outside="raise"))
    trial = study.ask(SPACE)
    for context, value, message in [
        ({"d": 1.0}, 0.0, "no context 'd'"),
        ({}, 0.0, r"\['c'\] are missing"),
        ({"c": 11.0}, 0.0, "'c' of this context must lie between 0 and 10"),
        ({"c": "warm"}, 0.0, "must be a finite number"),
        ({"c": float("nan")}, 0.0, "must be a finite number"),
        ({"c": 1.0}, float("inf"), "value must be a finite number"),
        ({"c": 1.0}, 1e200, "cannot be modelled"),
    ]:
        with pytest.raises(InputDataError, match=message):
            tell(study, trial, context, value)
    assert study.trials[0].state == TrialState.RUNNING
    assert study.trials[0].user_attrs == {}


UNUSABLE = [11.0, -1.0, math.nan, math.inf, None, "warm", [1.0], True, "nothing"]


def shown(trial: optuna.Trial, c: object) -> None:
    if c != "nothing":
        trial.set_user_attr("c", c)


@pytest.mark.parametrize(
    ("c", "by_hand"), [(c, i % 2 == 0) for i, c in enumerate(UNUSABLE)], ids=str
)
def test_a_trial_with_an_unusable_context_counts_as_failed(
    c: object, by_hand: bool, tmp_path: Path
) -> None:
    """The study goes on, and asks what it asks after a trial that failed."""
    study = study_with(sampler("erbo"), storage=sqlite(tmp_path), study_name="s")
    rounds(study, 3)
    with pytest.warns(InputDataWarning, match=r"'?c'?.* of trial 3|trial 3 has no"):
        if by_hand:
            context = {} if c == "nothing" else {"c": c}
            tell(study, study.ask(SPACE), context, 5.0)
        else:
            study.optimize(lambda trial: objective_with(trial, c), n_trials=1)
    failed = study_with(sampler("erbo"))
    rounds(failed, 3)
    failed.tell(failed.ask(SPACE), state=TrialState.FAIL)
    again = optuna.load_study(
        study_name="s", storage=sqlite(tmp_path), sampler=sampler("erbo")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)
        assert rounds(again, 1) == rounds(failed, 1)


def objective_with(trial: optuna.Trial, c: object) -> float:
    for name, values in SPACE.items():
        assert isinstance(values, FloatDistribution)
        trial.suggest_float(name, values.low, values.high)
    shown(trial, c)
    return 5.0


@pytest.mark.parametrize(("c", "end"), [(11.0, 10.0), (-1, 0.0)])
def test_a_context_is_clipped_where_asked(c: float, end: float) -> None:
    clipped, at_end = study_with(sampler(outside="clip")), study_with(sampler())
    for study, context in ((clipped, c), (at_end, end)):
        rounds(study, 3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tell(study, study.ask(SPACE), {"c": context}, -1.0)
        warned = [str(w.message) for w in caught if w.category is InputDataWarning]
        assert warned == (
            [
                f"'c' of trial 3 must lie between 0 and 10, got {c:g}. Correct it, or "
                f"widen the bounds. It is taken as {end:g}."
            ]
            if study is clipped
            else []
        )
    assert rounds(clipped, 2) == rounds(at_end, 2)
    assert clipped.trials[3].user_attrs == {"c": c}  # the record stays as it was


@pytest.mark.parametrize("c", [math.nan, math.inf, None, "warm", "nothing"], ids=str)
def test_what_has_no_end_of_the_range_is_skipped_where_others_are_clipped(
    c: object,
) -> None:
    study = study_with(sampler(outside="clip"))
    trial = study.ask(SPACE)
    shown(trial, c)
    with pytest.warns(InputDataWarning, match="counts as failed"):
        study.tell(trial, 5.0)


def test_an_unusable_context_known_before_is_left_out() -> None:
    study = study_with(sampler())
    rounds(study, 3)
    trial = study.ask()
    trial.set_user_attr("c", 99.0)
    with pytest.warns(InputDataWarning, match="'c' of trial 3 must lie between"):
        trial.suggest_float("a", 0.0, 1.0)
    unknown = study_with(sampler())
    rounds(unknown, 3)
    assert unknown.ask(SPACE).params["a"] == trial.params["a"]


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e200])
def test_an_outcome_that_cannot_be_modelled_counts_as_failed_and_its_context_counts(
    value: float,
) -> None:
    study, failed = study_with(sampler()), study_with(sampler())
    for one in (study, failed):
        rounds(one, 3)
    with pytest.warns(InputDataWarning, match="outcome of trial 3"):
        tell(study, study.ask(SPACE), {"c": 9.0}, value)
    tell(failed, failed.ask(SPACE), {"c": 9.0}, state=TrialState.FAIL)
    assert rounds(study, 2) == rounds(failed, 2)


def test_what_is_wrong_is_said_once_by_each_sampler_and_of_each_study() -> None:
    chosen = sampler("random")
    studies = [study_with(chosen), study_with(chosen)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for study in studies:
            tell(study, study.ask(SPACE), {"c": 99.0}, 1.0)
            rounds(study, 3)
        studies[0].sampler = sampler("random")  # as after load_study
        rounds(studies[0], 2)
    assert ["'c' of trial 0" in str(w.message) for w in caught] == [True] * 3


def test_an_outcome_without_its_context_is_refused_at_once_where_asked() -> None:
    study = study_with(sampler(outside="raise"))
    trial = study.ask(SPACE)
    trial.set_user_attr("C", 1.0)
    with pytest.raises(InputDataError, match=r"trial 0 has no \['c'\].*\['C'\]"):
        study.tell(trial, 0.0)
    with pytest.raises(InputDataError, match=r"The outcome of trial 0 has no \['c'\]"):
        study.ask(SPACE)
    study.sampler = sampler()  # the same study by the other rule
    with pytest.warns(InputDataWarning, match="counts as failed"):
        assert set(study.ask(SPACE).params) == set(SPACE)


def test_a_trial_outside_the_search_space_counts_as_failed_or_is_refused() -> None:
    study = study_with(sampler())
    wide = {"a": FloatDistribution(0, 9), "b": SPACE["b"]}
    study.add_trial(
        optuna.create_trial(
            params={"a": 5.0, "b": 0.0},
            distributions=wide,
            value=0.0,
            user_attrs={"c": 1.0},
        )
    )
    for outside in ("skip", "clip"):
        study.sampler = sampler(outside=outside)
        with pytest.warns(InputDataWarning, match="'a' of trial 0 must lie between"):
            run = study.sampler._run(
                study, Columns(SPACE, "search_space"), study.trials, 1
            )
        assert not run.ledger.standing.complete
        assert list(run.ledger.standing.seen) == [0]
    study.sampler = sampler(outside="raise")
    with pytest.raises(InputDataError, match="'a' of trial 0 must lie between 0 and 1"):
        study.ask(SPACE)


def test_trials_with_nothing_in_common_are_not_left_to_chance() -> None:
    study = study_with(sampler(search_space=None))
    for name in SPACE:
        trial = study.ask({name: SPACE[name]}) if name == "a" else study.ask()
        if name == "b":
            with pytest.raises(UnsupportedError, match=r"'b'.*leaves none to chance"):
                trial.suggest_float("b", -1.0, 1.0)
            continue
        tell(study, trial, {"c": 1.0}, 0.0)
    study.add_trial(
        optuna.create_trial(
            params={"b": 0.0},
            distributions={"b": SPACE["b"]},
            value=0.0,
            user_attrs={"c": 1.0},
        )
    )
    with pytest.raises(UnsupportedError, match=r"'a'.*leaves none to chance"):
        study.ask({"a": SPACE["a"]})


def test_recommend_refuses() -> None:
    with pytest.raises(InputDataError, match="No trial is complete"):
        recommend(study_with(sampler(search_space=None)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = optuna.create_study(sampler=optuna.samplers.GPSampler())
    with pytest.raises(InputDataError, match="sampler is a GPSampler"):
        recommend(other)
    study = study_with(sampler())
    rounds(study, 2)
    with pytest.raises(InputDataError, match="no context 'demand'"):
        recommend(study, {"demand": 1.0})
