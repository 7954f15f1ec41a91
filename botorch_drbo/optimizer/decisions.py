"""What to decide after what was recorded: a function of the run and of nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from botorch_drbo._validation import coarser_eps
from botorch_drbo.algorithms import History, Recommendation, derive_seed
from botorch_drbo.algorithms.candidates import check_candidates, without
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.dtypes import coarser_dtypes
from botorch_drbo.optimizer.initial_design import InitialDesign
from botorch_drbo.optimizer.matching import recognised
from botorch_drbo.optimizer.run import Run

_DESIGN, _PROPOSAL, _RECOMMENDATION = range(3)  # what a derived seed is for


def next_decisions(
    run: Run, q: int, candidates: Tensor | None
) -> tuple[Tensor, dict[str, Any]]:
    """The next decisions: first the initial design's, then the algorithm's.

    Args:
        run: The record so far; it is not changed.
        q: How many.
        candidates: The decisions to choose from, ``m x d_x``; None for the whole box.

    Returns:
        ``q x d_x``, and the entry of their event with their dtype, see
        ``coarser_dtypes``.
    """
    algorithm, space = run.configuration.algorithm, run.configuration.space
    ledger, seed = run.ledger, run.configuration.seed
    design = design_of(run.configuration)
    num_design = design.share(q, ledger, needs_data=algorithm.needs_data)
    dtypes: dict[str, Any] = {}
    if candidates is None:
        x = design.points(ledger.num_asked, num_design)
    else:
        different = max(num_design, 1) if algorithm.may_repeat else q
        listed = check_candidates(candidates, space, different)
        dtypes = coarser_dtypes(space.bounds, x=candidates)
        eps = coarser_eps(candidates, space.bounds)
        candidates = recognised(listed, ledger.trials, space, eps)
        x = design.rows(candidates, ledger.num_asked, num_design, ledger.X_pending)
        if not algorithm.may_repeat:
            candidates = without(candidates, x)
    if num_design < q:
        proposed = algorithm.propose(
            _history_to_maximise(run),
            space,
            q=q - num_design,
            X_pending=torch.cat([ledger.X_pending, x]),
            seed=derive_seed(seed, _PROPOSAL, ledger.num_asks),
            candidates=candidates,
        )
        x = torch.cat([x, proposed])
    return x, dtypes


def design_of(configuration: Configuration) -> InitialDesign:
    """The design that a run begins with."""
    return InitialDesign(
        configuration.space,
        configuration.num_initial,
        derive_seed(configuration.seed, _DESIGN, 0),
        joint=configuration.initial_design == "sobol_joint",
    )


def recommended(run: Run, candidates: Tensor | None) -> Recommendation:
    """The decision to implement now, its values in the user's sign.

    Args:
        run: The record so far; it is not changed.
        candidates: The decisions to choose from, ``m x d_x``; None for the whole box.
    """
    configuration = run.configuration
    best = configuration.algorithm.recommend(
        _history_to_maximise(run),
        configuration.space,
        seed=derive_seed(configuration.seed, _RECOMMENDATION, run.ledger.num_asks),
        candidates=candidates,
    )
    if configuration.maximize:
        return best
    return replace(
        best,
        objective=-best.objective,
        expected_value=-best.expected_value,
        worst_case_value=-best.worst_case_value,
    )


def _history_to_maximise(run: Run) -> History:
    history = run.ledger.history
    return history if run.configuration.maximize else replace(history, Y=-history.Y)
