"""Input transforms that are a shift and a scale, as two numbers per column."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputStandardize,
    Normalize,
)
from torch import Tensor
from torch.nn import Module

from botorch_drbo.posterior.known_columns import KnownColumns
from botorch_drbo.posterior.models import inputs_in_units


class AffineInputs(Module):
    r"""``T(z) = T(z_0) + a (z - z_0)`` by column, about one training input ``z_0``.

    An anchor among the data loses no digits where the columns lie far from zero.

    Args:
        anchor: ``z_0``, ``d``.
        image: ``T(z_0)``, ``d``.
        slope: ``a``, ``d``.
    """

    anchor: Tensor
    image: Tensor
    slope: Tensor

    def __init__(self, anchor: Tensor, image: Tensor, slope: Tensor) -> None:
        super().__init__()
        self.register_buffer("anchor", anchor, persistent=False)
        self.register_buffer("image", image, persistent=False)
        self.register_buffer("slope", slope, persistent=False)

    def forward(self, Z: Tensor) -> Tensor:
        r"""Transform inputs.

        Args:
            Z: ``... x d``, in the user's units.

        Returns:
            ``... x d``, as the kernel sees them.
        """
        return torch.addcmul(self.image, Z - self.anchor, self.slope)

    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Anchor, image and slope, ``d`` each."""
        return self.anchor, self.image, self.slope

    def of(self, columns: Sequence[int]) -> AffineInputs:
        r"""The same map for some of the columns, in float64.

        Args:
            columns: Which.

        Returns:
            The map of ``... x k`` inputs.
        """
        index = torch.tensor(columns, dtype=torch.long, device=self.slope.device)
        return AffineInputs(*(part[index].double() for part in self.parts()))

    def then(self, shift: Tensor, gain: Tensor) -> AffineInputs:
        r"""Subtract and multiply afterwards, in the same map.

        Args:
            shift: What is subtracted, ``d``.
            gain: What the difference is multiplied by, ``d``.

        Returns:
            ``z -> (T(z) - shift) gain``.
        """
        return AffineInputs(self.anchor, (self.image - shift) * gain, self.slope * gain)


def affine_inputs(model: SingleTaskGP) -> AffineInputs | None:
    r"""Read off what a model's input transform does.

    A call of the transform checks shapes and settings each time; this does not.

    Args:
        model: A ``SingleTaskGP`` in evaluation mode.

    Returns:
        The map, or None where the transform is not known to be of this form.

    Example:
        >>> import torch
        >>> from botorch.models.transforms.input import Normalize
        >>> Z = torch.tensor([[10.0], [30.0]], dtype=torch.double)
        >>> model = SingleTaskGP(Z, Z, input_transform=Normalize(1))
        >>> affine_inputs(model.eval())(Z)
        tensor([[0.],
                [1.]], dtype=torch.float64)
    """
    if not _is_affine(getattr(model, "input_transform", None)):
        return None
    # Each result depends on one column, linearly: the gradient of their sum has all the
    # slopes, and one image the shifts.
    anchor = inputs_in_units(model)[:1].detach()
    with torch.enable_grad():
        leaf = anchor.clone().requires_grad_()
        image = model.transform_inputs(leaf)
        (slope,) = torch.autograd.grad(image.sum(), leaf)
    return AffineInputs(anchor[0], image.detach()[0], slope[0])


def _is_affine(transform: Module | None) -> bool:
    if type(transform) is ChainedInputTransform:
        return all(_is_affine(part) for part in transform.values())
    return type(transform) in (type(None), KnownColumns, Normalize, InputStandardize)
