"""The claims: cases with tension, rules, runs and verdicts."""

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import linprog
from scipy.stats import wilcoxon

from benchmarks.experiments.claims.cases import CASES, TENSION, half_of
from benchmarks.experiments.claims.compare import screening, verdicts
from benchmarks.experiments.claims.formulas import PROBLEMS
from benchmarks.experiments.claims.learn import (
    LEARNERS,
    Task,
    share_beyond,
    tasks_of,
)
from benchmarks.experiments.claims.picks import CLAIMS, LONGER, OWN
from benchmarks.experiments.claims.play import LOSSES, ORDER, REPORT, RUN, play
from benchmarks.experiments.claims.report import make_report
from benchmarks.experiments.claims.rules import OPTIONS, RULES, Scores, recommend
from benchmarks.experiments.claims.truth import RARE, SETTLED, SHIFTED, truth_of
from benchmarks.experiments.papers.judge import RESULTS, cells_of
from benchmarks.run.config import ConfigError
from benchmarks.study.judge import with_the_others
from benchmarks.study.play import history_of
from botorch_drbo.ambiguity import Wasserstein
from botorch_drbo.problem import SearchSpace
from botorch_drbo.surrogate.by_name import as_surrogate
from botorch_drbo.surrogate.fit import fit_outcomes
from botorch_drbo.test_functions.closed_form import ClosedForm

FOUR = {
    told: [claim for name, claim in LONGER.items() if f", {told} " in name]
    for told in (30, 60)
}
WITH_TENSION = [name for name, case in CASES.items() if case.tension]


def outcome(name, x, c):
    X, C = (torch.tensor([row], dtype=torch.double) for row in (x, c))
    return ClosedForm(PROBLEMS[name]).evaluate(X, C).item()


def test_outcomes_by_hand():
    # orders .6 and .9 for demands .5 and 1: one tenth too many, one too few
    found = outcome("two_products_2_2", [0.6, 0.9], [0.5, 1.0])
    assert found == pytest.approx(4 * (0.5 + 0.9) - 2 * 0.6 - 3 * 0.9)
    # half the advertising makes a demand of .5 one of .5 too
    found = outcome("advertised_2_1", [0.7, 0.5], [0.5])
    assert found == pytest.approx(5 * 0.5 + 0.5 * 0.2 - 2.5 * 0.7 - 0.3 * 0.5)
    # .64 are stored, .5 are released: .14 of an inflow of one find no room
    found = outcome("released_2_1", [0.64, 0.5], [1.0])
    assert found == pytest.approx(0.8 - 0.35 * 0.5 - 5 * (0.64 + 0.7 - 0.2 - 1))


def test_a_controller_that_is_not_too_fast_comes_to_rest_below_its_aim():
    # y = 1 - w / (g k) at rest; 20 samples are enough where g k is about one
    gain, load, k = 0.4 + 1.2 * 0.5, 0.6 * (0.5 + 0.5), 2.5 * 0.4
    errors, y = [], 0.0
    for _ in range(20):
        y = y + gain * k * (1 - y) - load
        errors.append(abs(1 - y))
    assert errors[-1] == pytest.approx(load / (gain * k))
    found = outcome("controller_2_2", [0.4, 0.0], [0.5, 0.5])
    assert found == pytest.approx(-sum(errors) / 20)


@pytest.mark.parametrize("name", PROBLEMS)
def test_stored_optima_are_those_of_a_search(name):
    function = ClosedForm(PROBLEMS[name])
    X = torch.rand(2048, function.d_x, generator=torch.Generator().manual_seed(0))
    values = function.expected_value(X.double())
    best = function.expected_value(function.optimal_decision.unsqueeze(0))
    assert best.item() == pytest.approx(function.optimal_value, abs=1e-4)
    assert values.max() <= best + 1e-9
    if name == "two_products_2_2":  # the newsvendor's quantiles
        z = torch.special.ndtri(torch.tensor(0.25)).item()
        x = function.optimal_decision.tolist()
        assert x == pytest.approx([0.5, 0.5 + 0.2 * z], abs=1e-3)


@pytest.mark.parametrize("name", WITH_TENSION)
def test_robustness_pays_where_there_is_tension(name):
    """By dense lists of decisions and contexts, and a sort of its own for the ball."""
    known = truth_of(name, 0).known
    assert known.gain >= TENSION
    assert known.price >= -0.5  # but for the search, nothing is better than the best


def test_half_of_the_cases_have_tension():
    assert len(CASES) >= 10
    assert len(WITH_TENSION) * 2 == len(CASES)


def test_the_ball_lowers_a_linear_outcome_by_one_deviation():
    truth = truth_of("two_products_2_2", 0)
    x = torch.tensor([[0.0, 1.0]], dtype=torch.double)  # f = 4 min(1, c_2) - 3
    ball = truth.ball
    deviation = ball.box[1, 1].item()
    mean = ball.atoms[:, 1].mean().item()
    # f falls by the same for each step down, so that the whole radius is used: the mean
    # falls by one deviation, but for the grid of demands to which mass may move
    found = ball.value(truth.function, x).item()
    assert found == pytest.approx(4 * (mean - deviation) - 3, abs=0.06)


def test_losses_are_zero_for_the_best_and_a_hundred_for_a_guess():
    truth = truth_of("newsvendor", 0)
    X = torch.linspace(0, 1, 4001, dtype=torch.double).unsqueeze(-1)
    for name in (SETTLED, SHIFTED, RARE):
        losses = truth.losses(X)[name]
        assert min(losses) == pytest.approx(0.0, abs=0.01)
        assert sum(losses) / len(losses) == pytest.approx(100.0, abs=1.0)
    quantile = truth.losses(truth.function.optimal_decision.unsqueeze(0))[SETTLED][0]
    assert math.isclose(quantile, 0.0, abs_tol=0.05)


def test_losses_of_a_function_whose_optimum_is_searched_for():
    truth = truth_of("smooth_2_2", 123)
    losses = truth.losses(truth.function.bounds[:1])  # the first that is asked of it
    assert all(math.isfinite(found[0]) for found in losses.values())


def scores(seed=0, decisions=3, members=2, seen=3, unseen=4, box=2, radius=0.4):
    """Random ones, and the points that the ball's distances are between."""
    rng = torch.Generator().manual_seed(seed)
    n = seen + unseen
    points = torch.rand(n, 1, generator=rng, dtype=torch.double)
    size = (decisions, members, n + box)
    found = Scores(
        mean=torch.randn(size, generator=rng, dtype=torch.double),
        variance=torch.rand(size, generator=rng, dtype=torch.double),
        prior=torch.tensor([1.0, 2.0]).double()[:members],
        level=torch.tensor(0.3).double(),
        weights=torch.full((seen,), 1 / seen, dtype=torch.double),
        ball=Wasserstein(radius, torch.cdist(points, points)),
        in_box=box,
    )
    return found, points


def transport(values, points, seen, radius):
    """The worst case of a ball by linear programming: mass moved from i to j."""
    n, distance = len(points), torch.cdist(points, points).numpy()
    gives = np.zeros((seen, seen * n))
    for i in range(seen):
        gives[i, i * n : (i + 1) * n] = 1.0
    solved = linprog(
        np.tile(values.numpy(), seen),
        A_ub=distance[:seen].reshape(1, -1),
        b_ub=[radius],
        A_eq=gives,
        b_eq=np.full(seen, 1 / seen),
    )
    return solved.fun


def changed(name, s):
    """The scores of a rule in the contexts of the ball, decision by member."""
    k = s.mean.shape[-1] - s.in_box
    t, mean, variance = len(s.weights), s.mean[..., :k], s.variance[..., :k]
    found = mean.clone()
    for m, j in product(range(len(mean)), range(t, k)):
        among = mean[m, :, j]
        mixed = (variance[m, :, j].mean() + among.var(correction=0)) / s.prior.mean()
        for i in range(mean.shape[1]):
            own = mean[m, i, :t].mean()
            left = min(1.0, (variance[m, i, j] / s.prior[i]).item())
            highest = mean[m, i].max()
            found[m, i, j] = {
                "robust": among[i],
                "reach .25": among[i] if mixed <= 0.25**2 else highest,
                "reach .5": among[i] if mixed <= 0.5**2 else highest,
                "home": among[i] + left * (own - s.level),
                "spread": among.mean() + among.std(correction=0),
                "seen": highest,
            }[name]
    return found


@pytest.mark.parametrize("name", ["robust", *OPTIONS])
@pytest.mark.parametrize("seed", [0, 1])
def test_rules_by_linear_programming(name, seed):
    s, points = scores(seed)
    own = changed(name, s)
    values = [
        sum(transport(own[m, i], points, 3, 0.4) for i in range(2)) / 2
        for m in range(3)
    ]
    torch.testing.assert_close(
        RULES[name](s), torch.tensor(values).double(), atol=1e-7, rtol=0
    )


def test_reach_is_by_what_the_mixture_does_not_know():
    s, _ = scores()
    mean, variance = s.mean[:, :1], 1e-9 * s.variance[:, :1]
    known = replace(s, mean=mean, variance=variance, prior=s.prior[:1])
    for name in ("reach .25", "reach .5", "home", "spread"):  # nothing is unknown
        torch.testing.assert_close(RULES[name](known), RULES["robust"](known))
    vague = replace(known, variance=torch.ones_like(variance))
    for name in ("reach .25", "reach .5"):
        torch.testing.assert_close(RULES[name](vague), RULES["seen"](vague))


def test_expected_and_box_by_hand():
    s, _ = scores()
    plain = s.mean[..., :3].mean(-1).mean(-1)
    torch.testing.assert_close(RULES["expected"](s), plain)
    lowest = s.mean[..., -2:].amin(-1).mean(-1)
    torch.testing.assert_close(RULES["box"](s), lowest)


def test_the_recommendation_is_the_best_of_a_dense_list():
    truth = truth_of("newsvendor", 0)
    task = Task("newsvendor", "random", 0, 8)
    history = history_of(list(task.play([])))
    space = SearchSpace(truth.function.bounds, truth.function.context_bounds)
    model = fit_outcomes(history, space, as_surrogate("botorch"), uses_contexts=True)
    found = recommend(model, history, space, {"expected": RULES["expected"]}, 3)
    X = torch.linspace(0, 1, 401, dtype=torch.double)
    Z = torch.cartesian_prod(X, history.C.flatten())
    means = model.posterior(Z.unsqueeze(-2)).mean.reshape(401, 8).mean(-1)
    x = found["expected"].item()
    at = torch.stack([torch.full((8,), x).double(), history.C.flatten()], dim=-1)
    value = model.posterior(at).mean.mean()
    assert value >= means.max() - 1e-4 * (means.max() - means.min())


def test_the_share_beyond_two_deviations_is_counted():
    truth = truth_of("newsvendor", 0)
    history = history_of(list(Task("newsvendor", "random", 0, 6).play([])))
    space = SearchSpace(truth.function.bounds, truth.function.context_bounds)
    model = fit_outcomes(history, space, as_surrogate("botorch"), uses_contexts=True)
    X, C = torch.rand(2, 20, 1, dtype=torch.double)
    said = model.posterior(torch.cat([X, C], dim=-1), observation_noise=True)
    mean, deviation = said.mean.squeeze(-1), said.variance.squeeze(-1).sqrt()
    far = torch.tensor([2.01] * 5 + [1.99] * 15).double()
    assert share_beyond(model, X, C, mean - far * deviation) == 0.25


def table(shifts, *, seeds=6, spread=1.0, seed=0, claims=CLAIMS):
    """Losses of every claim's two sides: noise, and what the first has less.

    Args:
        shifts: By number of the claim.
    """
    rng, rows = np.random.default_rng(seed), {}
    for number, claim in enumerate(claims):
        for case, block in product(CASES, range(seeds)):
            for pick, extra in ((claim.second, 0.0), (claim.first, shifts[number])):
                key = (case, block, *vars(pick).values())
                row = rows.setdefault(key, dict.fromkeys(COLUMNS, 50.0))
                row["settled"] += spread * rng.normal()
                for law in claim.laws:
                    row[law] += extra + spread * rng.normal()
    names = ["case", "seed", "learner", "told", "surrogate", "rule"]
    return pd.DataFrame(
        [{**dict(zip(names, key, strict=True)), **row} for key, row in rows.items()]
    )


COLUMNS = (
    *("settled", "shifted", "rare", "regret", "gain", "price"),
    *("beyond_settled", "beyond_shifted"),
)


def test_verdicts_follow_the_rules():
    # claims 2 and 3 share their rows: what 3 adds, 2 has too
    found = verdicts(table([-20.0, -30.0, -5.0, 20.0, 0.0], spread=2.0))
    assert [v.verdict for v in found] == ["holds", "holds", "holds"] + ["does not"] * 2
    p = sorted(v.found.p for v in found)
    assert min(v.p for v in found) == pytest.approx(5 * p[0])
    wide = verdicts(table([-3.0, 0.0, 0.0, 0.0, 0.0], spread=60.0))
    assert wide[0].verdict == "not decided"


def test_a_verdict_counts_the_cases_of_its_claim():
    rows = table([0.0] * 5, seeds=4)
    first = CLAIMS[1].first.of(rows)
    second = CLAIMS[1].second.of(rows)
    d = (first["shifted"] - second["shifted"]).loc[WITH_TENSION]
    found = verdicts(rows)[1].found
    assert found.blocks == 4 * len(WITH_TENSION)
    assert found.difference == pytest.approx(d.mean())
    assert found.p == pytest.approx(wilcoxon(d).pvalue)


def test_longer_runs_are_judged_by_themselves():
    # after 30 outcomes robustness saves and is worth it, after 60 it costs
    rows = pd.concat(
        [
            table([-20.0, -20.0, 0.0, 0.0], claims=FOUR[30], spread=0.1),
            table([20.0, 20.0, 0.0, 0.0], claims=FOUR[60], spread=0.1),
            table([0.0] * 5),
        ]
    )
    found = verdicts(rows, [*FOUR[30], *FOUR[60]])
    assert [v.verdict for v in found[:2]] == ["holds", "holds"]
    assert [v.verdict for v in found[4:6]] == ["does not", "does not"]
    p = [v.found.p for v in found]
    assert min(v.p for v in found) == pytest.approx(8 * min(p))
    text = str(make_report(rows))
    assert "| 1, 30 outcomes | `wdrbo_exact, sd` loses less than `erbo` if" in text
    assert "rows of `erbo`'s own runs, 60 outcomes" in text
    part = text.split("### Four questions")[1].split("## The same rules")[0]
    assert "nan" not in part and "own runs, 60 outcomes\n" in part
    assert "Four questions" not in str(make_report(table([0.0] * 5)))


def test_longer_runs_of_cases_with_tension_only_have_no_other_columns():
    rows = table([0.0] * 4, claims=FOUR[30])
    rows = rows[rows["case"].isin(WITH_TENSION)]
    text = str(make_report(pd.concat([rows, table([0.0] * 5)])))
    part = text.split("### 30 outcomes")[1].split("###")[0]
    assert "with tension: nothing shifts" in part and "without" not in part


def test_a_claim_without_runs_is_not_judged():
    rows = table([0.0] * 5)
    rows = rows[rows["learner"] != "edrbo"]
    assert [v.verdict for v in verdicts(rows)][3] == "not run"


def test_a_case_with_one_seed_has_no_error_and_does_not_count():
    rows = table([0.0] * 5, seeds=3)
    few = (rows["learner"] == "edrbo") & (rows["seed"] > 0)
    assert [v.verdict for v in verdicts(rows[~few])][3] == "not run"
    few &= rows["case"] == "newsvendor"
    found = verdicts(rows[~few])[3].found
    assert found.blocks == 3 * (len(CASES) - 1)


def options_table(losses):
    rows = []
    for case, seed, (rule, (settled, shifted)) in product(
        CASES, range(3), losses.items()
    ):
        half = 0 if half_of(case) == "A" else 1
        row = dict.fromkeys(COLUMNS, 0.0)
        row |= {"case": case, "seed": seed, "learner": "random", "told": 30}
        row |= {"surrogate": "ensemble", "rule": rule}
        row |= {"settled": settled[half] + 0.01 * seed, "shifted": shifted[half]}
        rows.append(row)
    return pd.DataFrame(rows)


def test_an_option_is_chosen_on_one_half_and_ships_by_the_other():
    losses = dict.fromkeys(("robust", *OPTIONS), ((9.0, 9.0), (9.0, 9.0)))
    assert not screening(options_table(losses)).ships
    losses["home"] = ((5.0, 5.0), (9.0, 9.0))
    found = screening(options_table(losses))
    assert found.chosen == "home" and found.ships
    losses["home"] = ((5.0, 9.5), (9.0, 9.0))  # half B says otherwise
    found = screening(options_table(losses))
    assert found.chosen == "home" and not found.ships
    losses["home"] = ((5.0, 5.0), (9.0, 9.5))  # it loses more under the shift
    assert not screening(options_table(losses)).ships


def test_an_option_that_half_b_cannot_judge_is_not_confirmed():
    losses = dict.fromkeys(("robust", *OPTIONS), ((9.0, 9.0), (9.0, 9.0)))
    losses["home"] = ((5.0, 5.0), (5.0, 5.0))
    rows = options_table(losses)
    half = rows["case"].map(half_of)
    for few in (rows[half == "A"], rows[(half == "A") | (rows["seed"] == 0)]):
        found = screening(few)
        assert found.chosen == "home" and found.settled is None and not found.ships
        assert "Nothing is confirmed" in str(make_report(few))


def test_runs_are_paired_go_on_and_are_reported(tmp_path):
    work, out = tmp_path / "work", tmp_path / "out"
    out.mkdir()
    few = {"seeds": 2, "rounds": 15, "common": 15}
    tasks = tasks_of(["random", "erbo, botorch"], ["newsvendor"], **few)
    assert [task.key.seed for task in tasks] == [1, 1, 2, 2]
    play(tasks, work=work, out=out, workers=1, report_only=False)
    found = pd.read_parquet(out / LOSSES)
    assert set(found["rule"]) == set(RULES)
    assert found["settled"].min() > -0.1  # nothing is better than the best
    before = (out / REPORT).read_text()
    assert "not run" in before and "newsvendor" in before
    play(tasks, work=work, out=out, workers=1, report_only=True)
    assert (out / REPORT).read_text() == before
    # a call for some of the runs keeps the losses of the others
    elsewhere = tmp_path / "elsewhere"
    play(tasks[2:3], work=elsewhere, out=out, workers=1, report_only=False)
    pd.testing.assert_frame_equal(pd.read_parquet(out / LOSSES), found)
    assert (out / REPORT).read_text() == before
    small = pd.read_csv(out / "claims.csv")
    assert set(small["learner"]) == {"random", "erbo, botorch"} and len(small) == 4
    (out / LOSSES).unlink()  # as in the repository: the report would lose the others
    for report_only in (False, True):
        with pytest.raises(ConfigError, match="python -m benchmarks results"):
            play(tasks, work=work, out=out, workers=1, report_only=report_only)
    rows = list(tasks[1].play([]))
    again = list(tasks[1].play(rows[:9]))
    assert [row["x"] for row in again] == [row["x"] for row in rows[9:]]
    common = list(tasks[0].play([]))
    assert [row["x"] for row in common[:5]] == [row["x"] for row in rows[:5]]
    assert [row["c"] for row in common] == [row["c"] for row in rows]
    assert json.loads(rows[-1]["found"]).keys() == {"botorch"}


def test_a_shorter_run_keeps_the_losses_of_the_longer_one():
    keys = [("newsvendor", 1, "random", told) for told in (15, 30, 60)]
    keys.append(("newsvendor", 1, "erbo", 15))
    keys.append(("ackley_2_1", 1, "random", 15))
    before = pd.DataFrame(keys, columns=["case", "seed", "learner", "told"])
    before["settled"] = 1.0
    again = before[before["learner"] == "random"].query("told < 60").assign(settled=2.0)
    before.attrs, again.attrs = {"commit": ["a", "b"]}, {"commit": ["b", "c"]}
    found = with_the_others(again, before, RUN, ORDER)
    assert [tuple(row) for row in found[before.columns[:4]].to_numpy()] == keys
    assert found["settled"].tolist() == [2.0, 2.0, 1.0, 1.0, 2.0]
    assert found.attrs == {"commit": ["a", "b", "c"]}


def test_every_method_recommends_by_its_own_rule():
    assert OWN.keys() == LEARNERS.keys()
    for name, (surrogate, rule) in OWN.items():
        assert rule in LEARNERS[name].recommends[surrogate]
        Task("newsvendor", name, 1, 15).algorithm()


def test_unknown_names_and_short_runs_are_refused():
    with pytest.raises(ConfigError, match="Did you mean `erbo`"):
        tasks_of(["erbbo"], [], seeds=1, rounds=15, common=30)
    with pytest.raises(ConfigError, match="15 or more, got 10"):
        tasks_of([], [], seeds=1, rounds=10, common=30)


def test_the_page_says_what_the_robust_methods_own_runs_show():
    page = (RESULTS.parent / "README.md").read_text(encoding="utf-8")
    page = " ".join(page.split())
    cells = cells_of("tournament/claims.md", "### 15 outcomes")
    first, second = cells["`wdrbo_exact, sd`"], cells["`stable_opt`"]
    saved = [row[1].removeprefix("-").split(" (") for row in (first, second)]
    (one, p), (other, q) = saved
    assert (
        f"`wdrbo_exact` loses {one} less than `erbo` after its own run (p {p[:-1]},"
        in page
    )
    assert f"`stable_opt` {other} less (p {q}; if" in page
    costs = [row[0].split(" (")[0].removeprefix("+") for row in (first, second)]
    assert f"lose {costs[0]} and {costs[1]} more" in page


def losses(method, told):
    """Committed losses of an own run, case by case: nothing shifts, and the shift."""
    rows = pd.read_csv(RESULTS / "tournament" / "claims.csv")
    rows = rows.query("learner == @method and told == @told")
    rule = {"erbo": "expected", "wdrbo_exact, sd": "robust"}[method]
    rows = rows[(rows["rule"] == rule) & rows["case"].isin(WITH_TENSION)]
    return rows.set_index(["case", "seed"])[["settled", "shifted"]]


@pytest.mark.parametrize("told", [30, 60])
def test_what_the_robust_method_saves_is_the_mean_of_its_cases(told):
    less = losses("wdrbo_exact, sd", told) - losses("erbo", told)
    mean = less.groupby("case").mean().mean()
    cells = cells_of("tournament/claims.md", "### Four questions")
    assert float(cells[f"1, {told} outcomes"][2].split()[0]) == pytest.approx(
        mean["shifted"], abs=0.05
    )
    assert float(cells[f"2, {told} outcomes"][2].split()[0]) == pytest.approx(
        mean.sum(), abs=0.05
    )


def test_the_page_says_how_many_losses_the_longer_runs_repeat():
    table = pd.read_csv(RESULTS / "tournament" / "claims_repeated.csv")
    moved = table.set_index(["case", "seed", "learner"])["moved"]
    assert moved.index.is_unique
    page = " ".join((RESULTS.parent / "README.md").read_text(encoding="utf-8").split())
    assert f".1 points in {(moved <= 0.1).sum()} of {len(moved)} blocks" in page


def saved_and_costs(method):
    """After 30 and 60 outcomes: what it saves under the shift, and what it costs."""
    shown = [
        cells_of("tournament/claims.md", f"### {told} outcomes")[method]
        for told in (30, 60)
    ]
    return [[row[i].split(" (")[0][1:] for row in shown] for i in (1, 0)]


def test_the_page_says_what_longer_own_runs_show():
    page = " ".join((RESULTS.parent / "README.md").read_text(encoding="utf-8").split())
    saved, costs = saved_and_costs("`wdrbo_exact, sd`")
    assert f"loses {saved[0]} and {saved[1]} less than `erbo`, and {costs[0]}" in page
    assert f"{costs[0]} and {costs[1]} more if nothing shifts" in page
    saved, costs = saved_and_costs("`stable_opt`")
    assert f"`stable_opt` saves {saved[0]} and {saved[1]}, about what" in page
    assert f"about what it costs, {costs[0]} and {costs[1]}." in page
    title = "## The same rules on the rows of `erbo`'s own runs, 60 outcomes"
    robust = cells_of("tournament/claims.md", title)["*robust*"]
    saved, cost = (robust[i].split(" (")[0][1:] for i in (1, 0))
    assert f"within the errors ({saved}), and costs {cost}" in page


def test_random_decisions_over_all_cases_by_hand():
    """Mean of the cases' means, and the error over the seeds within cases."""
    rows = pd.read_csv(RESULTS / "tournament" / "claims.csv")
    rows = rows.query("told == 15 and surrogate == 'ensemble' and rule == 'expected'")
    keys = ["learner", "case", "seed"]
    losses = rows.set_index(keys)["settled"]
    cases = (losses["random"] - losses["erbo"]).groupby("case")
    error = (cases.var() / cases.size()).sum() ** 0.5 / len(cases)
    text = (RESULTS / "tournament" / "claims.md").read_text(encoding="utf-8")
    words = f"{cases.mean().mean():+.1f} ± {error:.1f} (< .001) less `erbo`"
    assert len(cases) == 12 and words in text[text.index("### 15 outcomes") :]


def test_calibration_of_a_case_by_hand():
    rows = pd.read_csv(RESULTS / "tournament" / "beyond.csv")
    rows = rows.query("told == 30 and case == 'branin_2_2' and surrogate == 'kernels'")
    shares = 100 * rows["beyond_settled"]
    cells = cells_of("tournament/claims.md", "### Case by case, 30 outcomes")
    assert len(cells) == len(CASES)
    error = shares.std() / len(shares) ** 0.5
    assert cells["branin_2_2"][2] == f"{shares.mean():.1f} ± {error:.1f}%"
