"""The values that recommendations report, against the true values."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from benchmarks.development.cases import CASES
from benchmarks.development.learn import METHODS, SEARCH, remembered_fit
from benchmarks.development.store import history_of, task_of
from benchmarks.development.surrogates import options_of
from benchmarks.development.truth import Truth, truth_of
from benchmarks.run.engine import one_thread
from benchmarks.run.provenance import commit
from benchmarks.run.storage import Row, run_file
from benchmarks.study.judge import keep
from benchmarks.study.play import quiet
from botorch_drbo.contexts import ContextSet
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.sampling import derive_seed
from botorch_drbo.schedules import SpreadRadius
from botorch_drbo.test_functions import RobustTestFunction

_NUM_GRID = 4096  # contexts of the box, among which the true worst case is looked for


@dataclass(frozen=True)
class Kept:
    """One promise: an expectation, its interval, and the truth.

    Args:
        half: Of the development set.
        case: A key of ``CASES``.
        surrogate: A key of ``CANDIDATES``.
        seed: Of the run whose outcomes were learnt from.
        method: The recipe of that run.
        told: How many outcomes were learnt from.
        recipe: Which recommended.
        promised: "expected" or "worst".
        mean: The value that is printed.
        low: The lower end of its interval of 90%.
        high: The upper end.
        widening: By what it was stretched.
        found: The truth under the distribution that the promise is about: the contexts
            seen, or the worst distribution that was found.
        true: The truth that the user means: the expectation under the true law, or the
            lowest expectation over the ball around the contexts seen.
        spread: From the 10% to the 90% quantile of the function's outcomes, at random
            decisions and contexts of its law.
        commit: Of the code.
    """

    half: str
    case: str
    surrogate: str
    seed: int
    method: str
    told: int
    recipe: str
    promised: str
    mean: float
    low: float
    high: float
    widening: float
    found: float
    true: float
    spread: float
    commit: str


def promises(row: Row) -> list[Kept]:
    """What both recipes promise after the outcomes of a run, at its checkpoints.

    ``erbo`` promises the expectation, ``wdrbo_exact`` the worst case.

    Args:
        row: A run, as ``learn`` makes it.
    """
    task, truth = task_of(row), truth_of(row["case"], row["seed"])
    space = CASES[task.case].space(truth.function)
    low, high = truth.outcomes.quantile(truth.outcomes.new_tensor([0.1, 0.9])).tolist()
    kept = []
    with one_thread(), quiet(), remembered_fit():
        for told in row["told"]:
            history = history_of(row, told)
            seed = derive_seed(task.seed, 1, told)
            for name in METHODS:
                recipe = make_recipe(name, **options_of(task.surrogate), **SEARCH)
                best = recipe.recommend(history, space, seed=seed)
                worst = name != "erbo"
                mean, interval, found, true = _of(best, truth, history.C, worst=worst)
                kept.append(
                    Kept(
                        half=row["half"],
                        case=task.case,
                        surrogate=task.surrogate,
                        seed=task.seed,
                        method=task.method,
                        told=told,
                        recipe=name,
                        promised="worst" if worst else "expected",
                        mean=mean,
                        low=interval[0],
                        high=interval[1],
                        widening=_widening(best),
                        found=found,
                        true=true,
                        spread=high - low,
                        commit=commit(),
                    )
                )
    return kept


def _of(
    best: Recommendation, truth: Truth, contexts: Tensor, *, worst: bool
) -> tuple[float, tuple[float, float], float, float]:
    """The value printed, its interval, and both truths."""
    values = truth.function.table(best.x.unsqueeze(0), best.context_set.points)[0]
    if not worst:
        interval = best.expected_interval
        weights, mean = best.context_set.weights, best.expected_value
        true = truth.expected(best.x.unsqueeze(0)).item()
    else:
        interval = best.worst_case_interval
        weights, mean = best.worst_case_weights, best.worst_case_value
        true = true_worst_case(truth.function, best.x, contexts)
    if interval is None:
        raise RuntimeError("The recipe states no intervals.")
    return mean, interval, (weights * values).sum().item(), true


def _widening(best: Recommendation) -> float:
    if best.promise is None or best.promise.widening is None:
        raise RuntimeError("The recipe does not say by what its intervals are widened.")
    return best.promise.widening


def true_worst_case(
    function: RobustTestFunction,
    x: Tensor,
    contexts: Tensor,
    radius: float | None = None,
) -> float:
    r"""The lowest expectation over the ball around contexts, with the function known.

    By duality, on a dense grid of contexts, without the library's solver:

    .. math:: \max_{\lambda \ge 0} \; -\lambda r
        + \frac1n \sum_i \min_c \{ f(x, c) + \lambda \, d(c_i, c) \}

    Args:
        function: The function.
        x: The decision, ``d_x``.
        contexts: The contexts seen, ``n x d_c``.
        radius: ``r``, in units of the box; None for that of ``wdrbo_exact``.

    Returns:
        The expectation.
    """
    box = function.context_bounds
    side = round(_NUM_GRID ** (1 / function.d_c))
    points = torch.cat([ContextSet.grid(box, side).points, contexts])
    unit, seen = ((c - box[0]) / (box[1] - box[0]) for c in (points, contexts))
    radius = SpreadRadius().of(seen) if radius is None else radius
    values = function.table(x.unsqueeze(0), points)  # 1 x G
    distances = torch.cdist(seen, unit, compute_mode="donot_use_mm_for_euclid_dist")

    def negated(slope: float) -> float:
        paid = (values + slope * distances).amin(-1).mean().item()
        return slope * radius - paid

    # Beyond the steepest slope on the grid nothing is moved.
    apart = distances > 0
    own = function.table(x.unsqueeze(0), contexts).mT  # n x 1
    steepest = ((own - values)[apart] / distances[apart]).max().clamp_min(0.0).item()
    best = minimize_scalar(
        negated,
        bounds=(0.0, steepest + 1e-12),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return -min(float(best.fun), negated(0.0), negated(steepest))


class KeptPromises:
    """The promises that are stored, a file for each run.

    Args:
        work: The folder of this machine.
    """

    def __init__(self, work: Path) -> None:
        self._work = work

    def find(self, row: Row) -> list[Kept]:
        """Those of a run; none if they are not all there."""
        path = self._file(row)
        if not path.exists():
            return []
        kept = [Kept(**each) for each in json.loads(path.read_text(encoding="utf-8"))]
        return kept if {each.told for each in kept} >= set(row["told"]) else []

    def make(self, row: Row) -> int:
        """Make and write those of a run."""
        kept = promises(row)
        keep([asdict(each) for each in kept], self._file(row))
        return len(kept)

    def _file(self, row: Row) -> Path:
        path = run_file(self._work / "promises", task_of(row).key)
        return path.with_suffix(".json")
