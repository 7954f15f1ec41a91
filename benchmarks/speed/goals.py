"""What an answer costs against other ways and other questions, and what it should.

Each case takes the same rows to both sides, in one process on one thread, and returns
processor seconds, ours first.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import truediv
from pathlib import Path

import pandas as pd
import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.objective import ExpectationPosteriorTransform
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import AppendFeatures
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from rich.console import Console

from benchmarks.run.display import working
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import machine
from benchmarks.speed.contexts import Question
from benchmarks.speed.iterations import make_history
from benchmarks.speed.rows import factorisation
from benchmarks.speed.tables import Section, report_sections, show
from benchmarks.speed.timing import busy, digits, seconds
from botorch_drbo import NamedOptimizer, RobustOptimizer, Space
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.problem.round import ConstraintData
from botorch_drbo.recipes import Recipe, make_recipe
from botorch_drbo.report import write_report

_NUM_CONTEXTS = 32  # over which BoTorch's way takes the expectation
_PLATE = 32  # decisions

_TINY: Mapping[str, object] = {
    "num_restarts": 1,
    "raw_samples": 8,
    "surrogate": "botorch",
}

Pair = tuple[float, float]
"""Processor seconds of two sides."""


def against_optuna(t: int, seed: int, **options: object) -> Pair:
    """A default ask, and one of Optuna's ``GPSampler`` of all inputs, fits included."""
    import optuna

    history, space = make_history(t, seed)
    low, high = space.joint_bounds.tolist()
    names = [f"z{j}" for j in range(len(low))]
    ranges: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(*ends)
        for name, *ends in zip(names, low, high, strict=True)
    }
    rows = torch.cat([history.X, history.C], -1).tolist()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=1)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for row, value in zip(rows, history.Y.flatten().tolist(), strict=True):
        params = dict(zip(names, row, strict=True))
        study.add_trial(
            optuna.create_trial(params=params, distributions=ranges, value=value)
        )
    ours = told(t, seed, **options)
    return cpu(ours.ask), cpu(lambda: study.ask(ranges))


def against_botorch(t: int, seed: int, **options: object) -> Pair:
    """A default ask, and BoTorch's way: expectation over 32 contexts, qLogNEI."""
    return cpu(told(t, seed, **options).ask), cpu(lambda: _botorch_ask(t, seed))


def recommend_over_ask(t: int, seed: int, **options: object) -> Pair:
    """A recommendation right after an ask, and that ask."""
    ours = told(t, seed, **options)
    asked = cpu(ours.ask)
    return cpu(ours.recommend), asked


def printed_over_ask(t: int, seed: int, **options: object) -> Pair:
    """The same, printed: the intervals are read, for which five folds are fitted."""
    ours = told(t, seed, **options)
    asked = cpu(ours.ask)
    return cpu(lambda: str(ours.recommend())), asked


def plate_over_one(t: int, seed: int, **options: object) -> Pair:
    """An ask for a plate, and one for a single decision, of the same table."""
    history, space = make_history(t, seed)
    made = default(**options)
    plate = cpu(lambda: made.propose(history, space, q=_PLATE, seed=seed))
    return plate, cpu(lambda: made.propose(history, space, seed=seed))


def mixed_over_box(t: int, seed: int, **options: object) -> Pair:
    """An ask for three decisions of a number, a whole one and a category, with a limit.

    And one in a box of as many columns without a limit, of the same rows.
    """
    generator = torch.Generator().manual_seed(seed)
    X, C = torch.rand(2, t, 3, generator=generator).double()
    steps, C = torch.tensor([1.0, 9.0, 4.0]).double(), C[:, :1]
    rows = torch.cat([X[:, :1], (steps * X)[:, 1:].round()], -1)
    X = rows / steps
    Y = (4.0 * X[:, 0] + 2.0 * C[:, 0]).sin() - (X[:, 1] - 0.4).square()
    Y = Y + 0.3 * torch.cos(5.0 * X[:, 2])
    Y = (Y + 0.05 * torch.randn(t, generator=generator).double()).unsqueeze(-1)
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    limit = ConstraintData(rows, C, X[:, :1] + 0.5 * X[:, 1:2] + C - 0.8)
    kinds = SearchSpace(steps * unit, unit, discrete={1: range(10)}, categories={2: 5})
    told = History(X=rows, C=C, Y=Y, contexts=C, constraints=limit)
    made, box = default(**options), SearchSpace(unit.expand(2, 3), unit)
    mixed = cpu(lambda: made.propose(told, kinds, q=3, seed=seed))
    told = History(X=X, C=C, Y=Y, contexts=C)
    return mixed, cpu(lambda: made.propose(told, box, q=3, seed=seed))


def report_over_recommend(t: int, seed: int, **options: object) -> Pair:
    """A report, and a recommendation by another optimizer that was told the same."""
    history, space = make_history(t, seed)
    (low, high), names = space.joint_bounds.tolist(), ["a", "b", "c"]
    ranges = dict(zip(names, zip(low, high, strict=True), strict=True))
    context = {"c": ranges.pop("c")}
    rows = [pd.DataFrame(part) for part in (history.X, history.C, history.Y)]

    def made() -> NamedOptimizer:
        found = NamedOptimizer(default(**options), Space(ranges, context), seed=seed)
        decisions, contexts, outcomes = rows
        decisions.columns, contexts.columns = names[:2], names[2:]
        found.tell(decisions, contexts, outcomes[0].tolist())
        return found

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        report = cpu(lambda: write_report(made(), path))
    return report, cpu(lambda: str(made().recommend()))


def in_factorisations(question: Question, seed: int) -> Pair:
    """An answer, and a factorisation of a matrix of as many rows as outcomes."""
    unit = factorisation(question.t, 3)
    took = question.seconds(seed)
    return took, statistics.mean([unit, factorisation(question.t, 3)])


def default(**options: object) -> Recipe:
    """The recipe whose answers are timed."""
    return make_recipe("wdrbo_exact").with_options(**options)


def told(t: int, seed: int, **options: object) -> RobustOptimizer:
    """A run that was told random rows of Ackley 2+1."""
    history, space = make_history(t, seed)
    found = RobustOptimizer(
        default(**options),
        bounds=space.bounds,
        context_bounds=space.context_bounds,
        num_initial=0,
        seed=seed,
    )
    found.tell(history.X, history.C, history.Y)
    return found


def cpu(function: Callable[[], object]) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def _botorch_ask(t: int, seed: int) -> None:
    history, space = make_history(t, seed)
    box = space.joint_bounds
    unit = (torch.cat([history.X, history.C], -1) - box[0]) / (box[1] - box[0])
    d_x = space.d_x
    # Drawn with replacement: as many at every number of outcomes.
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(t, [_NUM_CONTEXTS], generator=generator)
    appended = AppendFeatures(feature_set=unit[rows, d_x:])
    model = SingleTaskGP(unit, history.Y, input_transform=appended)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    acqf = qLogNoisyExpectedImprovement(
        model,
        X_baseline=unit[:, :d_x],
        posterior_transform=ExpectationPosteriorTransform(n_w=_NUM_CONTEXTS),
    )
    ends = torch.tensor([[0.0], [1.0]]).to(unit).expand(2, d_x)
    optimize_acqf(acqf, ends, q=1, num_restarts=10, raw_samples=1024)


@dataclass(frozen=True)
class Goal:
    """What is measured, the most it should come to, and what it came to before."""

    what: str
    case: Callable[[bool, int], Pair]  # tiny or not, and the seed
    at_most: float
    before: str
    result: Callable[[float, float], float] = truediv


def _after(case: Callable[..., Pair], t: int) -> Callable[[bool, int], Pair]:
    """A case after so many outcomes."""
    return lambda tiny, seed: case(5, seed, **_TINY) if tiny else case(t, seed)


def _both(measured: Question, against: Question) -> Callable[[bool, int], Pair]:
    """Two questions in turn."""

    def case(tiny: bool, seed: int) -> Pair:
        ours = _shown(measured, tiny).seconds(seed)
        return ours, _shown(against, tiny).seconds(seed)

    return case


def _factorised(question: Question) -> Callable[[bool, int], Pair]:
    return lambda tiny, seed: in_factorisations(_shown(question, tiny), seed)


def _shown(question: Question, tiny: bool) -> Question:
    if not tiny:
        return question
    given, levels = min(question.given // 100, 8), min(question.levels, 3)
    t = 4 + question.t // 100
    return replace(question, t=t, given=given, levels=levels, effort=(8, 2))


def exponent(many: float, few: float, growth: float = 10.0) -> float:
    """The power of the number of outcomes by which the time grows."""
    return math.log(many / few) / math.log(growth)


_Q = partial(Question, "recommend")
GOALS = (
    Goal("ask / Optuna's GPSampler, t = 15", _after(against_optuna, 15), 1.5, "3.4"),
    Goal("ask / Optuna's GPSampler, t = 100", _after(against_optuna, 100), 2.5, "5.9"),
    Goal("ask / BoTorch's way, t = 15", _after(against_botorch, 15), 0.12, ".16"),
    Goal("ask / BoTorch's way, t = 100", _after(against_botorch, 100), 0.12, ".22"),
    Goal("ask / BoTorch's way, t = 300", _after(against_botorch, 300), 0.12, ".89"),
    Goal("recommend / ask, t = 15", _after(recommend_over_ask, 15), 1.5, "3.2"),
    Goal("recommend / ask, t = 100", _after(recommend_over_ask, 100), 1.5, "2.5"),
    Goal("recommend / ask, t = 300", _after(recommend_over_ask, 300), 1.5, "1.3"),
    Goal("recommend, printed / ask, t = 15", _after(printed_over_ask, 15), 1.5, "3.2"),
    Goal(
        "recommend, printed / ask, t = 100", _after(printed_over_ask, 100), 1.5, "2.5"
    ),
    Goal(
        "recommend, printed / ask, t = 300", _after(printed_over_ask, 300), 1.5, "1.3"
    ),
    Goal(
        "ask / factorisation, t = 1,000",
        _factorised(Question("ask", 1000)),
        600.0,
        "2,360",
    ),
    Goal("recommend / factorisation, t = 1,000", _factorised(_Q(1000)), 600.0, "1,700"),
    Goal(
        "2,048 / 256 given contexts, ask, t = 100",
        _both(Question("ask", 100, given=2048), Question("ask", 100, given=256)),
        3.0,
        "83",
    ),
    Goal(
        "2,048 / 256 given contexts, recommend, t = 100",
        _both(_Q(100, given=2048), _Q(100, given=256)),
        3.0,
        "",
    ),
    Goal(
        "category of 30 and a number / the number, recommend, t = 60",
        _both(_Q(60, levels=30), _Q(60)),
        4.0,
        "51",
    ),
    Goal(
        "five context columns / one, recommend, t = 60",
        _both(_Q(60, d_c=5), _Q(60)),
        2.5,
        "6",
    ),
    Goal("plate of 32 / one, t = 40", _after(plate_over_one, 40), 8.0, "130"),
    Goal(
        "mixed columns and a limit, ask(3) / the same in a box, t = 40",
        _after(mixed_over_box, 40),
        5.0,
        "",
    ),
    Goal("report / recommend, t = 40", _after(report_over_recommend, 40), 10.0, ""),
    Goal(
        "power of t by which an ask grows, 100 to 1,000",
        _both(Question("ask", 1000), Question("ask", 100)),
        1.2,
        "1.6",
        exponent,
    ),
)
_MISSED = "[red]missed[/red]"


def run_goals(out: Path, *, repeats: int, quick: bool) -> int:
    """Measure, print the table, write it to ``out`` as Markdown and beside it as CSV.

    Returns:
        The exit status, 0: a slow machine is not an error.
    """
    console, load = Console(), busy()
    rows, lines = [], []
    with one_thread(), working(console, "what answers cost"):
        for goal in GOALS:
            if not quick:
                goal.case(True, 0)  # what is done once in a process
            pairs = [goal.case(quick, seed) for seed in range(repeats)]
            ours, other = zip(*pairs, strict=True)
            result = statistics.median(goal.result(*pair) for pair in pairs)
            met = result <= goal.at_most
            times = [statistics.median(ours), statistics.median(other)]
            lines.append([goal.what, *times, result, goal.at_most, goal.before, met])
            verdict = "met" if met else _MISSED
            sides = [seconds(ours), seconds(other)]
            limit, found = f"{goal.at_most:g}", digits(result)
            rows.append([goal.what, *sides, found, limit, goal.before, verdict])
    section = Section(
        title="Goals",
        text="The default ask and recommendation (`wdrbo_exact`, ensemble), fits "
        "included; decisions in two columns, contexts in one where no other number "
        f"is said. Processor seconds on one thread, medians of {repeats} data sets. "
        "*Before*: what was measured when the goals were set, on another machine; "
        "there BoTorch's way, by a script that was not kept, took two to six times "
        "as long.",
        head=["what", "measured", "against", "ratio", "at most", "before", ""],
        rows=rows,
    )
    show(console, section)
    head = ["what", "seconds", "against", "ratio", "at_most", "before", "met"]
    table = pd.DataFrame(lines, columns=head).assign(machine=machine())
    out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(out.with_suffix(".csv"), index=False, float_format="%.4g")
    about = (
        "**Tiny sizes, to see that it runs: the times mean nothing.** "
        * quick
        + f"`python -m benchmarks speed goals{' --quick' * quick} --repeats "
        f"{repeats}`. {machine()}. {load}"
    )
    red = '<span style="color: red">missed</span>'
    shown = [[*row[:-1], row[-1].replace(_MISSED, red)] for row in rows]
    section = replace(section, rows=shown)
    report_sections(console, out, [section], title="What answers cost", about=about)
    return 0
