"""Phased uncertainty sampling: learn in episodes, then discard what cannot be best."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, cast, final

import torch
from botorch.exceptions.errors import InputDataError
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms import Standardize
from gpytorch.kernels import Kernel, RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from botorch_drbo._validation import check_count, check_nonnegative
from botorch_drbo.confidence import information_gain, maximum_information_gain
from botorch_drbo.confidence.information_gain import GreedyVariance
from botorch_drbo.confidence.width import nonadaptive_confidence_width
from botorch_drbo.policies.base import ConfidenceWidth
from botorch_drbo.posterior.training import outcome_map
from botorch_drbo.problem.round import History
from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.options import check_single_model
from botorch_drbo.recipes.robust_recipe import DelegatingRecipe, RobustRecipe
from botorch_drbo.recipes.table import TABLE
from botorch_drbo.sampling import isolated_rng, sobol, sobol_in_box
from botorch_drbo.search.candidates import check_candidates, without
from botorch_drbo.surrogate.by_name import check_exact
from botorch_drbo.surrogate.hyperparameters import FixedHyperparameters

_NUM_POINTS = 512  # of the box, among which the information gain is the largest


@dataclass(frozen=True)
class KnownPrior:
    """The hyperparameters of a model of ``x``; the kernel's inputs fill a unit cube."""

    # One per decision column, in units of the cube.
    lengthscale: tuple[float, ...]
    # The prior variance.
    outputscale: float
    # That of the outcomes.
    noise_variance: float
    # The prior mean.
    mean: float
    # The papers' ``lambda`` if it is not ``noise_variance`` over ``outputscale``: the
    # noise ratio of the posterior, not of the outcomes.
    regularizer: float | None = None

    @classmethod
    def of(cls, model: Model, regularizer: float | None = None) -> KnownPrior:
        """Read them off a recipe's model, with its outcome transform undone."""
        model = cast(SingleTaskGP, model)
        lengthscale = cast(RBFKernel, model.covar_module).lengthscale.flatten().tolist()
        mean = cast(Tensor, cast(ConstantMean, model.mean_module).constant).item()
        noise = cast(GaussianLikelihood, model.likelihood).noise.item()
        units = cast(Standardize, model.outcome_transform)
        level, unit = units.means.item(), units.stdvs.item()
        level += unit * mean
        return cls(tuple(lengthscale), unit**2, unit**2 * noise, level, regularizer)

    @property
    def noise_ratio(self) -> float:
        """The papers' ``lambda``: noise relative to a kernel of size one."""
        return self.regularization / self.outputscale

    @property
    def noise_std(self) -> float:
        """That of the outcomes, in the units of y."""
        return math.sqrt(self.noise_variance)

    @property
    def regularization(self) -> float:
        """``lambda`` in squared units of y: the noise variance of the posterior."""
        if self.regularizer is not None:
            return self.regularizer * self.outputscale
        return self.noise_variance

    @property
    def prior_std(self) -> float:
        """In the units of y."""
        return math.sqrt(self.outputscale)

    def condition(self, X: Tensor, Y: Tensor, space: SearchSpace) -> SingleTaskGP:
        """The model of these data."""
        model = FixedHyperparameters(
            self.lengthscale, self.regularization, self.outputscale
        ).model(X, Y, space.bounds, space.d_x)
        mean = self.mean / self.prior_std  # the model's unit of y
        cast(ConstantMean, model.mean_module).initialize(constant=mean)
        return model.requires_grad_(False)


@lru_cache(maxsize=16)
def greedy_gains(
    lengthscale: tuple[float, ...], noise_ratio: float, num: int
) -> tuple[float, ...]:
    """The largest information gain of 1, 2, ..., ``num`` outcomes in the unit box."""
    d = len(lengthscale)
    kernel = RBFKernel(ard_num_dims=d).double().requires_grad_(False)
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.double)
    points = sobol(_NUM_POINTS, d, seed=0)
    found = maximum_information_gain(kernel, points, num, noise_ratio)
    return tuple(found.gains.tolist())


@dataclass(frozen=True, eq=False)
class PhasedState:
    """The state of a run of phased uncertainty sampling."""

    # The number ``e`` of the running episode, from 1 on.
    episode: int
    # The number of its decisions, ``2^(e - 1)``.
    length: int
    # The set :math:`D_1` of all decisions, ``n x d_x``.
    decisions: Tensor
    # Whether each of them is in :math:`D_e`, ``n`` booleans.
    survives: Tensor
    # Decisions of this episode that have an outcome, ``a x d_x``.
    observed: Tensor
    # Decisions without an outcome yet, ``m x d_x``.
    pending: Tensor

    @property
    def survivors(self) -> Tensor:
        """The decisions that are left, ``k x d_x``, in the order of ``decisions``."""
        return self.decisions[self.survives]

    @property
    def num_asked(self) -> int:
        """How many decisions of the episode have been taken."""
        return len(self.observed) + len(self.pending)

    @property
    def remaining(self) -> int:
        """The number of decisions that can be asked before outcomes must be told."""
        return max(self.length - self.num_asked, 0)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class PhasedUncertaintySampling(DelegatingRecipe):
    r"""``phased_gp_us``: sample where the uncertainty is largest, discard, start again.

    Algorithm 2 of [Bogunovic2021misspecified]_. It keeps a low regret if the objective
    is only close to the model's functions, by an unknown distance. Episode ``e`` has
    ``m = 2^(e-1)`` decisions; at its start all earlier outcomes are forgotten:

    .. math:: x_t = \arg\max_{x \in D_e} \sigma_{t-1}(x), \qquad t = 1, \dots, m.

    After the last outcome, the mean and deviation of *this* episode decide which
    decisions remain:

    .. math:: D_{e+1} = \Big\{ x \in D_e : \mu_m(x) + w\,\sigma_m(x) \ge
        \max_{x' \in D_e} \big( \mu_m(x') - w\,\sigma_m(x') \big) \Big\}

    (eq. 20). The choices in an episode do not depend on its outcomes, so the whole
    episode can be asked as one batch, with the same result as one by one. Asking for
    more decisions than the episode has raises an error: tell its outcomes first.

    **The set.** ``candidates``, if given: the same list at each call. Otherwise
    ``num_decisions`` Sobol points in the box, always the same ones. A decision may be
    asked again, also within a batch, if its uncertainty is still the largest; no other
    recipe does this.

    **Episodes** are counted in outcomes, in the order in which they are told: the first
    is episode 1, the next two are episode 2, and so on. Decisions of an initial design
    (``num_initial``) fill the first episodes, which is valid because they do not depend
    on outcomes either; ``num_initial=0`` is the paper's algorithm. If another decision
    was executed than the one asked, the executed one is used.

    **Hyper-parameters.** With ``hyperparameters`` they are given, as in the paper.
    Otherwise they are fitted between two episodes, once, to all outcomes so far, and
    serve to discard and to choose in the next episode; inside an episode nothing is
    fitted. (A kernel fitted to one episode alone would be poor in the early, short
    ones; posterior means and deviations still use one episode only.) They are a
    function of the outcomes told, so a resumed run continues like an uninterrupted one.

    **The width** ``w`` is 3 by default, a rule of thumb like the default of ``beta`` in
    other recipes. The theory applies with one of the following, and with true
    ``hyperparameters``:

    - ``confidence_width=ConfidenceWidth(norm_bound=, delta=)`` is the paper's own:
      Lemma 1 on the outcomes of the episode. It holds for every decision of any compact
      domain, independently of the number of listed decisions. *There is no union bound
      in the paper*: every episode gets the same ``delta``, and all of them hold with
      the probability that its theorem states only up to logarithms. For a strict bound
      pass ``delta / ceil(log2 T)`` with ``T`` outcomes in total.
    - ``confidence_width=None`` is not from the paper: ``nonadaptive_confidence_width``,
      with the noise of the model assumed correct. It contains no information gain, but
      the number of decisions, and a union bound over them and the episodes. It is about
      twice as wide as the rule of thumb. Without a ``norm_bound`` the norm of the
      episode's own posterior mean replaces ``B``.

    ``model=`` is one of ``x`` alone with noise that it learns (a ``SingleTaskGP``): its
    kernel, mean and noise are those of the next episode.

    **Contexts.** The paper has none. The model is one of ``x`` alone, as for
    ``gp_ucb``, and the context is noise to it. Recommendations are those of ``gp_ucb``
    on the same history: best posterior mean, all outcomes used, the discarded decisions
    not excluded (give ``recommend`` the survivors as candidates to exclude them).

    Args:
        num_decisions: The number of Sobol points used if there is no list.
        confidence_width: ``w``, the ``ConfidenceWidth`` of the paper, or None for the
            non-adaptive one. It multiplies ``sigma`` and corresponds to the square root
            of ``beta``.
        delta: The probability of failure of the non-adaptive width, between 0 and 1.
        norm_bound: ``B`` of the non-adaptive width, in units of ``y``, for the kernel
            scaled to at most 1; None for a guess.
        model: A function that makes the model, as for the other recipes: a
            ``SingleTaskGP`` with inferred noise, whose kernel, mean and noise are used
            in the next episode.

    Raises:
        InputDataError: An option outside its range.

    Example:
        >>> unit = torch.tensor([[0.0], [1.0]]).double()
        >>> space = SearchSpace(unit, unit)
        >>> X = torch.linspace(0.0, 1.0, 7).double().unsqueeze(-1)  # 1 + 2 + 4
        >>> history = History(X=X, C=X, Y=-(X - 0.3).square(), contexts=X)
        >>> recipe = PhasedUncertaintySampling(num_decisions=64)
        >>> recipe.propose(history, space, q=8).shape  # all of episode 4
        torch.Size([8, 1])
        >>> state = recipe.state(history, space)
        >>> state.episode, state.remaining, len(state.survivors) <= 64
        (4, 8, True)
    """

    name: ClassVar[str] = "phased_gp_us"
    needs_box: ClassVar[bool] = True
    needs_data: ClassVar[bool] = False
    uses_contexts: ClassVar[bool] = False
    may_repeat: ClassVar[bool] = True
    recommender: ClassVar[RobustRecipe] = TABLE["gp_ucb"]

    num_decisions: int = 1024
    confidence_width: float | ConfidenceWidth | None = 3.0
    delta: float = 0.1
    norm_bound: float | None = None

    def __post_init__(self) -> None:
        """Check the number of decisions and both factors of the width."""
        check_count(self.num_decisions, "num_decisions")
        for name in ("norm_bound", "confidence_width"):
            value = getattr(self, name)
            if isinstance(value, ConfidenceWidth):
                if value.data_free:
                    raise InputDataError(
                        "`confidence_width` is that of the data of an episode, got "
                        f"{value}. Leave `data_free` out."
                    )
            elif value is not None:  # a tensor cannot be saved
                object.__setattr__(self, name, check_nonnegative(value, name).item())
        if self.norm_bound is not None and self.confidence_width is not None:
            raise InputDataError(
                f"`norm_bound` ({self.norm_bound}) decides the width only with "
                f"`confidence_width=None`, got {self.confidence_width}. Give one of "
                "them."
            )
        self._proven_width(0.0, 1, 1)  # checks delta
        super().__post_init__()
        check_single_model(self, self.name)

    @property
    def default_surrogate(self) -> str:
        """A single model: its kernel and its noise are put to other data."""
        return "botorch"

    def state(
        self,
        history: History,
        space: SearchSpace,
        *,
        X_pending: Tensor | None = None,
        candidates: Tensor | None = None,
    ) -> PhasedState:
        """Replay a history: the current episode and the decisions that have survived.

        Shapes: ``X_pending``: ``m x d_x``, ``candidates``: ``n x d_x``.
        """
        _, state = self._begin(history, space, 0, None, decides=False)
        if candidates is not None:
            candidates = check_candidates(candidates, space)
        return self._replay(state, X_pending, candidates)[0]

    def _propose(
        self,
        state: FittedState,
        q: int,
        X_pending: Tensor | None,
        candidates: Tensor | None,
    ) -> Tensor:
        now, prior = self._replay(state, X_pending, candidates)
        if q > now.remaining:
            raise InputDataError(
                f"Episode {now.episode} holds {now.length} decisions: "
                f"{len(now.observed)} have an outcome, {len(now.pending)} are on "
                f"their way, so {now.remaining} can be asked for now, got q = {q}. "
                "Tell the outcomes of this episode; the next one holds "
                f"{2 * now.length}."
            )
        survivors = now.survivors
        new = without(survivors, state.failed)
        survivors = new if len(new) else survivors
        if prior is None:  # no outcome is known yet
            return survivors[:1]
        # Executed decisions need not be survivors: such rows are only observed.
        taken = torch.cat([now.observed, now.pending])
        points = torch.cat([survivors, taken])
        own = torch.arange(len(points), device=points.device) < len(survivors)
        greedy = _greedy(prior, points)
        for row in taken:
            greedy.observe(int((points == row).all(-1).nonzero()[0]))
        return points[greedy.extend(q, own)]

    def _replay(
        self,
        observed: FittedState,
        X_pending: Tensor | None,
        candidates: Tensor | None,
    ) -> tuple[PhasedState, SingleTaskGP | None]:
        """The state, and a model with the hyper-parameters of the running episode."""
        history, space = observed.history, observed.space
        decisions = candidates
        if decisions is None:
            # It may not depend on the seed of a call, which is another at each call.
            decisions = sobol_in_box(self.num_decisions, space.bounds, seed=0)
        survives = torch.ones(len(decisions), dtype=torch.bool, device=decisions.device)
        first, length, episode, prior = 0, 1, 1, None
        while first + length <= history.t:
            end = first + length
            fitted = prior = self._prior(observed, end)
            width = self.confidence_width
            if isinstance(width, ConfidenceWidth):
                prior = cast(SingleTaskGP, width.model(fitted))
            mean, deviation, norm, gain = _moments(
                prior, history.X[first:end], history.Y[first:end], decisions
            )
            if isinstance(width, ConfidenceWidth):
                width = width.width(fitted, gain)
            elif width is None:
                norm = self._prior_norm(prior, decisions, norm)
                width = self._proven_width(norm, len(decisions), episode)
            bar = (mean - width * deviation)[survives].max()
            survives = survives & (mean + width * deviation >= bar)
            first, length, episode = end, 2 * length, episode + 1
        state = PhasedState(
            episode=episode,
            length=length,
            decisions=decisions,
            survives=survives,
            observed=history.X[first:],
            pending=decisions[:0] if X_pending is None else X_pending.to(decisions),
        )
        return state, prior

    def _prior(self, observed: FittedState, end: int) -> SingleTaskGP:
        """A model whose hyper-parameters come from the first ``end`` outcomes."""
        history, space = observed.history, observed.space
        X, Y, C = history.X[:end], history.Y[:end], history.C[:end]
        before = History(X=X, C=C, Y=Y, contexts=C)
        if self.hyperparameters is not None:
            return cast(
                SingleTaskGP, self.judge.decision_model(FittedState(before, space))
            )
        data = (X, Y, space.bounds)
        content = tuple(part.detach().cpu().numpy().tobytes() for part in data)
        made_by = id(self.model), id(self.surrogate)  # the recommender keeps both
        kind = (X.shape, str(X.dtype), str(X.device), *made_by)
        fitted = _fitted(_FitTask((*content, *kind), before, space, self.judge))
        return check_exact(fitted, self.name)

    def _prior_norm(
        self, prior: SingleTaskGP, decisions: Tensor, mean_norm: float
    ) -> float:
        """``B`` in units of the prior standard deviation."""
        if self.norm_bound is None:
            return mean_norm
        kernel = cast(Callable[..., Any], prior.covar_module)
        variance = kernel(prior.transform_inputs(decisions), diag=True).max()
        unit = outcome_map(prior, None)[0]
        return self.norm_bound / (unit * variance.double().sqrt()).item()

    def _proven_width(self, norm: float, num_decisions: int, episode: int) -> float:
        return nonadaptive_confidence_width(
            num_decisions,
            norm_bound=norm,
            delta=self.delta,
            # The noise variance of the model is believed, in whatever units.
            noise_std=1.0,
            noise_ratio=1.0,
            episode=episode,
        )


@dataclass(frozen=True)
class _FitTask:
    """Data to fit a model to; tasks with equal content are equal."""

    content: tuple[object, ...]
    history: History = field(compare=False)
    space: SearchSpace = field(compare=False)
    recipe: RobustRecipe = field(compare=False)


# A replay fits the model of each episode so far. The fit is a function of the data, so
# the memory saves time and changes nothing.
@lru_cache(maxsize=32)
def _fitted(task: _FitTask) -> Model:
    # Fitting may draw random numbers: the same ones at each replay.
    with isolated_rng(0, task.space.bounds.device):
        return task.recipe.decision_model(FittedState(task.history, task.space))


def _greedy(prior: SingleTaskGP, points: Tensor) -> GreedyVariance:
    noise = cast(Tensor, prior.likelihood.noise).double().mean()
    kernel = cast(Kernel, prior.covar_module)
    return GreedyVariance(kernel, prior.transform_inputs(points), noise)


def _moments(
    prior: SingleTaskGP, X: Tensor, Y: Tensor, decisions: Tensor
) -> tuple[Tensor, Tensor, float, float]:
    """Condition the hyper-parameters' prior on the outcomes of one episode only.

    Shapes: ``X``: ``m x d_x``, ``Y``: ``m x 1``, ``decisions``: ``n x d_x``.
    """
    kernel = cast(Callable[..., Any], prior.covar_module)
    prior_mean = cast(Callable[..., Tensor], prior.mean_module)
    noise = cast(Tensor, prior.likelihood.noise).double().mean()
    scale, offset = outcome_map(prior, None)
    with torch.no_grad():
        Z, points = prior.transform_inputs(X), prior.transform_inputs(decisions)
        own = kernel(Z).to_dense().double()  # m x m
        cross = kernel(Z, points).to_dense().double()  # m x n
        variance = kernel(points, diag=True).double()
        root = psd_safe_cholesky(own + noise * torch.eye(len(Z)).to(own))
        outcomes = (Y.double().squeeze(-1) - offset.to(own)) / scale.to(own)
        residual = (outcomes - prior_mean(Z).double()).unsqueeze(-1)  # m x 1
        weights = torch.cholesky_solve(residual, root)
        half = torch.linalg.solve_triangular(root, cross, upper=False)
        mean = prior_mean(points).double() + (cross.mT @ weights).squeeze(-1)
        deviation = (variance - half.square().sum(0)).clamp_min(0.0).sqrt()
        norm = (weights.mT @ own @ weights).clamp_min(0.0).sqrt().item()
        gain = information_gain(own, noise.item()).item()
    return mean, deviation, norm, gain
