"""Regret bound balancing against the same game, played by plain loops."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_drbo.optimizer import RobustOptimizer
from botorch_drbo.problem import History, SearchSpace
from botorch_drbo.recipes import recipe_from_dict
from botorch_drbo.recipes.fitted_state import FittedState
from botorch_drbo.recipes.regret_balancing import RegretBalancing
from botorch_drbo.schedules import InverseSquareRoot
from botorch_drbo.surrogate import FixedHyperparameters

BOUNDS = torch.tensor([[-1.0, 0.0], [3.0, 1.0]], dtype=torch.double)
SPACE = SearchSpace(BOUNDS, torch.tensor([[0.0], [1.0]], dtype=torch.double))
LENGTHSCALE, SCALE, NOISE = (0.3, 0.6), 1.5, 0.05
PRIOR = FixedHyperparameters(
    lengthscale=(*LENGTHSCALE, 1.0), noise_variance=NOISE, outputscale=SCALE
)
DESIGN, HORIZON, LOW, HIGH = 3, 40, -2.0, 4.0
GUESSES = (0.4, 0.1, 0.01)
OPTIONS: dict[str, Any] = {
    "hyperparameters": PRIOR,
    "horizon": HORIZON,
    "reward_range": (LOW, HIGH),
    "num_design": DESIGN,
    "num_restarts": 2,
    "raw_samples": 16,
}


def history(t: int, seed: int = 0, rewards: list[float] | None = None) -> History:
    generator = torch.Generator().manual_seed(seed)
    unit = torch.rand(t, 4, generator=generator, dtype=torch.double)
    X = BOUNDS[0] + unit[:, :2] * (BOUNDS[1] - BOUNDS[0])
    reward = unit[:, 3:] if rewards is None else torch.tensor(rewards).double()[:, None]
    Y, C = LOW + (HIGH - LOW) * reward, unit[:, 2:3]
    return History(X=X, C=C, Y=Y, contexts=C)


def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Size one, on the unit cube."""
    scaled = (a[:, None, :] - b[None, :, :]) / np.array(LENGTHSCALE)
    return np.exp(-0.5 * (scaled**2).sum(-1))


def greedy_gains(num: int, lam: float = NOISE / SCALE) -> list[float]:
    """1/2 log det(I + K / lambda) of greedy choices, each posterior from scratch."""
    sobol = SobolEngine(2, scramble=True, seed=0)
    points = sobol.draw(512, dtype=torch.double).numpy()
    chosen: list[int] = []
    gains: list[float] = []
    for _ in range(num):
        if chosen:
            Z = points[chosen]
            cross = kernel(Z, points)
            K = kernel(Z, Z) + lam * np.eye(len(Z))
            variance = 1.0 - (cross * np.linalg.solve(K, cross)).sum(0)
        else:
            variance = np.ones(len(points))
        chosen.append(int(variance.argmax()))
        K = kernel(points[chosen], points[chosen])
        _, logdet = np.linalg.slogdet(np.eye(len(chosen)) + K / lam)
        gains.append(0.5 * logdet)
    return gains


GAINS = greedy_gains(HORIZON + DESIGN)


def candidate_bound(guess: float, n: int, beta_paper: float) -> float:
    """(22) in rewards: the paper's beta multiplies sigma of a kernel of size one."""
    lam = NOISE / SCALE
    width = beta_paper + guess * math.sqrt(n + DESIGN) / math.sqrt(lam)
    sigmas = math.sqrt(2 * n * GAINS[n - 1] / math.log(1 + 1 / lam))
    return min(n, 2 * width * sigmas + 2 * guess * n)


def game(
    rewards: list[float], guesses: tuple, *, sqrt_beta: float, c: float, delta: float
) -> tuple[list[int], list[int | None], list[float]]:
    """Algorithm 3 from its description: who plays each reward, who is out when."""
    beta_paper = sqrt_beta * math.sqrt(SCALE) / (HIGH - LOW)
    earned: list[list[float]] = [[] for _ in guesses]
    out: list[int | None] = [None for _ in guesses]
    played: list[int] = []

    def promise(i: int) -> float:
        n = len(earned[i])
        return candidate_bound(guesses[i], n, beta_paper) if n else 0.0

    def spread(n: int) -> float:
        inner = max(1.0, math.log(n))
        return c * math.sqrt(math.log(len(guesses) * inner / delta) / n)

    for number, reward in enumerate(rewards, start=1):
        turn = None
        for i in range(len(guesses)):
            if out[i] is None and (turn is None or promise(i) < promise(turn)):
                turn = i
        assert turn is not None
        played.append(turn)
        earned[turn].append(reward)
        lower = [
            sum(e) / len(e) - spread(len(e))
            for i, e in enumerate(earned)
            if e and out[i] is None
        ]
        leave = []
        for i, e in enumerate(earned):
            if e and out[i] is None:
                upper = (sum(e) + promise(i)) / len(e) + spread(len(e))
                if upper < max(lower):
                    leave.append(i)
        for i in leave:
            out[i] = number
    return played, out, [promise(i) for i in range(len(guesses))]


SETTING = {"c": 0.05, "delta": 0.2}
SMALL_GUESSES = (0.02, 0.005, 0.0)


@pytest.fixture(params=range(6))
def rewards(request: pytest.FixtureRequest) -> list[float]:
    """Most are 0 or 1, so that some base has luck."""
    generator = np.random.default_rng(request.param)
    drawn = generator.beta(0.2, 0.2, size=HORIZON + DESIGN)
    return drawn.round(3).tolist()


def test_the_game_by_loops(rewards: list[float]) -> None:
    recipe = RegretBalancing(
        misspecifications=SMALL_GUESSES,
        beta=1e-4,
        elimination_constant=SETTING["c"],
        delta=SETTING["delta"],
        **OPTIONS,
    )
    state = recipe.state(history(len(rewards), 0, rewards), SPACE)
    played, out, bounds = game(
        rewards[DESIGN:], SMALL_GUESSES, sqrt_beta=0.01, **SETTING
    )
    assert any(out)  # the game has eliminations
    assert list(state.played) == played
    assert list(state.eliminated_after) == out
    np.testing.assert_allclose(state.bounds, bounds, rtol=1e-6)
    assert state.num_plays == tuple(played.count(i) for i in range(3))
    sums = [
        sum(r for r, j in zip(rewards[DESIGN:], played, strict=True) if j == i)
        for i in range(3)
    ]
    np.testing.assert_allclose(state.total_rewards, sums, atol=1e-9)
    assert state.num_design == DESIGN


def test_a_base_that_breaks_its_promise_is_out_for_good() -> None:
    """Base 1 promises no regret and earns nothing; base 0 earns 1."""
    recipe = RegretBalancing(
        misspecifications=(0.2, 0.0), beta=0.0, elimination_constant=0.3, **OPTIONS
    )
    rewards = [0.5] * DESIGN
    for _ in range(HORIZON):
        turn = recipe.state(history(len(rewards), 0, rewards), SPACE).upcoming[-1]
        rewards.append(1.0 if turn == 0 else 0.0)
    state = recipe.state(history(len(rewards), 0, rewards), SPACE)
    when = state.eliminated_after[1]
    assert when is not None and state.active == (0,)
    assert set(state.played[when:]) == {0}
    assert sum(state.num_plays) == HORIZON


def test_a_short_horizon_has_one_base() -> None:
    state = RegretBalancing(**OPTIONS).state(history(DESIGN), SPACE)
    gain = GAINS[HORIZON - 1]
    assert state.information_gain == pytest.approx(gain)
    assert gain**2 > HORIZON
    assert state.misspecifications == pytest.approx([1 / math.sqrt(gain)])


def test_guesses_and_number_of_bases() -> None:
    # One smooth decision with much noise: little to learn, so there are guesses.
    prior = FixedHyperparameters(lengthscale=5.0, noise_variance=4.0)
    horizon, box = 200, SearchSpace(BOUNDS[:, :1], SPACE.context_bounds)
    recipe = RegretBalancing(**OPTIONS | {"hyperparameters": prior, "horizon": horizon})
    data = history(DESIGN)
    data = History(X=data.X[:, :1], C=data.C, Y=data.Y, contexts=data.C)
    state = recipe.state(data, box)
    gain, count = state.information_gain, len(state.misspecifications)
    assert horizon > gain**2 and count > 1
    assert count == math.ceil(1 + math.log2(math.sqrt(horizon) / gain))
    expected = [2.0 ** (1 - i) / math.sqrt(gain) for i in range(1, count + 1)]
    assert state.misspecifications == pytest.approx(expected)
    # The smallest is the one at which both terms of the bound are equal, or half.
    balance = math.sqrt(gain / horizon)
    assert balance / 2 <= min(expected) <= balance


def test_bound_with_the_width_of_lemma_1() -> None:
    norm, delta = 0.3, 0.1
    recipe = RegretBalancing(
        norm_bound=norm, delta=delta, misspecifications=(0.0,), **OPTIONS
    )
    n = HORIZON
    state = recipe.state(history(DESIGN + n), SPACE)
    gain = GAINS[n + DESIGN - 1]
    # Of the noise in rewards, over sqrt(lambda): the kernel's size in rewards.
    ratio = math.sqrt(NOISE) / (HIGH - LOW) / math.sqrt(NOISE / SCALE)
    spread = ratio * math.sqrt(2 * math.log(1 / delta) + 2 * gain)
    expected = candidate_bound(0.0, n, spread + norm / (HIGH - LOW))
    assert state.bounds[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("norm", [None, 0.3])
def test_bound_with_a_lambda_of_its_own(norm: float | None) -> None:
    lam, guess, delta = 0.7, 0.02, 0.1
    recipe = RegretBalancing(
        norm_bound=norm,
        beta=0.04,
        delta=delta,
        misspecifications=(guess,),
        noise_ratio=lam,
        **OPTIONS,
    )
    n = 20
    state = recipe.state(history(DESIGN + n), SPACE)
    gains = greedy_gains(HORIZON + DESIGN, lam)
    if norm is None:
        width = 0.2 * math.sqrt(SCALE) / (HIGH - LOW)
    else:  # Lemma 1, with the real noise and the lambda that is given
        noise = math.sqrt(NOISE) / math.sqrt(lam)
        gain = gains[n + DESIGN - 1]
        width = noise * math.sqrt(2 * math.log(1 / delta) + 2 * gain) + norm
        width /= HIGH - LOW
    width += guess * math.sqrt(n + DESIGN) / math.sqrt(lam)
    sigmas = math.sqrt(2 * n * gains[n - 1] / math.log(1 + 1 / lam))
    expected = 2 * width * sigmas + 2 * guess * n
    assert expected < n
    assert state.bounds[0] == pytest.approx(expected, rel=1e-6)


def test_decisions_with_a_lambda_of_its_own() -> None:
    """EC-GP-UCB (14) in numpy, with the posterior of that lambda."""
    sqrt_beta, guess, lam = 0.5, 0.05, 0.7
    data = history(DESIGN + 6, seed=4)
    actions = history(50, seed=5).X
    options = OPTIONS | {"misspecifications": (guess,), "beta": sqrt_beta**2}
    recipe = RegretBalancing(noise_ratio=lam, **options)
    chosen = recipe.propose(data, SPACE, candidates=actions)
    low, width = BOUNDS[0].numpy(), (BOUNDS[1] - BOUNDS[0]).numpy()
    Z, A = (data.X.numpy() - low) / width, (actions.numpy() - low) / width

    def best(ratio: float) -> int:
        K, cross = kernel(Z, Z) + ratio * np.eye(len(Z)), kernel(Z, A)
        mean = cross.T @ np.linalg.solve(K, data.Y.numpy()[:, 0])
        variance = 1.0 - (cross * np.linalg.solve(K, cross)).sum(0)
        enlarged = guess * (HIGH - LOW) * math.sqrt(data.t + 1) / math.sqrt(ratio)
        times = sqrt_beta * math.sqrt(SCALE) + enlarged
        return int((mean + times * np.sqrt(variance)).argmax())

    assert torch.equal(chosen[0], actions[best(lam)])
    assert best(lam) != best(NOISE / SCALE)  # so that the test can fail
    plain = RegretBalancing(**options).propose(data, SPACE, candidates=actions)
    assert torch.equal(plain[0], actions[best(NOISE / SCALE)])
    same = RegretBalancing(noise_ratio=NOISE / SCALE, **options)
    assert same.state(data, SPACE).bounds == pytest.approx(
        RegretBalancing(**options).state(data, SPACE).bounds
    )


def test_history_tells_everything() -> None:
    """A longer history agrees with the shorter one; pending decisions look ahead."""
    recipe = RegretBalancing(misspecifications=GUESSES, beta=0.01, **OPTIONS)
    data = history(DESIGN + 20)

    def first(t: int) -> History:
        C = data.C[:t]
        return History(X=data.X[:t], C=C, Y=data.Y[:t], contexts=C)

    whole = recipe.state(data, SPACE)
    for t in range(1, DESIGN + 20):
        state = recipe.state(first(t), SPACE, num_pending=2)
        plays = max(t - DESIGN, 0)
        assert state.played == whole.played[:plays]
        assert len(state.upcoming) == 3
        if t >= DESIGN:
            assert state.upcoming[0] == whole.played[plays]
    assert whole.active == (0, 1, 2)  # then the turns do not depend on the rewards
    ahead = recipe.state(first(DESIGN), SPACE, num_pending=12).upcoming
    assert ahead == whole.played[:13]


def test_a_base_sees_its_own_plays_and_the_design() -> None:
    recipe = RegretBalancing(misspecifications=GUESSES, beta=0.01, **OPTIONS)
    data = history(DESIGN + 11)
    state = recipe.state(data, SPACE)
    base = state.upcoming[-1]
    rows = [*range(DESIGN)]
    rows += [DESIGN + k for k, i in enumerate(state.played) if i == base]
    assert DESIGN < len(rows) < DESIGN + 11
    candidates = history(25, seed=9).X
    x = recipe.propose(data, SPACE, candidates=candidates)
    low, side = BOUNDS[0].numpy(), (BOUNDS[1] - BOUNDS[0]).numpy()
    Z, Y = (data.X[rows].numpy() - low) / side, data.Y[rows, 0].numpy()
    lam = NOISE / SCALE
    K = kernel(Z, Z) + lam * np.eye(len(Z))
    cross = kernel(Z, (candidates.numpy() - low) / side)
    mean = cross.T @ np.linalg.solve(K, Y)
    sigma = np.sqrt(1.0 - (cross * np.linalg.solve(K, cross)).sum(0))
    guess = GUESSES[base] * (HIGH - LOW)
    width = 0.1 * math.sqrt(SCALE) + guess * math.sqrt(len(rows) / lam)
    assert torch.equal(x[0], candidates[int((mean + width * sigma).argmax())])


def test_pending_decisions_of_the_same_base_are_hallucinated() -> None:
    recipe = RegretBalancing(misspecifications=(0.1, 0.1), **OPTIONS)
    data = history(DESIGN)
    model = recipe.fitted(data, SPACE, uses_contexts=False)
    pending = history(3, seed=5).X
    acqf = recipe.exploring(recipe.state_of(model, data, SPACE, 0), pending)
    # Turns 0, 1, 0 are on their way; the next one is base 1's, which played once.
    assert torch.equal(acqf.X_pending, pending[1:2])  # pyright: ignore
    early = history(DESIGN - 1)  # the first pending decision is of the design: for all
    acqf = recipe.exploring(recipe.state_of(model, early, SPACE, 0), pending[:2])
    assert torch.equal(acqf.X_pending, pending[:1])  # pyright: ignore


def test_units_of_y_do_not_matter() -> None:
    data = history(DESIGN + 15)
    recipe = RegretBalancing(beta=0.01, **OPTIONS)
    factor = 50.0
    prior = FixedHyperparameters(
        lengthscale=(*LENGTHSCALE, 1.0),
        noise_variance=NOISE * factor**2,
        outputscale=SCALE * factor**2,
    )
    options = {**OPTIONS, "hyperparameters": prior}
    options["reward_range"] = (factor * LOW, factor * HIGH)
    other = RegretBalancing(beta=0.01, **options)
    scaled = History(X=data.X, C=data.C, Y=factor * data.Y, contexts=data.C)
    first, second = recipe.state(data, SPACE), other.state(scaled, SPACE)
    assert first.played == second.played
    np.testing.assert_allclose(first.bounds, second.bounds, rtol=1e-6)
    candidates = history(25, seed=9).X
    assert torch.equal(
        recipe.propose(data, SPACE, candidates=candidates),
        other.propose(scaled, SPACE, candidates=candidates),
    )


def test_hyperparameters_are_fitted_once() -> None:
    options = {k: v for k, v in OPTIONS.items() if k != "hyperparameters"}
    recipe = RegretBalancing(**{**options, "num_design": 8})
    data = history(20)

    def lengthscale(t: int) -> Tensor:
        C = data.C[:t]
        part = History(X=data.X[:t], C=C, Y=data.Y[:t], contexts=C)
        model = recipe.decision_model(FittedState(part, SPACE))
        assert len(model.train_targets) == t
        return model.covar_module.lengthscale  # pyright: ignore

    assert torch.equal(lengthscale(9), lengthscale(20))
    torch.manual_seed(123)
    assert torch.equal(lengthscale(9), lengthscale(8))
    assert not torch.equal(lengthscale(8), lengthscale(4))


def test_in_the_loop_with_a_set_for_each_round() -> None:
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    prior = FixedHyperparameters(lengthscale=0.2, noise_variance=0.01)
    options = {"hyperparameters": prior, "num_design": 2, "horizon": 8}
    opt = RobustOptimizer(
        "regret_balancing", unit, unit, num_initial=2, maximize=False, **options,
        reward_range=(-1.0, 0.0),
    )  # fmt: skip
    recipe, expected = opt.algorithm, []
    assert isinstance(recipe, RegretBalancing)
    generator = torch.Generator().manual_seed(1)
    for i in range(10):
        data = opt.history
        flipped = History(X=data.X, C=data.C, Y=-data.Y, contexts=data.contexts)
        if i >= 2:
            expected.append(recipe.state(flipped, opt.space).upcoming[-1])
        actions = torch.rand(5, 1, generator=generator, dtype=torch.double)
        x = opt.ask(actions=actions)
        assert (x == actions).any()
        opt.tell(x, torch.rand(1, 1, generator=generator).double(), x * (1 - x))
    data = opt.history
    flipped = History(X=data.X, C=data.C, Y=-data.Y, contexts=data.contexts)
    assert list(recipe.state(flipped, opt.space).played) == expected
    with pytest.raises(InputDataError, match="horizon"):
        opt.ask(actions=actions)


def test_survives_json() -> None:
    recipe = RegretBalancing(
        misspecifications=GUESSES, beta=InverseSquareRoot(3.0), **OPTIONS
    )
    again = recipe_from_dict(json.loads(json.dumps(recipe.to_dict())))
    assert isinstance(again, RegretBalancing)
    assert again.misspecifications == GUESSES
    assert again.reward_range == (LOW, HIGH)
    data = history(DESIGN + 9)
    assert again.state(data, SPACE) == recipe.state(data, SPACE)


def test_the_default_constant_is_proven() -> None:
    """Azuma on [2^k, 2^(k+1)), of which each gets 1 / ((k + 1)(k + 2)) of delta."""
    constant = RegretBalancing().elimination_constant
    for bases_over_delta in (9.0, 50.0, 1e4):
        for k in range(60):
            proven = math.log(2 * (k + 1) * (k + 2) * bases_over_delta)
            for n in (2**k, 3 * 2**k // 2):
                used = math.log(bases_over_delta * max(1.0, math.log(n)))
                assert proven <= constant**2 * used


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": "0.1"}, "delta"),
        ({"horizon": 0}, "horizon"),
        ({"num_design": 0}, "num_design"),
        ({"reward_range": (1.0, 0.0)}, "reward_range"),
        ({"reward_range": (0.0, math.inf)}, "reward_range"),
        ({"reward_range": (0.0,)}, "reward_range"),
        ({"reward_range": 1.0}, "reward_range"),
        ({"misspecifications": (0.1, -0.1)}, "misspecifications"),
        ({"misspecifications": (0.1, 0.2)}, "largest first"),
        ({"misspecifications": ()}, "misspecifications"),
        ({"norm_bound": -1.0}, "norm_bound"),
        ({"elimination_constant": -1.0}, "elimination_constant"),
        ({"beta": -1.0}, "negative"),
        ({"noise_ratio": 0.0}, "noise_ratio"),
    ],
)
def test_bad_options(options: dict, text: str) -> None:
    with pytest.raises(InputDataError, match=text):
        RegretBalancing(**options)


def test_bad_outcomes_and_too_many() -> None:
    recipe = RegretBalancing(**OPTIONS)
    rewards = [0.5] * 6
    rewards[4] = 1.25
    with pytest.raises(InputDataError, match=r"outcome 5 of 6.* is 5.5"):
        recipe.propose(history(6, 0, rewards), SPACE)
    with pytest.raises(InputDataError, match="41 plays, more than"):
        recipe.state(history(DESIGN + HORIZON + 1), SPACE)
    with pytest.raises(InputDataError, match="is over"):
        recipe.propose(history(DESIGN + HORIZON), SPACE)
    with pytest.raises(InputDataError, match="is over"):
        pending = history(2, seed=3).X
        recipe.propose(history(DESIGN + HORIZON - 2), SPACE, X_pending=pending)
    with pytest.raises(InputDataError, match="no outcome"):
        recipe.state(history(0), SPACE)
