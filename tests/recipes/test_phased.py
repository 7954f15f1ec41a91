"""Phased uncertainty sampling against Algorithm 2 written out in numpy."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError
from torch import Tensor

from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.policies import ConfidenceWidth
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import make_recipe
from botorch_drbo.recipes.phased import PhasedUncertaintySampling, _fitted
from botorch_drbo.surrogate import FixedHyperparameters

SPACE = SearchSpace(
    bounds=torch.tensor([[-1.0, 0.0], [3.0, 1.0]], dtype=torch.double),
    context_bounds=torch.tensor([[10.0], [12.0]], dtype=torch.double),
)
LOW, SIDE = SPACE.bounds[0].numpy(), (SPACE.bounds[1] - SPACE.bounds[0]).numpy()
PRIOR = FixedHyperparameters(lengthscale=0.3, noise_variance=0.05, outputscale=4.0)


def listed(n: int, seed: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(n, 2, generator=generator, dtype=torch.double)
    return SPACE.bounds[0] + unit * (SPACE.bounds[1] - SPACE.bounds[0])


def outcome(X: Tensor) -> Tensor:
    """Smooth, with a single best place, ``m x 1``."""
    unit = (X - SPACE.bounds[0]) / (SPACE.bounds[1] - SPACE.bounds[0])
    return 3.0 * (1.0 - 2.0 * (unit - 0.3).square().sum(-1, keepdim=True))


def history_of(X: Tensor, Y: Tensor) -> History:
    C = 10.0 + 2.0 * torch.linspace(0.0, 1.0, len(X), dtype=torch.double).unsqueeze(-1)
    return History(X=X, C=C, Y=Y, contexts=C)


def nothing() -> History:
    return history_of(SPACE.bounds[:0], SPACE.bounds[:0, :1])


def play(recipe: PhasedUncertaintySampling, D: Tensor, T: int) -> History:
    """Whole episodes, with noise that depends on the round alone."""
    noise = torch.randn(T, 1, generator=torch.Generator().manual_seed(0)).double()
    history = nothing()
    while history.t < T:
        q = min(recipe.state(history, SPACE, candidates=D).remaining, T - history.t)
        x = recipe.propose(history, SPACE, q=q, candidates=D)
        y = outcome(x) + 0.2 * noise[history.t : history.t + q]
        history = history_of(torch.cat([history.X, x]), torch.cat([history.Y, y]))
    return history


class Paper:
    """Algorithm 2 for a squared exponential kernel; every inverse from scratch."""

    def __init__(
        self, D: Tensor, lengthscale: np.ndarray | float, noise: float, scale: float
    ) -> None:
        self.unit = (D.numpy() - LOW) / SIDE
        self.lengthscale, self.noise, self.scale = lengthscale, noise, scale

    def kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        gap = (A[:, None, :] - B[None, :, :]) / self.lengthscale
        return self.scale * np.exp(-0.5 * (gap**2).sum(-1))

    def moments(
        self, X: np.ndarray, y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]:
        inverse = np.linalg.inv(self.kernel(X, X) + self.noise * np.eye(len(X)))
        k = self.kernel(X, self.unit)
        variance = self.scale - np.einsum("in,ij,jn->n", k, inverse, k)
        a = inverse @ y
        return k.T @ a, np.sqrt(variance.clip(0)), math.sqrt(a @ self.kernel(X, X) @ a)

    def choose(self, alive: np.ndarray, num: int) -> list[int]:
        chosen: list[int] = []
        for _ in range(num):
            rows = self.unit[chosen]
            variance = np.full(len(self.unit), self.scale)
            if chosen:
                variance = self.moments(rows, np.zeros(len(rows)))[1] ** 2
            allowed = np.where(alive, variance, -1.0)
            ties = np.flatnonzero(allowed >= allowed.max() * (1 - 1e-7))
            chosen.append(int(ties[0]))
        return chosen

    def keep(
        self, alive: np.ndarray, mu: np.ndarray, sigma: np.ndarray, w: float
    ) -> np.ndarray:
        bar = max(mu[i] - w * sigma[i] for i in np.flatnonzero(alive))
        return np.array(
            [alive[i] and mu[i] + w * sigma[i] >= bar for i in range(len(alive))]
        )


@pytest.mark.parametrize(
    "width", [1.0, 0.3, None, "guess", "lemma 1", "lambda"], ids=str
)
def test_algorithm_2_by_brute_force(width: float | str | None) -> None:
    options: dict = {"confidence_width": width}
    if width is None:
        options["norm_bound"] = 3.0
    if width == "guess":
        options["confidence_width"] = None
    noise = 0.4 if width == "lambda" else 0.05  # lambda times an outputscale of 4
    if width in {"lemma 1", "lambda"}:
        lam = noise / 4.0 if width == "lambda" else None
        lemma = ConfidenceWidth(1.0, delta=0.2, noise_std=0.1, noise_ratio=lam)
        options["confidence_width"] = lemma
    D = listed(40)
    recipe = PhasedUncertaintySampling(hyperparameters=PRIOR, **options)
    history = play(recipe, D, 255)
    paper, alive, first = Paper(D, 0.3, noise, 4.0), np.ones(40, dtype=bool), 0
    sizes = []
    for episode in range(1, 9):
        last = first + 2 ** (episode - 1)
        chosen = paper.choose(alive, last - first)
        assert torch.equal(history.X[first:last], D[chosen])
        y = history.Y[first:last, 0].numpy()
        mu, sigma, norm = paper.moments(paper.unit[chosen], y)
        w = width
        if width in {"lemma 1", "lambda"}:  # of this episode's points alone
            K = paper.kernel(paper.unit[chosen], paper.unit[chosen])
            logdet = np.linalg.slogdet(np.eye(len(K)) + K / noise)[1]
            # sigma / sqrt(lambda); the norm is of a kernel of size 1
            w = 0.1 / math.sqrt(noise) * math.sqrt(2 * math.log(5) + logdet) + 1.0 / 2.0
        elif not isinstance(w, float):
            share = 0.1 / (episode * (episode + 1)) / (2 * 40)
            bound = 3.0 / 2.0 if width is None else norm  # outputscale 4
            w = bound + math.sqrt(2 * math.log(1 / share))
        alive = paper.keep(alive, mu, sigma, w)
        state = recipe.state(
            history_of(history.X[:last], history.Y[:last]), SPACE, candidates=D
        )
        assert (state.episode, state.length) == (episode + 1, 2**episode)
        assert state.survives.numpy().tolist() == alive.tolist()
        assert torch.equal(state.survivors, D[alive])
        sizes.append(alive.sum())
        first = last
    assert 1 <= sizes[-1] < 40  # somebody was discarded, or nothing was tested
    if width != 0.3:  # that one is too narrow for the noise
        assert alive[int(outcome(D).argmax())]


def test_fitted_between_episodes_to_all_outcomes() -> None:
    """The same with a fitted kernel, a scaled outcome, and ``B`` in its units."""
    D, options = listed(40), {"confidence_width": None, "norm_bound": 4.0}
    recipe = PhasedUncertaintySampling(**options)
    history = play(recipe, D, 63)
    one_model = make_recipe("gp_ucb", surrogate="botorch")
    alive, first = np.ones(40, dtype=bool), 0
    for episode in range(1, 7):
        last = first + 2 ** (episode - 1)
        before = history_of(history.X[:last], history.Y[:last])
        model = one_model.fitted(before, SPACE, uses_contexts=False)
        lengthscale = model.covar_module.lengthscale.numpy().ravel()  # pyright: ignore[reportAttributeAccessIssue]
        noise = model.likelihood.noise.item()
        constant = model.mean_module.constant.item()  # pyright: ignore[reportAttributeAccessIssue]
        paper = Paper(D, lengthscale, noise, 1.0)
        every = history.Y[:last, 0].numpy()
        unit = every.std(ddof=1) if last > 1 else 1.0
        y = (history.Y[first:last, 0].numpy() - every.mean()) / unit - constant
        X = (history.X[first:last].numpy() - LOW) / SIDE
        mu, sigma, _ = paper.moments(X, y)
        share = 0.1 / (episode * (episode + 1)) / (2 * 40)
        w = 4.0 / unit + math.sqrt(2 * math.log(1 / share))
        alive = paper.keep(alive, mu, sigma, w)
        state = recipe.state(before, SPACE, candidates=D)
        assert state.survives.numpy().tolist() == alive.tolist()
        upcoming = D[paper.choose(alive, 2**episode)]
        asked = recipe.propose(before, SPACE, q=2**episode, candidates=D)
        assert torch.equal(asked, upcoming)
        first = last
    assert alive.sum() < 40


@pytest.mark.parametrize("hyperparameters", [PRIOR, None], ids=["fixed", "fitted"])
@pytest.mark.parametrize("n", [5, 60])
def test_batch_is_one_at_a_time(
    hyperparameters: FixedHyperparameters | None, n: int
) -> None:
    recipe = PhasedUncertaintySampling(hyperparameters=hyperparameters)
    D = listed(n)
    history = play(recipe, D, 7)
    batch = recipe.propose(history, SPACE, q=8, candidates=D, seed=1)
    if n == 5:  # fewer decisions than the episode holds: some are asked for again
        assert len(batch.unique(dim=0)) < 8
    # As pending decisions, and as decisions with an outcome, whatever it was.
    waiting, done = D[:0], history
    for i in range(8):
        late = recipe.propose(
            history, SPACE, X_pending=waiting, candidates=D, seed=2 + i
        )
        known = recipe.propose(done, SPACE, candidates=D, seed=20 + i)
        assert torch.equal(late, batch[i : i + 1])
        assert torch.equal(known, batch[i : i + 1])
        waiting = torch.cat([waiting, late])
        y = torch.tensor([[100.0 * (-1) ** i]], dtype=torch.double)
        done = history_of(torch.cat([done.X, known]), torch.cat([done.Y, y]))


def test_earlier_outcomes_matter_through_the_survivors_only() -> None:
    D = listed(60)
    recipe = PhasedUncertaintySampling(hyperparameters=PRIOR, confidence_width=1.0)
    history = play(recipe, D, 15)
    generator = torch.Generator().manual_seed(0)
    groups: dict[tuple, list[Tensor]] = {}
    for trial in range(12):
        wobble = 10.0 ** -(trial % 4) * torch.randn(15, 1, generator=generator)
        other = replace(history, Y=history.Y + wobble.double())
        survives = recipe.state(other, SPACE, candidates=D).survives
        asked = recipe.propose(other, SPACE, q=16, candidates=D)
        assert (asked.unsqueeze(1) == D[survives]).all(-1).any(-1).all()
        groups.setdefault(tuple(survives.tolist()), []).append(asked)
    assert len(groups) > 1 and any(len(group) > 1 for group in groups.values())
    for group in groups.values():
        assert all(torch.equal(asked, group[0]) for asked in group)


def test_moments_forget_earlier_episodes() -> None:
    """Who stays after episode 4 does not depend on outcomes 1 to 7 if all stayed."""
    D = listed(60)
    recipe = PhasedUncertaintySampling(hyperparameters=PRIOR, confidence_width=2.5)
    history = play(recipe, D, 15)
    flat = history.Y.clone()
    flat[:7] = 0.0  # nothing is discarded by outcomes that are all zero
    lying = flat.clone()
    lying[:7] = 1e-3 * torch.arange(7.0).double().unsqueeze(-1)
    states = [
        recipe.state(history_of(history.X, Y), SPACE, candidates=D)
        for Y in (flat, lying)
    ]
    early = recipe.state(history_of(history.X[:7], flat[:7]), SPACE, candidates=D)
    assert early.survives.all()
    assert torch.equal(states[0].survives, states[1].survives)
    assert not states[0].survives.all()


def test_executed_decisions_count() -> None:
    """The world moved a decision: the next ones know where it went."""
    D = listed(60)
    recipe = PhasedUncertaintySampling(hyperparameters=PRIOR, confidence_width=1e9)
    history = play(recipe, D, 7)
    elsewhere = torch.tensor([[1.2345, 0.6789]], dtype=torch.double)
    moved = history_of(
        torch.cat([history.X, elsewhere]), torch.cat([history.Y, elsewhere[:, :1]])
    )
    asked = recipe.propose(moved, SPACE, q=3, candidates=D)
    paper = Paper(torch.cat([D, elsewhere]), 0.3, 0.05, 4.0)
    chosen = [60]
    for row in asked:
        sigma = paper.moments(paper.unit[chosen], np.zeros(len(chosen)))[1][:60]
        assert torch.equal(row, D[int(sigma.argmax())])
        chosen.append(int(sigma.argmax()))
    state = recipe.state(moved, SPACE, X_pending=asked, candidates=D)
    assert torch.equal(state.observed, elsewhere) and torch.equal(state.pending, asked)
    assert (state.num_asked, state.remaining) == (4, 4)


def test_decisions_outside_the_set_are_not_asked_for() -> None:
    """Executed once, far away: the least known point, but not one to choose."""
    prior = FixedHyperparameters(lengthscale=0.1, noise_variance=1.0)
    recipe = PhasedUncertaintySampling(hyperparameters=prior)
    D, far = SPACE.bounds[:1], SPACE.bounds[1:]
    X = torch.cat([D, D, D, far])
    asked = recipe.propose(history_of(X, X[:, :1]), SPACE, q=3, candidates=D)
    assert torch.equal(asked, D.expand(3, 2))


def test_the_discarded_do_not_raise_the_bar() -> None:
    """The last survivor turns out to be bad; the others, forgotten, look better."""
    prior = FixedHyperparameters(lengthscale=0.1, noise_variance=0.01)
    recipe = PhasedUncertaintySampling(hyperparameters=prior, confidence_width=0.0)
    D = torch.tensor([[-1.0, 0.0], [3.0, 1.0]], dtype=torch.double)
    X = D[[0, 1, 1]]
    Y = torch.tensor([[-1.0], [-5.0], [-5.0]], dtype=torch.double)
    for t in (1, 3):
        state = recipe.state(history_of(X[:t], Y[:t]), SPACE, candidates=D)
        assert state.survives.tolist() == [False, True]


def test_sobol_set_is_the_same_at_every_seed() -> None:
    recipe = PhasedUncertaintySampling(hyperparameters=PRIOR, num_decisions=100)
    sets = [recipe.state(nothing(), SPACE).decisions for _ in range(2)]
    assert torch.equal(sets[0], sets[1]) and sets[0].shape == (100, 2)
    assert ((sets[0] >= SPACE.bounds[0]) & (sets[0] <= SPACE.bounds[1])).all()
    first = recipe.propose(nothing(), SPACE, seed=1)
    assert torch.equal(first, recipe.propose(nothing(), SPACE, seed=2))
    assert torch.equal(first, sets[0][:1])


def test_the_memory_of_fits_changes_nothing() -> None:
    recipe, D = PhasedUncertaintySampling(), listed(30)
    history = play(recipe, D, 15)
    with_memory = recipe.propose(history, SPACE, q=16, candidates=D)
    _fitted.cache_clear()
    assert torch.equal(with_memory, recipe.propose(history, SPACE, q=16, candidates=D))
    assert _fitted.cache_info().misses == 4  # one fit for each of four episodes
    recipe.propose(history, SPACE, q=5, X_pending=D[:3], candidates=D, seed=4)
    assert _fitted.cache_info().misses == 4  # and none inside an episode
    other = history_of(history.X, history.Y + torch.eye(15, 1).double())
    recipe.state(other, SPACE, candidates=D)
    assert _fitted.cache_info().misses == 8


def test_more_than_the_episode_holds() -> None:
    recipe, D = PhasedUncertaintySampling(hyperparameters=PRIOR), listed(30)
    history = play(recipe, D, 9)  # episode 4 of 8: two have an outcome
    assert recipe.propose(history, SPACE, q=6, candidates=D).shape == (6, 2)
    with pytest.raises(InputDataError, match=r"Episode 4 holds 8 .* got q = 7"):
        recipe.propose(history, SPACE, q=7, candidates=D)
    with pytest.raises(InputDataError, match="5 are on their way, so 1 can be asked"):
        recipe.propose(history, SPACE, q=2, X_pending=D[:5], candidates=D)
    with pytest.raises(InputDataError, match="so 0 can be asked"):
        recipe.propose(history, SPACE, X_pending=D[:9], candidates=D)
    with pytest.raises(InputDataError, match="Episode 1 holds 1"):
        recipe.propose(nothing(), SPACE, q=2)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.5}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"norm_bound": -1.0, "confidence_width": None}, "norm_bound"),
        ({"norm_bound": math.inf, "confidence_width": None}, "norm_bound"),
        ({"norm_bound": 1.0}, "confidence_width=None"),
        ({"confidence_width": -1.0}, "confidence_width"),
        ({"num_decisions": 0}, "num_decisions"),
        ({"num_decisions": 10.0}, "num_decisions"),
    ],
)
def test_bad_options(options: dict, text: str) -> None:
    with pytest.raises(InputDataError, match=text):
        PhasedUncertaintySampling(**options)


def test_bad_lists_for_the_state() -> None:
    recipe = PhasedUncertaintySampling()
    with pytest.raises(InputDataError, match="empty"):
        recipe.state(nothing(), SPACE, candidates=listed(3)[:0])
    with pytest.raises(BotorchTensorDimensionError, match="context columns"):
        recipe.state(
            nothing(), SearchSpace(SPACE.bounds, SPACE.bounds), candidates=listed(3)
        )


def test_killed_runs_batches_and_late_outcomes_in_the_loop(tmp_path: Path) -> None:
    """Whole episodes, outcomes in reverse order, an initial design, a resumed run."""
    D, path = listed(6), tmp_path / "run.jsonl"

    def episodes(opt: RobustOptimizer, until: int) -> list[Tensor]:
        asked = []
        while opt.history.t < until:
            recipe = opt.algorithm
            assert isinstance(recipe, PhasedUncertaintySampling)
            state = recipe.state(
                opt.history, opt.space, X_pending=opt.pending, candidates=D
            )
            if state.remaining:
                asked.append(opt.ask(state.remaining, candidates=D))
            for x in reversed(opt.pending.clone()):
                c = torch.tensor([11.0], dtype=torch.double)
                opt.tell(x, c, outcome(x.unsqueeze(0)))
        return asked

    def start(journal: Path | None) -> RobustOptimizer:
        return RobustOptimizer(
            "phased_gp_us",
            *(SPACE.bounds, SPACE.context_bounds),
            num_initial=2,
            journal=journal,
        )

    whole = start(None)
    for opt in (whole, start(path)):
        for _ in range(2):  # the design: episode 1 and a part of episode 2
            opt.tell(opt.ask(candidates=D), torch.tensor([11.0]).double(), 1.0)
        opt.ask(candidates=D)
        if opt is not whole:
            opt.close()
    asked = episodes(whole, 31)
    assert [len(x) for x in asked] == [4, 8, 16]
    with RobustOptimizer.resume(path) as opt:
        first = episodes(opt, 7)
        opt.ask(8, candidates=D)  # died before any outcome of episode 4
    with RobustOptimizer.resume(path) as opt:
        with pytest.raises(InputDataError, match="Episode 4 holds 8"):
            opt.ask(candidates=D)
        assert torch.equal(opt.pending, asked[1])
        rest = episodes(opt, 31)
    assert all(map(torch.equal, first + rest, [asked[0], asked[2]]))
    assert whole.recommend(D).x.tolist() in D.tolist()
