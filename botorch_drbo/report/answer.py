"""What to do: the recommended decision, its predicted values, and the next trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botorch_drbo._validation import counted
from botorch_drbo.plotting.model import plot_slice
from botorch_drbo.plotting.robustness import plot_price
from botorch_drbo.plotting.scope import draw_contexts, draw_decisions
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.recommendation.model_check import (
    FEW_OUTCOMES,
    ModelCheck,
    know_nothing,
    percent,
)
from botorch_drbo.recommendation.moved_contexts import moved_words
from botorch_drbo.recommendation.promise import interval_words, share_words, shown
from botorch_drbo.recommendation.recommendation import row_words
from botorch_drbo.report.findings import Findings
from botorch_drbo.report.markup import (
    Markup,
    disclosed,
    figure,
    joined,
    paragraphs,
    rough,
    table,
    tag,
)
from botorch_drbo.space import Category, NamedRecommendation

if TYPE_CHECKING:
    import pandas as pd


_WORDS = ((0.8, "good"), (0.5, "fair"), (0.3, "weak"), (-float("inf"), "poor"))


def grade(check: ModelCheck) -> str:
    """One sentence: good, fair, weak or poor, and the share that is explained.

    The words of both ends of its interval are said too: of few rows they differ.
    """
    t, share = len(check.outcomes), check.explained
    if t < FEW_OUTCOMES:
        return f"The model {know_nothing(t)}."
    if share != share:
        return "All outcomes are equal: the model has nothing to explain."
    low, word, high = (
        next(word for least, word in _WORDS if end >= least)
        for end in (check.explained_interval[0], share, check.explained_interval[1])
    )
    others = " or ".join(end for end in dict.fromkeys((low, high)) if end != word)
    word += f", perhaps {others}" if others else ""
    explained = check.share_of("the differences between outcomes that it has not seen")
    return f"The model is {word}: it {explained}."


def verdict(check: ModelCheck) -> str:
    """The grade, the scale of it, and how many intervals missed."""
    t = len(check.outcomes)
    if t < FEW_OUTCOMES:
        return f"{grade(check)} What follows says little yet."
    return (
        f"{grade(check)} From 80% it is called good, from 50% fair, from 30% weak, "
        f"below that poor. The outcomes of {check.num_outside} of {t} rows lie outside "
        "their 95% "
        f"interval; about {0.05 * t:.2g} should."
    )


def slices_section(found: Findings) -> Markup:
    """The expected outcome along each decision variable, the others fixed."""
    best, space = found.best, found.optimizer.named_space
    drawn, lines = [], []
    for part, (name, variable) in zip(
        found.slices, space.decisions.items(), strict=True
    ):
        mean = part.mean[part.allowed]
        drop = (mean.max() - mean.min()).item()
        lines.append((drop, name))
        names = isinstance(variable, Category)
        mark, bar = ("dot", "bar") if names else ("line", "band")
        words = (
            f"{name}: the {mark} is the expected {best.outcome}, the {bar} its "
            f"{part.level:.0%} interval, the square the recommended decision."
        )
        if not bool(part.allowed.all()):
            words += " Values that the constraints forbid are left out."
        drawn.append(
            figure(
                lambda ax, part=part, variable=variable, name=name: plot_slice(
                    part, variable, ax, name=name, outcome=best.outcome
                ),
                words,
            )
        )
    lines.sort(reverse=True)
    first = (
        f"Moved alone, {lines[0][1]} changes the expected {best.outcome} most by the "
        f"model's mean, by {rough(lines[0][0])}. "
    )
    if len(lines) == 1:
        drop, name = lines[0]
        first = (
            f"From its worst to its best value {name} changes the expected "
            f"{best.outcome} by {rough(drop)}, by the model's mean. "
        )
    rest = ", ".join(f"{name} by {rough(drop)}" for drop, name in lines[1:])
    limited = "" if best.feasibility is None else ", or to meet the measured limits"
    return joined(
        tag(
            "p",
            first
            + (f"The others: {rest}. " if rest else "")
            + "The true differences may be larger or smaller, as the intervals of the "
            "pictures say.",
        ),
        tag(
            "p",
            "Each picture moves one decision and leaves the others as recommended; the "
            "outcome is averaged over the expected contexts. A recommended decision "
            "that is not the best of its picture gives up some of the mean for the "
            f"worst case{limited}.",
        ),
        tag("div", *drawn, class_="figures"),
    )


def scope_section(found: Findings) -> Markup:
    """The decision on each context, beside the leading others."""
    scope = found.scope
    if scope is None:
        raise RuntimeError("A page without a list of contexts has no such section.")
    height = 1.4 + 0.22 * len(scope.contexts)
    dots = f"A dot for each {scope.names[0]}, the best on top, with its interval."
    heat = (
        f"What is expected of the leading decisions on each {scope.names[0]}; the "
        "first is the recommended one."
    )
    recommended = ", ".join(map(shown, found.best.x.iloc[0].tolist()))
    rows = list(enumerate([recommended, *scope.decisions[1:]], 1))
    return joined(
        tag("p", scope.words()),
        figure(lambda ax: draw_contexts(scope, ax), dots, height),
        figure(lambda ax: draw_decisions(scope, ax), heat, height),
        table(["decision", scope.names[1]], rows),
    )


_NUM_CONTEXTS = 5
_LEAST_GAIN = 1e-3  # of the weight: a smaller share is not shown
_LEAST_EXPLAINED, _MOST_UNSEEN = 0.3, 0.05


def decision_section(found: Findings) -> Markup:
    """The decision, both of its values with intervals, and what may be wrong."""
    best = found.best
    names = [str(name) for name in best.x.columns]
    chosen = [shown(best.x[name].tolist()[0]) for name in names]
    expected, worst = _intervals(best)
    values = [
        _card(f"Expected {best.outcome}", shown(best.expected_value), expected),
        _card(f"Worst-case {best.outcome}", shown(best.worst_case_value), worst),
    ]
    if best.decided_for:
        share = share_words(best.objective) if _is_share(best) else ""
        name = best.decided_for if share else f"{best.outcome}, {best.decided_for}"
        note = "expected" if share else worst
        value = share or shown(best.worst_case_value)
        values[1] = _card(name[:1].upper() + name[1:], value, note)
    check, details = best.model_check, _how_found(best)
    is_new = (best.num_outcomes or 0) < FEW_OUTCOMES  # of which a warning speaks
    return joined(
        *(tag("p", text, class_="lead") for text in [*_caveats(found), _lead(found)]),
        tag("div", *map(_card, names, chosen), class_="cards"),
        tag("div", *values, class_="cards values"),
        *(tag("p", text, class_="warning") for text in warnings(found)),
        paragraphs("" if check is None or is_new else grade(check), _limits(found)),
        paragraphs(*_insured(best)),
        paragraphs(_meaning(found)),
        *([] if best.worlds else [_that_hurt(best)]),
        *([disclosed("How this was found", paragraphs(*details))] if details else []),
    )


def warnings(found: Findings) -> list[str]:
    """What a reader has to know before believing the numbers."""
    best, check = found.best, found.best.model_check
    texts = []
    if best.num_outcomes is not None and best.num_outcomes < FEW_OUTCOMES:
        texts.append(
            f"The model {know_nothing(best.num_outcomes)}. Take the decision as a "
            "guess, and try more before you rely on it."
        )
    elif check is None:
        texts.append("The model could not be checked against its own data.")
    elif check.explained < _LEAST_EXPLAINED:
        texts.append(
            "The model predicts hardly better than the mean of all outcomes. Do not "
            "rely on the decision before more was tried."
        )
    if best.feasible is False:
        texts.append(
            "No decision was found that meets the measured limits with the required "
            "probability: this one comes nearest."
        )
    if check is not None and check.unseen > _MOST_UNSEEN:
        texts.append(
            f"{check.unseen:.0%} of the expected contexts lie outside those that have "
            "an outcome: there the model guesses."
        )
    if best.moved:
        words = moved_words(best.moved)
        texts.append(f"{words[:1].upper()}{words[1:]}.")
    return texts


def next_section(found: Findings) -> Markup:
    """The pending trials, and what to try after them."""
    pending, proposed = found.optimizer.pending, found.next_decisions
    parts = []
    if len(pending):
        has = "has" if len(pending) == 1 else "have"
        text = (
            f"{counted(len(pending), 'decision')} {has} no outcome yet. Fill in what "
            "comes of this first."
        )
        parts += [tag("p", text), _decisions(pending)]
    if isinstance(proposed, str):
        return joined(*parts, tag("p", proposed))
    best = found.best.x.astype(str).iloc[0].tolist()
    again = best in proposed.astype(str).to_numpy().tolist()
    among = " The recommended one is among them." if again else ""
    text = (
        "These decisions teach most about where the best decision lies. They need not "
        f"be good themselves.{among}"
    )
    worth = ""
    if found.trial is not None:
        words = found.trial.words(found.best.outcome, proposed)
        worth = f"Is it worth going on? By the model {words}. This is no promise."
    return joined(*parts, tag("p", text), _decisions(proposed), paragraphs(worth))


def _caveats(found: Findings) -> list[str]:
    """What makes the answer doubtful: one row, a range beyond the data."""
    best, check, texts = found.best, found.best.model_check, []
    if check is not None and (words := check.dwarfing_words()):
        words = f"{words[:1].upper()}{words[1:]}"
        if (then := found.explained_without) is not None:
            words = (
                f"{words.partition('. ')[0]}: correct it, then the model explains "
                f"{percent(then)} and not {percent(check.explained)}."
            )
        texts.append(words)
    done = found.optimizer.history
    for name, value in best.x.to_dict("records")[0].items():
        if isinstance(found.optimizer.named_space.decisions[name], Category):
            continue
        tried = done[name].tolist()
        low, high = float(min(tried)), float(max(tried))
        if not low <= float(value) <= high:
            texts.append(
                f"The decision lies beyond the data: {name} was tried from "
                f"{shown(low)} to {shown(high)}, not at {shown(value)}."
            )
    if best.beyond:
        texts.append(
            "The worst case reaches beyond the contexts that have an outcome, where "
            f"the model guesses, with {best.beyond}."
        )
    return texts


def _lead(found: Findings) -> str:
    """The answer in two sentences."""
    best = found.best
    row = row_words(best.x.to_dict("records")[0])
    moved = found.reach(1.0)
    shift = "as badly as the recipe allows for"
    if found.has_radius:
        shift = "as far as was taken to be possible"
    if moved:
        shift = f"(on average by {moved})"
    expected, worst = shown(best.expected_value), shown(best.worst_case_value)
    if best.promise is not None:
        expected += f" ({_within(best.promise.expected, best.level)})"
        worst += f" ({_within(best.promise.worst_case, best.level)})"
    same = shown(best.expected_value) == shown(best.worst_case_value)
    at_worst = "no less good" if same else f"{worst} at worst"
    then = f"{at_worst} if the contexts shift {shift}"
    if _is_share(best):
        then = f"{share_words(best.objective)} is the expected {best.decided_for}"
    elif best.decided_for:
        tail = best.decided_for.startswith("worst")
        then = f"{worst} {'in' if tail else 'at'} the {best.decided_for}"
    over = " over the contexts" if best.decided_for else ""
    return (
        f"Choose {row}. The {best.outcome} is then expected to be {expected} on "
        f"average{over}, and {then}."
    )


def _is_share(best: NamedRecommendation) -> bool:
    return best.decided_for.startswith("share")


def _insured(best: NamedRecommendation) -> list[str]:
    """Against what it was decided, at what price, and what happens the other way."""
    outcome, texts, worlds = best.outcome, [], best.worlds
    if worlds:
        worst, kindest = worlds[0], worlds[-1]
        others = "; ".join(f"{w.name}: {shown(w.expected)}" for w in worlds[1:-1])
        texts.append(
            f"The worst of the dangers named is {worst.name}: then the {outcome} is "
            f"expected to be {shown(worst.expected)}."
        )
        texts.append(
            f"The other way, {kindest.name}, it is {shown(kindest.expected)}."
            + (f" In between: {others}." if others else "")
        )
    elif best.direction:
        texts.append(f"In the worst case the contexts are {best.direction}.")
    price = best.price
    if price is not None and price.is_nothing:
        texts.append(
            f"The decision has the best expected {outcome}: it gives up nothing of it "
            f"(at most {shown(price.limit)})."
        )
    elif price is not None:
        instead = row_words(price.best.to_dict("records")[0])
        texts.append(
            f"The decision gives up {shown(price.paid)} of the expected {outcome} "
            f"({best.level:.0%}: {interval_words(price.belief, best.level)}; at most "
            f"{shown(price.limit)}) and buys {price.purchase}; "
            f"{shown(price.best_expected)} is expected of {instead}."
        )
    return texts


def price_section(found: Findings) -> Markup:
    """What a better worst case costs."""
    curve = found.curve
    if curve is None:
        raise RuntimeError("A page without a danger or a price has no such section.")
    if curve.knee is None:
        return tag(
            "p",
            f"There is nothing to buy: no decision was found whose worst-case "
            f"{curve.outcome} is better than that of the best expectation, "
            f"{shown(curve.worst_cases[0].item())}.",
        )
    share = 1.0 / curve.gain if curve.gain > 0.0 else 0.0
    words = f"The worst-case {curve.outcome} by what of the expectation is given up."
    rows = dict.fromkeys(  # often one decision is the answer to several limits
        (
            shown(paid),
            f"{100 * share * paid:.2g}%",
            shown(worst),
            interval_words(curve.beliefs[i], curve.level),
        )
        for i, (paid, worst) in enumerate(
            zip(curve.paid.tolist(), curve.worst_cases.tolist(), strict=True)
        )
    )
    head = ["given up", "of what there is to gain", f"worst-case {curve.outcome}"]
    return joined(
        figure(lambda ax: plot_price(curve, ax), words),
        table([*head, f"{curve.level:.0%} interval"], list(rows)),
    )


def _within(belief: GaussianMixture, level: float) -> str:
    return f"{level:.0%}: {interval_words(belief, level)}"


def _decisions(rows: pd.DataFrame) -> Markup:
    return table([str(name) for name in rows.columns], rows.to_numpy().tolist())


def _card(name: str, value: str, note: str = "") -> Markup:
    return tag(
        "div",
        tag("span", name, class_="name"),
        tag("span", value, class_="value"),
        *([tag("span", note, class_="note")] if note else []),
        class_="card",
    )


def _intervals(best: NamedRecommendation) -> tuple[str, str]:
    """Of the expected and of the worst-case value, in words."""
    promise, share = best.promise, f"{best.level:.0%} interval"
    if promise is None:
        none = "no interval: the recipe states none"
        return none, none
    expected, worst = (
        f"{share}: {interval_words(belief, best.level)}"
        for belief in (promise.expected, promise.worst_case)
    )
    return expected, worst


def _meaning(found: Findings) -> str:
    best = found.best
    better = "highest" if found.optimizer.maximize else "lowest"
    listed = found.optimizer.algorithm.options.get("reference") is not None
    served = "what the decision has to serve: in use you do not choose them"
    return (
        f"Contexts are {served if listed else 'what you meet and do not choose'}. "
        "Expected is the mean "
        f"{best.outcome} over the contexts as they are expected; worst-case is the "
        "mean over the worst distribution of them that counts as possible. The "
        f"{better} is sought. Values are what the model expects; an interval says "
        "where the true mean lies if the model is right. It does not hold a single "
        f"{best.outcome}."
    )


def _how_found(best: NamedRecommendation) -> list[str]:
    words = []
    if best.searched:
        words.append(f"The worst case is over {best.searched}.")
    if best.promise is not None:
        words.append(f"The intervals are {best.promise.words()}.")
    if best.stability is not None:
        rival = {} if best.rival is None else best.rival.to_dict("records")[0]
        words.append(
            f"The answer holds {best.stability.words(row_words(rival))}. Compared "
            f"with: {best.stability.compared}."
        )
    return words


def _limits(found: Findings) -> str:
    """The probability that the measured limits hold; empty if there are none."""
    best = found.best
    if best.feasibility is None:
        return ""
    size = f"{best.feasibility:.3f}" if best.feasibility < 0.9995 else "above 0.999"
    held = ""
    if best.held is not None:
        held = f" So far they {best.held.words('the {} rows that measured them')}."
    names = f" ({', '.join(found.limits)})" if found.limits else ""
    return f"The measured limits{names} are met with probability {size}.{held}"


def _that_hurt(best: NamedRecommendation) -> Markup:
    rows = best.contexts.to_numpy().tolist()  # ..., reference weight, worst-case weight
    hurt = [row for row in rows if row[-1] - row[-2] > _LEAST_GAIN]
    if not hurt:
        return tag("p", "The worst case is the expected case: no contexts hurt more.")
    hurt.sort(key=lambda row: row[-2] - row[-1])
    names = [str(name) for name in best.contexts.columns[:-2]]
    return joined(
        tag("p", "What the worst case makes likelier, the most of it first:"),
        table(
            [*names, "share expected", "share in the worst case"],
            [
                [*row[:-2], f"{row[-2]:.3f}", f"{row[-1]:.3f}"]
                for row in hurt[:_NUM_CONTEXTS]
            ],
        ),
    )
