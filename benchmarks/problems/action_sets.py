"""Bandits with a new set of decisions in each round."""

from __future__ import annotations

from typing import final

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError
from torch import Generator, Tensor

from botorch_drbo._validation import check_count, check_nonnegative
from botorch_drbo.test_functions.base import RobustTestFunction


@final
class ActionSetBandit:
    r"""A contextual bandit: in each round some decisions are drawn, and one is taken.

    .. math:: D_t = \{x_1, \dots, x_m\}, \; x_i \sim U(\text{box}), \qquad
        y_t = F(x_t) + \text{noise}, \quad x_t \in D_t

    The action set is what [Bogunovic2021misspecified]_ calls the context (its section
    on regret balancing); ``F`` is the expected value of a test function. Regret is
    counted against the best of the *round's* actions, so that the optimum of the box
    is no measure.

    The noise is uniform on ``[-noise, noise]``: it is sub-Gaussian, as the paper asks,
    and leaves the outcomes in a known range, which ``regret_balancing`` has to be told
    (``reward_range``). Beside that range balancing needs a ``horizon`` of more than
    the squared information gain, or guesses of its own, and the actions of each round:
    ``ask(actions=...)``.

    Args:
        function: Where ``F`` comes from; ``MisspecifiedFunction`` has a known norm and
            a known misspecification.
        num_actions: ``m``.
        noise: Half the width of the noise, not negative.

    Raises:
        InputDataError: A number out of range.

    Example:
        >>> from benchmarks.problems import MisspecifiedFunction
        >>> bandit = ActionSetBandit(MisspecifiedFunction("waves", 1), num_actions=5)
        >>> actions = bandit.actions(rounds=3, seed=0)  # 3 x 5 x 2
        >>> taken = actions[:, 0]
        >>> bool((bandit.regret(taken, actions).diff() >= 0).all())
        True
    """

    def __init__(
        self, function: RobustTestFunction, *, num_actions: int = 20, noise: float = 0.0
    ) -> None:
        self.function = function
        self.num_actions = check_count(num_actions, "num_actions")
        self.noise = float(check_nonnegative(noise, "noise"))

    def actions(self, rounds: int, seed: int) -> Tensor:
        r"""The actions that the world offers, independent of what is decided.

        Args:
            rounds: How many rounds; the first ones are those of a shorter game.
            seed: Decides the draws.

        Returns:
            Decisions, ``rounds x m x d_x``.
        """
        check_count(rounds, "rounds")
        low, high = self.function.bounds
        shape = rounds, self.num_actions, self.function.d_x
        generator = Generator().manual_seed(seed)
        unit = torch.rand(shape, generator=generator, dtype=torch.double).to(low)
        return low + unit * (high - low)

    def reward_range(self, num: int = 2**12) -> tuple[float, float]:
        r"""The range of the outcomes, noise included.

        Args:
            num: Random decisions among which the lowest and the highest are looked for;
                a tenth of their difference is added on both sides.

        Returns:
            The lowest and the highest outcome, for ``regret_balancing``.
        """
        values = self.function.expected_value(self.actions(num, seed=0)[:, 0])
        low, high = values.min().item(), values.max().item()
        slack = 0.1 * (high - low) + self.noise
        return low - slack, high + slack

    def observe(self, X: Tensor, *, generator: Generator | None = None) -> Tensor:
        r"""Outcomes with noise.

        Args:
            X: Decisions, ``n x d_x``.
            generator: Where the noise comes from, or None for torch's global one.

        Returns:
            Outcomes, ``n``.
        """
        value = self.function.expected_value(X)
        unit = torch.rand(value.shape, generator=generator, dtype=value.dtype)
        return value + self.noise * (2 * unit - 1)

    def regret(self, X: Tensor, actions: Tensor) -> Tensor:
        r"""The contextual regret (21), cumulated.

        .. math:: R_T = \sum_{t \le T} \Big( \max_{x \in D_t} F(x) - F(x_t) \Big)

        Args:
            X: The decisions taken, ``T x d_x``.
            actions: What was offered, ``T x m x d_x``.

        Returns:
            The regret after 1, ..., ``T`` rounds.

        Raises:
            BotorchTensorDimensionError: Another number of rounds.
        """
        if actions.ndim != 3 or len(X) != len(actions):
            raise BotorchTensorDimensionError(
                f"`actions` must be `{len(X)} x m x d_x`, one action set for each "
                f"decision, got shape {tuple(actions.shape)}."
            )
        best = self.function.expected_value(actions).amax(-1)
        return (best - self.function.expected_value(X)).cumsum(0)
