"""Runs whose states stand in `data/`, written by the versions that made them.

`python -m tests.optimizer.stored_runs FILE` writes them with the code of today. Do so
under another name when the format changes, and never again for the old one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from botorch_drbo import (
    Category,
    ContextSet,
    Integer,
    LinearConstraint,
    Log,
    NamedOptimizer,
    Ordinal,
    RobustOptimizer,
    Space,
)
from botorch_drbo.ambiguity import (
    AmbiguitySet,
    ChiSquared,
    ConditionalValueAtRisk,
    FullSimplex,
    KullbackLeibler,
    MaximumMeanDiscrepancy,
    MinimaxApproximation,
    ModifiedChiSquared,
    NoAmbiguity,
    TotalVariation,
    Wasserstein,
)
from botorch_drbo.policies import ConfidenceWidth
from botorch_drbo.schedules import (
    BOCUBeta,
    Constant,
    InverseSquareRoot,
    KernelDensityRadius,
    MMDRadius,
    SBOKDEBeta,
    SpreadRadius,
    WassersteinConfidenceRadius,
    WassersteinCoveringRadius,
)
from botorch_drbo.surrogate import FixedHyperparameters

BOUNDS = torch.tensor([[0.0, -1.0], [1.0, 1.0]], dtype=torch.double)
CONTEXT_BOUNDS = torch.tensor([[0.0], [10.0]], dtype=torch.double)
SEARCH = {"num_restarts": 1, "raw_samples": 16, "max_iterations": 8}

POINTS = torch.tensor([[1.1], [3.3], [7.7]], dtype=torch.double)
# Scaled to sum to one, and scaled once more, they are other numbers.
WEIGHTS = torch.tensor([0.92, 0.67, 0.23], dtype=torch.float32).double()
REFERENCE = ContextSet(POINTS, WEIGHTS)
COST = torch.cdist(POINTS, POINTS, compute_mode="donot_use_mm_for_euclid_dist")
KERNEL = (-0.5 * COST.square() / 9.0).exp()
KNOWN = FixedHyperparameters((0.3, 0.41, 0.52), 0.011, 1.3)
FLOAT32_RADIUS = torch.tensor(0.3, dtype=torch.float32)


def dro(ambiguity_set: AmbiguitySet) -> RobustOptimizer:
    return plain("dro", ambiguity_set=ambiguity_set, reference=REFERENCE)


def plain(recipe: str, **options: object) -> RobustOptimizer:
    """With the surrogate of 0.2.0, unless the options say how outcomes are modelled."""
    settings = {"num_initial": 2, "seed": 7, **SEARCH, **options}
    if "hyperparameters" not in options:
        settings |= {"surrogate": "botorch"}
    return RobustOptimizer(recipe, BOUNDS, CONTEXT_BOUNDS, **settings)  # pyright: ignore[reportArgumentType]


def named() -> NamedOptimizer:
    space = Space(
        {
            "price": (10.0, 90.0),
            "stock": Integer(0, 40),
            "size": Ordinal([2.5, 10, 40]),
            "colour": Category(["red", "green", "blue"]),
            "dose": Log(0.01, 10.0),
        },
        {"demand": (0.0, 100.0), "weather": Category(["sun", "rain"])},
        outcome="profit",
        constraints=[LinearConstraint({"price": 1, "stock": 2}, upper=120.0)],
    )
    return NamedOptimizer(
        "wdrbo_exact",
        space,
        num_initial=2,
        maximize=False,
        radius=0.2,
        surrogate="botorch",
        **SEARCH,
    )


SETS: dict[str, Callable[[], AmbiguitySet]] = {
    "no_ambiguity": NoAmbiguity,
    "full_simplex": FullSimplex,
    "total_variation": lambda: TotalVariation(0.3, floor=-2.0),
    "total_variation_float32": lambda: TotalVariation(FLOAT32_RADIUS),
    "mmd": lambda: MaximumMeanDiscrepancy(0.2, KERNEL),
    "chi_squared": lambda: ChiSquared(0.3),
    "modified_chi_squared": lambda: ModifiedChiSquared(0.3),
    "kullback_leibler": lambda: KullbackLeibler(0.3),
    "wasserstein": lambda: Wasserstein(0.7, COST),
    "cvar": lambda: ConditionalValueAtRisk(0.3),
    "cvar_of_another_radius": lambda: ConditionalValueAtRisk(0.3).with_radius(0.7),
    "minimax": lambda: MinimaxApproximation(TotalVariation(0.3)),
    "minimax_mmd": lambda: MinimaxApproximation(MaximumMeanDiscrepancy(0.2, KERNEL)),
}

RUNS: dict[str, Callable[[], RobustOptimizer | NamedOptimizer]] = {
    "random": lambda: plain("random"),
    "gp_ucb": lambda: plain("gp_ucb", beta=SBOKDEBeta(2, 1.0, 1.0)),
    "erbo": lambda: plain("erbo", half_life=3.0, feasibility=0.9),
    "sbo_kde": lambda: plain("sbo_kde", num_contexts=16, beta=Constant(2.0)),
    "stable_opt": lambda: plain("stable_opt", num_contexts=16),
    "wdrbo": lambda: plain("wdrbo", radius=InverseSquareRoot(0.3)),
    "wdrbo_exact": lambda: plain("wdrbo_exact", radius=SpreadRadius(0.5)),
    "wdrbo_covering": lambda: plain(
        "wdrbo", radius=WassersteinCoveringRadius(2, 1, 1.4, 1.0, 1.0)
    ),
    "wdrbo_confidence": lambda: plain(
        "wdrbo", radius=WassersteinConfidenceRadius(1, 1.0, uniform=True)
    ),
    "drbo_kde": lambda: plain(
        "drbo_kde", num_contexts=16, num_outside=16, radius=KernelDensityRadius(1)
    ),
    "drbo_mmd": lambda: plain("drbo_mmd", num_contexts=9, radius=MMDRadius(0.2)),
    "drbo_mmd_minimax": lambda: plain("drbo_mmd_minimax", num_contexts=9),
    "ts_bocu": lambda: plain(
        "ts_bocu", ambiguity_set=TotalVariation(0.2), num_features=32
    ),
    "ts_erbo": lambda: plain("ts_erbo", num_features=32, reference=REFERENCE),
    "ts_wdrbo": lambda: plain("ts_wdrbo", num_features=32),
    "ts_drbo_kde": lambda: plain("ts_drbo_kde", num_features=32, num_contexts=16),
    "ts_drbo_mmd": lambda: plain("ts_drbo_mmd", num_features=32, num_contexts=9),
    "ei_erbo": lambda: plain("ei_erbo", num_paths=4, num_features=32),
    "ei_wdrbo": lambda: plain("ei_wdrbo", num_paths=4, num_features=32),
    "ei_drbo_kde": lambda: plain(
        "ei_drbo_kde", num_paths=4, num_features=32, num_contexts=16
    ),
    "ucb_bocu_1": lambda: plain("ucb_bocu_1", beta=BOCUBeta(2, 9, 1.0, 1.0)),
    "ucb_bocu_2": lambda: plain(
        "ucb_bocu_2", value_weight=0.5, sensitivity_weight=0.25
    ),
    "ucb_so": lambda: plain("ucb_so"),
    "ucb_ro": lambda: plain("ucb_ro", hyperparameters=KNOWN),
    "phased_gp_us": lambda: plain(
        "phased_gp_us", num_decisions=16, confidence_width=ConfidenceWidth(1.0)
    ),
    "ec_gp_ucb": lambda: plain("ec_gp_ucb", misspecification=0.02),
    "ec_wdrbo": lambda: plain(
        "ec_wdrbo", beta=ConfidenceWidth(1.0, noise_std=0.1), misspecification=0.02
    ),
    "regret_balancing": lambda: plain(
        "regret_balancing",
        horizon=20,
        reward_range=(-3.0, 2.0),
        misspecifications=(0.5, 0.25),
        num_design=4,
    ),
    **{f"dro_{name}": (lambda make=make: dro(make())) for name, make in SETS.items()},
    "float32": lambda: RobustOptimizer(
        "erbo",
        BOUNDS.float(),
        CONTEXT_BOUNDS.bfloat16(),
        num_initial=2,
        surrogate="botorch",
        **SEARCH,
    ),
    "perturbation": lambda: RobustOptimizer(
        "erbo",
        BOUNDS,
        0.1 * BOUNDS,
        num_initial=2,
        initial_design="sobol_joint",
        perturbation=True,
        surrogate="botorch",
        **SEARCH,
    ),
    "named": named,
}


def outcome(x: Tensor, c: Tensor) -> Tensor:
    """Smooth, ``m``."""
    return -(x[:, 0] - c.sum(-1) / 10.0).square() - x[:, 1].square()


def play(opt: RobustOptimizer | NamedOptimizer, name: str) -> None:
    """Tell a run what all of them are told; nothing depends on a model."""
    if isinstance(opt, NamedOptimizer):
        x = opt.ask(2)
        weather = {"demand": [20.0, 70.0], "weather": ["sun", "rain"]}
        opt.tell(x, weather, [3.0, 4.0])
        forecast = opt.named_space.context_set(weather, [0.3, 0.7])
        opt.tell(x.iloc[:1], {"demand": [55.5], "weather": ["sun"]}, [1.5])
        opt.ask(context_set=forecast, context={"weather": "rain"}, radius=0.125)
        return
    like = opt.space.context_bounds
    unit = torch.tensor([[0.13], [0.52], [0.71], [0.34]], dtype=torch.double)
    c = like[0].double() + unit * (like[1] - like[0]).double()
    c = c.to(like)
    x = opt.ask(2)
    opt.tell(x, c[:2], outcome(x, c[:2]))
    x = torch.tensor([[0.25, -0.3], [0.7, 0.45]]).double()
    opt.tell(x, c[2:], outcome(x, c[2:].double()), closes_pending=False)
    if name == "float32":  # told in a coarser dtype than asked
        opt.tell(x[:1].half(), c[:1].half(), 1.25, closes_pending=False)


def events_of_every_kind(
    opt: RobustOptimizer, rounded: torch.dtype = torch.bfloat16
) -> None:
    """What else a journal can hold; one decision is told in a coarse dtype."""
    actions = torch.tensor([[0.2, 0.3], [0.8, -0.5], [0.4, 0.9]], dtype=torch.double)
    opt.ask(2)
    opt.ask(actions=actions)
    opt.ask(context_set=REFERENCE, radius=0.25)
    opt.ask(context=torch.tensor([4.5], dtype=torch.double))
    opt.ask(context_set=REFERENCE, choose_context=True)
    first, second = opt.pending[:2]
    opt.tell(first.float(), torch.tensor([3.0]), 1.5, y_variance=0.25, constraints=0.5)
    opt.tell(second, torch.tensor([4.0]), failed=True, constraints=-0.5)
    opt.tell(actions[:1], torch.tensor([6.0]))
    opt.withdraw(0)
    opt.tell(first.to(rounded), torch.tensor([3.5]), 1.25, y_variance=0.125)


def journal_of_every_kind(path: Path) -> None:
    """A journal with all kinds of events."""
    with plain("dro", num_initial=8, journal=path, reference=REFERENCE) as opt:
        events_of_every_kind(opt)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    states = {}
    for name, make in RUNS.items():
        run = make()
        play(run, name)
        states[name] = run.state_dict()
    lines = [f"{json.dumps(n)}: {json.dumps(s)}" for n, s in states.items()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    journal_of_every_kind(file.with_suffix(".jsonl"))
