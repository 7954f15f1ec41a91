"""The record of a run: each event is checked, written down, and only then counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from botorch.exceptions.errors import (
    BotorchError,
    BotorchTensorDimensionError,
    InputDataError,
)
from torch import Tensor

from botorch_drbo._validation import check_count
from botorch_drbo.algorithms import ModelMaker, Round
from botorch_drbo.algorithms.candidates import check_candidates
from botorch_drbo.algorithms.data import check_values
from botorch_drbo.codec import encode
from botorch_drbo.optimizer.checks import (
    as_constraints,
    as_outcomes,
    as_rows,
    as_variances,
)
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.events import read_event
from botorch_drbo.optimizer.journal import Journal
from botorch_drbo.optimizer.ledger import Ledger
from botorch_drbo.space import Space


class Run:
    """What was asked, told and withdrawn; in a journal too, if there is one.

    Args:
        configuration: What the run was made with.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.ledger = Ledger(configuration.space)
        self.journal: Journal | None = None

    @classmethod
    def replayed(
        cls,
        config: object,
        events: Sequence[object],
        device: torch.device | str,
        source: str,
        *,
        in_lines: bool = False,
        named: Space | None = None,
        model: ModelMaker | None = None,
    ) -> Run:
        """A run rebuilt from its stored configuration and events, without a journal.

        Args:
            config: The configuration, anything that JSON can hold.
            events: The events, the same.
            device: Where to compute.
            source: Where they were stored, for the error messages.
            in_lines: Whether each event is a line of a file, the first the second line.
            named: The space of the run, for one whose constraints are functions.
            model: The function that makes the model of the recipe, if it has one.

        Raises:
            InputDataError: They are damaged.
        """
        try:
            run = cls(Configuration.from_dict(config, device, named, model))
        except BotorchError as error:
            raise InputDataError(
                f"The configuration in {source} cannot be used: {error}"
            ) from error
        for number, event in enumerate(events, start=1):
            try:
                run._replay(event)
            except BotorchError as error:
                line = f" (line {number + 1})" if in_lines else ""
                raise InputDataError(
                    f"Event {number}{line} of {source} does not fit its configuration: "
                    f"{error} It is damaged, or mixed with another run. Restore it "
                    "from a copy."
                ) from error
        return run

    def rows(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Told decisions and contexts, checked, in their own dtypes."""
        configuration = self.configuration
        x = as_rows(x, configuration.space.bounds, "x", "bounds")
        c = as_rows(c, configuration.context_bounds, "c", "context_bounds")
        space = configuration.space
        check_values(x, space.bounds, space.values, "x")
        check_values(c, space.context_bounds, space.context_values, "c")
        if len(x) != len(c):
            raise BotorchTensorDimensionError(
                f"`x` and `c` must have one row per trial, got {len(x)} and {len(c)}."
            )
        return x, c

    def asked(
        self,
        x: Tensor,
        actions: Tensor | None,
        dtypes: dict[str, Any],
        *,
        this_round: Round,
        chosen_contexts: Tensor | None,
    ) -> None:
        """Record decisions, ``q x d_x``, and what is known about their round.

        Args:
            x: The decisions.
            actions: The round's actions, if they bind.
            dtypes: The entry of the event with the dtypes of coarser tensors.
            this_round: Its reference, radius and context, as far as given.
            chosen_contexts: For a laboratory, ``q x d_c``.
        """
        space = self.configuration.space
        event: dict[str, Any] = {"event": "ask", "x": x.tolist(), **dtypes}
        if actions is not None:
            event["actions"] = check_candidates(actions, space, len(x)).tolist()
        this_round = this_round.within(space)
        if this_round.context_set is not None:
            event["context_set"] = encode(this_round.context_set)
        if this_round.radius is not None:
            event["radius"] = this_round.radius
        if this_round.known_context is not None:
            values = this_round.known_context.tolist()
            event["context"] = [None if math.isnan(v) else v for v in values]
        if chosen_contexts is not None:
            chosen = as_rows(
                chosen_contexts, space.context_bounds, "c", "context_bounds"
            )
            if len(chosen) != len(x):
                raise BotorchTensorDimensionError(
                    f"There are {len(x)} decisions and {len(chosen)} chosen contexts."
                )
            check_values(chosen, space.context_bounds, space.context_values, "c")
            event["chosen_contexts"] = chosen.to(space.bounds).tolist()
        self._record(event)

    def told(
        self,
        x: Tensor,
        c: Tensor,
        y: Tensor | None,
        y_variance: Tensor | None = None,
        constraints: Tensor | None = None,
        *,
        failed: bool,
        closes_pending: bool,
        dtypes: dict[str, Any],
    ) -> None:
        """Record what happened; the tensors have been checked."""
        if y_variance is not None:
            self.configuration.algorithm.check_uses_contexts("y_variance")
        if constraints is not None:
            self.configuration.algorithm.check_takes_constraints()
        space = self.configuration.space
        event = {
            "event": "fail" if failed else "tell",
            "x": space.snap(x.to(space.bounds).clamp(*space.bounds)).tolist(),
            "c": space.snap_contexts(
                c.to(space.bounds).clamp(*space.context_bounds)
            ).tolist(),
            "closes_pending": closes_pending,
            **dtypes,
        }
        if not failed:
            event["y"] = None if y is None else y.to(space.bounds).tolist()
        if y_variance is not None:
            event["y_variance"] = y_variance.to(space.bounds).tolist()
        if constraints is not None:
            event["constraints"] = constraints.to(space.bounds).tolist()
        self._record(event)

    def withdrawn(self, trial: int) -> None:
        """Record that what was told of a trial, or asked, is taken back."""
        number = check_count(trial, "trial", 0)
        self._record({"event": "withdraw", "trial": number})

    def _record(self, event: dict[str, Any]) -> None:
        """Accept an event: first on the disk, then in memory, both or neither."""
        event["number"] = self.ledger.num_events + 1
        change = self.ledger.change(event)
        if self.journal is not None:
            self.journal.append(event)
        self.ledger.accept(change)

    def _replay(self, event: object) -> None:
        """Apply a stored event, under the checks that it passed when it was new."""
        kind, fields = read_event(event, self.ledger.num_events + 1)
        if kind == "withdraw":
            self.withdrawn(fields["trial"])
            return
        x, bounds = fields["x"], self.configuration.space.bounds
        dtypes = {"dtypes": fields["dtypes"]} if "dtypes" in fields else {}
        if kind == "ask":
            x = as_rows(x, bounds, "x", "bounds").to(bounds)
            check_values(x, bounds, self.configuration.space.values, "x")
            this_round = Round(
                context_set=fields.get("context_set"),
                radius=fields.get("radius"),
                known_context=fields.get("context"),
            )
            self.asked(
                x,
                fields.get("actions"),
                dtypes,
                this_round=this_round,
                chosen_contexts=fields.get("chosen_contexts"),
            )
            return
        x, c = self.rows(x, fields["c"])
        variance, constraints = fields.get("y_variance"), fields.get("constraints")
        y = fields.get("y")  # one that version 0.1.0 took may be too large for `tell`
        self.told(
            x,
            c,
            None if y is None else as_outcomes(y, len(x)),
            None if variance is None else as_variances(variance, len(x)),
            None if constraints is None else as_constraints(constraints, len(x)),
            failed=kind == "fail",
            closes_pending=fields["closes_pending"],
            dtypes=dtypes,
        )
