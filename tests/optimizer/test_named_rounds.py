"""Named variables and what is known about one round, together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from torch import Tensor

from botorch_drbo import (
    Category,
    ContextSet,
    Integer,
    LinearConstraint,
    Log,
    NamedOptimizer,
    Space,
    calibrate,
)
from botorch_drbo.ambiguity import TotalVariation, Wasserstein
from botorch_drbo.codec import encode
from botorch_drbo.optimizer.journal import state_checksum
from botorch_drbo.problem import Round
from botorch_drbo.surrogate import FixedHyperparameters
from tests.products import FEW

WEATHERS = ["sun", "rain", "snow"]
SPACE = Space(
    decisions={"stock": Integer(0, 5), "supplier": Category(["A", "B"])},
    contexts={"demand": (0.0, 10.0), "weather": Category(WEATHERS)},
    outcome="profit",
    constraints=[LinearConstraint({"stock": 2.0}, upper=9.0)],
)
ALLOWED = [(float(s), float(k)) for s in range(5) for k in range(2)]
BUDGET = {"num_restarts": 2, "raw_samples": 16, "max_iterations": 20}
PRIOR = FixedHyperparameters(lengthscale=0.4, noise_variance=1e-3)


def table(num: int = 12) -> pd.DataFrame:
    """Trials; it never snowed."""
    generator = torch.Generator().manual_seed(0)
    stock = torch.randint(0, 5, (num,), generator=generator).tolist()
    supplier = ["AB"[i % 2] for i in range(num)]
    demand = (10 * torch.rand(num, generator=generator)).tolist()
    weather = [WEATHERS[i // 2 % 2] for i in range(num)]
    profit = [
        2 * min(s, d * (0.4 if w == "rain" else 0.6)) - s - (k == "A")
        for s, k, d, w in zip(stock, supplier, demand, weather, strict=True)
    ]
    return pd.DataFrame(
        {
            "stock": stock,
            "supplier": supplier,
            "demand": demand,
            "weather": weather,
            "profit": profit,
        }
    )


def make(algorithm: str = "dro", **options: Any) -> NamedOptimizer:
    settings = {"num_initial": 0, "hyperparameters": PRIOR, **BUDGET, **options}
    opt = NamedOptimizer(algorithm, SPACE, **settings)
    df = table()
    opt.tell(df, df, df)
    return opt


def forecast() -> ContextSet:
    weather = {"demand": [2.0, 8.0], "weather": ["rain", "sun"], "chance": [30, 10]}
    return SPACE.context_set(pd.DataFrame(weather), weights="chance")


def means(opt: NamedOptimizer, contexts: Tensor) -> Tensor:
    """The mean of each allowed decision in each context, by BoTorch: ``m x n``."""
    x = torch.tensor(ALLOWED, dtype=torch.double).unsqueeze(1)
    pairs = [x.expand(-1, len(contexts), -1), contexts.expand(len(ALLOWED), -1, -1)]
    with torch.no_grad():
        return opt.model.posterior(torch.cat(pairs, -1)).mean.squeeze(-1)


def row_of(x: pd.DataFrame) -> int:
    return ALLOWED.index((float(x.stock[0]), float("AB".index(x.supplier[0]))))


def test_weights_may_be_a_column_in_proportion() -> None:
    known = forecast()
    assert known.weights.tolist() == [0.75, 0.25]
    assert known.points.tolist() == [[2.0, 1.0], [8.0, 0.0]]
    for weights, words in [
        ([1, -1], "not be negative"),
        ([0, 0], "not all zero"),
        (["many", 1], "`contexts`, row 0, column `p`"),
    ]:
        rows = {"demand": [1.0, 2.0], "weather": ["sun", "sun"], "p": weights}
        with pytest.raises(InputDataError, match=words):
            SPACE.context_set(rows, weights="p")
    with pytest.raises(InputDataError, match="no column `q`"):
        SPACE.context_set(rows, weights="q")


def test_a_forecast_is_the_reference_of_its_round() -> None:
    opt = make("erbo")
    best = opt.recommend(context_set=forecast())
    values = means(opt, forecast().points) @ forecast().weights
    assert row_of(best.x) == values.argmax()
    assert best.expected_value == pytest.approx(values.max().item())
    robust = make(radius=0.3)
    x = robust.ask(context_set=forecast(), radius=0.5)
    pd.testing.assert_frame_equal(x, make(radius=0.5, reference=forecast()).ask())


def test_a_known_category_fixes_its_column_alone() -> None:
    opt, seen = make("erbo"), table()
    rain = torch.tensor([[d, 1.0] for d in seen.demand], dtype=torch.double)
    values = means(opt, rain).mean(-1)
    best = opt.recommend(context={"weather": "rain"})
    assert row_of(best.x) == values.argmax()
    assert best.expected_value == pytest.approx(values.max().item())
    assert set(best.contexts.weather) == {"rain"}
    # The adversary of a ball of total variation moves mass to the worst demand.
    opt = make("dro", radius=0.4)
    best = opt.recommend(context={"weather": "rain"})
    grid = torch.linspace(0, 10, 2001, dtype=torch.double)
    everywhere = torch.stack([grid, torch.ones_like(grid)], dim=-1)
    scores = means(opt, rain)[row_of(best.x)].sort(descending=True).values
    kept = torch.full_like(scores, 1 / len(scores))
    moved = 0.2
    for i in range(len(kept)):
        part = min(kept[i].item(), moved)
        kept[i] -= part
        moved -= part
    worst = kept @ scores + 0.2 * means(opt, everywhere)[row_of(best.x)].min()
    assert best.worst_case_value == pytest.approx(worst.item(), abs=1e-4)
    assert set(best.contexts.weather) == {"rain"}


def test_categories_that_are_not_known_stay_in_reach_of_the_adversary() -> None:
    opt = make("dro", radius=2.0)  # all distributions
    best = opt.recommend(context={"demand": 4.0})
    every = torch.tensor([[4.0, float(k)] for k in range(3)], dtype=torch.double)
    worst = means(opt, every)[row_of(best.x)]
    assert best.worst_case_value == pytest.approx(worst.min().item())
    assert best.contexts.demand.unique().tolist() == [4.0]
    hurts = WEATHERS[worst.argmin()]
    assert best.contexts.weather[0] == hurts  # perhaps snow, which was never seen
    assert f"weather = {hurts}" in str(best)


@pytest.mark.parametrize("name", ["wdrbo_exact", "ucb_bocu_1", "ts_wdrbo"])
def test_recipes_ask_what_is_allowed_in_a_known_weather(name: str) -> None:
    opt = make(name)
    for context in ({"weather": "snow"}, {"demand": 3.0, "weather": "sun"}):
        assert row_of(opt.ask(context=context)) >= 0
        known = opt.recommend(context=context).contexts
        for column, value in context.items():
            assert known[column].unique().tolist() == [value]


def test_known_integers_of_recipes_with_a_grid() -> None:
    space = Space(
        {"x": (0.0, 1.0)}, {"guests": Integer(0, 3), "heat": (0.0, 1.0)}, outcome="y"
    )
    X = torch.rand(8, 1, generator=torch.Generator().manual_seed(0)).double()
    C = torch.tensor([[i % 4, i / 8] for i in range(8)]).double()
    for name in ("drbo_mmd", "drbo_kde", "stable_opt", "wdrbo"):
        settings = {"num_initial": 0, "hyperparameters": PRIOR, **BUDGET}
        opt = NamedOptimizer(name, space, **settings, **FEW.get(name, {}))
        opt.tell(X, C, -(X - C[:, :1] / 3).square().squeeze(-1))
        opt.ask(context={"guests": 2})
        best = opt.recommend(context={"guests": 2})
        assert best.contexts.guests.unique().tolist() == [2]
        free = opt.recommend(context={"heat": 0.5}).contexts
        assert free.guests.isin(range(4)).all() and (free.heat == 0.5).all()


def test_a_policy_is_a_table_of_contexts_and_decisions() -> None:
    opt = make("erbo")
    grid = {"weather": WEATHERS}
    policy = opt.policy(grid)
    assert policy.columns.tolist() == ["demand", "weather", "stock", "supplier"]
    assert policy.demand.isna().all() and policy.weather.tolist() == WEATHERS
    for i, weather in enumerate(WEATHERS):
        best = opt.recommend(context={"weather": weather}).x
        assert policy.loc[i, ["stock", "supplier"]].tolist() == best.loc[0].tolist()
    rows = pd.DataFrame({"demand": [2.0, None], "weather": ["rain", "rain"]})
    assert len(opt.policy(rows, context_set=forecast())) == 2


def test_a_laboratory_is_sent_to_a_context_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    settings: dict[str, Any] = {"num_initial": 2, "hyperparameters": PRIOR, **BUDGET}
    with NamedOptimizer(
        "dro", SPACE, journal=path, reference=forecast(), **settings
    ) as opt:
        for _ in range(4):
            x, c = opt.ask(choose_context=True)
            assert c.columns.tolist() == ["demand", "weather"]
            assert c.weather.isin(WEATHERS).all() and c.demand.between(0, 10).all()
            opt.tell(x, c, [float(x.stock[0] - c.demand[0])])
        history = opt.history
    with NamedOptimizer.resume(path) as opt:
        pd.testing.assert_frame_equal(opt.history, history)
        assert not len(opt.trials) - 4


def test_predictions_and_profiles_take_names() -> None:
    opt = make("dro", radius=0.3)
    c = {"demand": [1.0, 4.0], "weather": ["rain", "snow"]}
    table = opt.predict({"stock": 3, "supplier": "B"}, c)
    assert table.drop(columns=["mean", "sd"]).to_dict("list") == {
        "stock": [3, 3],
        "supplier": ["B", "B"],
        **c,
    }
    inputs = torch.tensor([[3.0, 1.0, 1.0, 1.0], [3.0, 1.0, 4.0, 2.0]]).double()
    expected = opt.model.posterior(inputs)
    assert table["mean"].tolist() == pytest.approx(expected.mean.flatten().tolist())
    deviations = expected.variance.sqrt().flatten().tolist()
    assert table["sd"].tolist() == pytest.approx(deviations)
    best = opt.recommend()
    other = {"stock": 0, "supplier": "A"}
    radii = torch.tensor([0.0, 0.3], dtype=torch.double)
    profile = opt.robustness_profile(best.x, other, radii=radii)
    assert profile.values[0] == pytest.approx(best.expected_value)
    assert profile.values[1] == pytest.approx(best.worst_case_value, abs=1e-4)
    with pytest.raises(InputDataError, match="`other`, row 0, column `supplier`"):
        opt.robustness_profile(best.x, {"stock": 0, "supplier": "C"})


def test_predictions_are_in_the_units_of_the_user() -> None:
    space = Space({"dose": Log(1e-3, 1.0)}, {"weather": Category(WEATHERS)})
    opt = NamedOptimizer("erbo", space, hyperparameters=PRIOR)
    opt.tell({"dose": [0.01, 0.5]}, {"weather": ["sun", "rain"]}, [1.0, 2.0])
    table = opt.predict({"dose": 0.1}, {"weather": "sun"})
    inputs = torch.tensor([[0.1, 0.0]], dtype=torch.double)
    inputs[:, 0] = inputs[:, 0].log()
    expected = opt.model.posterior(inputs).mean.item()
    assert table["mean"].item() == pytest.approx(expected)


def test_variables_may_be_called_mean_and_sd() -> None:
    opt = NamedOptimizer(
        "erbo", Space({"mean": (0, 1)}, {"sd": (0, 1)}), hyperparameters=PRIOR
    )
    opt.tell({"mean": [0.1, 0.5]}, {"sd": [0.2, 0.9]}, [1.0, 2.0])
    table = opt.predict({"mean": [0.1, 0.5]}, {"sd": [0.2, 0.9]})
    assert table.columns.tolist() == ["mean", "sd", "mean_", "sd_"]
    assert table["mean_"].tolist() == pytest.approx([1.0, 2.0], abs=0.05)


def test_a_radius_between_named_distributions_has_a_closed_form() -> None:
    space = Space({"x": (0.0, 1.0)}, {"weather": Category(WEATHERS)})
    usual = space.context_set({"weather": WEATHERS}, [0.7, 0.2, 0.1])
    winter = space.context_set({"weather": WEATHERS}, [0.3, 0.3, 0.4])

    def ball(points: Tensor) -> Wasserstein:
        return Wasserstein(0.0, space.search_space.context_distances(points, points))

    # Four tenths move, each by one: sun is as far from rain as it is from snow.
    assert calibrate.from_scenarios(usual, [winter], ball) == pytest.approx(0.4)
    radius = calibrate.from_scenarios(usual, [winter], TotalVariation(0.0))
    assert radius == pytest.approx(0.8)


def test_all_of_it_survives_resume(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    settings: dict[str, Any] = {"num_initial": 0, "hyperparameters": PRIOR, **BUDGET}
    df = table(6)
    with NamedOptimizer("dro", SPACE, journal=path, **settings) as opt:
        noise = [0.1] * 6
        opt.tell(df, df, df, y_variance=noise)
        opt.ask(context_set=forecast(), radius=0.2)
        opt.ask(context={"weather": "snow"})
        opt.ask(choose_context=True)
        pending, following = opt.pending, opt.ask(context={"demand": 2.0})
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n")
    with NamedOptimizer.resume(path, space=SPACE) as opt:
        pd.testing.assert_frame_equal(opt.pending, pending)
        asked = [t for t in opt.trials if t.status == "pending"]
        known = asked[1].known_context
        assert known is not None and known[0].isnan() and known[1] == 2.0
        assert [t.y_variance for t in opt.trials[:6]] == noise
        pd.testing.assert_frame_equal(opt.ask(context={"demand": 2.0}), following)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("this_round", Round(known_context=torch.tensor([torch.nan, 1.5]).double())),
        ("chosen_contexts", torch.tensor([[1.0, 0.5]]).double()),
        ("this_round", Round(ContextSet(torch.tensor([[1.0, 0.5]]).double()))),
        ("x", torch.tensor([[1.5, 0.0]]).double()),
    ],
)
def test_a_category_between_two_is_refused_on_replay(field: str, value: Any) -> None:
    opt = make()
    opt.ask()
    state = json.loads(json.dumps(opt.state_dict()))
    state["events"][-1][field] = encode(value)
    state["check"] = state_checksum(state)
    with pytest.raises(InputDataError, match="takes the values"):
        NamedOptimizer.from_state_dict(state)


def test_a_table_goes_on_with_all_that_a_round_may_be() -> None:
    df = table()
    df.loc[11, ["demand", "weather", "profit"]] = None
    opt = NamedOptimizer.from_dataframe(
        df,
        decisions=SPACE.decisions,
        contexts=SPACE.contexts,
        outcome="profit",
        algorithm="wdrbo_exact",
        constraints=SPACE.constraints,
        num_initial=0,
        half_life=4.0,
        hyperparameters=PRIOR,
        **BUDGET,
    )
    assert len(opt.pending) == 1 and len(opt.history) == 11
    assert row_of(opt.ask(context={"weather": "rain"}, radius=0.2)) >= 0
    assert "expected profit" in str(opt.recommend(context_set=forecast()))


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"weather": "hail"}, "`context`, row 0, column `weather`: must be one of"),
        ({"wether": "rain"}, "no column `wether`.*`weather`"),
        ({}, "names no context"),
        ({"weather": None}, "nothing is known"),
        ({"demand": 40.0}, "`context`, row 0, column `demand`: must lie between"),
        (torch.tensor([1.0, 0.5]), "index of a category"),
    ],
)
def test_a_context_that_cannot_be_is_refused(context: Any, words: str) -> None:
    opt = make()
    with pytest.raises(InputDataError, match=words):
        opt.ask(context=context)
    assert not len(opt.pending)


def test_a_round_has_one_context_and_a_context_set() -> None:
    opt = make()
    with pytest.raises(BotorchTensorDimensionError, match="policy"):
        opt.ask(context={"weather": ["sun", "rain"]})
    with pytest.raises(InputDataError, match=r"space.context_set"):
        opt.recommend(context_set=table())
    between = ContextSet(torch.tensor([[1.0, 0.5]], dtype=torch.double))
    with pytest.raises(InputDataError, match="takes the values"):
        opt.ask(context_set=between)
    with pytest.raises(UnsupportedError, match="gp_ucb"):
        make("gp_ucb").ask(context={"weather": "rain"})


def test_the_nearest_pending_decision_knows_no_order_of_categories() -> None:
    space = Space(
        {"price": (0.0, 100.0), "supplier": Category(["A", "B", "C"])}, SPACE.contexts
    )
    opt = NamedOptimizer("random", space)
    rows = {"price": [20.0, 60.0], "supplier": ["A", "B"]}
    opt.ask(2, candidates=rows)
    executed = {"price": 22.0, "supplier": "C"}
    opt.tell(executed, {"demand": 1.0, "weather": "sun"}, 1.0)
    assert opt.pending.to_dict("records") == [{"price": 60.0, "supplier": "B"}]
