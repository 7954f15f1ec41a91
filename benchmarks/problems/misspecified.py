r"""Functions that a kernel can represent, but for a bounded error of known size."""

from __future__ import annotations

import math
from typing import ClassVar, Literal, get_args

import torch
from botorch.exceptions.errors import InputDataError
from torch import Generator, Tensor
from torch.distributions import Distribution

from botorch_drbo._validation import check_count, check_nonnegative
from botorch_drbo.sampling import sobol
from botorch_drbo.test_functions.base import (
    Optimum,
    RobustTestFunction,
    Separated,
    find_optimum,
    uniform_law,
)
from botorch_drbo.test_functions.closed_form import unit_bounds

Perturbation = Literal["waves", "bumps"]

_WAVELENGTH = 0.5  # of a wave, in lengthscales
_NUM_LEVEL = 2**12  # points of the cube, for the mean of h
_NUM_RAW, _NUM_STARTS = 2**13, 24  # of the search for the optimum: there are many hills


class MisspecifiedFunction(RobustTestFunction):
    r"""A random function of a kernel's space, plus an error of size ``epsilon``.

    .. math:: f(z) = h(z) + p(z), \qquad h(z) = \sum_{i=1}^m a_i k(z, z_i),
        \quad \lVert h \rVert_k = B, \quad \max_z |p(z)| = \epsilon

    on the unit cube, with the Gaussian kernel
    :math:`k(z, z') = e^{-\|z - z'\|^2 / (2 \ell^2)}`. The ``m`` centres are uniform,
    the weights normal and scaled such that :math:`a' K a = B^2` exactly. So a model
    with this kernel is wrong by at most ``epsilon``, and the norm that theory asks for
    is known.

    ``perturbation`` says which error:

    - ``"waves"``: a product of cosines, one for each coordinate, of half a lengthscale
      from crest to crest and with random phases. It is smooth, but to reproduce it a
      kernel of this lengthscale would need a norm of far more than
      :math:`10^4 \epsilon`.
    - ``"bumps"``: an adversary's. The cube is cut into cells of about half a
      lengthscale, and in the middle of each stands a bump
      :math:`\pm \epsilon (1 - r^2 / R^2)_+^3` whose foot fills the cell. It points down
      where ``h`` is above its mean over the cube, and up elsewhere: good decisions
      look worse, bad ones better, and where many cells in a row have one sign the
      observations in their middles are all wrong by ``epsilon`` in one direction, which
      no averaging reveals. Between the middles there is no error.

    In the spirit of the lower bounds of [Bogunovic2021misspecified]_, Appendix C;
    this construction is our own.

    ``z`` is ``[x, c]``. With ``d_c = 0`` it is the decision alone, for bandits without
    a context. There is then still one column of contexts, which changes nothing.

    Args:
        perturbation: The kind of error.
        seed: Picks centres, weights and phases.
        misspecification: ``epsilon``.
        norm: ``B``.
        lengthscale: :math:`\ell`, in sides of the cube; at most 2.
        d_x: The number of decision variables.
        d_c: The number of context variables on which the function depends.
        num_centres: ``m``.
        context_law: A law of your own in place of the uniform one.
        noise_std: Standard deviation of the observation noise.

    Raises:
        InputDataError: A number out of range, or an unknown kind of error.

    Example:
        >>> import torch
        >>> function = MisspecifiedFunction("waves", seed=1, misspecification=0.1)
        >>> x, c = torch.rand(5, 2).double(), torch.rand(5, 1).double()
        >>> error = function.evaluate(x, c) - function.represented(x)
        >>> bool(error.abs().max() <= 0.1)
        True
    """

    _pairs_at_once: ClassVar[int] = 2**15

    def __init__(
        self,
        perturbation: Perturbation = "waves",
        seed: int = 0,
        *,
        misspecification: float = 0.1,
        norm: float = 1.0,
        lengthscale: float = 0.2,
        d_x: int = 2,
        d_c: int = 0,
        num_centres: int = 30,
        context_law: Distribution | None = None,
        noise_std: float = 0.0,
    ) -> None:
        if perturbation not in get_args(Perturbation):
            raise InputDataError(
                f"`perturbation` must be one of {get_args(Perturbation)}, got "
                f"{perturbation!r}."
            )
        for name, value, least in (
            ("seed", seed, 0),
            ("d_x", d_x, 1),
            ("d_c", d_c, 0),
            ("num_centres", num_centres, 1),
        ):
            check_count(value, name, minimum=least)
        self.misspecification = float(
            check_nonnegative(misspecification, "misspecification")
        )
        self.norm = float(check_nonnegative(norm, "norm"))
        self.lengthscale = float(check_nonnegative(lengthscale, "lengthscale"))
        if not 0.0 < self.lengthscale <= 2.0:
            raise InputDataError(
                "`lengthscale` must be above 0 and at most 2 sides of the cube (a wave "
                f"has to fit in), got {lengthscale}."
            )
        generator = Generator().manual_seed(seed)
        d = d_x + d_c
        self._centres = torch.rand(
            num_centres, d, generator=generator, dtype=torch.double
        )  # m x d
        weights = torch.randn(num_centres, generator=generator, dtype=torch.double)
        phases = torch.rand(d, generator=generator, dtype=torch.double)
        square = weights @ self._kernel(self._centres) @ weights
        self._weights = self.norm / square.sqrt() * weights  # m
        self._phases = 2 * math.pi * phases
        self._kind = perturbation
        self._num_cells = max(1, round(2.0 / self.lengthscale))  # on each axis
        self._depends = d_c > 0
        if perturbation == "bumps":
            points = sobol(_NUM_LEVEL, d, scramble=False)
            self._level = self._represented(points).mean()
        bounds, context_bounds = unit_bounds(d_x), unit_bounds(max(d_c, 1))
        super().__init__(
            f"misspecified_{perturbation}",
            bounds=bounds,
            context_bounds=context_bounds,
            context_law=context_law or uniform_law(context_bounds),
            noise_std=noise_std,
            separated=None if self._depends else Separated(self._alone, _one),
        )

    def represented(self, X: Tensor, C: Tensor | None = None) -> Tensor:
        r"""The part ``h`` that the kernel can represent.

        Args:
            X: Decisions, ``... x d_x``.
            C: Contexts, ``... x d_c``; None if the function knows none.

        Returns:
            Values, ``...``.
        """
        if not self._depends:
            self._check_columns(X, self.d_x, "X")
            return self._represented(X)
        if C is None:
            raise InputDataError(
                "`C` must be given: this function depends on contexts."
            )
        self._check_columns(X, self.d_x, "X")
        self._check_columns(C, self.d_c, "C")
        shape = torch.broadcast_shapes(X.shape[:-1], C.shape[:-1])
        Z = torch.cat([X.expand(*shape, -1), C.to(X).expand(*shape, -1)], dim=-1)
        return self._represented(Z)

    @property
    def optimum(self) -> Optimum:
        r"""The optimum of the perturbed function, searched for at the first use."""
        if self._known_optimum is None:
            self._known_optimum = find_optimum(
                self,
                num_contexts=2**13 if self._depends else 1,
                num_raw=_NUM_RAW,
                num_starts=_NUM_STARTS,
            )
        return self._known_optimum

    def optimum_among(self, candidates: Tensor) -> Optimum:
        r"""The best of a finite list of decisions, for bandits on a grid; exact.

        Args:
            candidates: Decisions, ``m x d_x``.

        Returns:
            The best expected value of the perturbed function, and its decision.
        """
        values = self.expected_value(candidates)
        best = int(values.argmax())
        return Optimum(float(values[best]), tuple(candidates[best].tolist()))

    def _evaluate(self, x: Tensor, c: Tensor) -> Tensor:
        Z = torch.cat([x, c], dim=-1) if self._depends else x
        return self._represented(Z) + self._error(Z)

    def _alone(self, x: Tensor) -> Tensor:
        return (self._represented(x) + self._error(x)).unsqueeze(-1)

    def _kernel(self, Z: Tensor) -> Tensor:
        """Rows of the kernel at the centres, ``... x m``."""
        gaps = (Z.unsqueeze(-2) - self._centres.to(Z)) / self.lengthscale
        return (-0.5 * gaps.square().sum(-1)).exp()

    def _represented(self, Z: Tensor) -> Tensor:
        return self._kernel(Z) @ self._weights.to(Z)

    def _error(self, Z: Tensor) -> Tensor:
        if self._kind == "waves":
            frequency = 2 * math.pi / (_WAVELENGTH * self.lengthscale)
            waves = (frequency * Z + self._phases.to(Z)).cos()
            return self.misspecification * waves.prod(-1)
        place = (Z * self._num_cells).floor().clamp(0, self._num_cells - 1)
        middle = (place + 0.5) / self._num_cells  # of the cell that holds Z
        radius = (2.0 * (Z - middle) * self._num_cells).square().sum(-1)
        shape = (1.0 - radius).clamp_min(0.0) ** 3
        with torch.no_grad():
            down = self._represented(middle) > self._level.to(Z)
        return self.misspecification * torch.where(down, -shape, shape)


def _one(points: Tensor) -> Tensor:
    return torch.ones_like(points[:, :1])
