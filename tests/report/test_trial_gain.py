"""What another trial could gain: against draws from the joint posterior."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from botorch_drbo import MeanShift, NamedOptimizer
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.report.findings import TrialGain
from botorch_drbo.space.table import to_tensor

FEW = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 10}


def test_the_expectation_above_zero_is_an_integral() -> None:
    means, deviations = (0.3, -1.0, 2.0), (0.5, 2.0, 0.1)
    found = GaussianMixture(torch.tensor(means), torch.tensor(deviations))
    parts = [
        quad(lambda v, m=m, s=s: v * norm.pdf(v, m, s), 0, 20, points=[m])[0]
        for m, s in zip(means, deviations, strict=True)
    ]
    assert found.expected_gain.item() == pytest.approx(sum(parts) / 3, rel=1e-5)


def test_of_points_it_is_the_mean_of_what_is_above() -> None:
    points = torch.tensor([-1.0, 0.0, 2.0])
    found = GaussianMixture(points, torch.zeros(3))
    assert found.expected_gain.item() == pytest.approx(2 / 3)


def problem(algorithm: str, maximize: bool = True, **options: object) -> NamedOptimizer:
    rng = torch.Generator().manual_seed(1)
    stock, demand = torch.rand(2, 10, generator=rng).double()
    profit = 9 * torch.minimum(stock, demand) - 5 * stock
    table = {
        "stock": stock,
        "demand": demand,
        "profit": profit if maximize else -profit,
    }
    return NamedOptimizer.from_dataframe(
        pd.DataFrame(table),
        decisions={"stock": (0, 1)},
        contexts={"demand": (0, 1)},
        outcome="profit",
        algorithm=algorithm,
        maximize=maximize,
        surrogate="botorch",
        **FEW,
        **options,
    )


@pytest.mark.parametrize("maximize", [True, False])
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("erbo", {}),
        ("wdrbo_exact", {"radius": {"demand": 0.2}}),
        ("erbo", {"against": MeanShift({"demand": 0.2}, clip=1.0), "give_up": 0.2}),
    ],
)
def test_it_is_the_mean_gain_of_functions_that_may_be_true(
    algorithm: str, options: dict[str, object], maximize: bool
) -> None:
    opt = problem(algorithm, maximize, **options)
    best, proposed = opt.recommend(), pd.DataFrame({"stock": [0.45]})
    found = TrialGain.of(opt, best, proposed)
    assert found is not None
    now = best.x if best.price is None else best.price.best
    which = "worst_case_weight" if best.price is None else "reference_weight"
    space = opt.named_space
    C = to_tensor(best.contexts, space.contexts, "contexts")
    rows = [
        to_tensor(x, space.decisions, "x").expand(len(C), -1) for x in (now, proposed)
    ]
    Z = torch.cat([torch.cat([x, C], dim=-1) for x in rows])
    torch.manual_seed(0)
    drawn = opt.tensors.model.posterior(Z).rsample(torch.Size([20000])).squeeze(-1)
    here, there = drawn.detach().chunk(2, dim=-1)
    assert best.promise is not None
    weights = torch.tensor(best.contexts[which].tolist()).double()
    difference = (there - here) @ weights
    wide = best.promise.widening or 1.0
    difference = difference.mean() + wide * (difference - difference.mean())
    error = 4 * difference.std().item() / 20000**0.5
    assert found.gain == pytest.approx(difference.clamp_min(0).mean().item(), abs=error)
    assert found.spread == pytest.approx(difference.std().item(), rel=0.03)


def test_the_decision_itself_gains_nothing() -> None:
    opt = problem("erbo")
    best = opt.recommend()
    found = TrialGain.of(opt, best, best.x)
    assert found is not None
    assert found.gain == pytest.approx(0.0, abs=1e-6)


def test_nothing_is_said_of_a_share_or_without_a_proposal() -> None:
    opt = problem("erbo", objective="share above 0.5")
    best = opt.recommend()
    assert TrialGain.of(opt, best, best.x) is None
    assert TrialGain.of(opt, problem("erbo").recommend(), "no proposal") is None
