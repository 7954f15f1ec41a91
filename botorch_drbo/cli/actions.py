"""What each command does, once its options are read; one problem or many."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pandas as pd
import torch
import typer
from botorch.exceptions.errors import InputDataError

from botorch_drbo._validation import check_new_file, did_you_mean, finite_number
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.cli.answers import (
    check_format,
    draw,
    in_digits_of,
    of_check,
    of_comparison,
    of_recommendation,
    rounding_of,
    with_decisions_in_digits,
    words_of,
)
from botorch_drbo.cli.columns import parse_at, parse_shift
from botorch_drbo.cli.csv_file import CsvFile, as_values, in_digits, in_full, lines_of
from botorch_drbo.cli.init import as_script, written
from botorch_drbo.cli.options import EXAMPLES, NAME, Options, PlateOptions
from botorch_drbo.cli.problem import Problem, beside, check_column, read_problem
from botorch_drbo.cli.terminal import answer, say, show
from botorch_drbo.execution.engine import Executor
from botorch_drbo.execution.processes import Returned
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.optimizer.comparison import METHODS
from botorch_drbo.optimizer.evaluations import shown_progress
from botorch_drbo.optimizer.groups import (
    check_group,
    check_outcomes,
    each_group,
    reasons,
)
from botorch_drbo.posterior.mixture import posterior_of_expectation
from botorch_drbo.recommendation.promise import LEVEL, shown
from botorch_drbo.recommendation.recommendation import interval_words
from botorch_drbo.report import write_report
from botorch_drbo.report.findings import TrialGain, movement, result_or_reason
from botorch_drbo.space import Space
from botorch_drbo.space.table import to_frame

_FAILED = 1  # the exit status if a group has


def check_workers(group: str | None, workers: int | None, dask: str | None) -> None:
    """Raise if the options of workers contradict each other or lack --group."""
    if workers is not None and dask is not None:
        raise InputDataError("Got --workers and --dask. Leave one out.")
    if group is None and (workers is not None or dask is not None):
        name = "--workers" if dask is None else "--dask"
        raise InputDataError(
            f"{name} needs --group with the column that names the groups."
        )


def _rows_by_group(
    problem: Problem,
    group: str,
    q: int,
    given: Mapping[str, Any],
    workers: int | None,
    dask: str | None,
) -> tuple[list[dict[str, str]], dict[str, str]]:
    """The new rows of each group of a file, and why a group has none."""
    file, space = problem.file, problem.space
    check_column(group, file)
    measured = (space.outcome, problem.description.status, *problem.limits)
    check_group(group, (*space.decisions, *space.contexts, *measured), "--group")
    words = file.column(group)
    lines: dict[str, list[tuple[int, list[str]]]] = {}
    for number, cells in file.lines:
        if not words[number]:
            raise InputDataError(
                f"{file.path}, line {number}, column `{group}`: is empty. Say to which "
                "group the row belongs."
            )
        lines.setdefault(words[number], []).append((number, cells))
    if not lines:
        raise InputDataError(f"{file.path} has no rows, so there are no groups.")
    empty = replace(problem, file=replace(file, lines=[], content=b""))
    with ExitStack() as stack:
        executor, parallel = None, workers or 1
        if dask is not None:
            executor, parallel = _client(dask, stack)
        advance = stack.enter_context(
            shown_progress(sys.stderr.isatty(), len(lines), "groups")
        )
        outcomes = each_group(
            partial(_rows_of_group, empty, q, given),
            lines,
            parallel=parallel,
            executor=executor,
            done=lambda name, failed: advance(failed),
        )
    rows: list[dict[str, str]] = []
    for name, outcome in outcomes.items():
        if isinstance(outcome, Returned):
            found: Any = outcome.value
            rows += [{group: name, **row} for row in found]
    return rows, reasons(outcomes)


def _client(address: str, stack: ExitStack) -> tuple[Executor, int]:
    """A client of a dask scheduler, and how many calls it makes at once."""
    try:
        from distributed import Client
    except ImportError as error:
        raise InputDataError("--dask needs dask: `pip install distributed`.") from error
    try:
        client = stack.enter_context(Client(address, timeout=10))
    except (OSError, ValueError) as error:
        raise InputDataError(
            f"No dask scheduler answers at {address!r}: {error}. Start `dask "
            "scheduler` and `dask worker`."
        ) from error
    threads = cast(dict[str, int], client.nthreads())
    return client, max(1, sum(threads.values()))


def _rows_of_group(
    problem: Problem,
    q: int,
    given: Mapping[str, Any],
    lines: Sequence[tuple[int, list[str]]],
) -> list[dict[str, str]]:
    """The new rows of a group with these lines, in whichever process."""
    problem = replace(problem, file=replace(problem.file, lines=list(lines)))
    opt = problem.optimizer()
    check_outcomes(opt, len(lines))
    return _new_rows(problem, opt, q, given)


def _new_rows(
    problem: Problem, opt: NamedOptimizer, q: int, given: Mapping[str, Any]
) -> list[dict[str, str]]:
    """The next decisions as they are written, with contexts if these are chosen."""
    file, space, pending = problem.file, problem.space, opt.pending
    asked = opt.ask(q, **given)
    x, contexts = asked if isinstance(asked, tuple) else (asked, None)
    # A decision has one form, in however many contexts it is tried.
    each = x if contexts is None else x.drop_duplicates()
    taken = pending if contexts is None else pending.iloc[:0]
    if given.get("candidates") is None:
        words = in_digits(each, taken, file, space)
    else:
        words = in_full(each)  # other digits would be another decision
    if contexts is None:
        return words
    form = dict(zip(each.itertuples(index=False, name=None), words, strict=True))
    rows = zip(x.itertuples(index=False, name=None), in_full(contexts), strict=True)
    return [{**form[decision], **context} for decision, context in rows]


def _values(row: Mapping[str, str], space: Space) -> dict[str, str | float | int]:
    """What a new row says of decisions and contexts, as JSON has it."""
    variables = {**space.decisions, **space.contexts}
    return as_values({k: v for k, v in row.items() if k in variables}, variables)


_EACH = 3  # of the 25 radii of a profile is shown


def example(name: str, overwrite: bool) -> None:
    """Write a table of the package, and say how to go on."""
    if name not in EXAMPLES:
        raise InputDataError(
            f"There is no example `{name}`.{did_you_mean(name, EXAMPLES)} Choose one "
            f"of {', '.join(EXAMPLES)}."
        )
    path = Path(f"{name}.csv")
    _check_free(path, overwrite, has_out=False)
    path.write_bytes((Path(__file__).parent / "examples" / path).read_bytes())
    what, columns, decided, tried = EXAMPLES[name]
    say(f"{path}: {what} What to do from now on:\n")
    say(f"  botorch-drbo recommend {path} {columns} {decided}".rstrip() + "\n")
    say("What to try next, appended to the file:\n")
    say(f"  botorch-drbo suggest {path} {columns} {tried}".rstrip())


def init(
    data: Path,
    decisions: list[str] | None,
    contexts: list[str] | None,
    outcome: str | None,
    minimize: bool | None,
    limit: list[str] | None,
    scope: str | None,
    out: Path | None,
    python: bool,
    overwrite: bool,
    json: bool,
) -> None:
    """Write problem.toml, and a script."""
    path = data.parent / NAME if out is None else out
    new = [path, path.with_suffix(".py")][: 1 + python]
    for each in new:
        _check_free(each, overwrite)
    file = CsvFile.read(data)
    text = written(
        file,
        decisions=decisions,
        contexts=contexts,
        outcome=outcome,
        minimize=minimize,
        limits=limit or (),
        scope=scope,
        folder=path.parent,
    )
    path.write_text(text, encoding="utf-8")
    if python:
        new[1].write_text(as_script(read_problem(path, file), file), encoding="utf-8")

    def tell() -> None:
        say(text.rstrip("\n"))
        files = " and ".join(map(str, new))
        say(f"\nWrote {files}. Correct what is guessed in it, above all the bounds.")

    answer({"problem": str(path)}, as_json=json, text=tell)


def suggest(
    options: Options,
    plate: PlateOptions,
    forecast: Path | None,
    known: list[str] | None,
    q: int,
    dry_run: bool,
    group: str | None,
    workers: int | None,
    dask: str | None,
) -> None:
    """Append decisions to the file."""
    data = options.data
    check_workers(group, workers, dask)
    failures: dict[str, str] = {}
    with nullcontext() if dry_run else CsvFile.locked(data, _waiting):
        problem = _problem(options)
        given = {**problem.this_round(forecast, known), **problem.plate(plate)}
        if group is None:
            rows = _new_rows(problem, problem.optimizer(), q, given)
        else:
            rows, failures = _rows_by_group(problem, group, q, given, workers, dask)
        if not dry_run:
            problem.file.append(rows)
    answer(
        {
            "suggested": [
                {k: row[k] for k in row if k == group} | _values(row, problem.space)
                for row in rows
            ],
            **({} if group is None else {"failures": failures}),
            "appended_to": None if dry_run else str(data),
        },
        as_json=options.json,
        text=lambda: (
            show(rows, "Suggested" if dry_run else f"Appended to {data}")
            if rows
            else None
        ),
    )
    if failures:
        say(f"No decision for {len(failures)} groups:", "red", error=True)
        for name, why in failures.items():
            say(f"{name}: {why}", error=True)
        raise typer.Exit(_FAILED)


def recommend(
    options: Options,
    forecast: Path | None,
    known: list[str] | None,
    level: float | None,
) -> None:
    """Show the decision to implement."""
    problem, opt = _with_outcomes(options)
    this_round = problem.this_round(forecast, known)
    best = opt.recommend(**this_round, level=LEVEL if level is None else level)
    best = best.with_check(lambda check: check.by_lines(problem.lines))
    proposed = result_or_reason(lambda: opt.preview(1, **this_round))
    trial = TrialGain.of(opt, best, proposed)
    file, space = problem.file, problem.space
    document, text = (
        of_recommendation(best, file, space),
        in_digits_of(best, file, space),
    )
    lines = [str(text)]
    if trial is not None and not isinstance(proposed, str):
        document["another_trial"] = {"gain": trial.gain, "spread": trial.spread}
        tried = rounding_of(file, space)(proposed, opt.pending)
        width = len(lines[0]) - len(lines[0].removeprefix("decision").lstrip())
        lines.append(f"{'another trial':<{width}}{trial.words(best.outcome, tried)}")
    answer(document, as_json=options.json, text=lambda: say("\n".join(lines)))


def check(options: Options, forecast: Path | None) -> None:
    """Show how well the model predicts."""
    problem, opt = _with_outcomes(options)
    found = opt.check(context_set=problem.this_round(forecast)["context_set"])
    found = found.by_lines(problem.lines)
    answer(of_check(found), as_json=options.json, text=lambda: say(str(found)))


def compare(
    options: Options,
    methods: list[str] | None,
    shift: list[str] | None,
    forecast: Path | None,
) -> None:
    """Show what the methods are expected to earn."""
    problem, opt = _with_outcomes(options)
    radius, own = problem.description.radius, opt.algorithm.adversary
    found = opt.compare(
        methods or METHODS,
        shifts=dict(map(parse_shift, shift or ())),
        # The worst distribution is known of a Wasserstein ball alone.
        radii=[radius] if radius and isinstance(own, WassersteinBall) else (),
        context_set=problem.this_round(forecast)["context_set"],
        clip=problem.description.clip or 0.0,
    )
    found = with_decisions_in_digits(found, problem.file, problem.space)
    answer(
        of_comparison(found, problem.space),
        as_json=options.json,
        text=lambda: say(str(found)),
    )


def predict(
    options: Options,
    rows: Path | None,
    at: list[str] | None,
) -> None:
    """Show the predictions for given rows."""
    problem, opt = _with_outcomes(options)
    variables = {**problem.space.decisions, **problem.space.contexts}
    if (rows is None) == (not at):
        raise InputDataError(
            "Name what to predict: --rows FILE, with all decisions and contexts, or "
            f"one row, --at {' '.join(f'{name}=VALUE' for name in variables)}."
        )
    if rows is None:
        words, values = parse_at(at or (), variables)
        cells, table = [words], pd.DataFrame([values], dtype=object)
        found = opt.predict(table, table)
    else:
        file = CsvFile.read(rows)
        if not file.lines:
            raise InputDataError(f"{rows} has no rows, so there is nothing to predict.")
        with lines_of(rows):
            table = file.frame(variables)
            found = opt.predict(table, table)
        columns = {name: list(file.column(name).values()) for name in variables}
        cells = [
            dict(zip(columns, row, strict=True))
            for row in zip(*columns.values(), strict=True)
        ]
    moments = found.iloc[:, -2:].to_dict("records")
    printed = [
        {**row, **{str(name): shown(value) for name, value in pair.items()}}
        for row, pair in zip(cells, moments, strict=True)
    ]
    document = [
        {**as_values(row, variables), **pair}
        for row, pair in zip(cells, moments, strict=True)
    ]
    answer(
        {"outcome": problem.space.outcome, "rows": document},
        as_json=options.json,
        text=lambda: show(printed, f"Predicted {problem.space.outcome}"),
    )


def profile(
    options: Options,
    forecast: Path | None,
    known: list[str] | None,
    target: float | None,
) -> None:
    """Show the worst case by radius."""
    if target is not None:
        finite_number(target, "--target")
    problem, opt = _with_outcomes(options)
    file, space = problem.file, problem.space
    this_round = problem.this_round(forecast, known)
    best = opt.recommend(**this_round)
    if best.decided_for:
        raise InputDataError(
            f"A profile is by the radius of a ball, and `--objective "
            f"'{best.decided_for}'` has none. Leave it out, or give a --radius instead."
        )
    try:
        found = opt.robustness_profile(best.x, target=target, **this_round)
    except InputDataError as error:  # what was asked has passed `recommend`
        raise InputDataError(
            f"`{opt.algorithm.name}` has no radius above zero, so there is "
            "no profile. Choose an --algorithm with one, such as wdrbo_exact, or give "
            "it a --radius NAME=SIZE above zero."
        ) from error
    moved_by = movement(opt, None) or (lambda size: shown(size, 3))
    pairs = zip(found.radii.tolist(), found.values.tolist(), strict=True)
    lines = [(size, moved_by(size), value) for size, value in pairs][::_EACH]
    promise, belief = best.promise, found.belief
    if promise is None or belief is None:
        raise RuntimeError("The profile of a model states what it believes.")
    widened = belief.widened(promise.widening or 1.0)
    beliefs = [widened[i] for i in range(len(found.radii))][::_EACH]
    outcome = space.outcome
    decision = in_digits_of(best, file, space).x.iloc[0].to_dict()

    def tell() -> None:
        words = ", ".join(f"{name} = {word}" for name, word in decision.items())
        printed = [
            {
                "the contexts move by": text,
                f"worst-case {outcome}": shown(value),
                f"{LEVEL:.0%} interval": interval_words(part, LEVEL),
            }
            for (_, text, value), part in zip(lines, beliefs, strict=True)
        ]
        show(printed, f"If the contexts move, {words} is expected to be worth")
        say(f"The intervals are {promise.words()}.")
        if target is not None and found.falls_below is None:
            say(f"By the posterior mean it reaches {target:g} in each line.")
        elif target is not None and found.falls_below == 0.0:
            say(
                f"By the posterior mean it does not reach {target:g}, even if nothing "
                "moves."
            )
        elif target is not None and found.falls_below is not None:
            say(
                f"By the posterior mean it misses {target:g} from "
                f"{moved_by(found.falls_below)} on."
            )

    document = {
        "decision": as_values(decision, space.decisions),
        "outcome": outcome,
        "expected": found.expected_value,
        "target": target,
        "level": LEVEL,
        "falls_below": found.falls_below,
        "rows": [
            {
                "radius": size,
                "moves": text,
                "worst_case": value,
                "interval": list(part.interval(LEVEL)),
            }
            for (size, text, value), part in zip(lines, beliefs, strict=True)
        ],
    }
    answer(document, as_json=options.json, text=tell)


def plot(
    options: Options,
    forecast: Path | None,
    known: list[str] | None,
    out: Path | None,
    overwrite: bool,
) -> None:
    """Draw the outcomes so far."""
    path = out or options.data.with_suffix(".png")
    _check_free(path, overwrite)
    check_format(path)
    problem, opt = _with_outcomes(options)
    best = opt.recommend(**problem.this_round(forecast, known))
    draw(opt.history, in_digits_of(best, problem.file, problem.space), path)
    answer(
        {"picture": str(path)},
        as_json=options.json,
        text=lambda: say(f"Wrote {path}"),
    )


def report(
    options: Options,
    forecast: Path | None,
    q: int,
    level: float | None,
    out: Path | None,
    overwrite: bool,
    watch: bool,
) -> None:
    """Write the HTML page, again whenever the file changes if it is watched."""
    path = options.data.with_suffix(".html") if out is None else out
    _check_free(path, overwrite)
    _written_page(options, forecast, q, level, path)
    read = [options.data, options.problem or beside(options.data)]
    seen = _contents(read)
    while watch:
        time.sleep(_WAIT)
        if (now := _contents(read)) == seen:
            continue
        seen = now
        try:
            _written_page(options, forecast, q, level, path)
        except InputDataError as error:  # half written: the next change may mend it
            say(f"Error: {error}", "red", error=True)


_WAIT = 1.0  # seconds between two looks at a file


def _contents(paths: Sequence[Path]) -> list[bytes]:
    return [path.read_bytes() for path in paths if path.exists()]


def _written_page(
    options: Options, forecast: Path | None, q: int, level: float | None, path: Path
) -> None:
    problem, opt = _with_outcomes(options)
    write_report(
        opt,
        path,
        context_set=problem.this_round(forecast)["context_set"],
        level=LEVEL if level is None else level,
        q=q,
        source=options.data.name,
        limits=problem.description.limits,
        rounded=rounding_of(problem.file, problem.space),
        lines=problem.lines,
        progress=sys.stderr.isatty(),
    )
    answer(
        {"report": str(path)},
        as_json=options.json,
        text=lambda: say(f"Wrote {path}"),
    )


_NEAR = 0.1  # of the bounds of a number: a row that differs by less is near
_LIMITS = (
    "`by all rows` is what the model of all rows expects in the contexts of the later "
    "ones: it learnt from the rows that it judges. `later rows near it` are within 10% "
    "of the bounds of each number and of the same names: they met contexts of their "
    "own, and a few say little. One cut of one table is no proof that a method is "
    "better."
)


def backtest(options: Options, first: int | None, methods: list[str] | None) -> None:
    """Show what would have been recommended, and how it went."""
    problem, opt = _with_outcomes(options)
    lines, space, outcome = problem.file.lines, opt.space, problem.space.outcome
    n = len(lines) // 2 if first is None else first
    known, later = (
        replace(problem, file=replace(problem.file, lines=part)).optimizer()
        for part in (lines[:n], lines[n:])
    )
    past, after = known.tensors.history, later.tensors.history
    if not len(after.Y):
        raise InputDataError(
            f"None of the {len(lines)} rows after the first {n} has an outcome, so "
            "there is nothing to judge by. Give a smaller --first."
        )
    check = result_or_reason(opt.check)
    then = known.compare(methods or METHODS)
    best = int((past.Y if opt.maximize else -past.Y).argmax())
    decisions = torch.cat([then.decisions, past.X[best : best + 1]])
    expected = [*then.values.mean[:, 0].tolist(), past.Y[best].item()]
    tables = to_frame(decisions, problem.space.decisions)
    widening = 1.0 if isinstance(check, str) else check.widening or 1.0
    named = [*space.categories]
    document: list[dict[str, Any]] = []
    for i, x in enumerate(decisions):
        weights = torch.full_like(after.C[:, 0], 1.0 / len(after.C))
        belief = posterior_of_expectation(opt.tensors.model, x, after.C, weights)
        belief = belief.widened(widening)
        belief = belief if opt.maximize else belief.mirrored()
        gaps = (after.X - x).abs() / (space.bounds[1] - space.bounds[0])
        gaps[:, named] = (gaps[:, named] > 0.0).to(gaps)
        near = after.Y[(gaps <= _NEAR).all(-1)]
        decision = words_of(tables.iloc[[i]], problem.file, problem.space)
        document.append(
            {
                "method": [*then.methods, "best row so far"][i],
                **as_values(decision, problem.space.decisions),
                "expected_then": expected[i],
                "by_all_rows": belief.mean.item(),
                "interval": list(belief.interval(LEVEL)),
                "near": len(near),
                "near_mean": near.mean().item() if len(near) else None,
                "words": {
                    **decision,
                    "expected then": shown(expected[i]),
                    "by all rows": f"{shown(belief.mean.item())} ({LEVEL:.0%}: "
                    f"{interval_words(belief, LEVEL)})",
                    "later rows near it": f"{shown(near.mean().item())} in {len(near)}"
                    if len(near)
                    else "none",
                },
            }
        )
    printed = [{"method": row["method"], **row.pop("words")} for row in document]

    def tell() -> None:
        show(
            printed,
            f"{outcome}: what {n} of {len(lines)} rows said, and what came",
        )
        say(_LIMITS)

    found = {"first": n, "later": len(after.Y), "outcome": outcome, "rows": document}
    answer(found, as_json=options.json, text=tell)


def _problem(options: Options) -> Problem:
    problem = Problem.parse(options)
    for note in problem.notes:
        say(note, "dim", error=True)
    return problem


def _with_outcomes(options: Options) -> tuple[Problem, NamedOptimizer]:
    """The problem, and an optimizer that knows its rows and their outcomes."""
    problem = _problem(options)
    opt = problem.optimizer()
    problem.check_outcomes()
    return problem, opt


def _check_free(path: Path, overwrite: bool, *, has_out: bool = True) -> None:
    """Refuse to write over a file, or where none can be."""
    check_new_file(path, "--out")
    if path.exists() and not overwrite:
        raise InputDataError(
            f"{path} already exists. Use --overwrite to replace it"
            + (", or --out to choose another name." if has_out else ".")
        )


def _waiting() -> None:
    say("Waiting for another `suggest` on this file ...", "dim", error=True)
