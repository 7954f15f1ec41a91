"""The largest regret over a finite family of distributions."""

from __future__ import annotations

from typing import final

from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Tensor

from botorch_drbo.ambiguity import FiniteFamily
from botorch_drbo.objectives.uncertainty import Objective


@final
class WorstRegret(Objective):
    r"""Minus the largest regret: never far from the best, whichever world comes.

    .. math:: g = -\max_k \Big( \max_{x'} E_k(x') - E_k(x) \Big), \qquad
        E_k(x) = \sum_i Q_{ki}\, f_i(x)

    Minimax regret over a finite family [Savage1951]_: what a decision lacks in each
    world to the decision that would have been best there.

    Args:
        ambiguity_set: The family, ``K`` distributions.
        best: The best expectation in each of them, ``K``.

    Raises:
        BotorchTensorDimensionError: Another number of distributions.

    Example:
        >>> import torch
        >>> from botorch_drbo.ambiguity import FiniteFamily
        >>> from botorch_drbo.objectives import WorstRegret
        >>> worlds = FiniteFamily(torch.eye(2))
        >>> values, weights = torch.tensor([[3.0, 1.0], [2.0, 2.0]]), torch.ones(2) / 2
        >>> WorstRegret(worlds, torch.tensor([3.0, 2.0]))(values, weights)
        tensor([-1., -1.])
    """

    best: Tensor
    ambiguity_set: FiniteFamily

    def __init__(self, ambiguity_set: FiniteFamily, best: Tensor) -> None:
        super().__init__(ambiguity_set)
        if best.shape != ambiguity_set.distributions.shape[:1]:
            raise BotorchTensorDimensionError(
                f"`best` must have {len(ambiguity_set.distributions)} entries, one for "
                f"each distribution, got shape {tuple(best.shape)}."
            )
        self.register_buffer("best", best.detach().clone())

    def forward(self, values: Tensor, weights: Tensor) -> Tensor:
        r"""Minus the largest regret of each row of scores.

        Args:
            values: Scores, ``... x n``.
            weights: Reference weights, which do not matter.

        Returns:
            ``...``, zero or negative; differentiable in ``values``.
        """
        return (self.ambiguity_set.expectations(values) - self.best.to(values)).amin(-1)
