"""Runs in tensors: the loop, what is known of a round, questions about a state."""

from __future__ import annotations

import json
import tempfile
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import torch
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo import ContextSet, RobustOptimizer, Space
from botorch_drbo.ambiguity import KullbackLeibler, TotalVariation
from tests.transcripts.transcript import Answers, refused, run
from tests.transcripts.worlds import (
    BOUNDS,
    CONTEXT_BOUNDS,
    FORECAST,
    KNOWN,
    ONE,
    contexts,
    decisions,
    informed,
    optimizer,
    outcome,
    rounds,
    spread,
    tell_some,
)


@run
def rounds_one_by_one() -> Answers:
    opt = optimizer("wdrbo_exact")
    yield from rounds(opt, 6)
    yield "recommend", opt.recommend()
    yield "recommend at another level", opt.recommend(level=0.5).worst_case_interval
    yield "history", opt.history
    yield "table", opt.table()
    yield "trials", opt.trials
    yield "repr", repr(opt)


@run
def the_default_model_and_recipe_of_tables_in_tensors() -> Answers:
    opt = informed("wdrbo_exact", hyperparameters=None)
    yield from rounds(opt, 1)
    yield "recommend", opt.recommend()
    yield "predict", opt.predict(decisions(3, 20), contexts(3, 20))


@run
def batches_that_end_in_another_order() -> Answers:
    opt = optimizer("erbo")
    for begin in (0, 3):
        x, c = opt.ask(3), contexts(3, begin)
        yield "ask", x
        opt.tell(x[[2, 0]], c[[2, 0]])  # the contexts come first
        yield "pending", opt.pending
        one_more = opt.ask()
        yield "ask meanwhile", one_more
        y = outcome(x, c)
        opt.tell(x[[1]], c[[1]], y[[1]])
        opt.tell(x[[0]], c[[0]], y[0].item())
        yield "pending", opt.pending
        opt.tell(one_more, c[:1], outcome(one_more, c[:1]))
        opt.tell(x[[2]], c[[2]], y[[2]])
    yield "recommend", opt.recommend()
    yield "table", opt.table()


@run
def rows_that_nearly_match() -> Answers:
    opt = optimizer("random")
    x, c = opt.ask(4), contexts(4)
    opt.tell(x[0] + 1e-7, c[0], 1.0)  # the rounding of a file
    yield "rounded", opt.table()
    opt.tell(x[2] * 0.9, c[2], 2.0)  # executed elsewhere
    yield "the nearest", opt.table()
    opt.tell(decisions(1, 9), c[1:2], 3.0, closes_pending=False)
    yield "from elsewhere", opt.table()
    opt.tell(torch.stack([x[3], x[1]]), c[[3, 3]], torch.tensor([4.0, 5.0]).double())
    opt.tell(x[3], c[3], 6.0)  # a repetition
    yield "two at once, and a repetition", opt.table()
    yield "pending", opt.pending
    opt.tell(x[0], c[1])
    opt.tell(x[0], c[1], 7.0)
    yield "the context before", opt.table()
    equal = opt.ask(2)
    opt.tell(equal[:1], c[:1])
    opt.tell(equal[:1], c[1:2])
    opt.tell(equal[:1], c[1:2], 8.0)
    yield "one decision, two contexts", opt.table()
    a, b = opt.ask(2)
    opt.tell(torch.stack([a + 1e-3 * (b - a), a + 1e-7]), c[:2], b[:2].unsqueeze(-1))
    yield "the rounded one first", opt.table()
    a, b = opt.ask(2)
    opt.withdraw(opt.trials[-2].number)
    opt.tell(a, c[2], 9.0)
    yield "cancelled, and executed after all", opt.table()


@run
def failed_and_withdrawn_trials() -> Answers:
    opt = optimizer("wdrbo", num_initial=2)
    yield from rounds(opt, 2)
    x, c = opt.ask(3), contexts(3, 4)
    opt.tell(x[0], c[0], failed=True, error="too hot")
    opt.tell(x[1], None, failed=True)
    opt.withdraw(4)
    yield "trials", opt.trials
    yield "errors", [trial.error for trial in opt.trials]
    yield "ask", opt.ask()
    opt.withdraw(0)
    yield "pending again", opt.pending
    yield "recommend", opt.recommend()
    opt.tell(opt.pending[0], contexts(1)[0], 0.5)
    opt.withdraw(2)
    yield "table", opt.table()
    yield "ask", opt.ask()
    yield "twice", refused(lambda: opt.withdraw(4))
    opt.tell(x[2], c[2], 0.1)  # it was executed after all
    yield "table", opt.table()


@run
def contexts_that_are_known() -> Answers:
    opt = informed("wdrbo_exact")
    known = torch.tensor([10.4, torch.nan], dtype=torch.double)
    everything = torch.tensor([11.5, 3.0], dtype=torch.double)
    for context in (known, everything):
        yield "ask", (x := opt.ask(context=context))
        seen = torch.where(context.isnan(), contexts(1, 8)[0], context)
        opt.tell(x[0], seen, outcome(x, seen.unsqueeze(0)))
        yield "recommend", opt.recommend(context=context)
    yield "profile", opt.robustness_profile(x[0], context=known)
    both = torch.stack([known, everything])
    yield "policy", opt.policy(both)
    yield "policy by a forecast", opt.policy(both, context_set=FORECAST, radius=0.05)
    asked = opt.ask(2, context=known)
    opt.tell(asked[1], torch.tensor([11.9, 0.1]).double(), 0.3)  # another one came
    only = decisions(1, 20)
    for context in (known, everything):
        opt.ask(actions=only, context=context)
    opt.tell(only, everything.unsqueeze(0), 0.4)
    yield "trials", opt.trials[-4:]
    listed = torch.cat([asked, only])  # `asked` waits for another context
    yield "of the list", [opt.ask(2, listed, context=c) for c in (everything, known)]


@run
def forecasts_of_a_round() -> Answers:
    opt = informed("dro")
    yield "ask", opt.ask(context_set=FORECAST)
    yield "ask by a radius", opt.ask(context_set=FORECAST, radius=0.6)
    yield "preview", opt.preview(2, context_set=FORECAST, radius=0.6)
    yield "recommend", opt.recommend(context_set=FORECAST, radius=0.6)
    yield "check", opt.check(context_set=FORECAST)
    yield "profile", opt.robustness_profile(decisions(1)[0], context_set=FORECAST)
    yield "trials", opt.trials[-2:]


@run
def radii_of_a_round() -> Answers:
    opt = informed("wdrbo_exact", radius=0.1)
    by_column = {"c1": 0.3, "c2": 1.0}
    radii: list[Any] = [0.02, "spread", "sd", by_column]
    for radius in radii:
        yield f"ask {radius}", opt.ask(radius=radius)
    yield "recommend by column", (best := opt.recommend(radius=by_column))
    yield "profile", opt.robustness_profile(best.x, radius=by_column, target=0.5)
    yield "own", opt.recommend()


@run
def contexts_that_are_chosen() -> Answers:
    opt = optimizer("wdrbo_exact", reference=FORECAST, radius=0.1)
    for _ in range(5):
        x, c = opt.ask(choose_context=True)
        yield "ask", [x, c]
        opt.tell(x, c, outcome(x, c))
    x, c = opt.ask(2, choose_context=True, context_set=FORECAST, radius=0.3)
    yield "two", [x, c]
    opt.tell(x[1], c[0], 0.2)
    yield "trials", opt.trials[-2:]
    yield "recommend", opt.recommend()
    learning = informed("wdrbo_exact")
    x, c = learning.ask(choose_context=True, context_set=FORECAST)
    learning.tell(x, c, outcome(x, c))
    yield "not seen", [x, c, learning.ask()]


@run
def a_joint_design() -> Answers:
    opt = optimizer("sbo_kde", num_contexts=16, initial_design="sobol_joint")
    for t in range(5):
        x = opt.ask()
        wanted = opt.design_contexts(x)
        yield "ask", [x, wanted]
        c = torch.where(wanted.isnan(), contexts(1, t), wanted)
        opt.tell(x, c, outcome(x, c))
    yield "recommend", opt.recommend()


@run
def actions_and_candidates() -> Answers:
    opt = informed("wdrbo", num_initial=0)
    actions, listed = decisions(6, 30), decisions(8, 40)
    yield "actions", (x := opt.ask(2, actions=actions))
    other = refused(lambda: opt.tell(listed[0], contexts(1)[0], 0.0))
    yield "another", other
    opt.tell(actions[[5]], contexts(1), 0.3)
    opt.tell(x[:1], contexts(1, 2), 0.1)
    yield "trials", opt.trials[-2:]
    yield "candidates", opt.ask(3, listed)
    yield "candidates again", opt.ask(3, listed)
    yield "too many", refused(lambda: opt.ask(9, listed))
    yield "recommend", opt.recommend(listed)
    design = optimizer("erbo")
    yield "in the design", design.ask(2, actions=actions)
    yield "in the design", design.ask(2, listed)


@run
def measured_constraints() -> Answers:
    opt = optimizer("wdrbo_exact", feasibility=0.8)
    x, c = decisions(8), contexts(8)
    limits = torch.cat([1.5 - x[:, :1] + 0.3 * (c[:, :1] - 11), x[:, 1:] - 0.1], -1)
    opt.tell(x[:6], c[:6], outcome(x[:6], c[:6]), constraints=limits[:6])
    opt.tell(x[6], c[6], failed=True, constraints=limits[6])
    opt.tell(x[7], c[7], 0.1)
    yield "ask", (asked := opt.ask(2))
    yield "recommend", opt.recommend()
    opt.tell(asked[0], c[0], 0.3, constraints=torch.tensor([0.2, -0.1]).double())
    yield "ask", opt.ask()
    yield "listed", opt.recommend(decisions(5, 40))
    yield "history", opt.history
    yield "table", opt.table()
    strict = tell_some(
        optimizer("dro", feasibility=0.999),
        constraints=torch.full((7, 1), -1.0).double(),
    )
    yield "nothing is feasible", strict.recommend()
    yield "ask", strict.ask()


@run
def an_outcome_to_minimise() -> Answers:
    opt = optimizer("wdrbo_exact", maximize=False)
    yield from rounds(opt, 5)
    yield "recommend", (best := opt.recommend())
    yield "profile", opt.robustness_profile(best.x, decisions(1)[0], target=0.9)
    yield "check", opt.check()
    yield "predict", opt.predict(best.x, contexts(2))
    yield "compare", opt.compare(["erbo", "wdrbo_exact"], shifts={"c1": 0.4})
    yield "history", opt.history.Y


@run
def noise_that_is_known() -> Answers:
    opt = optimizer("erbo", hyperparameters=None, **ONE)
    variance = torch.linspace(0.01, 0.2, 7, dtype=torch.double)
    tell_some(opt, y_variance=variance)
    x = opt.ask()
    yield "ask", x
    opt.tell(x, contexts(1, 3), 0.4, y_variance=0.05)
    yield "without", refused(lambda: opt.tell(x, contexts(1, 3), 0.4))
    yield "recommend", opt.recommend()
    yield "table", opt.table()
    yield "check", opt.check()


@run
def an_error_of_execution() -> Answers:
    box = torch.tensor([[-0.2, -0.05], [0.2, 0.05]], dtype=torch.double)
    errors = ContextSet(box[0] + spread(9, 2) * (box[1] - box[0]))
    opt = RobustOptimizer(
        "dro",
        BOUNDS,
        box,
        **ONE,
        perturbation=True,
        num_initial=2,
        reference=errors,
        ambiguity_set=TotalVariation(0.4),
    )
    x, c = decisions(6), errors.points[:6]
    opt.tell(x, c, outcome(x + c, contexts(1)))
    yield "ask", (asked := opt.ask())
    opt.tell(asked, c[:1], 0.3)
    yield "recommend", opt.recommend()
    yield "predict", opt.predict(x[:2] + 0.01, c[:2] - 0.01)
    yield "ask", opt.ask(2)


@run
def contexts_that_are_forgotten_or_given() -> Answers:
    forgetful = informed("wdrbo_exact", half_life=2.0)
    yield "forgetting", forgetful.ask()
    yield "recommend", forgetful.recommend()
    given = informed("wdrbo_exact", reference=FORECAST)
    yield "reference", given.ask()
    yield "recommend", given.recommend()
    yield "check", given.check().unseen_columns


@run
def methods_compared() -> Answers:
    opt = informed("wdrbo_exact", radius=0.1)
    shifts = {"up": {"c1": 0.3, "c2": -0.2}, "news": FORECAST}
    yield (
        "compare",
        opt.compare(
            ["erbo", "wdrbo_exact", "dro"],
            shifts=shifts,
            radii=[0.2, {"c1": 0.5}],
            clip=0.3,
            level=0.8,
        ),
    )
    yield "defaults", opt.compare()
    yield "from a forecast", opt.compare(["wdrbo", "gp_ucb"], context_set=FORECAST)
    yield "out of bounds", refused(lambda: opt.compare(shifts={"c1": 3.0}))
    yield "unchanged", opt.ask()


@run
def what_is_asked_about_a_state() -> Answers:
    opt = informed("wdrbo_exact", hyperparameters=None, **ONE)
    yield "check", opt.check()
    best = opt.recommend()
    yield "profile", opt.robustness_profile(best.x, decisions(1)[0], target=0.2)
    radii = torch.tensor([0.0, 0.1, 0.7], dtype=torch.double)
    for ball in (KullbackLeibler(0.1), TotalVariation(0.0)):
        profile = opt.robustness_profile(best.x, radii=radii, ambiguity_set=ball)
        yield f"profile, {type(ball).__name__}", profile
    yield "preview", opt.preview(2)
    yield "predict", opt.predict(decisions(3), contexts(1)[0])
    points = torch.cat([decisions(3, 50), contexts(3, 50)], dim=-1)
    yield "model", opt.model.posterior(points).mean
    yield "ask", opt.ask(2)
    yield "ask", opt.ask()


class AtOnce:
    """An executor whose work is done before it returns."""

    def submit(self, function: Any, *arguments: Any) -> Future:
        future: Future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


def evaluated(x: Tensor, c: Tensor | None = None) -> Any:
    if x[0] > 1.5:
        raise ValueError("too hot")
    seen = contexts(1, int(100 * abs(x[1])))[0] if c is None else c
    y = outcome(x.unsqueeze(0), seen.unsqueeze(0)).item()
    return (seen, y) if c is None else y


@run
def a_function_that_is_evaluated() -> Answers:
    opt = optimizer("wdrbo", num_initial=4)
    over: list[Any] = []
    opt.run(evaluated, 5, executor=AtOnce(), parallel=2, callback=over.append)
    yield "over", over
    opt.ask()
    opt.run(evaluated, total=7, executor=AtOnce(), choose_context=False)
    yield "table", opt.table()
    last = [t.error and t.error.strip().splitlines()[-1] for t in opt.trials]
    yield "errors", last
    laboratory = optimizer("erbo", reference=FORECAST)
    laboratory.run(evaluated, 5, executor=AtOnce(), choose_context=True)
    yield "chosen", laboratory.table()


@run
def resumed_in_the_middle() -> Answers:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        with optimizer("ts_bocu", journal=path, num_features=64) as opt:
            yield from rounds(opt, 4)
            x = opt.ask(2, actions=decisions(5, 30), context_set=FORECAST)
            opt.tell(x[1], contexts(1, 4)[0])
            opt.withdraw(1)
        state = json.loads(json.dumps(opt.state_dict()))
        for again in (
            RobustOptimizer.resume(path, bounds=BOUNDS, context_bounds=CONTEXT_BOUNDS),
            RobustOptimizer.from_state_dict(state),
        ):
            yield "pending", again.pending
            yield "table", again.table()
            yield from rounds(again, 2, begin=5)
            yield "recommend", again.recommend()
            again.close()


def fitted(
    train_X: Tensor, train_Y: Tensor, train_Yvar: Tensor | None, bounds: Tensor
) -> SingleTaskGP:
    return SingleTaskGP(train_X, train_Y)


@run
def a_model_of_ones_own() -> Answers:
    opt = informed("erbo", hyperparameters=None, model=fitted)
    yield "ask", opt.ask()
    yield "recommend", opt.recommend()
    again = RobustOptimizer.from_state_dict(opt.state_dict(), model=fitted)
    yield "ask", again.ask()


@run
def single_precision() -> Answers:
    opt = RobustOptimizer(
        "wdrbo_exact", BOUNDS.float(), CONTEXT_BOUNDS.float(), num_initial=2, **KNOWN
    )
    for t in range(4):
        x, c = opt.ask(), contexts(1, t).float()
        yield "ask", x
        opt.tell(x, c, outcome(x, c))
    yield "recommend", opt.recommend().x


@run
def refusals_in_tensors() -> Answers:
    opt = informed("wdrbo_exact")
    x, c = decisions(2), contexts(2)
    make = partial(RobustOptimizer, bounds=BOUNDS, context_bounds=CONTEXT_BOUNDS)
    questions: dict[str, Any] = {
        "name": lambda: make("wdrbo_exakt"),
        "option": lambda: make("wdrbo", radios=1.0),
        "space": lambda: RobustOptimizer("wdrbo", Space({"x": (0, 1)}, {"c": (0, 1)})),  # type: ignore[arg-type]
        "bounds": lambda: RobustOptimizer("wdrbo", BOUNDS[0], CONTEXT_BOUNDS),
        "q": lambda: opt.ask(0),
        "both lists": lambda: opt.ask(1, x, actions=x),
        "outside": lambda: opt.tell(x + 9.0, c, 1.0),
        "NaN": lambda: opt.tell(x, c, torch.nan),
        "shape": lambda: opt.tell(x[:, :1], c, 1.0),
        "rows": lambda: opt.tell(x, c[:1], torch.ones(3).double()),
        "integers": lambda: opt.tell(x.long(), c, 1.0),
        "failed with an outcome": lambda: opt.tell(x, c, 1.0, failed=True),
        "no context": lambda: opt.tell(x, None, 1.0),
        "limits without an outcome": lambda: opt.tell(x, c, constraints=1.0),
        "radius": lambda: opt.ask(radius=-1.0),
        "column": lambda: opt.ask(radius={"c3": 1.0}),
        "context": lambda: opt.ask(context=torch.tensor([99.0, 1.0]).double()),
        "chosen and known": lambda: opt.ask(context=c[0], choose_context=True),
        "chosen without a reference": lambda: opt.ask(choose_context=True),
        "level": lambda: opt.recommend(level=1.5),
        "nothing yet": lambda: optimizer("erbo").recommend(),
        "no such trial": lambda: opt.withdraw(99),
        "policy": lambda: opt.policy(c[0]),
        "decisions alone": lambda: informed("gp_ucb").ask(context=c[0]),
        "random": lambda: informed("random").robustness_profile(x[0]),
        "method": lambda: opt.compare(["erbo", "nothing"]),
        "state": lambda: RobustOptimizer.from_state_dict({}),
    }
    for what, ask in questions.items():
        yield what, refused(ask)
    yield "nothing was recorded", opt.table()
