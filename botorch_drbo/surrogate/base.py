"""The base class of surrogates, and the data to which they are fitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import check_options
from botorch_drbo.codec.tags import storable
from botorch_drbo.problem.search_space import Categories
from botorch_drbo.surrogate.model_inputs import model_inputs, num_columns
from botorch_drbo.surrogate.outcome_units import level_and_unit, scaled_model

MANY_ROWS = 499
"""With more rows a fit begins with some of them."""
FIRST_ROWS = 300
"""With so many, drawn under a fixed seed."""


@dataclass(frozen=True, eq=False)
class ModelData:
    r"""The inputs and outcomes of a fit, and what several models share.

    Attributes:
        inputs: ``t x d``, in the user's units: ``[x, c]``, or decisions alone.
        outcomes: ``t x 1``, to be maximised.
        bounds: The box of the inputs, ``2 x d``.
        Yvar: The variances of the noise in the outcomes, ``t x 1``; None if not known.
        categories: Inputs that are categories, and how many there are.
        num_joint: How many decision and context variables there are; None for ``d``.
        noun: What the outcomes are, for messages.
        given_units: See ``units``; None for mean and deviation of these outcomes.
    """

    inputs: Tensor
    outcomes: Tensor
    bounds: Tensor
    Yvar: Tensor | None = None
    categories: Categories = field(default_factory=dict)
    num_joint: int | None = None
    noun: str = "outcomes"
    given_units: tuple[Tensor, Tensor] | None = None

    @cached_property
    def units(self) -> tuple[Tensor, Tensor]:
        """What becomes zero and what becomes one in a model, scalars."""
        return self.given_units or level_and_unit(self.outcomes, self.noun)

    @cached_property
    def scaled_outcomes(self) -> Tensor:
        """Outcomes as a model sees them, ``t``, float64."""
        level, unit = self.units
        return ((self.outcomes - level) / unit).double().cpu().flatten()

    @cached_property
    def scaled_noise(self) -> Tensor | None:
        """Known variances of their noise, ``t``, float64; None if not known."""
        if self.Yvar is None:
            return None
        return (self.Yvar / self.units[1].square()).double().cpu().flatten()

    @cached_property
    def squared_differences(self) -> Tensor:
        """Of each two inputs as a model sees them, ``d x t(t-1)/2``, float64."""
        transform = model_inputs(self.bounds, self.categories)
        columns = transform(self.inputs).double().cpu().mT  # d x t
        first, second = torch.triu_indices(len(self.inputs), len(self.inputs), 1)
        return (columns[:, first] - columns[:, second]).square()

    @cached_property
    def squared_differences_of_variables(self) -> Tensor:
        """The same of variables: of two levels 0 or 2, ``v x t(t-1)/2``."""
        widths = num_columns(self.inputs.shape[-1], self.categories).tolist()
        parts = self.squared_differences.split(widths)
        return torch.stack([part.sum(0) for part in parts])

    def of_rows(self, rows: Tensor) -> ModelData:
        """The data of some of the rows, ``t`` truth values."""
        return replace(
            self,
            inputs=self.inputs[rows],
            outcomes=self.outcomes[rows],
            Yvar=None if self.Yvar is None else self.Yvar[rows],
        )

    def sample(self, num: int) -> ModelData:
        r"""Some of the rows, drawn under a fixed seed, in the units of all of them.

        Args:
            num: How many, fewer than there are.

        Returns:
            ``num`` rows in their order, always the same.
        """
        rows = torch.zeros(len(self.inputs), dtype=torch.bool)
        generator = torch.Generator().manual_seed(0)
        rows[torch.randperm(len(rows), generator=generator)[:num]] = True
        subset = self.of_rows(rows.to(self.inputs.device))
        return replace(subset, given_units=self.units)

    @property
    def num_columns(self) -> int:
        """The number of model inputs; a category has one for each value."""
        return int(num_columns(self.inputs.shape[-1], self.categories).sum())

    def model(self, **options: object) -> SingleTaskGP:
        r"""An unfitted model of these data.

        Args:
            options: Further arguments of ``SingleTaskGP``.

        Returns:
            The model, with the user's units.
        """
        return scaled_model(
            self.inputs,
            self.outcomes,
            *self.units,
            self.Yvar,
            input_transform=model_inputs(self.bounds, self.categories),
            **options,
        )


@storable
class Surrogate(ABC):
    r"""A model of the outcome: from data to a fitted BoTorch model.

    For a surrogate of your own, subclass this class, or write a function (see ``model``
    of the recipes). Runs with a journal store it by its class and the arguments of its
    constructor.

    Example:
        >>> import torch
        >>> from botorch_drbo.surrogate import ModelData, SURROGATES
        >>> Z = torch.rand(8, 2, dtype=torch.double)
        >>> unit = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
        >>> data = ModelData(Z, Z.sum(-1, keepdim=True), unit)
        >>> SURROGATES["matern"].fit(data).posterior(Z).mean.shape
        torch.Size([8, 1])
    """

    def __post_init__(self) -> None:
        """Check the options of a dataclass by their declarations."""
        check_options(self)

    @property
    def is_ensemble(self) -> bool:
        """Whether it is an ensemble of several models."""
        return False

    @property
    def num_models(self) -> int:
        """The number of models; 1 for a function, whose number is unknown."""
        return 1

    @property
    def is_refitted(self) -> bool:
        """Whether checks may fit it again to fewer outcomes.

        If not, hyper-parameters stay those of the fit to all outcomes.
        """
        return True

    @abstractmethod
    def fit(self, data: ModelData) -> Model:
        r"""Fit a model from scratch.

        Args:
            data: Inputs and outcomes.

        Returns:
            A model of one output in evaluation mode, in the user's units: the same
            whenever the data are.
        """
