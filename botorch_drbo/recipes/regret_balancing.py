"""Regret bound balancing: EC-GP-UCB with unknown misspecification."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo._validation import (
    check_count,
    check_positive,
    finite_number,
)
from botorch_drbo.acquisition import EnlargedConfidenceUCB
from botorch_drbo.adversaries import FittedRound, WorstCaseProblem
from botorch_drbo.adversaries.empirical import Empirical
from botorch_drbo.ambiguity import AmbiguitySet
from botorch_drbo.confidence import confidence_width
from botorch_drbo.problem.round import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.model_based import ModelBasedRecipe
from botorch_drbo.recipes.phased import KnownPrior, greedy_gains
from botorch_drbo.sampling import isolated_rng
from botorch_drbo.schedules import Schedule
from botorch_drbo.schedules.radii import as_schedule


@dataclass(frozen=True)
class BalancingState:
    """The plays and rewards of each base, and which bases are eliminated.

    Bases are numbered from 0; the paper's base ``i`` is ``i - 1`` here. Rewards,
    bounds and misspecifications are on the scale where rewards lie in ``[0, 1]``.
    """

    # The guess of each base, largest first.
    misspecifications: tuple[float, ...]
    # :math:`\gamma_T`, of the whole horizon.
    information_gain: float
    # The outcomes at the beginning that no base played.
    num_design: int
    # The base of each outcome after these.
    played: tuple[int, ...]
    # Outcomes of each base, ``n_i``.
    num_plays: tuple[int, ...]
    # Their sum, ``S_i``.
    total_rewards: tuple[float, ...]
    # The candidate bound on each base's regret so far, ``R_i(n_i)``.
    bounds: tuple[float, ...]
    # The number of plays at which the base was eliminated; None for active bases.
    eliminated_after: tuple[int | None, ...]
    # The bases of the pending decisions, in order, and that of the next decision.
    upcoming: tuple[int, ...]

    @property
    def active(self) -> tuple[int, ...]:
        """The bases that are not eliminated."""
        return tuple(i for i, out in enumerate(self.eliminated_after) if out is None)


_RANGE_ROUNDING = 1e-6  # of the reward range, so that float32 outcomes at its ends pass


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RegretBalancing(ModelBasedRecipe):
    r"""``regret_balancing``: EC-GP-UCB without knowing the misspecification.

    ``M`` copies of EC-GP-UCB, the bases, each with its own guess

    .. math:: \epsilon_i = \frac{2^{1-i}}{\sqrt{\gamma_T}}, \quad i = 1, \dots, M,
        \quad M = \max\Big(1, \Big\lceil 1 + \tfrac12 \log_2 \frac{T}{\gamma_T^2}
            \Big\rceil\Big)

    take turns. The smallest guess is about :math:`\sqrt{\gamma_T / T}`, at which the
    regret caused by the misspecification equals the regret of learning. With a horizon
    of less than :math:`\gamma_T^2` there is only one base and nothing to balance: pass
    your own ``misspecifications``, or a longer horizon. A small guess gives a low
    regret bound, which is wrong if the model is worse than the guess. Therefore the
    base with the lowest bound so far plays, and a base whose rewards contradict its
    bound is eliminated:

    1. Base ``i``, after :math:`n` plays, has the candidate regret bound

       .. math:: R_i(n) = \min\Big\{ n, \; 2 \Big( w_t + \frac{\epsilon_i \sqrt t}
           {\sqrt\lambda} \Big) \sqrt{\frac{2 n \gamma_n}{\ln(1 + 1/\lambda)}}
           + 2 \epsilon_i n \Big\}.

       The active base with the least :math:`R_i(n_i)` plays: it maximises its enlarged
       confidence bound (of equals the largest guess plays).
    2. A base sees the outcomes of its own plays only, and those of the design.
    3. With :math:`S_i` the sum of its rewards, an active base is eliminated as soon as

       .. math:: \frac{S_i + R_i(n_i)}{n_i} + b(n_i) < \max_j
           \Big( \frac{S_j}{n_j} - b(n_j) \Big), \qquad
           b(n) = c \sqrt{\frac{\ln( M \max(1, \ln n) / \delta )}{n}}

       with ``j`` the active bases that have played. The left side is an upper bound on
       the value of the best decision per play if the bound of base ``i`` holds; the
       right side is a lower bound obtained by some base.

       The paper prints (24) with totals, which belong to different numbers of plays: a
       base would eliminate the others merely by playing more. Its argument (both sides
       bound the mean of the best decision) needs totals divided by the plays, as in
       [Pacchiano2020balancing]_.

    *The constants.* The paper does not state them (they "do not depend on n"; its eq.
    39 gives ``candidate_regret_bound``); these are derived here. A play at ``x`` has a
    regret of at most twice the width of the enlarged interval there plus :math:`2
    \epsilon`; Cauchy and Schwarz and :math:`\sum_s \sigma_{s-1}^2(x_s) \le 2 \gamma_n /
    \ln(1 + 1/\lambda)` give :math:`R_i`, and no play costs more than 1. ``t`` is ``n``
    and the design, whose outcomes are data of every base; :math:`w_t` is ``sqrt(beta)``
    in the units of :math:`R_i`, or Lemma 1's with ``norm_bound``. The width ``b`` with
    ``c = 1.5`` holds for all ``n`` at once, by Azuma's inequality on stretches of
    doubling length, if ``delta <= M / 9``. :math:`\gamma_n` is the greedy maximum over
    512 points of the box: at least 63 %, and mostly nearly all, of the largest.

    *What to expect.* As long as the bound of a base is :math:`n` itself, it is vacuous:
    such bases take turns, and none can be eliminated. With ``norm_bound`` this lasts
    for hundreds of plays or more, with ``beta=2.25`` for dozens, and for the large
    guesses much longer. A tight reward range makes the guesses, which are fractions of
    it, smaller in the units of y.

    *The state is the history.* Nothing is stored. The base of each play is recomputed
    from the outcomes in their order; ``state`` shows it. This is exact when each
    outcome is told before the next decision is asked. With decisions in batches, or
    outcomes out of order, an outcome is assigned to the base whose turn it is in the
    order of the outcomes; after an elimination this may be another base than the one
    that proposed it. The confidence bounds still hold; the sums :math:`S_i` are
    slightly off.

    The first ``num_design`` outcomes are the initial design, which no base chose. The
    hyperparameters are fitted to these, once, and then fixed; it is better to pass them
    (``hyperparameters``, with a prior mean of zero). This recipe treats the context as
    noise, like ``gp_ucb``. Pass the action set of a round to ``ask(actions=...)``.

    Args:
        horizon: ``T``, the number of plays, without the design.
        reward_range: The outcomes, to be maximised, that correspond to the rewards 0
            and 1; the map between them is affine. (With ``maximize=False`` of the
            optimizer this is the range of minus ``y``.)
        delta: The probability of failure, between 0 and 1.
        beta: The squared width of the plain confidence bound, BoTorch's convention: a
            number, or a schedule in the number of outcomes of the base.
        norm_bound: The norm of the outcome in the space of the kernel without its
            outputscale, in the units of y. The width is then Lemma 1's, and ``beta``
            is not used. None for ``beta``.
        misspecifications: The guesses, on the scale of the rewards, largest first;
            None for the paper's.
        num_design: The number of outcomes in the initial design; None for ``2 * (d_x +
            1)``, the optimizer's default. Pass the same number to both.
        elimination_constant: ``c``: with a larger value guesses are eliminated later.
        noise_ratio: The paper's :math:`\lambda`: the noise variance over the prior
            variance, with which the bases compute their posteriors, their bounds and
            :math:`\gamma`. It need not be the real noise. A larger one makes
            :math:`\gamma` smaller, hence more guesses and a smaller enlargement. None
            for that of the model. The recommendation uses the model itself.

    Raises:
        InputDataError: An option outside its range.
        UnsupportedError: A ``model``: the bounds are those of a Gaussian kernel.

    Example:
        >>> import torch
        >>> from botorch_drbo.surrogate import FixedHyperparameters
        >>> X, C = torch.rand(7, 1).double(), torch.rand(7, 1).double()
        >>> history = History(X=X, C=C, Y=X * (1 - X), contexts=C)
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> prior = FixedHyperparameters(lengthscale=0.2, noise_variance=0.01)
        >>> recipe = RegretBalancing(
        ...     hyperparameters=prior, num_design=4, misspecifications=(0.3, 0.1, 0.0)
        ... )
        >>> actions = torch.rand(20, 1).double()
        >>> recipe.propose(history, SearchSpace(unit, unit), candidates=actions).shape
        torch.Size([1, 1])
        >>> recipe.state(history, SearchSpace(unit, unit)).played
        (0, 1, 2)

    [Bogunovic2021misspecified]_, Algorithm 3, after [Pacchiano2020balancing]_.
    """

    name: ClassVar[str] = "regret_balancing"
    takes_constraints: ClassVar[bool] = False
    needs_box: ClassVar[bool] = True
    uses_contexts: ClassVar[bool] = False

    horizon: int = 300
    reward_range: tuple[float, float] = (0.0, 1.0)
    delta: float = 0.1
    beta: Schedule | float = 2.25
    norm_bound: float | None = None
    misspecifications: tuple[float, ...] | None = None
    num_design: int | None = None
    elimination_constant: float = 1.5
    noise_ratio: float | None = None

    def __post_init__(self) -> None:
        """Check that there is no model, and the horizon, beta and reward range."""
        super().__post_init__()
        if self.model is not None:
            raise UnsupportedError(
                "`regret_balancing` takes no `model`: its bounds are those of a "
                "Gaussian kernel whose hyperparameters stay. Give `hyperparameters`, "
                "or take `ec_gp_ucb`, which takes any model."
            )
        if self.surrogate not in (None, self.default_surrogate):
            raise UnsupportedError(
                "`regret_balancing` takes no other surrogate than 'botorch', got "
                f"{self.surrogate!r}: its bounds are those of a Gaussian kernel whose "
                "hyperparameters stay. Take `ec_gp_ucb`, which takes any."
            )
        check_count(self.horizon, "horizon")
        if self.num_design is not None:
            check_count(self.num_design, "num_design")
        as_schedule(self.beta, "beta")
        low, high = _numbers(self, "reward_range", 2)
        if not low < high:
            raise InputDataError(
                "`reward_range` must be (lowest, highest), the first below the second, "
                f"got {self.reward_range}."
            )
        if not 0.0 < finite_number(self.delta, "delta") < 1.0:
            raise InputDataError(
                f"`delta` must be strictly between 0 and 1, got {self.delta!r}."
            )
        if self.noise_ratio is not None:
            check_positive(self.noise_ratio, "noise_ratio")
        constant = finite_number(self.elimination_constant, "elimination_constant")
        norm = 0.0 if self.norm_bound is None else self.norm_bound
        guesses: tuple[float, ...] = ()
        if self.misspecifications is not None:
            guesses = _numbers(self, "misspecifications")
        for name, values in {
            "elimination_constant": (constant,),
            "norm_bound": (finite_number(norm, "norm_bound"),),
            "misspecifications": guesses,
        }.items():
            if min(values, default=0.0) < 0.0:
                raise InputDataError(f"`{name}` must not be negative, got {values}.")
        if list(guesses) != sorted(guesses, reverse=True):
            raise InputDataError(
                f"`misspecifications` must have the largest first, got {guesses}."
            )

    @property
    def default_surrogate(self) -> str:
        """A single model: its kernel and its noise are put to other data."""
        return "botorch"

    def state(
        self, history: History, space: SearchSpace, *, num_pending: int = 0
    ) -> BalancingState:
        """Recompute which base played, from the outcomes alone."""
        self.check_has_outcomes(history)
        _, state = self._begin(history, space, 0, None, decides=False)
        prior = KnownPrior.of(self.decision_model(state), self.noise_ratio)
        return self._replay(prior, history, space, num_pending)

    def exploring(
        self, state: FittedRound, X_pending: Tensor | None
    ) -> AcquisitionFunction:
        r"""The enlarged confidence bound of the base whose turn it is."""
        prior = KnownPrior.of(state.model, self.noise_ratio)
        history, space = state.history, state.space
        num_pending = 0 if X_pending is None else len(X_pending)
        game = self._replay(prior, history, space, num_pending)
        if len(game.played) + num_pending >= self.horizon:
            raise InputDataError(
                f"The `horizon` of {self.horizon} plays is over: the bounds of the "
                "bases hold up to there. Start with a longer horizon."
            )
        design = self._design(space)
        base = game.upcoming[-1]
        owner = [None] * game.num_design + list(game.played)
        rows = [k for k, i in enumerate(owner) if i is None or i == base]
        turns = enumerate(game.upcoming[:num_pending], start=history.t)
        waiting = [j - history.t for j, i in turns if j < design or i == base]
        low, high = self.reward_range
        return EnlargedConfidenceUCB(
            prior.condition(history.X[rows], history.Y[rows], space),
            self._sqrt_beta(prior, space, len(rows)) ** 2,
            game.misspecifications[base] * (high - low),
            X_pending=X_pending[waiting] if X_pending is not None and waiting else None,
        )

    def exploiting(self, state: FittedRound) -> AcquisitionFunction:
        r"""The posterior mean, given the outcomes of all bases."""
        return EnlargedConfidenceUCB(state.model, 0.0, 0.0)

    def worst_case_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The empirical contexts, taken at their word."""
        return Empirical().worst_case_problem(state)

    def worst_case_problem_of(
        self, ambiguity_set: AmbiguitySet, state: FittedRound
    ) -> WorstCaseProblem:
        r"""Another set around the same contexts."""
        return Empirical().worst_case_problem_of(ambiguity_set, state)

    def chance_constraint_problem(self, state: FittedRound) -> WorstCaseProblem:
        r"""The same."""
        return self.worst_case_problem(state)

    def decision_model(self, state: FittedState) -> Model:
        r"""The model of all outcomes, with hyperparameters that are fitted once."""
        history, space = state.history, state.space
        if self.hyperparameters is not None:
            return self.fitted(history, space, uses_contexts=False)
        first = min(history.t, self._design(space))
        C = history.C[:first]
        design = History(X=history.X[:first], C=C, Y=history.Y[:first], contexts=C)
        with isolated_rng(0, space.bounds.device):  # the same fit at every call
            fitted = self.fitted(design, space, uses_contexts=False)
        return KnownPrior.of(fitted).condition(history.X, history.Y, space)

    def _design(self, space: SearchSpace) -> int:
        return 2 * (space.d_x + 1) if self.num_design is None else self.num_design

    def _replay(
        self, prior: KnownPrior, history: History, space: SearchSpace, num_pending: int
    ) -> BalancingState:
        """Play the game again, from the first outcome to the next decision."""
        rewards, design = self._rewards(history), self._design(space)
        if len(rewards) - design > self.horizon:
            raise InputDataError(
                f"There are {len(rewards) - design} plays, more than the `horizon` of "
                f"{self.horizon}."
            )
        gain = self._gains(prior, space)[self.horizon - 1]
        guesses = self.misspecifications or _guesses(self.horizon, gain)
        count = len(guesses)
        plays, sums = [0] * count, [0.0] * count
        bounds = [0.0] * count  # R_i(n_i)
        out: list[int | None] = [None] * count

        def take_turn() -> int:
            """The next base, by the lowest promise; its play is counted."""
            active = (i for i in range(count) if out[i] is None)
            base = min(active, key=lambda i: bounds[i])  # of equals the first
            plays[base] += 1
            bounds[base] = self._bound(prior, space, guesses[base], plays[base])
            return base

        played: list[int] = []
        for reward in rewards[design:]:
            base = take_turn()
            played.append(base)
            sums[base] += reward
            for i in self._broken(plays, sums, bounds, out):
                out[i] = len(played)
        seen = (tuple(plays), tuple(sums), tuple(bounds), tuple(out))
        # Pending decisions of the initial design belong to no base.
        nobody = min(num_pending, max(design - len(rewards), 0))
        ahead = min(num_pending - nobody, self.horizon - len(played)) + 1
        upcoming = [bounds.index(min(bounds))] * nobody
        upcoming += [take_turn() for _ in range(ahead)]
        return BalancingState(
            tuple(guesses),
            gain,
            min(len(rewards), design),
            tuple(played),
            *seen,
            tuple(upcoming),
        )

    def _broken(
        self,
        plays: Sequence[int],
        sums: Sequence[float],
        bounds: Sequence[float],
        out: Sequence[int | None],
    ) -> list[int]:
        """The active bases whose rewards contradict their regret bound."""
        count = len(plays)
        tried = [i for i in range(count) if out[i] is None and plays[i] > 0]
        # The logarithm is at least 1: the paper's ``ln ln n`` needs that for small n.
        spread = {
            i: self.elimination_constant
            * math.sqrt(
                math.log(count * max(1.0, math.log(plays[i])) / self.delta) / plays[i]
            )
            for i in tried
        }
        best = max(sums[j] / plays[j] - spread[j] for j in tried)
        return [i for i in tried if (sums[i] + bounds[i]) / plays[i] + spread[i] < best]

    def _bound(
        self, prior: KnownPrior, space: SearchSpace, guess: float, n: int
    ) -> float:
        """``R_i(n)``, on the scale of the rewards."""
        low, high = self.reward_range
        t = n + self._design(space)
        gain = self._gains(prior, space)[n - 1]
        sigmas = (
            prior.prior_std
            / (high - low)
            * math.sqrt(2.0 * n * gain / math.log1p(1.0 / prior.noise_ratio))
        )
        # The size of the kernel cancels in the second term, as it does in the score.
        enlargement = guess * (high - low) * math.sqrt(t / prior.regularization)
        width = self._sqrt_beta(prior, space, t) + enlargement
        return min(float(n), 2.0 * width * sigmas + 2.0 * guess * n)

    def _sqrt_beta(self, prior: KnownPrior, space: SearchSpace, t: int) -> float:
        """The plain width after ``t`` outcomes, in posterior standard deviations."""
        if self.norm_bound is None:
            return math.sqrt(as_schedule(self.beta)(t))
        width = confidence_width(
            self._gains(prior, space)[t - 1],
            norm_bound=self.norm_bound,
            delta=self.delta,
            noise_std=prior.noise_std,
            noise_ratio=prior.noise_ratio,
        )
        return width / prior.prior_std  # Lemma 1's sigma is that of a kernel of size 1

    def _gains(self, prior: KnownPrior, space: SearchSpace) -> tuple[float, ...]:
        """The largest information gain of 1, 2, ... outcomes in the box."""
        num = self.horizon + self._design(space) + 1
        return greedy_gains(prior.lengthscale, prior.noise_ratio, num)

    def _rewards(self, history: History) -> list[float]:
        low, high = self.reward_range
        rewards = ((history.Y.double() - low) / (high - low)).flatten()
        slack = _RANGE_ROUNDING
        wrong = ((rewards < -slack) | (rewards > 1.0 + slack)).nonzero().flatten()
        if len(wrong):
            first = int(wrong[0])
            raise InputDataError(
                f"`reward_range` is {self.reward_range}, but outcome {first + 1} of "
                f"{history.t}, to be maximised, is {history.Y[first].item()}. Give the "
                "range in which all outcomes lie, their noise included."
            )
        return rewards.clamp(0.0, 1.0).tolist()


def _guesses(horizon: int, gain: float) -> tuple[float, ...]:
    """The paper's, down to about ``sqrt(gamma_T / T)``; at least one."""
    count = max(1, math.ceil(1 + 0.5 * math.log2(horizon / gain**2)))
    return tuple(2.0 ** (1 - i) / math.sqrt(gain) for i in range(1, count + 1))


def _numbers(
    recipe: RegretBalancing, name: str, num: int | None = None
) -> tuple[float, ...]:
    """Turn an option into a tuple of numbers; JSON makes a list of it."""
    values = getattr(recipe, name)
    right = isinstance(values, (tuple, list)) and len(values) == (num or len(values))
    if not right or not values:
        some = "some" if num is None else num
        raise InputDataError(f"`{name}` must be {some} numbers, got {values!r}.")
    numbers = tuple(finite_number(value, name) for value in values)
    object.__setattr__(recipe, name, numbers)  # the dataclass is frozen
    return numbers
