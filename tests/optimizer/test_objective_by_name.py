"""``objective="worst fifth"`` of a run: search, recommendation, price, sign."""

from __future__ import annotations

import warnings
from typing import Any, cast

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from botorch.posteriors import GPyTorchPosterior

from botorch_drbo import Category, NamedOptimizer, Space
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.recipes import make_recipe
from botorch_drbo.surrogate import EnsembleOf
from tests.models import uniform

SUBSTRATES = [f"s{i}" for i in range(5)]
SPACE = Space(
    {"temp": (0.0, 1.0)}, {"substrate": Category(SUBSTRATES)}, outcome="yield"
)
FEW: dict[str, Any] = {"num_restarts": 2, "raw_samples": 64, "surrogate": "botorch"}


def made_yield(temp: float, i: int) -> float:
    """Good on the right for all but the last substrate."""
    return 70.0 * temp - 20.0 * temp**2 + 4.0 * i if i < 4 else 40.0 - 45.0 * temp


def trials(sign: float = 1.0) -> pd.DataFrame:
    temps = uniform(20, seed=2).tolist()
    return pd.DataFrame(
        {
            "temp": temps,
            "substrate": [SUBSTRATES[k % 5] for k in range(20)],
            "yield": [sign * made_yield(t, k % 5) for k, t in enumerate(temps)],
        }
    )


def run(sign: float = 1.0, algorithm: str = "erbo", **options: Any) -> NamedOptimizer:
    return NamedOptimizer.from_dataframe(
        trials(sign),
        decisions=SPACE.decisions,
        contexts=SPACE.contexts,
        outcome="yield",
        algorithm=algorithm,
        maximize=sign > 0,
        **{**FEW, **options},
    )


def by_decision(opt: NamedOptimizer) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A grid of decisions, and means and deviations by substrate: BoTorch's own."""
    grid = torch.linspace(0.0, 1.0, 501, dtype=torch.double)
    Z = torch.stack(
        [grid.repeat_interleave(5), torch.arange(5.0).double().repeat(501)], -1
    )
    with torch.no_grad():
        posterior = cast(GPyTorchPosterior, opt.model.posterior(Z))
    means, deviations = posterior.mean, posterior.variance.sqrt()
    return grid, means.reshape(501, 5), deviations.reshape(501, 5)


@pytest.mark.parametrize(
    ("words", "worst"), [("worst 40%", 2), ("worst fifth", 1), ("minimum", 1)]
)
def test_the_decision_is_the_best_of_a_grid(words: str, worst: int) -> None:
    opt = run(objective=words)
    best = opt.recommend()
    grid, means, _ = by_decision(opt)
    values = means.sort(-1).values[:, :worst].mean(-1)  # each a fifth
    assert best.worst_case_value == pytest.approx(values.max().item(), abs=0.1)
    where = grid[values.argmax()].item()
    assert best.x["temp"].iloc[0] == pytest.approx(where, abs=0.01)
    assert best.decided_for == words
    assert f"the {words}" in str(best)
    # A run that learns for the mean gives the same decision when it is asked for it.
    later = run().recommend(objective=words)
    assert later.x["temp"].iloc[0] == pytest.approx(best.x["temp"].iloc[0], abs=1e-3)
    assert later.worst_case_value == pytest.approx(best.worst_case_value, rel=1e-4)


def test_the_share_is_the_best_of_a_grid() -> None:
    opt = run(objective="share above 30")
    best = opt.recommend()
    grid, means, deviations = by_decision(opt)
    shares = torch.special.ndtr((means - 30.0) / deviations).mean(-1)
    assert best.objective == pytest.approx(shares.max().item(), abs=1e-3)
    assert shares[(grid - best.x["temp"].iloc[0]).abs().argmin()] > shares.max() - 1e-3
    assert f"{100 * best.objective:.3g}% expected" in str(best)


def test_within_a_price_of_the_mean() -> None:
    opt = run()
    _, means, deviations = by_decision(opt)
    mean = means.mean(-1)
    allowed = mean >= mean.max() - 1.5
    fifth = opt.recommend(objective="worst fifth", give_up={"yield": 1.5})
    worst = means.amin(-1).where(allowed, -torch.inf)
    assert fifth.worst_case_value == pytest.approx(worst.max().item(), abs=0.1)
    assert fifth.price is not None
    bought = worst.max() - means[mean.argmax()].min()
    assert fifth.price.bought == pytest.approx(bought.item(), abs=0.2)
    share = run(objective="share above 30", give_up={"yield": 1.5}).recommend()
    shares = torch.special.ndtr((means - 30.0) / deviations).mean(-1)
    best = shares.where(allowed, -torch.inf)
    assert share.objective == pytest.approx(best.max().item(), abs=2e-3)
    assert share.price is not None
    bought = best.max() - shares[mean.argmax()]
    assert share.price.bought == pytest.approx(bought.item(), abs=2e-3)
    assert "of the contexts" in str(share)


@pytest.mark.parametrize(
    ("words", "of_costs"),
    [("worst fifth",) * 2, ("minimum", "maximum"), ("share above 30",) * 2],
)
def test_costs_are_outcomes_of_the_other_sign(words: str, of_costs: str) -> None:
    of_costs = of_costs.replace("above 30", "below -30")
    high, low = run(objective=words), run(-1.0, objective=of_costs)
    assert high.ask().equals(low.ask())
    first = high.recommend(give_up={"yield": 1.5})
    second = low.recommend(give_up={"yield": 1.5})
    assert first.x.equals(second.x)
    assert first.worst_case_value == pytest.approx(-second.worst_case_value)
    assert first.price is not None and second.price is not None
    assert first.price.bought == pytest.approx(second.price.bought)
    sign = 1.0 if words.startswith("share") else -1.0
    assert first.objective == pytest.approx(sign * second.objective)
    assert first.price.best_worst_case == pytest.approx(
        sign * second.price.best_worst_case
    )
    with pytest.raises(InputDataError, match="is of the good outcomes"):
        run(objective="maximum")
    with pytest.raises(InputDataError, match="is of the good outcomes"):
        low.recommend(objective="minimum")


@pytest.mark.parametrize("words", ["worst fifth", "share above 30"])
def test_the_search_follows_it(words: str) -> None:
    """What is asked for lies where the bound of a grid is best."""
    opt = run(objective=words)
    asked = opt.ask()["temp"].iloc[0]
    grid, means, deviations = by_decision(opt)
    bounds = (means + 1.5 * deviations).amin(-1)
    if words != "worst fifth":
        share = torch.special.ndtr((means - 30.0) / deviations)
        bounds = (share + 1.5 * (share * (1.0 - share)).sqrt()).mean(-1)
    near = bounds[(grid - asked).abs().argmin()]
    assert near >= bounds.max() - 0.01 * (bounds.max() - bounds.min())


def test_it_is_stored_and_hosts_take_it_by_name() -> None:
    opt = run(objective="worst fifth")
    again = NamedOptimizer.from_state_dict(opt.state_dict())
    assert again.algorithm.options["objective"] == opt.algorithm.options["objective"]
    assert again.recommend().x.equals(opt.recommend().x)


def test_a_reference_is_the_scope() -> None:
    """Levels that were tried and are not of the scope do not count."""
    table = pd.DataFrame({"substrate": SUBSTRATES[:4]})
    opt = run(objective="minimum", reference=SPACE.context_set(table))
    assert opt.recommend().x["temp"].iloc[0] > 0.9  # the last one is not there


def test_what_contradicts_it_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="WassersteinBall moves it"):
        run(algorithm="wdrbo_exact", objective="worst fifth")
    with pytest.raises(UnsupportedError, match="`confidence_bound`"):
        run(algorithm="ei_erbo", objective="share above 30")
    with pytest.raises(InputDataError, match="both say what is decided for"):
        run(objective="worst fifth", against=TotalVariation(0.2))
    with pytest.raises(InputDataError, match="`objective='mean'` decides for it"):
        run(objective="mean", give_up=0.1)
    with pytest.raises(InputDataError, match="mean, worst fifth"):
        run(objective="worst")
    opt = run()
    with pytest.raises(InputDataError, match="Got `objective` and `against`"):
        opt.recommend(objective="minimum", against=TotalVariation(0.2))
    with pytest.raises(UnsupportedError, match="A price curve is of worst cases"):
        run(objective="share above 30").price_curve()
    for name, words in (("cvar", "worst fifth"), ("minimum", "minimum")):
        with pytest.raises(InputDataError, match=f"`objective='{words}'`, of an alg"):
            make_recipe(name)


@pytest.mark.parametrize("algorithm", ["dro", "wdrbo_exact"])
def test_a_radius_of_the_round_is_of_the_own_set_alone(algorithm: str) -> None:
    opt = run(algorithm=algorithm)
    with pytest.raises(InputDataError, match="Got `against` and `radius`: the radius"):
        opt.recommend(against=TotalVariation(0.2), radius=0.1)
    for words in ("mean", "worst fifth", "share above 30"):
        with pytest.raises(InputDataError, match="Got `objective` and `radius`: the"):
            opt.recommend(objective=words, radius=0.1)
    # A price leaves the set as it is; none is paid here.
    priced, plain = (opt.recommend(give_up=g, radius=0.1) for g in (0.2, None))
    assert priced.worst_case_value == plain.worst_case_value


def test_a_question_replaces_the_rule_of_the_run() -> None:
    opt = run(against=TotalVariation(0.2))
    assert opt.recommend(objective="minimum").decided_for == "minimum"
    assert opt.recommend(objective="share above 30").decided_for == "share above 30"
    named = run(objective="minimum")
    assert named.recommend(against=TotalVariation(0.2)).decided_for == ""
    assert named.recommend(objective="mean").decided_for == "mean"
    assert run(algorithm="wdrbo_exact").recommend(objective="minimum").worst_case_value


@pytest.mark.parametrize(
    "algorithm", ["ei_integral", "dro", "ts_wdrbo", "ei_erbo", "edrbo"]
)
def test_every_recipe_with_a_model_of_contexts_decides_for_a_share(
    algorithm: str,
) -> None:
    """What it has learnt for does not matter: the posterior is the same."""
    options: dict[str, Any] = {}
    if algorithm == "edrbo":
        options["surrogate"] = EnsembleOf(["botorch", "rbf"])
    elif algorithm == "dro":
        options["ambiguity_set"] = TotalVariation(0.3)
    model = {k: v for k, v in options.items() if k == "surrogate"}
    wanted = run(objective="share above 30", **model)
    found = run(algorithm=algorithm, **options).recommend(
        objective="share above 30", give_up={"yield": 1.5}
    )
    best = wanted.recommend(objective="share above 30", give_up={"yield": 1.5})
    assert found.objective == pytest.approx(best.objective, abs=2e-3)
    assert found.decided_for == "share above 30"


@pytest.mark.parametrize("algorithm", ["gp_ucb", "random", "phased_gp_us"])
@pytest.mark.parametrize("words", ["worst fifth", "share above 30"])
def test_without_a_model_of_contexts_the_refusal_names_the_words(
    algorithm: str, words: str
) -> None:
    opt = NamedOptimizer.from_dataframe(
        trials().drop(columns="substrate").assign(place=uniform(20, seed=4)),
        decisions=SPACE.decisions,
        contexts={"place": (0.0, 1.0)},
        outcome="yield",
        algorithm=algorithm,
    )
    with pytest.raises(UnsupportedError) as error:
        opt.recommend(objective=words, give_up=0.1)
    assert f"`objective='{words}'`" in str(error.value)
    assert "against" not in str(error.value)


def test_a_recipe_that_cannot_learn_for_it_says_who_can() -> None:
    with pytest.raises(InputDataError, match=r"option objective\. Recipes") as error:
        run(algorithm="ei_integral", objective="worst fifth")
    assert "ei_erbo" in str(error.value) and "wdrbo_exact" not in str(error.value)
    with pytest.raises(UnsupportedError, match=r"`recommend\(objective='worst fifth'"):
        run(algorithm="wdrbo_exact", objective="worst fifth")
    with pytest.raises(UnsupportedError, match=r"`recommend\(objective='share abov"):
        run(algorithm="ts_erbo", objective="share above 30")


def test_a_threshold_that_was_never_seen_is_told() -> None:
    with pytest.warns(BotorchWarning, match="threshold 300 .* outside the outcomes"):
        run(objective="share above 300").ask()
    with pytest.warns(BotorchWarning, match="threshold 300 .* outside the outcomes"):
        run(-1.0).recommend(objective="share below 300")
    with warnings.catch_warnings():
        warnings.simplefilter("error", BotorchWarning)
        run(-1.0).recommend(objective="share below -30")


def test_a_comparison_says_what_was_decided_for() -> None:
    """Not "without a radius", nor "within , giving up at most 10%"."""
    for sign, words in ((1.0, "worst fifth"), (-1.0, "share below -50")):
        opt = run(sign, objective=words)
        paid = opt.algorithm.with_options(give_up=0.1)
        found = opt.compare(["erbo", paid, opt.algorithm.with_options(objective=None)])
        lines = str(found).splitlines()
        assert lines[1].endswith(f"(decided for the {words})")
        assert lines[3].endswith(f"(decided for the {words}, giving up at most 10%)")
        assert lines[5].endswith("(decided without a radius)")
