"""The expected outcomes of several decisions, without and with shifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

from torch import Tensor

from botorch_drbo._validation import counted, shown
from botorch_drbo.posterior.mixture import GaussianMixture

if TYPE_CHECKING:
    import pandas as pd

TODAY = "as things are"
SURE = 0.9
"""The probability from which a gain counts as one."""
_ALIKE = 1e-6  # of the model's own error: a gain that no search can tell from nothing
_ROUNDING = 1e-12  # of the values
_SIGNIFICANT = 3


@final
@dataclass(frozen=True, eq=False)
class Comparison:
    r"""The recommended decisions of several methods, evaluated by one model.

    All values are expectations over contexts under the model's *joint* posterior, mixed
    over the members of an ensemble, and widened if cross-validation shows that the
    model is overconfident: see ``posterior_of_expectation``. If the run maximises the
    worst fifth, say, or the minimum, they are those over the contexts that are worst
    for the decision by the model's mean; of a share above a threshold, and of an
    objective that is a function, they remain expectations, see ``judged_by``. ``print``
    shows the table and the advice.

    Attributes:
        methods: Their names, ``m``; the others are compared with the first.
        radii: The radius with which each method decided, in words, ``m``; empty for a
            method without one. The worlds do not change it.
        worlds: Names of the distributions of the context, ``w``: without a shift, then
            the shifts, then the worst distribution within each radius.
        decisions: The decision that each method recommends, ``m x d_x``, in model
            units.
        columns: The same in your names and units: a list of ``m`` for each decision
            variable.
        values: The expected outcome in your sign, ``m x w``.
        gains: The improvement over the first method, ``m x w``; positive is better,
            also if the outcome is minimised.
        costs: The loss of the first method's decision under each distribution, compared
            with no shift, ``w``; positive is worse.
        level: Of the intervals.
        num_outcomes: The number of outcomes to which the model was fitted.
        outcome: The name of the outcome.
        judged_by: What the values are, in words.
        trust: How the intervals were computed, in words.
    """

    methods: tuple[str, ...]
    radii: tuple[str, ...]
    worlds: tuple[str, ...]
    decisions: Tensor
    columns: Mapping[str, Sequence[object]]
    values: GaussianMixture
    gains: GaussianMixture
    costs: GaussianMixture
    level: float
    num_outcomes: int
    outcome: str
    judged_by: str
    trust: str

    @property
    def better(self) -> Tensor:
        """The probability of beating the first method, ``m x w``; half if equal."""
        found = 1.0 - self.gains.cdf(self.gains.mean.new_zeros(self.gains.mean.shape))
        return found.where(~self._alike, found.new_tensor(0.5))

    @property
    def table(self) -> pd.DataFrame:
        """One row for each method and shift, in your names and units.

        Columns: ``method``, the decision, ``world``, the outcome with ``low`` and
        ``high``, ``gain`` over the first method with its standard deviation
        ``gain_sd``, and the probability ``better`` that there is one.
        """
        import pandas as pd

        rest = 0.5 * (1.0 - self.level)
        shown = {
            self.outcome: self.values.mean,
            "low": self.values.quantile(rest),
            "high": self.values.quantile(1.0 - rest),
            "gain": self.gains.mean,
            "gain_sd": self.gains.deviation,
            "better": self.better,
        }
        rows = []
        for i, method in enumerate(self.methods):
            decided = {name: entries[i] for name, entries in self.columns.items()}
            for j, world in enumerate(self.worlds):
                numbers = {name: tensor[i, j].item() for name, tensor in shown.items()}
                rows.append({"method": method, **decided, "world": world, **numbers})
        return pd.DataFrame(rows)

    @property
    def advice(self) -> str:
        r"""One sentence, by this rule.

        The rule uses the named distribution under which the first method's decision
        loses most.

        1. If all methods recommend one decision, there is nothing to choose.
        2. If that cost, or gain, is less than the model's own error, the standard
           deviation of the first decision's expected outcome there: more outcomes
           first.
        3. If some method is better there with a probability of 90%, the one with the
           largest gain is named, with its cost without a shift.
        4. Otherwise the first method is kept.
        """
        first = self.methods[0]
        if bool(self._alike.all()):
            return f"All methods recommend the decision of {first}: nothing to choose."
        if len(self.worlds) == 1:
            i = int(self.gains.mean[:, 0].argmax())
            gain = _plus_minus(self.gains, i, 0)
            if i == 0 or self.better[i, 0] < SURE:
                return f"No method is significantly better than {first} as things are."
            return f"{self.methods[i]} gains {gain} over {first} as things are."
        j = 1 + int(self.costs.mean[1:].argmax())
        cost, error = self.costs.mean[j].item(), self.values.deviation[0, j].item()
        deviation = self.costs.deviation[j].item()
        world = self.worlds[j]
        if abs(cost) < error:
            return (
                f"{world!r} costs {_shown(cost)} ± {_spread(deviation)}; the "
                f"model's own error here is {_shown(error)}: more outcomes first."
            )
        sure = self.better[:, j] >= SURE
        if not sure.any():
            i = 1 + int(self.gains.mean[1:, j].argmax())
            if self.gains.mean[i, j] <= 0.0:
                stay = f"stay with {first}"
                return f"No method is better than {first} under {world!r}: {stay}."
            return (
                f"{self.methods[i]} saves {_plus_minus(self.gains, i, j)} under "
                f"{world!r}, which the model cannot tell from nothing: stay "
                f"with {first}."
            )
        i = int(self.gains.mean[:, j].where(sure, -float("inf")).argmax())
        price = -self.gains.mean[i, 0].item()
        spread = _spread(self.gains.deviation[i, 0].item())
        verb = "costs" if price >= 0 else "gains"
        return (
            f"{self.methods[i]} {verb} {_shown(abs(price))} ± {spread} as things are, "
            f"and saves {_plus_minus(self.gains, i, j)} under {world!r}."
        )

    @property
    def _alike(self) -> Tensor:
        """Where a decision is the first one, or as good as that, ``m x w``."""
        mean, deviation = self.gains.mean, self.gains.deviation
        error, size = self.values.deviation.max(), self.values.mean.abs().max()
        slack = _ALIKE * error + _ROUNDING * size
        return (mean.abs() <= slack) & (deviation <= slack)

    def __str__(self) -> str:
        """The decisions, the table by method and world, and the advice."""
        rest = 0.5 * (1.0 - self.level)
        low, high = self.values.quantile(rest), self.values.quantile(1.0 - rest)
        width = max(len(world) for world in self.worlds) + 2
        lines = [
            f"{self.judged_by} ({self.level:.0%} intervals {self.trust}, "
            f"{counted(self.num_outcomes, 'outcome')})"
        ]
        for i, method in enumerate(self.methods):
            decided = ", ".join(
                f"{name} = {_shown(entries[i])}"
                for name, entries in self.columns.items()
            )
            within = self.radii[i]
            by = "for" if within.startswith("the ") else "within"
            how = f"decided {by} {within}" if within else "decided without a radius"
            lines.append(f"{method}: {decided} ({how})")
            for j, world in enumerate(self.worlds):
                value = _shown(self.values.mean[i, j].item())
                ends = f"{_shown(low[i, j].item())} to {_shown(high[i, j].item())}"
                line = f"  {world:<{width}}{value} ({ends})"
                if i > 0:
                    gain = _plus_minus(self.gains, i, j, sign=True)
                    if self._alike[i, j]:
                        gain = "+0 ± 0"  # in place of the rounding
                    line += (
                        f"; {gain} against {self.methods[0]}, better with probability "
                        f"{self.better[i, j].item():.2f}"
                    )
                lines.append(line)
        return "\n".join([*lines, self.advice])


def _plus_minus(mixture: GaussianMixture, i: int, j: int, *, sign: bool = False) -> str:
    mean, deviation = mixture.mean[i, j].item(), mixture.deviation[i, j].item()
    return f"{_shown(mean, sign=sign)} ± {_spread(deviation)}"


_shown = partial(shown, digits=_SIGNIFICANT)


def _spread(deviation: float) -> str:
    """With two significant digits, and all of those before the point."""
    return f"{deviation:.0f}" if deviation >= 100 else f"{deviation:.2g}"
