"""The base class of surrogates, and the data to which they are fitted."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, cast

import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms import Standardize
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputTransform,
    Normalize,
    NumericToCategoricalEncoding,
    Round,
)
from botorch.posteriors import GPyTorchPosterior
from botorch.settings import validate_input_scaling
from gpytorch.settings import min_fixed_noise
from torch import Tensor
from torch.nn.functional import one_hot

from botorch_drbo._validation import check_options
from botorch_drbo.codec.objects import storable
from botorch_drbo.posterior.blocks import any_variance
from botorch_drbo.posterior.mixture import GaussianMixture
from botorch_drbo.problem.search_space import Categories, Features


def model_inputs(
    bounds: Tensor, categories: Categories, features: Features | None = None
) -> InputTransform:
    """The input transform of a model.

    Numbers are scaled to the unit cube. A category becomes a vector with a one at its
    place: any two are equally far apart, so that the kernel knows no order. Behind it
    come the features of its level, if there are any.

    Shapes: ``bounds``: ``2 x d``.
    """
    d, features = bounds.shape[-1], features or {}
    if not categories:
        return Normalize(d, bounds=bounds)
    parts: OrderedDict[str, InputTransform] = OrderedDict()
    parts["round"] = Round(integer_indices=list(categories))
    numbers = [j for j in range(d) if j not in categories]
    if numbers:
        parts["normalize"] = Normalize(d, indices=numbers, bounds=bounds)
    widths = num_columns(d, categories, features).tolist()
    parts["encode"] = NumericToCategoricalEncoding(
        d,
        categorical_features={j: widths[j] for j in categories},
        encoders={
            j: partial(_with_features, features[j])
            if j in features
            else partial(one_hot, num_classes=k)
            for j, k in categories.items()
        },
    )
    return ChainedInputTransform(**parts)


def _with_features(table: Tensor, levels: Tensor) -> Tensor:
    """One-hot vectors of levels ``...``, and rows of ``k x p``: ``... x (k + p)``."""
    table = table.to(levels.device)
    return torch.cat([one_hot(levels, len(table)).to(table), table[levels]], -1)


def num_columns(
    d: int, categories: Categories, features: Features | None = None
) -> Tensor:
    """How many columns of the model each of ``d`` inputs becomes, ``d``."""
    of_levels = {j: table.shape[-1] for j, table in (features or {}).items()}
    return torch.tensor([categories.get(j, 1) + of_levels.get(j, 0) for j in range(d)])


_ROUNDING = 4.0  # spacings of the largest outcome: a smaller range is none


def level_and_unit(Y: Tensor, noun: str = "outcomes") -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of outcomes, however small or large their spread.

    BoTorch's own default leaves outcomes of a spread below ``1e-8`` as they are. Here
    only outcomes that are equal up to rounding have no spread. Their own size is the
    unit then (one if they are zero): the model knows nothing but their level, and the
    search is pure exploration.

    Shapes: ``Y``: ``t x 1``.
    """
    largest, spread = Y.abs().max(), Y.max() - Y.min()
    equal = bool(spread <= _ROUNDING * torch.finfo(Y.dtype).eps * largest)
    size = largest.where(largest > 0, 1.0) if equal else spread
    info = torch.finfo(Y.dtype)
    low, high = (info.tiny / info.eps) ** 0.5, (info.max * info.eps) ** 0.5
    if not low <= size.item() <= high:
        raise InputDataError(
            # Without the sign, which is reversed in a run that minimises.
            f"The {noun} differ by {spread.item()} and are up to {largest.item()} in "
            f"size: their variance is not a number of {Y.dtype}. Measure them in "
            f"another unit, in which they differ by {low:.0e} to {high:.0e}, and look "
            "whether one of them is wrong."
        )
    if not equal:
        return Y.mean(), Y.std()
    if len(Y) > 1:
        warnings.warn(
            f"All {len(Y)} {noun} are equal: there is nothing to learn from them yet, "
            "and decisions are pure exploration. Check that they are what you mean to "
            "tell, and that they are not rounded.",
            InputDataWarning,
            stacklevel=2,
        )
    return Y.mean(), size


def scaled_model(
    inputs: Tensor,
    Y: Tensor,
    level: Tensor,
    unit: Tensor,
    Yvar: Tensor | None = None,
    **options: Any,
) -> SingleTaskGP:
    """Make a model that is fitted to ``(y - level) / unit`` and predicts ``y``.

    Shapes: ``inputs``: ``t x d``, ``Y``: ``t x 1``, ``Yvar``: ``t x 1``.
    """
    # GPyTorch's, which would warn of it; it has one for each floating point type.
    least = cast(float, min_fixed_noise.value(Y.dtype))
    # BoTorch recommends standardised outcomes; a known prior need not fit the data.
    with validate_input_scaling(False):
        model = SingleTaskGP(
            inputs,
            (Y - level) / unit,
            None if Yvar is None else (Yvar / unit.square()).clamp_min(least),
            outcome_transform=None,
            **options,
        )
    transform = Standardize(m=1).to(Y)
    ones = torch.ones_like(transform.stdvs)
    transform.load_state_dict(
        {
            "means": level * ones,
            "stdvs": unit * ones,
            "_stdvs_sq": unit.square() * ones,
            "_is_trained": torch.tensor(True),
        }
    )
    # Not given to the constructor, which would have it learn.
    model.outcome_transform = transform.eval()
    return model


MANY_ROWS = 499
"""With more rows no model is fitted to folds of them."""


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
        features: Numbers that describe the levels of categories, ``k x p`` each: see
            ``Category``.
    """

    inputs: Tensor
    outcomes: Tensor
    bounds: Tensor
    Yvar: Tensor | None = None
    categories: Categories = field(default_factory=dict)
    num_joint: int | None = None
    noun: str = "outcomes"
    given_units: tuple[Tensor, Tensor] | None = None
    features: Features = field(default_factory=dict)

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
        transform = model_inputs(self.bounds, self.categories, self.features)
        columns = transform(self.inputs).double().cpu().mT  # d x t
        first, second = torch.triu_indices(len(self.inputs), len(self.inputs), 1)
        return (columns[:, first] - columns[:, second]).square()

    @cached_property
    def squared_differences_of_variables(self) -> Tensor:
        """The same of variables: of two levels 0 or 2; then those of their features.

        Shapes: returns ``v x t(t-1)/2``.
        """
        parts = self.squared_differences.split(self._widths.tolist())
        levels = [part[: self.categories.get(j, 1)] for j, part in enumerate(parts)]
        described = [parts[j][self.categories[j] :] for j in self.features]
        return torch.stack([part.sum(0) for part in [*levels, *described]])

    def of_rows(self, rows: Tensor) -> ModelData:
        """The data of some of the rows, ``t`` truth values or their numbers."""
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
            ``num`` rows in their order, always the same, whatever the order of all.
        """
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randperm(len(self.inputs), generator=generator)[self.places] < num
        subset = self.of_rows(drawn.to(self.inputs.device))
        return replace(subset, given_units=self.units)

    @cached_property
    def places(self) -> Tensor:
        """The place of each row, ``t``, sorted by numbers, outcomes, and company.

        A level has no number of its own: it is known by the rows that have it. Rows
        that nothing tells apart stay in their order, as do very many rows that only
        their levels do.
        """
        numbers = [j for j in range(self.inputs.shape[-1]) if j not in self.categories]
        columns = [self.inputs[:, numbers], self.outcomes]
        columns += [] if self.Yvar is None else [self.Yvar]
        ranks, before = _ranks(torch.cat(columns, -1).double().cpu()), 0
        levels = self.inputs[:, list(self.categories)].cpu().mT  # v x t
        # Equal ranks are split as long as the levels of their rows have different rows:
        # colour refinement of graphs.
        while (
            levels.numel() > 0
            and len(ranks) <= MANY_ROWS
            and before < len(ranks.unique()) < len(ranks)
        ):
            before = len(ranks.unique())
            same = levels.unsqueeze(-1) == levels.unsqueeze(-2)  # v x t x t
            company = torch.where(same, ranks, -1).sort(-1).values
            ranks = _ranks(torch.cat([ranks[:, None], *company], -1))
        return ranks.argsort(stable=True).argsort()

    @property
    def num_columns(self) -> int:
        """The number of model inputs; a category has one for each value."""
        return int(self._widths.sum())

    @property
    def _widths(self) -> Tensor:
        return num_columns(self.inputs.shape[-1], self.categories, self.features)

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
            input_transform=model_inputs(self.bounds, self.categories, self.features),
            **options,
        )


def _ranks(rows: Tensor) -> Tensor:
    """The place of each row among the different ones, by the first column first."""
    return rows.unique(dim=0, return_inverse=True)[1]


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

    def predict_others(self, told: ModelData, every: ModelData) -> GaussianMixture:
        r"""Predict outcomes, noise included, by a fit that was not told them.

        By ``fit``; override it only if predictions cost less without a model.

        Args:
            told: Rows to fit.
            every: These rows, and behind them those to predict, in the units of
                ``told``.

        Returns:
            The outcomes of the other rows in the user's units, ``S x m`` of ``S``
            models.
        """
        model, rows = self.fit(told), slice(len(told.inputs), None)
        others = every.inputs[rows]
        with torch.no_grad(), any_variance():
            posterior = cast(
                GPyTorchPosterior,
                model.posterior(others, observation_noise=every.Yvar is None),
            )
            means = posterior.mean.reshape(-1, len(others))  # S x m
            variances = posterior.variance.reshape(-1, len(others))
            if every.Yvar is not None:
                variances = variances + every.Yvar[rows].flatten()
        means, variances = means.double().cpu(), variances.double().cpu()
        return GaussianMixture(means, variances.sqrt())
