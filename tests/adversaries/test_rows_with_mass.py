"""A cost has a row for each context that sends mass, not for each that takes it."""

from __future__ import annotations

import torch

from botorch_drbo import ContextSet
from botorch_drbo.adversaries.base import FittedRound
from botorch_drbo.adversaries.wasserstein import WassersteinBall
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.problem import History, SearchSpace
from tests.models import small_model


def a_round(weights: torch.Tensor | None = None) -> FittedRound:
    """Forty contexts seen: a number and a category of 30."""
    generator = torch.Generator().manual_seed(0)
    C = torch.rand(40, 2, generator=generator, dtype=torch.double)
    C[:, 1] = (29.0 * C[:, 1]).round()
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    box = torch.tensor([[0.0, 0.0], [1.0, 29.0]], dtype=torch.double)
    space = SearchSpace(unit, box, context_categories={1: 30})
    X = torch.rand(40, 1, generator=generator, dtype=torch.double)
    return FittedRound(
        model=small_model(),  # of which nothing is asked
        history=History(X=X, C=C, Y=X, contexts=C),
        space=space,
        seed=0,
        reference=None if weights is None else ContextSet(C, weights),
    )


def test_the_cost_has_a_row_for_each_context_with_weight_up_to_the_last():
    weights = torch.zeros(40, dtype=torch.double)
    weights[:12] = 1.0
    for state, rows in ((a_round(), 40), (a_round(weights), 12)):
        problem = WassersteinBall(radius=0.2).worst_case_problem(state)
        contexts, ball = problem.on_a_full_list(0)
        assert isinstance(ball, Wasserstein) and ball.cost is not None
        assert ball.cost.shape == (rows, contexts.num_points)
        assert contexts.num_points > 3000
        points = contexts.points[:: contexts.num_points // 400]
        points = torch.cat([contexts.points[:40], points])
        listed = torch.cat(
            [contexts.weights[:40], contexts.weights[-1:].expand(len(points) - 40)]
        )
        square = Wasserstein(0.2, state.space.context_distances(points, points))
        values = torch.sin(5.0 * points[:, 0] + points[:, 1])
        few = problem.ball(points)
        torch.testing.assert_close(
            few.value(values, listed),
            square.value(values, listed),
            rtol=0.0,
            atol=1e-12,
        )
    search = WassersteinBall(radius=0.2, num_candidates=64).search_problem(a_round())
    assert isinstance(search.ambiguity_set, Wasserstein)
    assert search.ambiguity_set.cost.shape == (40, search.contexts.num_points)


def test_questions_about_the_set_alone_make_it_once():
    made: list[int] = []
    problem = WassersteinBall(radius=0.2).worst_case_problem(a_round())

    def ball(points: torch.Tensor) -> Wasserstein:
        made.append(len(points))
        return problem_ball(points)

    problem_ball = problem.ball
    object.__setattr__(problem, "ball", ball)
    assert problem.radius == 0.2 and not problem.is_reference_alone
    assert "0.2" in problem.searched(a_round().space)
    assert made == [40]
