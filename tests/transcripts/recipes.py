"""A short run of each recipe, and of what a recipe may be made of."""

from __future__ import annotations

from typing import Any

import torch

from botorch_drbo import RobustOptimizer
from botorch_drbo.ambiguity import (
    ChiSquared,
    ConditionalValueAtRisk,
    KullbackLeibler,
    ModifiedChiSquared,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.objectives import RobustSatisficing
from botorch_drbo.policies import ConfidenceWidth
from botorch_drbo.recipes import RECIPES, make_recipe
from botorch_drbo.schedules import InverseSquareRoot, SpreadRadius
from tests.transcripts.transcript import Answers, refused, run
from tests.transcripts.worlds import (
    BOUNDS,
    CONTEXT_BOUNDS,
    FORECAST,
    ONE,
    SHORT,
    contexts,
    informed,
    optimizer,
    tell_some,
)

FEW: dict[str, Any] = {"num_contexts": 16}
PATHS: dict[str, Any] = {"num_features": 64}


def short_run(name: str, **options: Any) -> Answers:
    """Two decisions at once with one pending, and a recommendation."""
    opt = informed(name, **options)
    x = opt.ask()
    opt.tell(x, contexts(1, 8))
    yield f"{name}: ask", [x, opt.ask(2)]
    best = opt.recommend()
    yield (
        f"{name}: recommend",
        {
            "x": best.x,
            "values": [best.objective, best.expected_value, best.worst_case_value],
            "worst": best.worst_case_interval,
            "radius": best.radius,
            "searched": best.searched,
            "status": best.worst_case_status,
            "stability": best.stability,
        },
    )


@run
def recipes_of_the_expectation() -> Answers:
    yield from short_run("erbo")
    yield from short_run("sbo_kde", **FEW)
    yield from short_run("gp_ucb", beta=4.0)
    yield from short_run("ec_gp_ucb", misspecification=0.3)
    yield from short_run("ucb_so")
    yield from short_run("random")


@run
def recipes_of_several_models() -> Answers:
    two = {"hyperparameters": None, **SHORT}
    yield from short_run("edrbo", **two)
    yield from short_run("edrbo", **two, penalty=3.0, penalty_over="batch")


@run
def recipes_of_wasserstein_balls() -> Answers:
    yield from short_run("wdrbo", radius=0.15)
    yield from short_run("wdrbo", beta=ConfidenceWidth(norm_bound=1.0))
    yield from short_run("wdrbo_exact", radius=InverseSquareRoot(0.3), half_life=3.0)
    yield from short_run("wdrbo_exact", radius=SpreadRadius(0.8), num_candidates=8)
    yield from short_run("ec_wdrbo", misspecification=0.5)


@run
def recipes_of_other_balls() -> Answers:
    yield from short_run("drbo_kde", num_outside=16, **FEW)
    yield from short_run("drbo_mmd", **FEW)
    yield from short_run("drbo_mmd_minimax", **FEW)
    yield from short_run("stable_opt", **FEW)
    yield from short_run("ucb_ro")


@run
def sets_of_dro() -> Answers:
    for one in (
        ChiSquared(0.2),
        ModifiedChiSquared(0.2),
        KullbackLeibler(0.1),
        ConditionalValueAtRisk(0.5),
        TotalVariation(0.3),
        Wasserstein(0.2),
    ):
        yield type(one).__name__, None
        yield from short_run("dro", ambiguity_set=one)
    yield from short_run("dro", contexts_complete=True, radius=0.4)


@run
def recipes_of_sample_paths() -> Answers:
    weights = {"ambiguity_set": KullbackLeibler(0.1), "sensitivity_weight": 0.5}
    yield from short_run("ts_bocu", **weights, **PATHS)
    yield from short_run("ts_erbo", **PATHS)
    yield from short_run("ts_wdrbo", num_candidates=8, **PATHS)
    yield from short_run("ts_drbo_kde", num_outside=16, **FEW, **PATHS)
    yield from short_run("ts_drbo_mmd", **FEW, **PATHS)


@run
def recipes_of_improvements() -> Answers:
    yield from short_run("ei_erbo", num_paths=8)
    yield from short_run("ei_integral")
    yield from short_run("ei_wdrbo", num_paths=8, num_candidates=8)
    yield from short_run("ei_drbo_kde", num_paths=8, num_outside=16, **FEW)


@run
def recipes_of_two_weights() -> Answers:
    weights = {"value_weight": 1.0, "sensitivity_weight": 0.5}
    yield from short_run("ucb_bocu_1", **weights)
    yield from short_run("ucb_bocu_2", **weights, ambiguity_set=KullbackLeibler(0.05))


@run
def regret_balanced() -> Answers:
    opt = optimizer(
        "regret_balancing",
        num_initial=2,
        reward_range=(-2.0, 2.0),
        horizon=16,
        num_design=2,
        misspecifications=(0.3, 0.0),
    )
    for t in range(6):
        x, c = opt.ask(), contexts(1, t)
        yield "ask", x
        opt.tell(x, c, 0.1 * x.sum().item())
    yield "recommend", opt.recommend().x


@run
def in_phases() -> Answers:
    opt = optimizer("phased_gp_us", num_decisions=32)
    for t in range(6):
        x, c = opt.ask(2 if t == 3 else 1), contexts(1, t)
        yield "ask", x
        opt.tell(x[:1], c, 0.1 * x[:1].sum().item())
    yield "recommend", opt.recommend().x
    other = tell_some(optimizer("phased_gp_us", confidence_width=None, norm_bound=1.0))
    yield "our width", other.ask()


@run
def products_and_objectives_of_ones_own() -> Answers:
    product = make_recipe(adversary="mmd", policy="expected_improvement", num_paths=4)
    product = product.with_options(**FEW, **ONE)
    opt = RobustOptimizer(product, BOUNDS, CONTEXT_BOUNDS)
    yield "a product", [opt.algorithm.name, tell_some(opt).ask()]
    yield from short_run("wdrbo_exact", policy="thompson", **PATHS)
    yield from short_run("dro", adversary="wasserstein", radius=0.2)
    target = informed("dro", objective=lambda ball: RobustSatisficing(ball, 0.4))
    yield "an objective", [target.ask(), target.recommend()]
    yield (
        "a state",
        refused(lambda: RobustOptimizer.from_state_dict(target.state_dict())),
    )


@run
def every_surrogate() -> Answers:
    x = torch.tensor([1.0, 0.5], dtype=torch.double)
    names = "botorch", "matern", "matern32", "rbf", "kernels", "ensemble"
    for name in names:
        opt = informed("erbo", hyperparameters=None, surrogate=name)
        yield name, [opt.ask(), opt.predict(x, FORECAST.points)]


@run
def defaults_of_every_recipe() -> Answers:
    for name, recipe in RECIPES.items():
        yield name, {key: str(value) for key, value in recipe.options.items()}
