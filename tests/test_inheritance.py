"""A class is abstract or final, and only what offers a default is overridden."""

from __future__ import annotations

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path

import botorch_drbo

PACKAGE = Path(botorch_drbo.__file__).parent

# Concrete methods of abstract classes that classes below override: what the default is.
DEFAULTS = {
    "Adversary.chance_constraint_problem": "the problem of the outcome",
    "Adversary.diameter": "None: no largest distance is known",
    "Adversary.fixed_radius": "that of the option `radius`",
    "Adversary.check_space": "the columns of a radius",
    "ModelBasedRecipe._check_decides": "what a price or a regret needs",
    "ModelBasedRecipe._has_own_objective": "where no worst case is maximised",
    "Adversary.search_problem": "the problem of the recommendation, on its list",
    "Adversary.worst_case_problem_of": "the set around the contexts as they are",
    "AmbiguitySet._check": "scores and weights of contexts",
    "AmbiguitySet._check_sizes": "one score for each weight",
    "AmbiguitySet._printed": "the attribute of the argument's name",
    "AmbiguitySet._with_outside": "no atoms beside the contexts",
    "AmbiguitySet.at": "the set itself: positions do not matter",
    "AmbiguitySet.constraints": "no description for cvxpy",
    "AmbiguitySet.diameter": "None: no largest distance is known",
    "AmbiguitySet.few": "None: the order needs the whole list",
    "AmbiguitySet.lower_bound": "the value itself",
    "AmbiguitySet.original": "the set itself: it approximates nothing",
    "AmbiguitySet.prices": "no mass goes to contexts off the list",
    "AmbiguitySet.solve_with_direction": "a difference of two solutions",
    "AmbiguitySet.value": "that of the whole solution",
    "DecisionAcquisitionFunction.on_few": "None: no cheaper function",
    "DecisionAcquisitionFunction.ranking": "the values themselves",
    "LocalMoments._mean_slopes": "those of all slopes",
    "LocalMoments._means": "those of the moments",
    "LocalMoments._means_of_moments": "the first of both moments",
    "MarginalPosterior._over_coarsely": "the coarse form of the view of both moments",
    "MarginalPosterior._over_for_means": "the view of both moments",
    "Objective.few": "None: it needs the whole list",
    "Objective.lower_bound": "the objective itself",
    "Objective.upper_bound": "infinity",
    "PathwiseBatchAcquisitionFunction._condition": "the utility of pending decisions",
    "PathwiseBatchAcquisitionFunction._over_paths": "the mean",
    "PathwiseBatchAcquisitionFunction._shared": "nothing is shared by the paths",
    "ObjectivePolicy.exploiting": "the objective of the mean, over all contexts",
    "Policy.check": "it takes any adversary",
    "Policy.maximises_worst_case": "no: it may maximise something else",
    "Recipe._method": "the docstring of the class",
    "Recipe.default_surrogate": "that of the library",
    "Surrogate.is_ensemble": "no: it makes one model",
    "Surrogate.num_models": "one",
    "Surrogate.predict_others": "a fit, and its predictions",
    "Surrogate.is_refitted": "yes: it fits hyper-parameters, quickly",
    "View.coarse": "the view itself: no cheaper variances",
    "PosteriorAcquisitionFunction._contexts": "those of the context set",
    "PosteriorAcquisitionFunction._over_models": "the mean",
    "PosteriorAcquisitionFunction._paid_by_all": "nothing",
    "PosteriorAcquisitionFunction._ranking": "the values themselves",
    "PosteriorAcquisitionFunction._repulsion": "pending decisions repel nothing",
}
# Checks of options that a class adds to those of the class above it.
EXTENDED = {
    "Adversary.__post_init__",
    "ContextRule.__post_init__",
    "DelegatingRecipe.__post_init__",
    "ModelBasedRecipe.__post_init__",
    "ObjectivePolicy.__post_init__",
    "Policy.__post_init__",
    "Surrogate.__post_init__",
}
# No method to leave open: what it is a rule of, the classes below it say.
BASES_WITHOUT_METHODS = {"Rule"}


def own_classes() -> Iterator[type]:
    found: set[type] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        for kind in vars(importlib.import_module(name)).values():
            if inspect.isclass(kind) and is_own(kind):
                found.add(kind)
    yield from found


def is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "botorch_drbo"


def function_of(value: object) -> object:
    """What a method, property or class method runs; None of anything else."""
    if isinstance(value, property):
        return value.fget
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    return value if inspect.isfunction(value) else None


def is_written(function: object) -> bool:
    """Whether somebody wrote it, and not the decorator of dataclasses."""
    function = inspect.unwrap(function) if callable(function) else function
    code = getattr(function, "__code__", None)
    return code is not None and not code.co_filename.startswith("<")


def overridden(kinds: Iterable[type]) -> dict[str, set[type]]:
    """Concrete methods that another class overrides, constructors aside."""
    found: dict[str, set[type]] = {}
    for kind in kinds:
        for base in filter(is_own, kind.__mro__[1:]):
            for name in vars(kind).keys() & vars(base).keys() - {"__init__"}:
                default, own = (function_of(vars(c)[name]) for c in (base, kind))
                if getattr(default, "__isabstractmethod__", False):
                    continue
                if is_written(default) and is_written(own):
                    found.setdefault(f"{base.__name__}.{name}", set()).add(kind)
    return found


def concrete_bases(kinds: Iterable[type]) -> set[str]:
    bases = {base for kind in kinds for base in kind.__bases__ if is_own(base)}
    return {base.__name__ for base in bases if not inspect.isabstract(base)}


KINDS = list(own_classes())


def test_no_concrete_class_is_subclassed() -> None:
    assert len(KINDS) > 150  # the walk finds the package
    assert concrete_bases(KINDS) == BASES_WITHOUT_METHODS


def test_only_defaults_are_overridden() -> None:
    """A new one is a line of the list, with what its default is."""
    assert set(overridden(KINDS)) == DEFAULTS.keys() | EXTENDED


def test_checks_of_options_are_extended_and_not_replaced() -> None:
    found = overridden(KINDS)
    for name in EXTENDED:
        for kind in found[name]:
            source = inspect.getsource(vars(kind)["__post_init__"])
            assert "super().__post_init__()" in source, kind


def test_the_rule_sees_what_it_forbids() -> None:
    class Base(ABC):
        @abstractmethod
        def left_open(self) -> int: ...

        def closed(self) -> int:
            return 1

    class Final(Base):
        def left_open(self) -> int:
            return 2

        def closed(self) -> int:
            return 3

    class Below(Final):
        pass

    for kind in (Base, Final, Below):
        kind.__module__ = "botorch_drbo.somewhere"
    assert overridden([Base, Final, Below]) == {"Base.closed": {Final}}
    assert concrete_bases([Base, Final, Below]) == {"Final"}
