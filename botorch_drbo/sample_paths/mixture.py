"""Sample paths of any model that has them: an ensemble's are split over its members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, final

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from torch import Generator, Tensor
from torch.nn import Module, ModuleList

from botorch_drbo._validation import check_count
from botorch_drbo.posterior.blocks import DEFAULT_MEMORY_BUDGET
from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.posterior.models import only_model
from botorch_drbo.sample_paths.posterior_paths import PosteriorPaths, supports_paths
from botorch_drbo.sampling import derive_seed


def sample_paths(
    model: Model,
    context_indices: Sequence[int],
    *,
    num_paths: int,
    num_features: int,
    seed: int,
    posterior_transform: PosteriorTransform | None = None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> PosteriorPaths | MixturePaths:
    r"""Draw sample paths of a Gaussian process, or of an ensemble of them.

    For an ensemble, each member has an equal share of the paths; which members get one
    of the remaining paths is random.

    Args:
        model: A model for which ``supports_paths`` returns None.
        context_indices: The model's input columns that hold the context.
        num_paths: How many paths ``P``.
        num_features: Frequencies of each path.
        seed: Determines all random draws.
        posterior_transform: None or a ``ScalarizedPosteriorTransform`` of one weight.
        memory_budget: Bytes for the temporaries of one evaluation.

    Returns:
        The paths.

    Raises:
        UnsupportedError: A model without sample paths.
    """
    model = only_model(model)
    options = {
        "num_features": num_features,
        "posterior_transform": posterior_transform,
        "memory_budget": memory_budget,
    }
    if not isinstance(model, ModelEnsemble):
        gp = cast(SingleTaskGP, model)
        return PosteriorPaths(
            gp, context_indices, num_paths=num_paths, seed=seed, **options
        )
    reason = supports_paths(model, posterior_transform)
    if reason is not None:
        raise UnsupportedError(f"Sample paths cannot be drawn: {reason}.")
    members, check_seed = model.members, check_count(seed, "seed", 0)
    generator = Generator().manual_seed(check_seed)
    each, more = divmod(check_count(num_paths, "num_paths"), len(members))
    counts = torch.full((len(members),), each)
    counts[torch.randperm(len(members), generator=generator)[:more]] += 1
    return MixturePaths(
        [
            PosteriorPaths(
                cast(SingleTaskGP, member),
                context_indices,
                num_paths=count,
                seed=derive_seed(seed, number),
                **options,
            )
            for number, (member, count) in enumerate(
                zip(members, counts.tolist(), strict=True)
            )
            if count
        ]
    )


@final
class MixturePaths(Module):
    """Sample paths of several models, one after the other."""

    def __init__(self, parts: Sequence[PosteriorPaths]) -> None:
        super().__init__()
        self.parts = ModuleList(parts)
        self.counts = [part.num_paths for part in parts]
        self.num_paths = sum(self.counts)
        self.num_features = parts[0].num_features

    @property
    def _paths(self) -> list[PosteriorPaths]:
        return [cast(PosteriorPaths, part) for part in self.parts]

    def forward(self, X: Tensor, contexts: Tensor) -> Tensor:
        """Evaluate every path at every decision and every context.

        Shapes: ``X``: ``... x d_x``, ``contexts``: ``n x d_c``, returns ``P x ... x
        n``.
        """
        return torch.cat([paths(X, contexts) for paths in self._paths])

    def own(self, X: Tensor, contexts: Tensor) -> Tensor:
        """Evaluate each path at its own decision and every context.

        Shapes: ``X``: ``... x P x d_x``, ``contexts``: ``n x d_c``, returns ``... x P x
        n``.
        """
        shares = X.split(self.counts, dim=-2)
        found = [
            paths.own(share, contexts)
            for paths, share in zip(self._paths, shares, strict=True)
        ]
        return torch.cat(found, dim=-2)

    def keeps(self, num_contexts: int) -> bool:
        """Whether results that depend on the contexts alone are cached."""
        return all(paths.keeps(num_contexts) for paths in self._paths)

    def part(self, which: slice) -> MixturePaths:
        """Some of the paths, as views that share memory."""
        wanted = range(self.num_paths)[which]
        parts, start = [], 0
        for paths, count in zip(self._paths, self.counts, strict=True):
            own = [i - start for i in wanted if start <= i < start + count]
            if own:
                parts.append(paths.part(slice(own[0], own[-1] + 1, which.step)))
            start += count
        return MixturePaths(parts)
