"""Wells: pairs of a decision and a context, where both are chosen, and their plates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import check_count, counted, did_you_mean
from botorch_drbo.optimizer.trials import Trial
from botorch_drbo.posterior.mixture import joined
from botorch_drbo.problem import SearchSpace
from botorch_drbo.problem.feasible import all_decisions
from botorch_drbo.recommendation.chosen_contexts import some_untried, untried
from botorch_drbo.search.candidates import without


@dataclass(frozen=True)
class Plate:
    """How the wells that are asked for together are laid out."""

    # In how many contexts each decision is tried.
    contexts_per_decision: int = 1
    # How often each well is asked for.
    replicates: int = 1
    # The most levels of columns of decisions, by their numbers.
    at_most: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        q: int,
        contexts_per_decision: int,
        replicates: int,
        at_most: Mapping[str, int] | None,
        names: list[str],
        *,
        choose_context: bool,
    ) -> Plate:
        """Check what was said of one."""
        given = {
            "contexts_per_decision": contexts_per_decision,
            "replicates": replicates,
        }
        for name, number in given.items():
            check_count(number, name)
            if number > 1 and not choose_context:
                raise InputDataError(
                    f"Got `{name}` of {number}, and contexts are not chosen: it is "
                    "about pairs of both. Add `choose_context=True`, or leave it out."
                )
        if q % replicates:
            raise InputDataError(
                f"{counted(q, 'well')} are no multiple of {replicates} "
                f"`replicates`. Ask for {q - q % replicates or replicates}."
            )
        limits = {}
        for name, number in (at_most or {}).items():
            if name not in names:
                raise InputDataError(
                    f"`at_most` names `{name}`, which is not a decision. The decisions "
                    f"are {names}.{did_you_mean(str(name), names)}"
                )
            limits[names.index(name)] = check_count(number, f"at_most[{name!r}]")
        return cls(contexts_per_decision, replicates, limits)

    def check_enough(
        self, num_wells: int, listed: Tensor | None, taken: Tensor, contexts: Tensor
    ) -> None:
        """Refuse a plate that is larger than what is left of a list of decisions."""
        each = self.contexts_per_decision
        if each > len(contexts):
            raise InputDataError(
                f"`contexts_per_decision` is {each}, and there are "
                f"{counted(len(contexts), 'different context')} to choose from. Give "
                "a number up to that, or a longer `scope`."
            )
        if listed is None:
            return
        left = len(without(listed, used_up(taken, contexts, each)))
        if num_wells > each * left:
            more = next(
                (
                    f"say `contexts_per_decision={k}`, "
                    for k in range(each + 1, len(contexts) + 1)
                    if k * len(without(listed, used_up(taken, contexts, k)))
                    >= num_wells
                ),
                "",
            )
            free = sum(int(untried(joined(x, contexts), taken).sum()) for x in listed)
            raise InputDataError(
                f"Asked for {counted(num_wells, 'well')}, and {each * left} "
                f"can be had: {counted(left, 'decision')} not tried yet in at least "
                f"{counted(each, 'context')} ({counted(free, 'well')} whatever "
                f"`contexts_per_decision` is). Ask for fewer, {more}or list more "
                "decisions."
                if free
                else f"Asked for {counted(num_wells, 'well')}, and none is left: each "
                f"of {counted(len(listed), 'decision')} was tried in each of "
                f"{counted(len(contexts), 'context')}, or is pending there. List more "
                "of either."
            )

    def limited(
        self,
        candidates: Tensor,
        num: int,
        pick: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor:
        """Rows of a list, ``num x d_x``, one by one, with few levels of some columns.

        ``pick`` takes those that are left and those taken before.
        """
        rows = candidates[:0]
        for _ in range(num):
            allowed = torch.ones_like(candidates[:, 0], dtype=torch.bool)
            for j, most in self.at_most.items():
                levels = rows[:, j].unique()
                if len(levels) >= most:
                    allowed &= torch.isin(candidates[:, j], levels)
            if not allowed.any():
                raise InputDataError(
                    f"`at_most` leaves {counted(len(rows), 'decision')} for this "
                    f"plate, which needs {num}. Allow more levels, or ask for fewer."
                )
            rows = torch.cat([rows, pick(candidates[allowed], rows)])
            candidates = without(candidates, rows)
        return rows


def wells_of(trials: Iterable[Trial], space: SearchSpace) -> Tensor:
    """The pairs that trials are about, ``m x (d_x + d_c)``, withdrawn ones left out."""
    pairs = [
        (t.x, t.chosen_context if t.c is None else t.c)
        for t in trials
        if t.status != "withdrawn" and t.x.isfinite().all()
    ]
    rows = [torch.cat([x, c]).unsqueeze(0) for x, c in pairs if c is not None]
    return torch.cat([space.joint_bounds[:0], *rows])


def used_up(taken: Tensor, contexts: Tensor, num: int) -> Tensor:
    """Decisions with fewer than ``num`` contexts in which they were not tried.

    Shapes: ``taken``: ``m x (d_x + d_c)``, ``contexts``: ``n x d_c``, returns
    ``k x d_x``.
    """
    decisions = taken[:, : taken.shape[-1] - contexts.shape[-1]].unique(dim=0)
    left = [int(untried(joined(x, contexts), taken).sum()) < num for x in decisions]
    return decisions[torch.tensor(left, dtype=torch.bool, device=decisions.device)]


def listable(candidates: Tensor | None, space: SearchSpace) -> Tensor:
    """The list of decisions, or all that there are."""
    listed = all_decisions(space) if candidates is None else candidates
    if listed is None:
        raise InputDataError(
            "`at_most` needs decisions that can be listed, and these are numbers of an "
            "interval, or too many. Give the list, as `candidates`."
        )
    return listed


def spread(x: Tensor, taken: Tensor, contexts: Tensor, seed: int) -> Tensor:
    """A context for each decision without a model: the one that was used least.

    Shapes: ``x``: ``q x d_x``, ``contexts``: ``n x d_c``, returns ``q x d_c``.
    """
    order = torch.randperm(len(contexts), generator=torch.Generator().manual_seed(seed))
    contexts, chosen = contexts[order.to(contexts.device)], contexts[:0]
    for row in x:
        pairs = joined(row, contexts)
        used = (contexts.unsqueeze(1) == taken[:, len(row) :]).all(-1).sum(-1)
        used = used.where(some_untried(pairs, taken), len(taken) + 1)
        best = pairs[used.argmin()].unsqueeze(0)
        taken = torch.cat([taken, best])
        chosen = torch.cat([chosen, best[:, len(row) :]])
    return chosen
