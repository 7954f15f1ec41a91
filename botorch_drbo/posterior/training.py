"""Conditioning on the training data; their covariance is factorised here only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from botorch.acquisition.objective import (
    PosteriorTransform,
    ScalarizedPosteriorTransform,
)
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import (
    ChainedInputTransform,
    InputStandardize,
    Normalize,
)
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.pathwise.utils import get_train_inputs
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import InducingPointKernel, Kernel
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor
from torch.nn import Module

from botorch_drbo.posterior.models import inputs_in_units
from botorch_drbo.posterior.wrapped import KnownColumns


class AffineInputs(Module):
    """``T(z) = T(z_0) + a (z - z_0)`` by column, about one training input ``z_0``.

    An anchor among the data loses no digits where the columns lie far from zero.
    """

    # ``z_0``, ``d``.
    anchor: Tensor
    # ``T(z_0)``, ``d``.
    image: Tensor
    # ``a``, ``d``.
    slope: Tensor

    def __init__(self, anchor: Tensor, image: Tensor, slope: Tensor) -> None:
        super().__init__()
        self.register_buffer("anchor", anchor, persistent=False)
        self.register_buffer("image", image, persistent=False)
        self.register_buffer("slope", slope, persistent=False)

    def forward(self, Z: Tensor) -> Tensor:
        """Transform inputs.

        Shapes: ``Z``: ``... x d``, returns ``... x d``.
        """
        return torch.addcmul(self.image, Z - self.anchor, self.slope)

    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Anchor, image and slope, ``d`` each."""
        return self.anchor, self.image, self.slope

    def of(self, columns: Sequence[int]) -> AffineInputs:
        """The same map for some of the columns, in float64.

        Shapes: returns ``... x k``.
        """
        index = torch.tensor(columns, dtype=torch.long, device=self.slope.device)
        return AffineInputs(*(part[index].double() for part in self.parts()))

    def then(self, shift: Tensor, gain: Tensor) -> AffineInputs:
        """Subtract and multiply afterwards, in the same map."""
        return AffineInputs(self.anchor, (self.image - shift) * gain, self.slope * gain)


def affine_inputs(model: SingleTaskGP) -> AffineInputs | None:
    """Read off what a model's input transform does.

    A call of the transform checks shapes and settings each time; this does not.
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


_BLOCK_ELEMENTS = 2**21  # of the kernel between inducing points and rows


class TrainingSystem(NamedTuple):
    """The linear system of a model's training data, in standardised outcomes."""

    # Training inputs, transformed, ``t x d``, in the model's dtype.
    inputs: Tensor
    # Noise variances, ``t``, float64.
    noise: Tensor
    # ``K + noise``, ``t x t``, float64.
    covariance: Tensor
    # Its lower Cholesky factor ``L``, ``t x t``, float64.
    root: Tensor
    # Outcomes less the prior mean, ``t x 1``, float64.
    residual: Tensor

    @property
    def alpha(self) -> Tensor:
        """``(K + noise)^-1 (y - m)``, ``t x 1``."""
        return torch.cholesky_solve(self.residual, self.root)

    @property
    def inverse_root(self) -> Tensor:
        """``L^-1``, ``t x t``."""
        return _inverse(self.root)

    def path_weights(self, prior: Tensor, draws: Tensor) -> Tensor:
        """By Matheron's rule: ``(K + noise)^-1 (y - m - g - eps)`` of each path.

        Shapes: ``prior``: ``P x t``, ``draws``: ``P x t``, returns ``P x t``.
        """
        noise = self.noise.clamp_min(0.0).sqrt() * draws
        return torch.cholesky_solve((self.residual.mT - prior - noise).mT, self.root).mT


class InducingSystem(NamedTuple):
    r"""What the rows of a model of inducing points say, at the inducing points.

    With ``u`` the inducing points, ``Q = K_{zu} K_uu^-1 K_{uz}`` and ``D`` the noise
    and what ``Q`` leaves out of the variance of each row, as GPyTorch predicts from
    an ``InducingPointKernel`` [Snelson2006pseudo]_:

    .. math:: \alpha = \Sigma^{-1} K_{uz} D^{-1} (y - m), \qquad
        R' R = K_{uu}^{-1} - \Sigma^{-1}, \qquad
        \Sigma = K_{uu} + K_{uz} D^{-1} K_{zu}

    so that :math:`m + k_u(x) \alpha` and :math:`k(x, x) - \lVert R k_u(x) \rVert^2`
    are the moments: those of an exact model with ``m`` rows.
    """

    # The inducing points, transformed, ``m x d``, in the model's dtype.
    inputs: Tensor
    # Noise variances of the rows, ``t``, float64.
    noise: Tensor
    # ``m x 1``, float64.
    alpha: Tensor
    # ``R``, ``m x m``, float64.
    inverse_root: Tensor
    # A root of ``Sigma^-1``, ``m x m``, float64.
    spread: Tensor
    # The lower Cholesky factor of ``K_uu``, ``m x m``, float64.
    root: Tensor

    def path_weights(self, prior: Tensor, draws: Tensor) -> Tensor:
        """By Matheron's rule: ``K_uu^-1 (f_u - m - g)``, with ``f_u`` drawn.

        Shapes: ``prior``: ``P x m``, ``draws``: ``P x m``, returns ``P x m``.
        """
        # Both f_u given the data and g there: the difference is what a path has to be
        # moved by, written in columns of k(., U).
        known = torch.cholesky_solve(prior.mT, self.root).mT
        return self.alpha.mT + draws @ self.spread.mT - known


def extended_inverse_root(root: Tensor, cross: Tensor, own: Tensor) -> Tensor:
    r"""``R`` of what some rows say, and of further ones, by one block.

    .. math:: \begin{pmatrix} R & 0 \\ -S^{-1} B' R & S^{-1} \end{pmatrix}, \qquad
        B = R\, C, \quad S S' = K_{PP} - B' B

    Shapes: ``root``: ``t x t``, ``cross``: ``t x p``, ``own``: ``p x p``, returns ``(t
    + p) x (t + p)``.
    """
    seen = root @ cross
    left = psd_safe_cholesky(own - seen.mT @ seen)  # of what is not known of them
    further = torch.cat([-seen.mT @ root, torch.eye(len(own)).to(own)], -1)
    below = torch.linalg.solve_triangular(left, further, upper=False)
    return torch.cat([torch.nn.functional.pad(root, (0, len(own))), below])


def conditioned_system(model: SingleTaskGP) -> TrainingSystem | InducingSystem:
    """What a model's data say: of all rows, or summed up at inducing points."""
    if isinstance(model.covar_module, InducingPointKernel):
        return _inducing_system(model, model.covar_module)
    return training_system(model)


def refuse_inducing_points(model: SingleTaskGP) -> None:
    """Raise an error if a model keeps no covariance of all rows."""
    if isinstance(model.covar_module, InducingPointKernel):
        raise UnsupportedError(
            f"This needs the covariance of all {len(model.train_targets):,} rows, and "
            "the model sums them up at inducing points. Take a surrogate with a larger "
            "`max_exact`, or fewer rows."
        )


def training_system(model: SingleTaskGP) -> TrainingSystem:
    """Factor a model's training covariance in float64; the model goes to eval mode."""
    refuse_inducing_points(model)
    model.eval()
    with torch.no_grad():
        Z = get_train_inputs(model, transformed=True)[0]  # t x d
        prior = model.forward(Z)
        noisy = cast(MultivariateNormal, model.likelihood(prior, [Z]))
        covariance = noisy.covariance_matrix.double()  # t x t
        modelled = prior.covariance_matrix.double()
        # What the likelihood adds to the diagonal; it may differ from row to row.
        noise = (covariance - modelled).diagonal(dim1=-2, dim2=-1)
        residual = (model.train_targets - prior.mean).double().unsqueeze(-1)
        root = psd_safe_cholesky(covariance)
    return TrainingSystem(Z, noise, covariance, root, residual)


def _inducing_system(
    model: SingleTaskGP, kernel: InducingPointKernel
) -> InducingSystem:
    """In one pass over blocks of rows: memory does not grow with their number."""
    model.eval()
    base = cast(Kernel, kernel.base_kernel)
    with torch.no_grad():
        Z = get_train_inputs(model, transformed=True)[0]  # t x d
        U = cast(Tensor, kernel.inducing_points).detach()  # m x d
        likelihood, targets = model.likelihood, cast(Tensor, model.train_targets)
        noise = cast(Tensor, likelihood.noise).double().expand(targets.shape)
        # FITC (Snelson and Ghahramani 2006): given the function at the inducing points
        # rows are independent, each with what the points miss of its variance as noise.
        root = psd_safe_cholesky(base(U, U).to_dense().double())
        inverse = _inverse(root)
        gram, weighted = torch.zeros_like(root), root.new_zeros(len(root), 1)
        for rows in torch.arange(len(Z)).split(max(1, _BLOCK_ELEMENTS // len(U))):
            part = Z[rows]
            whitened = inverse @ base(U, part).to_dense().double()  # m x k
            prior = cast(Tensor, base(part, diag=True)).double()
            missed = prior - whitened.square().sum(0)
            scale = (noise[rows] + missed.clamp_min(0.0)).rsqrt()
            mean = cast(Tensor, model.mean_module(part))
            residual = scale * (targets[rows] - mean).double()
            whitened = whitened * scale
            # G = L^-1 K_uf D K_fu L^-T and L^-1 K_uf D (y - m), with D one over the
            # noise.
            gram += whitened @ whitened.mT
            weighted += whitened @ residual.unsqueeze(-1)
        # Sigma = L (I + G) L': all in the eigenvectors of G.
        values, vectors = torch.linalg.eigh(gram)
        values = values.clamp_min(0.0)
        spread = inverse.mT @ (vectors / (1.0 + values).sqrt())
        # K_uu^-1 - Sigma^-1 = L^-T (I - (I + G)^-1) L^-1: its root explains variance.
        explained = (values / (1.0 + values)).sqrt().unsqueeze(-1)
        return InducingSystem(
            inputs=U,
            noise=noise,
            alpha=spread @ (spread.mT @ (root @ weighted)),
            inverse_root=explained * (vectors.mT @ inverse),
            spread=spread,
            root=root,
        )


def _inverse(root: Tensor) -> Tensor:
    """``L^-1`` of a lower triangle."""
    identity = torch.eye(len(root)).to(root)
    return torch.linalg.solve_triangular(root, identity, upper=False)


def outcome_map(
    model: SingleTaskGP, posterior_transform: PosteriorTransform | None
) -> tuple[Tensor, Tensor]:
    """Find scale and offset from the model's outcome to the score's units."""
    scale = torch.ones((), dtype=torch.double)
    offset = torch.zeros((), dtype=torch.double)
    transform = getattr(model, "outcome_transform", None)
    if isinstance(transform, Standardize):
        scale = transform.stdvs.detach().double().reshape(())
        offset = transform.means.detach().double().reshape(())
    if isinstance(posterior_transform, ScalarizedPosteriorTransform):
        weight = cast(Tensor, posterior_transform.weights).detach().double().reshape(())
        scale = weight * scale
        offset = posterior_transform.offset + weight * offset
    return scale, offset
