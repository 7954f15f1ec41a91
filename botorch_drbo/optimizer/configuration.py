"""What a run was made with: its recipe, its boxes, its seed; as objects and as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo._validation import check_bounds, check_count
from botorch_drbo.algorithms import (
    ALGORITHMS,
    Algorithm,
    ModelMaker,
    SearchSpace,
    algorithm_from_dict,
)
from botorch_drbo.optimizer.dtypes import (
    DTYPES,
    coarser_dtypes,
    dtype_name,
    stored_dtype,
)
from botorch_drbo.optimizer.events import as_matrix
from botorch_drbo.space import Space

INITIAL_DESIGNS = ("sobol", "sobol_joint")


class Configuration:
    r"""All that a run depends on beside its events.

    Args:
        algorithm: The recipe.
        bounds: Lower and upper bounds of the decision, ``2 x d_x``, or a space of
            named variables.
        context_bounds: Lower and upper bounds of the context, ``2 x d_c``; None with a
            space.
        seed: Decides every random draw.
        maximize: False if low outcomes are good.
        num_initial: Size of the initial design; None for ``2 * (d_x + 1)``.
        initial_design: A key of ``INITIAL_DESIGNS``.
        perturbation: Whether the context is added to the decision.

    Raises:
        InputDataError: A value outside its range.
        BotorchTensorDimensionError: Bounds that are not ``2 x d``.
        UnsupportedError: A recipe that can make nothing of such a space.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        bounds: Tensor | Space,
        context_bounds: Tensor | None,
        *,
        seed: int,
        maximize: bool,
        num_initial: int | None,
        initial_design: str = "sobol",
        perturbation: bool = False,
    ) -> None:
        self.named = bounds if isinstance(bounds, Space) else None
        space = None
        if isinstance(bounds, Space):
            if context_bounds is not None:
                raise InputDataError(
                    "Got a Space and `context_bounds`: a Space says what the contexts "
                    "are. Leave out `context_bounds`."
                )
            space = bounds.search_space
            bounds, context_bounds = space.bounds, space.context_bounds
        if context_bounds is None:
            raise InputDataError(
                "`context_bounds` is missing. Give both bounds, or a Space of named "
                "variables."
            )
        check_bounds(bounds, "bounds")
        check_bounds(context_bounds, "context_bounds")
        if bounds.dtype not in (torch.float32, torch.float64):
            raise InputDataError(
                f"`bounds` must be float64 or float32, got {bounds.dtype}."
            )
        if not isinstance(maximize, bool):
            raise InputDataError(f"`maximize` must be True or False, got {maximize!r}.")
        self.algorithm = algorithm
        self.space = space or SearchSpace(
            bounds.detach().clone(), context_bounds.detach().clone().to(bounds)
        )
        if not isinstance(perturbation, bool):
            raise InputDataError(
                f"`perturbation` must be True or False, got {perturbation!r}."
            )
        if perturbation:
            self.space = replace(self.space, perturbation=True)
        algorithm.check_space(self.space)
        algorithm.check_radius(self.space)
        self.context_bounds = context_bounds.detach().to(bounds.device)  # own dtype
        self.maximize = maximize
        self.seed = check_count(seed, "seed", 0)
        if num_initial is None:
            num_initial = 2 * (self.space.d_x + 1)
        self.num_initial = check_count(num_initial, "num_initial", 0)
        if initial_design not in INITIAL_DESIGNS:
            raise InputDataError(
                f"`initial_design` must be one of {INITIAL_DESIGNS}, got "
                f"{initial_design!r}."
            )
        self.initial_design = initial_design

    def to_dict(self) -> dict[str, Any]:
        r"""Describe it in plain JSON types, exactly.

        Returns:
            What ``from_dict`` reads.

        Raises:
            InputDataError: The recipe is in no registry, by which it could be found.
        """
        if ALGORITHMS.get(self.algorithm.name) is not type(self.algorithm):
            raise InputDataError(
                f"A run of {type(self.algorithm).__name__} cannot be saved: a saved "
                "run names its algorithm. Register the class first: "
                "`ALGORITHMS[YourAlgorithm.name] = YourAlgorithm`."
            )
        bounds = self.space.bounds
        return {
            "algorithm": self.algorithm.to_dict(),
            "bounds": bounds.tolist(),
            "context_bounds": self.space.context_bounds.tolist(),
            "dtype": dtype_name(bounds),
            **coarser_dtypes(bounds, context_bounds=self.context_bounds),
            "seed": self.seed,
            "maximize": self.maximize,
            "num_initial": self.num_initial,
            "initial_design": self.initial_design,
            **({"perturbation": True} if self.space.perturbation else {}),
            **({} if self.named is None else {"space": self.named.to_dict()}),
        }

    @classmethod
    def from_dict(
        cls,
        config: object,
        device: torch.device | str,
        named: Space | None = None,
        model: ModelMaker | None = None,
    ) -> Configuration:
        r"""Read what ``to_dict`` has written.

        Args:
            config: Anything that JSON can hold.
            device: Where to compute.
            named: The space of the run, for one whose constraints are functions.
            model: The function that makes the model of the recipe, if it has one.

        Returns:
            The configuration.

        Raises:
            InputDataError: It is damaged, or ``model`` is missing.
            BotorchTensorDimensionError: Bounds that are not ``2 x d``.
        """
        if not isinstance(config, dict):
            raise InputDataError("it is no JSON object.")
        try:
            dtype = DTYPES[config["dtype"]]
            own = stored_dtype(config, "context_bounds", dtype)
            bounds = as_matrix(config["bounds"], "bounds")
            context_bounds = as_matrix(config["context_bounds"], "context_bounds")
            rest = {name: config[name] for name in ("seed", "maximize", "num_initial")}
            check_count(rest["num_initial"], "num_initial", 0)  # None is not stored
            # Runs of version 0.1.0 know one design only.
            rest["initial_design"] = config.get("initial_design", "sobol")
            rest["perturbation"] = config.get("perturbation", False)
            algorithm = algorithm_from_dict(config["algorithm"], model)
            space = _stored_space(config.get("space"), named)
        except (  # whatever a recipe stumbles over in a damaged option
            ArithmeticError,
            AttributeError,
            LookupError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            raise InputDataError(
                f"{error!r}. It is damaged: restore it from a copy."
            ) from error
        if space is not None:
            return cls(algorithm, space, None, **rest)
        return cls(
            algorithm, bounds.to(device, dtype), context_bounds.to(device, own), **rest
        )


def _stored_space(stored: Any, named: Space | None) -> Space | None:
    """The space of a stored run; one that is given must be the same."""
    if named is None:
        return None if stored is None else Space.from_dict(stored)
    if not isinstance(named, Space):
        raise InputDataError(f"`space` must be a Space, got {type(named).__name__}.")
    if stored is None:
        raise InputDataError(
            "`space` was given, but the run has no named variables. Leave it out."
        )
    now = named.to_dict()
    different = [key for key in now if now[key] != stored.get(key)]
    if different:
        key = different[0]
        raise InputDataError(
            f"it is the journal of another problem: its {key} are {stored.get(key)}, "
            f"not {now[key]}."
        )
    return named
