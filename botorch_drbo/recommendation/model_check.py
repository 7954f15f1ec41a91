"""How far a model can be trusted: held-out outcomes, contexts beyond those seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.model import Model
from scipy.stats import t as student
from torch import Tensor

from botorch_drbo._validation import counted
from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem.round import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recommendation.moved_contexts import MovedContext, moved_words
from botorch_drbo.recommendation.promise import LEVEL, shown, widened
from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.cross_validation import (
    HeldOut,
    NearRows,
    cross_validated,
    folds_of_levels,
    leave_one_out,
    near_rows,
    overconfidence,
)
from botorch_drbo.surrogate.fit import joint_data

_LEAST_SHARE = 0.05  # of the weight: less is not worth a line


def outside(contexts: Tensor, seen: Tensor, space: SearchSpace) -> Tensor:
    """Whether each entry of ``n x d_c`` contexts is outside ``t x d_c`` seen ones."""
    found = (contexts < seen.amin(0)) | (contexts > seen.amax(0))
    for j in space.context_categories:
        found[:, j] = ~(contexts[:, j, None] == seen[:, j]).any(-1)
    return found


def beyond_seen(contexts: ContextSet, seen: Tensor, space: SearchSpace) -> str:
    """The share of the weight beyond the contexts seen, and how far in each column.

    Shapes: ``seen``: ``t x d_c``.
    """
    held = contexts.weights > 0.0
    points, weights = contexts.points[held], contexts.weights[held]
    beyond = outside(points, seen, space)
    share = weights[beyond.any(-1)].sum().item()
    if share < _LEAST_SHARE:
        return ""
    parts: list[tuple[str, float]] = []
    for j, name in enumerate(space.context_columns):
        if j in space.context_categories:
            part = weights[beyond[:, j]].sum().item()
            parts += [(f"a {name} never seen", part)] if part else []
            continue
        column, ends = points[:, j], (seen[:, j].amin(), seen[:, j].amax())
        if j in space.context_logarithms:
            column, ends = column.exp(), (ends[0].exp(), ends[1].exp())
        for gaps, end, word in (
            (ends[0] - column, ends[0], "below the lowest"),
            (column - ends[1], ends[1], "above the highest"),
        ):
            further = (gaps > 0.0) & beyond[:, j]
            if part := weights[further].sum().item():
                far, edge = shown(gaps[further].max().item()), shown(end.item())
                parts.append((f"{name} up to {far} {word}, {edge}", part))
    words = [
        text if len(parts) == 1 else f"{text} ({_share_percent(part)})"
        for text, part in parts
    ]
    return f"{_share_percent(share)} of its weight: {'; '.join(words)}"


def _share_percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.01 else "under 1%"


Validation = Callable[[Surrogate, ModelData], HeldOut | None]
FEW_OUTCOMES = 10
"""With fewer of them a model knows nearly nothing."""
DWARFS = 10.0
"""Ranges of all other outcomes from the nearest one: further away it dwarfs them."""
_LEVEL = 0.95  # of the intervals whose misses are counted
_NUM_WORST = 3
_WIDTH = 20  # of the names of the lines


class NewLevels(NamedTuple):
    """How well outcomes are predicted at levels of a category that were left out."""

    column: str
    """The name of the category."""
    explained: float
    """The share of the variance that is explained by a model that has its features."""
    without: float
    """The same of one that has not."""

    def words(self) -> str:
        """Both shares in a line."""
        return (
            f"explains {percent(self.explained)} where its level was left out, "
            f"{percent(self.without)} without its features"
        )


def new_levels(
    surrogate: Surrogate, history: History, space: SearchSpace, names: Sequence[str]
) -> tuple[NewLevels, ...]:
    """Leave the levels of each category with features out, one after the other."""
    data, found = joint_data(history, space), []
    for column, name in enumerate(names):
        if column not in data.features:
            continue
        fold = folds_of_levels(data, column)
        others = {j: table for j, table in data.features.items() if j != column}
        shares = []
        for given in (data, replace(data, features=others)):
            held = None if fold is None else cross_validated(surrogate, given, fold)
            if held is not None and fold is not None:
                parts = squares(held.outcomes, held.predicted.mean, fold)
                shares.append((1.0 - parts[0].sum() / parts[1].sum()).item())
        if len(shares) == 2:
            found.append(NewLevels(name, *shares))
    return tuple(found)


def squares(y: Tensor, predicted: Tensor, fold: Tensor) -> tuple[Tensor, Tensor]:
    """Squared errors of predictions and of the means of other folds, ``t`` each."""
    counts = fold.bincount()
    sums = torch.zeros(len(counts)).to(y).index_add(0, fold, y)
    means = (y.sum() - sums[fold]) / (len(y) - counts[fold])
    return (y - predicted).square(), (y - means).square()


@final
@dataclass(frozen=True, eq=False, repr=False)
class ModelCheck:
    r"""Check of the model: each outcome predicted by a model that was not told it.

    Rows are dealt to five folds, and those of each are predicted by a fit to the other
    four: see ``cross_validated``. If the surrogate is not refitted, or there are fewer
    than five outcomes or 500 of them, each row is predicted from all others with the
    hyper-parameters of the fit to all: see ``leave_one_out``. This is too favourable to
    a model whose hyper-parameters overfit these rows. ``print`` shows all of this.

    Attributes:
        trials: The numbers of the trials with an outcome, ``t``.
        outcomes: Their outcomes, ``t``, in your sign and units.
        predicted: The prediction of each outcome from others, ``t``.
        lower: The lower ends of the 95% intervals of the outcomes, ``t``.
        upper: Their upper ends, ``t``.
        standardised: Residuals in predicted deviations, ``t``; positive ones of
            outcomes that are higher than predicted.
        fold: Rows of one number were left out together, ``t`` integers.
        refitted: Whether the model was fitted again to predict each fold.
        near: The difference between outcomes of neighbouring rows, relative to the
            modelled noise; None if no two rows are so close that noise explains most of
            their difference.
        unseen: The share of the weight of ``contexts`` that lies outside the contexts
            with an outcome: beyond the range of a column, or at a category that never
            occurred.
        unseen_columns: The same of each context column alone.
        context_names: Names of these columns.
        outcome_name: The name of the outcome.
        row_name: What a number of ``trials`` is: ``"trial"``, or ``"line"`` of a file.
        moved: The context columns that the decisions predict, which none should be.
        new_levels: How well a level is predicted that was left out, of each category
            with features.
    """

    trials: tuple[int, ...]
    outcomes: Tensor
    predicted: Tensor
    lower: Tensor
    upper: Tensor
    standardised: Tensor
    fold: Tensor
    refitted: bool
    near: NearRows | None
    unseen: float
    unseen_columns: tuple[float, ...]
    context_names: tuple[str, ...]
    row_name: str = "trial"
    outcome_name: str = "outcome"
    moved: tuple[MovedContext, ...] = ()
    new_levels: tuple[NewLevels, ...] = ()

    @classmethod
    def of(
        cls,
        model: Model,
        surrogate: Surrogate,
        history: History,
        space: SearchSpace,
        contexts: ContextSet,
        *,
        validate: Validation = cross_validated,
    ) -> ModelCheck:
        r"""Check a model against the outcomes that it was fitted to.

        Args:
            model: Of ``[x, c]``, fitted.
            surrogate: What fitted it.
            history: What it was fitted to.
            space: The boxes of decisions and contexts.
            contexts: The contexts for which the model will be used.
            validate: Predicts held-out outcomes, perhaps by fits that it has kept.

        Raises:
            UnsupportedError: A model without closed-form leave-one-out predictions, or
                with another number of outcomes.
        """
        near = near_rows(model)  # raises an error before anything is fitted
        folded = validate(surrogate, joint_data(history, space))
        left_out = leave_one_out(model) if folded is None else folded
        if len(left_out.outcomes) != history.t:
            raise UnsupportedError(
                f"The model holds {len(left_out.outcomes)} outcomes, and {history.t} "
                "were told: which is which is not known. Return a model of all rows "
                "of `train_X` from the function `model`."
            )
        rest = 0.5 * (1.0 - _LEVEL)
        ends = [left_out.predicted.quantile(p) for p in (rest, 1.0 - rest)]
        lower, upper = (left_out.in_units(end) for end in ends)
        beyond = outside(contexts.points, history.C, space)
        return cls(
            trials=tuple(range(history.t)),
            outcomes=left_out.in_units(left_out.outcomes),
            predicted=left_out.in_units(left_out.predicted.mean),
            lower=torch.minimum(lower, upper),
            upper=torch.maximum(lower, upper),
            standardised=left_out.standardised,
            fold=left_out.fold,
            refitted=folded is not None,
            near=near,
            unseen=contexts.weights[beyond.any(-1)].sum().item(),
            unseen_columns=tuple(
                (contexts.weights @ beyond.to(contexts.weights)).tolist()
            ),
            context_names=tuple(f"c{j + 1}" for j in range(space.d_c)),
        )

    @property
    def explained(self) -> float:
        r"""The share of the outcomes' variance that the predictions explain.

        .. math:: R^2 = 1 - \frac{\sum_i (y_i - \mu_i)^2}{\sum_i (y_i - \bar y_i)^2}

        with both the prediction :math:`\mu_i` and the mean :math:`\bar y_i` from the
        other folds: one if every outcome is predicted exactly, zero or less if the mean
        of other outcomes does as well. NaN if outcomes do not differ.
        """
        missed, total = self._squares()
        differ = self.outcomes.amax() > self.outcomes.amin()
        return (1.0 - missed.sum() / total.sum()).item() if differ else torch.nan

    @property
    def explained_interval(self) -> tuple[float, float]:
        r"""An interval of 90% of the share of *new* outcomes' variance.

        .. math:: R^2 \pm t_{K-1} \sqrt{1 + n / m}\; s / \sqrt{n}, \qquad
            u_i = \frac{e_i^2 - (1 - R^2) d_i^2}{\overline{d^2}}

        with ``e`` and ``d`` the two differences of ``explained``, ``s`` the deviation
        of the influences ``u`` of the ``n`` rows, ``m`` the rows that predict a fold,
        and ``K`` the number of folds. The factor is 1.5 of five folds: predictions by
        fits that share most of their rows are wrong together [NadeauBengio2003]_. NaN
        if outcomes do not differ.
        """
        share, n = self.explained, len(self.outcomes)
        if share != share:
            return share, share
        missed, total = self._squares()
        num_folds = len(self.fold.unique())
        num_fitted = n - n / num_folds
        influences = (missed - (1.0 - share) * total) / total.mean()
        error = influences.std().item() * (1.0 / n + 1.0 / num_fitted) ** 0.5
        half = float(student.ppf(0.5 * (1.0 + LEVEL), num_folds - 1)) * error
        return share - half, min(share + half, 1.0)

    def _squares(self) -> tuple[Tensor, Tensor]:
        return squares(self.outcomes, self.predicted, self.fold)

    @property
    def num_outside(self) -> int:
        """How many outcomes lie outside their 95% interval."""
        return int(((self.outcomes < self.lower) | (self.outcomes > self.upper)).sum())

    @property
    def coverage(self) -> float:
        """The share of outcomes inside their 95% interval."""
        return 1.0 - self.num_outside / len(self.outcomes)

    @property
    def widening(self) -> float:
        """The factor by which the intervals of recommendations are widened.

        A row that dwarfs all others is left out, because its residual alone would make
        the intervals uselessly wide. Reports name it.
        """
        residuals = self.standardised
        if self.dwarfing is not None:
            row = self.trials.index(self.dwarfing)
            residuals = torch.cat([residuals[:row], residuals[row + 1 :]])
        return overconfidence(residuals)

    @property
    def dwarfing(self) -> int | None:
        """The number of the trial whose outcome dwarfs all others; None if none does.

        Its distance from the next one is more than ten times the range of the others:
        usually a wrong unit or decimal point. The model treats it as real and can then
        hardly distinguish the others. Of fewer than ten outcomes none does.
        """
        ordered, order = self.outcomes.sort()
        if len(ordered) < FEW_OUTCOMES:
            return None
        for gap, rest, row in (
            (ordered[1] - ordered[0], ordered[-1] - ordered[1], order[0]),
            (ordered[-1] - ordered[-2], ordered[-2] - ordered[0], order[-1]),
        ):
            if gap > DWARFS * rest > 0.0:
                return self.trials[int(row)]
        return None

    def dwarfing_words(self) -> str:
        """Which row dwarfs all others, and what to do; nothing if none does."""
        if self.dwarfing is None:
            return ""
        row = self.trials.index(self.dwarfing)
        others = torch.cat([self.outcomes[:row], self.outcomes[row + 1 :]])
        low, high = (shown(end.item()) for end in others.aminmax())
        return (
            f"{self.row_name} {self.dwarfing} ({shown(self.outcomes[row].item())}) "
            f"dwarfs all others ({low} to {high}). If it is a mistake, correct or "
            "withdraw it: the model and its intervals follow it."
        )

    @property
    def worst(self) -> tuple[int, ...]:
        """The three trials with the largest standardised errors, the largest first."""
        order = self.standardised.abs().argsort(descending=True, stable=True)
        return tuple(self.trials[i] for i in order[:_NUM_WORST].tolist())

    def by_lines(self, lines: Sequence[int]) -> ModelCheck:
        """The same check with rows named by the lines of a file.

        Args:
            lines: The line of each trial, by its number.
        """
        trials = tuple(lines[trial] for trial in self.trials)
        return replace(self, trials=trials, row_name="line")

    def mirrored(self) -> ModelCheck:
        """The same check of minus the outcome."""
        return replace(
            self,
            outcomes=-self.outcomes,
            predicted=-self.predicted,
            lower=-self.upper,
            upper=-self.lower,
            standardised=-self.standardised,
        )

    def words(self) -> str:
        """A one-line summary, as in recommendations."""
        t = len(self.outcomes)
        if t < FEW_OUTCOMES:
            return know_nothing(t)
        misses = f"{self.num_outside} of {t} outside their 95%"
        parts = [f"{t} outcomes", self._explains(), misses]
        if self.dwarfing is not None:
            parts.append(
                f"{self.row_name} {self.dwarfing} dwarfs all others: see `check`"
            )
        return "; ".join(parts)

    def __str__(self) -> str:
        """The check in about seven lines."""
        t = len(self.outcomes)
        caution = [know_nothing(t)] if t < FEW_OUTCOMES else []
        misses = (
            f"{self.num_outside} of {t}; of a calibrated model about {0.05 * t:.2g}"
        )
        return laid_out(
            {
                "model": caution or [f"{t} outcomes"],
                "five folds" if self.refitted else "leave one out": [self._explains()],
                "outside their 95%": [misses],
                "intervals": [self._widened()],
                "one row": [self.dwarfing_words()],
                "worst rows": [self._row(trial) for trial in self.worst],
                **{f"a new {new.column}": [new.words()] for new in self.new_levels},
                "noise": [self._noise()],
                "contexts asked for": [self._contexts()],
                "contexts moved": [moved_words(self.moved)],
            }
        )

    def __repr__(self) -> str:
        """What counts, on one line."""
        return (
            f"ModelCheck(outcomes={len(self.outcomes)}, "
            f"explained={self.explained:.3g}, coverage={self.coverage:.3g}, "
            f"worst={self.worst})"
        )

    def share_of(self, what: str) -> str:
        """The share that is explained, and how uncertain that is, in words."""
        low, high = map(percent, self.explained_interval)
        return (
            f"explains {percent(self.explained)} of {what} "
            f"({LEVEL:.0%}: {low} to {high})"
        )

    def _explains(self) -> str:
        if self.explained != self.explained:
            return "nothing to explain: the outcomes do not differ"
        return self.share_of("what it has not seen")

    def _widened(self) -> str:
        source = "by five folds, each predicted by a fit to the others"
        if not self.refitted:
            source = "with the hyper-parameters of the fit to all"
        if self.dwarfing is not None:
            source = f"{source}, without {self.row_name} {self.dwarfing}"
        return f"{widened(self.widening) or 'as the model says'}, {source}"

    def _row(self, trial: int) -> str:
        i = self.trials.index(trial)
        values = (self.outcomes, self.predicted, self.lower, self.upper)
        outcome, predicted, lower, upper = (shown(v[i].item()) for v in values)
        return (
            f"{self.row_name} {trial}: {outcome}, from the others {predicted} "
            f"(95%: {lower} to {upper})"
        )

    def _noise(self) -> str:
        if self.near is None:
            return "not known: no two rows are so near that only noise parts them"
        noun = "pair" if self.near.num_pairs == 1 else "pairs"
        source = f"by {self.near.num_pairs} {noun} of near rows"
        if self.near.noisier:
            return f"{self.near.ratio:.2g} times the modelled deviation, {source}"
        return f"as modelled, {source}"

    def _contexts(self) -> str:
        if self.unseen == 0.0:
            return "all inside those seen"
        columns = [
            f"{name} {100 * share:.0f}%"
            for name, share in zip(self.context_names, self.unseen_columns, strict=True)
            if share > 0.0
        ]
        return (
            f"{100 * self.unseen:.0f}% of their weight outside those seen: "
            f"{', '.join(columns)}"
        )


def laid_out(rows: Mapping[str, Sequence[str]]) -> str:
    """Lines with their names before them; without those that say nothing."""
    said = {name: [*filter(None, texts)] for name, texts in rows.items()}
    said = {name: texts for name, texts in said.items() if texts}
    width = max(_WIDTH, *(len(name) + 2 for name in said))
    lines = []
    for name, (first, *further) in said.items():
        lines += [f"{name:<{width}}{first}", *(" " * width + t for t in further)]
    return "\n".join(lines)


def percent(share: float) -> str:
    """A share in words: none below 0%, and no 100%, which would read as certainty."""
    return "over 99%" if share > 0.99 else f"{max(share, 0.0):.0%}"


def know_nothing(num_outcomes: int) -> str:
    """What is said of a model of few outcomes."""
    return f"knows nearly nothing: it has {counted(num_outcomes, 'outcome')}"


def known(num_outcomes: int | None, check: ModelCheck | None) -> str:
    """How far a model can be believed, in a line; nothing if nothing is known of it."""
    if num_outcomes is None:
        return ""
    if num_outcomes < FEW_OUTCOMES:
        return know_nothing(num_outcomes)
    if check is None:
        return f"{num_outcomes} outcomes; unchecked: `check` says why"
    return check.words()
