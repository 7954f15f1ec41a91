"""Distributionally robust Bayesian optimisation for BoTorch.

It chooses decisions whose outcome also depends on a context that nobody controls.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botorch_drbo.adversaries import (
        AnyOf,
        MeanShift,
        Mixture,
        Scenarios,
        Spread,
        Weights,
    )
    from botorch_drbo.contexts import ContextSet
    from botorch_drbo.optimizer import NamedOptimizer, RobustOptimizer
    from botorch_drbo.space import (
        Category,
        Integer,
        LinearConstraint,
        Log,
        Ordinal,
        Space,
    )

__version__ = "0.3.0.dev0"

__all__ = [
    "AnyOf",
    "Category",
    "ContextSet",
    "Integer",
    "LinearConstraint",
    "Log",
    "MeanShift",
    "Mixture",
    "NamedOptimizer",
    "Ordinal",
    "RobustOptimizer",
    "Scenarios",
    "Space",
    "Spread",
    "Weights",
    "__version__",
]

_HOMES = dict.fromkeys(__all__, "space")
_HOMES |= dict.fromkeys(
    ("AnyOf", "MeanShift", "Mixture", "Scenarios", "Spread", "Weights"), "adversaries"
)
_HOMES |= {"ContextSet": "contexts"}
_HOMES |= dict.fromkeys(("NamedOptimizer", "RobustOptimizer"), "optimizer")


def __getattr__(name: str) -> object:
    """Import a name when it is first used.

    So `import botorch_drbo.acquisition` brings neither optimiser nor algorithms, and
    `import botorch_drbo` nothing at all.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
