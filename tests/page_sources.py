"""What the numbers of README.md, docs/*.md and the tutorials are computed from."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from botorch_drbo.test_functions import make_test_function
from tests.page_numbers import ROOT, numbers

RESULTS = ROOT / "benchmarks" / "results"
Row = list[float]


def mean_and_error(values: pd.Series) -> Row:
    """Mean and standard error."""
    return [values.mean(), values.std(ddof=1) / len(values) ** 0.5]


def committed_table(path: str, title: str = "") -> dict[str, list[str]]:
    """First cell of a row -> the other cells, of a committed Markdown table.

    Args:
        path: The file, below benchmarks/results.
        title: A line of it; the first table behind it is meant.
    """
    text = (RESULTS / path).read_text()
    lines = text[text.index(title) :].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        first, *cells = (
            c.strip().strip("*") for c in re.split(r"(?<!\\)\|", line)[1:-1]
        )
        rows[first] = cells
    return rows


def column(path: str, name: str, title: str = "") -> dict[str, Row]:
    """First cell of a row -> the numbers of one named column."""
    text = (RESULTS / path).read_text()
    lines = text[text.index(title) :].splitlines()
    head = next(line for line in lines if line.startswith("|"))
    column = [c.strip() for c in head.strip("|").split(" | ")].index(name) - 1
    return {
        first: [number.value for number in numbers(cells[column])]
        for first, cells in committed_table(path, title).items()
    }


def results(name: str) -> pd.DataFrame:
    """All rounds of a committed benchmark."""
    return pd.read_parquet(RESULTS / name / "results.parquet")


def coins(file: str) -> pd.DataFrame:
    """What each shop of a demo earns: methods and worlds by shop."""
    shops = pd.read_csv(RESULTS / "demo" / file)
    return shops.pivot(index="shop", columns="method")


WORLDS = ("rises by a third", "stays as it was", "falls by a third", "halves")


def demo() -> list[Row]:
    table = coins("shops.csv")
    return [
        [x for world in WORLDS for x in mean_and_error(table[world][method])]
        for method in ("wdrbo_exact", "erbo", "gp_ucb")
    ]


def demo_differences(file: str = "shops.csv") -> Row:
    """Coins more than ``erbo``, shop by shop."""
    table = coins(file)
    gain = (table[world]["wdrbo_exact"] - table[world]["erbo"] for world in WORLDS)
    return [x for each in gain for x in mean_and_error(each)]


def demo_gain() -> list[Row]:
    return [demo_differences(), demo_differences("further_shops.csv")]


def tournament_losses() -> dict[str, pd.DataFrame]:
    """Situation -> losses in percent after 15 contexts, case and seed by method."""
    losses = pd.read_parquet(RESULTS / "tournament" / "losses.parquet")
    drifts = losses["case"].str.endswith("_drifting")

    def chosen(world: str, *, few: bool = False, drifting: bool = False) -> Any:
        count = losses["contexts"].min() if few else losses["contexts"].max()
        rows = losses[
            (losses["deployment"] == world)
            & (losses["contexts"] == count)
            & (drifts == drifting)
        ]
        table = rows.pivot(index=["case", "seed"], columns="method", values="loss")
        return 100 * table

    return {
        "settled": chosen("nothing shifts"),
        "settled, few": chosen("nothing shifts", few=True),
        "moved": chosen("mean moves 2 sd, badly"),
        "drifted": chosen("mean moves 2 sd, badly", drifting=True),
        "rare": chosen("rare bad regime"),
        "worst 1": chosen("worst within 1 sd"),
        "worst 1, few": chosen("worst within 1 sd", few=True),
        "worst 2": chosen("worst within 2 sd"),
    }


def loss(table: pd.DataFrame, method: str) -> float:
    """Each case counts the same."""
    return table[method].groupby("case").mean().mean()


def less_erbo(table: pd.DataFrame, method: str) -> Row:
    """Mean over cases of the paired difference, and the error over seeds in them."""
    difference = (table[method] - table["erbo"]).dropna().groupby("case")
    error = (difference.var() / difference.count()).sum() ** 0.5 / difference.ngroups
    return [difference.mean().mean(), error]


def tournament_ten() -> list[Row]:
    tables = tournament_losses()
    return [[100, *(loss(tables[w], "erbo") for w in ("settled, few", "worst 1, few"))]]


def regret_rows(name: str, methods: Sequence[str]) -> Row:
    """Cumulative regret, mean and error over seeds, method by method."""
    total = results(name).groupby(["algorithm", "seed"])["regret"].sum()
    return [x for method in methods for x in mean_and_error(total[method])]


RECIPES = ("wdrbo", "erbo", "sbo_kde", "gp_ucb")
WRONG_MODEL = (
    "ec_gp_ucb",
    "phased_gp_us",
    "regret_balancing",
    "regret_balancing, own guesses",
)


def one_problem(name: str, problem: str) -> pd.DataFrame:
    """Cumulative regret and that of the recommendation: seed by method."""
    rows = results(name)
    rows = rows[rows["problem"] == problem]
    of_run = rows.groupby(["seed", "algorithm"])
    table = pd.DataFrame(
        {"total": of_run["regret"].sum(), "last": of_run["recommended_regret"].last()}
    )
    return table.unstack()


def measured() -> list[Row]:
    portfolio = one_problem("wdrbo", "portfolio_normal")["total"]
    return [
        regret_rows("figure1", RECIPES[:2]),
        [x for method in RECIPES for x in mean_and_error(portfolio[method])],
    ]


def measured_less_erbo() -> list[Row]:
    rows = []
    for name, problem in (
        ("figure1", "wdrbo_figure1"),
        ("wdrbo", "portfolio_normal"),
    ):
        total = one_problem(name, problem)["total"]
        gain = total["wdrbo"] - total["erbo"]
        rows.append([*mean_and_error(gain), (gain < 0).sum(), len(gain)])
    return rows


def default_model() -> list[Row]:
    rows = []
    for name, recipe in (
        ("wdrbo", "erbo"),
        ("sbo_kde", "sbo_kde"),
        ("figure1", "wdrbo"),
        ("figure1", "erbo"),
        ("edrbo", "erbo"),
    ):
        rounds = results(name)
        of_run = rounds.groupby(["problem", "seed", "algorithm"])
        score = of_run["regret"].sum().unstack()
        if name == "sbo_kde":  # this problem is judged by what was seen
            seen = -of_run["y"].sum().unstack().loc[["complicated_hartmann"]]
            score.loc["complicated_hartmann"] = seen.to_numpy()
        less = score[f"{recipe}_ensemble"] < score[recipe]
        rows.append([rounds["iteration"].max() + 1, len(less), less.sum()])
    return rows


def default_model_in_words() -> list[Row]:
    wdrbo, sbo_kde, *_, edrbo = default_model()
    return [[x for _, runs, less in (wdrbo, sbo_kde, edrbo) for x in (less, runs)]]


def portfolio() -> list[Row]:
    table = one_problem("wdrbo", "portfolio_normal")
    return [
        [x for part in ("total", "last") for x in mean_and_error(table[part, method])]
        for method in RECIPES
    ]


# The size that is quoted: decisions, contexts, outcomes, context columns.
SIZE = (64, 1024, 100, 1)


def speed() -> list[Row]:
    size = str(SIZE)
    table = "| (b, n, t, d_c) | auto takes"
    (milliseconds,) = column("speed.md", "auto", table)[size]
    (faster,) = column("speed.md", "idiom / auto", table)[size]
    (share,) = column("speed.md", "auto / GEMM", table)[size]
    return [[*SIZE[:3], milliseconds, faster, share]]


def gpu_ratios(file: str) -> tuple[Row, Row, Row, Row, Row, Row]:
    """Least and largest milliseconds and ratios: large, one decision, asks."""

    def ratios(name: str, chosen: Callable[[str], bool], title: str = "") -> Row:
        found = column(file, name, title).items()
        return [ratio for size, (ratio,) in found if chosen(size)]

    def large(size: str) -> bool:
        return size.startswith("(512, 4096")

    def ends(values: Row) -> Row:
        return [min(values), max(values)]

    one, every = "one thread / GPU", "all cores / GPU"
    asks = "### Whole asks"
    return (
        ends(ratios("GPU", large)),
        ends(ratios(one, large)),
        ends(ratios(every, large)),
        ends(ratios(one, lambda size: size.startswith("(1, "))),
        ends(ratios(one, lambda ask: "t = 100," in ask, asks)),
        ends(ratios(one, lambda ask: "t = 100," not in ask, asks)),
    )


def gpu_speed() -> list[Row]:
    times, one, every, single, few, many = gpu_ratios("gpu_speed.md")
    (milliseconds,) = {round(x) for x in times}
    cores = re.search(r"(\d+) cores", (RESULTS / "gpu_speed.md").read_text())
    assert cores is not None
    large = [512, 4096, milliseconds, *one, *every, int(cores[1])]
    return [[*large, 1024, *single, 100, *few, 500, 1000, *many]]


def gpu_speed_h100() -> list[Row]:
    return [[x for ends in gpu_ratios("gpu_speed_h100.md") for x in ends]]


def surrogate_speed() -> list[Row]:
    """How many times an ask with ``botorch`` one with the ensemble takes, and may."""
    table = column("surrogate_speed.md", "ask / botorch")
    ratios = [row for name, (row,) in table.items() if name.endswith(", ensemble")]
    return [[min(ratios), max(ratios), 4]]


_TOLD = (10, 15, 30)  # outcomes


def intervals() -> list[Row]:
    """After random rows: data sets, inside and width, of half A and then of half B."""
    found = {}
    for half in "AB":
        text = (RESULTS / "development" / f"intervals_{half}.md").read_text()
        lines = text[: text.index("###")].splitlines()
        for line in (line for line in lines if line.startswith("| ")):
            surrogate, told, promise, *_ = line.strip("| ").split(" | ")
            found[surrogate, told, promise, half] = [x.value for x in numbers(line)]
    return [
        [told, *(x for half in "AB" for x in found[s, str(told), promise, half][1:5])]
        for s in ("botorch", "four")
        for told in _TOLD
        for promise in ("expected", "worst")
    ]


def promises() -> list[Row]:
    """After a method's own decisions: data sets, inside, width, and both optimisms."""
    text = (RESULTS / "development" / "calibration.md").read_text()
    rows = []
    for surrogate in ("botorch", "four"):
        for told in _TOLD:
            title = f"### Promises after {told} outcomes, both halves"
            lines = text[text.index(title) :].splitlines()[1:]
            for promise in ("expected", "worst"):
                start = f"| {surrogate} | {promise} |"
                line = next(line for line in lines if line.startswith(start))
                found = [x.value for x in numbers(line)]
                rows.append([told, *found[:6], *found[-2:]])
    return rows


def beyond() -> list[Row]:
    """Shares of outcomes beyond two predicted deviations, before 10, 15, 30."""
    report = "development/calibration.md"
    columns = [column(report, "beyond 2", f"## {told} outcomes") for told in _TOLD]
    return [[x for c in columns for x in c[name]] for name in ("botorch", "four")]


def second_claim() -> list[Row]:
    """What the ensemble of four loses less than botorch on fresh seeds."""
    title = "## `erbo`, {} outcomes, fresh seeds of both halves"
    report = "development/report.md"
    return [
        column(report, "less botorch", title.format(t))["four"] for t in (10, 15, 30)
    ]


def later_questions() -> list[Row]:
    """Of claims_third.md: outcomes, runs, loss less botorch's, p, regret less its."""
    asked = (
        [("wdrbo_exact", "four", told) for told in (10, 15, 30)]
        + [("erbo", "four", 60)]
        + [("erbo", "hyperparameters", told) for told in (10, 15, 30)]
    )
    rows = []
    for method, surrogate, told in asked:
        title = f"## `{method}`, {told} outcomes, both halves"
        cells = committed_table("development/report.md", title)[surrogate]
        runs, _, loss, p, *others = cells
        regret = others[-5]  # before beyond 1, beyond 2, NLPD and s/ask
        parts = (runs, loss, p, regret)
        rows.append([float(told), *(x.value for part in parts for x in numbers(part))])
    return rows


def claims_cells(table: str, cells: Sequence[tuple[str, int, int]]) -> Row:
    """Numbers of the claims' report: row, column, and how many of the cell."""
    rows = committed_table("tournament/claims.md", table)
    return [x.value for row, i, n in cells for x in numbers(rows[row][i])[:n]]


def claims() -> list[Row]:
    """The losses of *robust* less those of *expected*, as sizes."""
    both, moved, settled = 2, 1, 0
    table = "## Common data: {} random decisions"
    many, few = table.format(30), table.format(15)
    saves_costs = [("robust", moved, both), ("robust", settled, both)]
    row = [30, *claims_cells(many, saves_costs)]
    row += claims_cells(many, [("expected", moved, 1), ("expected", settled, 1)])
    row += [15, *claims_cells(few, saves_costs)]
    row += [30, *claims_cells(many, [("robust", 3, both), ("robust", 4, both)])]
    return [[abs(value) for value in row]]


FOUR = "### Four questions"  # about longer own runs


def saves_and_costs(told: int) -> Row:
    """A robust method's own run: what it saves, of what, costs, and both together."""
    own = f"### {told} outcomes"
    row = claims_cells(FOUR, [(f"1, {told} outcomes", 2, 2)])
    row += claims_cells(own, [("`erbo`", 1, 1), ("`wdrbo_exact, sd`", 0, 2)])
    return row + claims_cells(FOUR, [(f"2, {told} outcomes", 2, 2)])


def decided_robustly(told: int) -> Row:
    """From the rows of `erbo`: what *robust* saves and costs, as sizes."""
    rules = f"## The same rules on the rows of `erbo`'s own runs, {told} outcomes"
    row = claims_cells(rules, [("robust", 1, 2), ("robust", 0, 2)])
    return [abs(value) for value in row]


def costs_without_tension() -> Row:
    """From the rows of `erbo`, 30 outcomes: what *robust* costs."""
    rules = "## The same rules on the rows of `erbo`'s own runs, 30 outcomes"
    assert claims_cells(rules, [("robust", 4, 1)])[0] > 0  # it saves nothing
    return claims_cells(rules, [("robust", 3, 2)])


def learnt_by_erbo() -> list[Row]:
    """README: what *robust* saves and costs after 30 and after 60 of its outcomes."""
    few, many = decided_robustly(30), decided_robustly(60)
    relaxed = costs_without_tension()
    return [[*few[:2], 30, *many[:2], 60, *few[2:], *many[2:], *relaxed, 30]]


def longer_own_runs() -> list[Row]:
    """docs/radius.md: own runs of 30 and 60 outcomes, and the rows of `erbo`."""
    row = []
    for told in (30, 60):
        saved, error, _, *cost = saves_and_costs(told)[:5]
        row += [told, -saved, error, *cost]
    rows = [*decided_robustly(30), 30, *decided_robustly(60), 60]
    name = "`wdrbo_exact, sd`"
    asked = claims_cells("### 30 outcomes", [(name, 3, 2)])
    return [[*row, *rows, 30, *asked, *costs_without_tension()]]


def which_method() -> list[Row]:
    """README: own runs, claims 2 and 3, `random`, claims 5, 4, 1, and regret of 1."""
    many = "## Common data: 30 random decisions"
    row = claims_cells("## The claims", [("2", 2, 2)])
    row += claims_cells(many, [("expected", 1, 1), ("robust", 0, 2)])
    first = [30, *row, *claims_cells("## The claims", [("3", 2, 2)])]
    box = claims_cells("## The claims", [("5", 2, 2)])
    edrbo = claims_cells("## The claims", [("4", 2, 2), ("4", 4, 1)])
    text = (RESULTS / "tournament" / "claims.md").read_text()
    (regret,) = re.findall(r"`erbo` with botorch: .* \((\+\S+ ± \S+) less", text)
    on_the_way = [number.value for number in numbers(regret)]
    on_the_way[0] *= -1  # the default's less BoTorch's
    last = claims_cells("## The claims", [("1", 2, 2), ("1", 4, 1)])
    own_runs = text[text.index("### 15 outcomes") :]
    (more,) = re.findall(r"`random`: .*?, (\+\S+ ± \S+) ", own_runs.split("###")[1])
    shown = [number.value for number in numbers(more)]
    # "15 outcomes" stands in the cell of the last row.
    own = [saves_and_costs(30), saves_and_costs(60)]
    return [*own, first[1:], shown, box, edrbo, [15, *last, *on_the_way]]


def without_tension() -> list[Row]:
    name = "`wdrbo_exact, sd`"
    row = claims_cells("### 30 outcomes", [(name, 4, 2), (name, 3, 2)])
    return [[30, *(abs(value) for value in row)]]


def newsvendor() -> list[Row]:
    title = "## Case by case"
    row = [("newsvendor", i, n) for i, n in ((1, 1), (2, 2), (3, 1))]
    shifted = [("newsvendor", i, n) for i, n in ((4, 1), (5, 2), (6, 1))]
    return [claims_cells(title, cells) for cells in (row, shifted)]


def methods() -> list[Row]:
    """Blocks of a method, and how many show five points if nothing shifts."""
    table = committed_table("tournament/methods.md")
    blocks = max(numbers(row[3])[0].value for row in table.values())
    needed = [numbers(row[4])[0].value for row in table.values()]
    return [[blocks, min(needed), max(needed)]]


def drift() -> list[Row]:
    """15 rounds; the regrets of a ball of one deviation and of ``erbo``."""
    table = committed_table("tournament/report.md", "## The regret while the law moves")
    robust, plain = table["`wdrbo_exact_1sd`"], table["`erbo`"]
    seeds = results_of_tournament()["seed"].nunique()
    less = [x.value for x in numbers(robust[3])]
    other = [abs(x.value) for x in numbers(table["`drbo_mmd`"][3])]
    return [[15, float(robust[0]), float(plain[0]), *less, seeds, *other]]


def results_of_tournament() -> pd.DataFrame:
    return pd.read_parquet(RESULTS / "tournament" / "steps.parquet")


def claims_ignorance() -> list[Row]:
    table = "All options less"
    options = committed_table("tournament/claims.md", table)
    every = [(column, 2) for column in range(4)]
    return [claims_cells(table, [(name, *c) for c in every]) for name in options]


def claims_own_rows() -> list[Row]:
    both = [(name, 3, 2) for name in ("robust", "home")]
    both += [(name, 1, 2) for name in ("robust", "home")]
    row = claims_cells("## The same rules on the rows of", both)
    return [[15, *(abs(value) for value in row)]]


def claims_half_b() -> list[Row]:
    text = (RESULTS / "tournament" / "claims.md").read_text()
    found = numbers(text[text.index("Chosen: ") :].split("\n\n")[0])
    settled, error, _, _, shifted, its_error, _ = (x.value for x in found)
    return [[settled, error, shifted, its_error]]


def inner_speed() -> list[Row]:
    table = committed_table("inner_speed.md")
    layers = [name for name in table if name.endswith(", layer")]
    micro = {"us": 1.0, "ms": 1000.0}
    times = {}
    for name in layers:
        number, unit = table[name][0].split()
        times[name] = float(number) * micro[unit]
    faster = [numbers(table[name][2])[0].value for name in layers]
    fastest, slowest = min(times, key=times.__getitem__), max(times, key=times.get)
    assert fastest.startswith("ConditionalValue") and slowest.startswith("MMD")
    return [[100, times[fastest], times[slowest] / 1000, min(faster), max(faster)]]


def speed_of_large() -> list[Row]:
    table = committed_table("speed.md", "### What must be reached")
    time = table["expected UCB at (64, 1024, 2000, 1)"][0]
    memory = table["peak memory above the start, (16, 65536, 500, 1)"][0]
    seconds = [number.value for number in numbers(time)]
    return [[64, 1024, 2000, *seconds, 16, 65536, 500, numbers(memory)[0].value]]


def certainty() -> list[Row]:
    name = "lipschitz_gradients.md"
    lines = (RESULTS / name).read_text().splitlines()
    cells = [line.split(" | ") for line in lines if re.match(r"\| \d", line)]
    percent = [[float(row[i].strip("%")) for i in (4, 9)] for row in cells]
    slopes = [sum(int(row[2]) for row in cells)]
    slopes += [max(row[0] for row in percent) / 100, max(row[1] for row in percent)]
    lines = (RESULTS / "accuracy.md").read_text().splitlines()
    errors = [line.split(" | ")[5:7] for line in lines if re.match(r"\| \d", line)]
    moments = [max(float(row[i]) for row in errors) for i in (0, 1)]
    return [[], [], [], slopes, [], moments, [], [], [], [], []]


def misspecified() -> list[Row]:
    ratios: dict[str, Row] = {}
    for kind in ("**waves**", "**bumps**"):
        table = committed_table("misspecified/table.md", kind)
        for error in (1, 2):  # the columns of the two errors that are not zero
            regret = {name: numbers(table[name][error])[0].value for name in table}
            for name in regret:
                ratio = regret[name] / regret["gp_ucb"]
                ratios.setdefault(name, []).append(ratio)
    return [[f(ratios[name]) for name in WRONG_MODEL for f in (min, max)]]


def constraints() -> list[Row]:
    table = committed_table("constraints.md", "| constraint |")
    cells = (table[name][:4] for name in table)
    return [[x.value for cell in row for x in numbers(cell)] for row in cells]


def constraints_text() -> list[Row]:
    text = (RESULTS / "constraints.md").read_text()
    best = [float(x) for x in re.findall(r"(?:value|law) (0\.\d+)", text)]
    level = float(re.findall(r"probability (0\.\d+)", text)[0])
    outcomes = sum(int(n) for n in re.findall(r"(\d+) (?:decisions|more)", text))
    return [[level, 0.01, outcomes, *best, best[1] - best[0]]]


def figure1() -> list[Row]:
    rounds = results("figure1")
    total = rounds.groupby(["algorithm", "seed"])["regret"].sum().unstack(0)
    assert (total["wdrbo"] < total["erbo"]).all()
    distance = rounds["x"].str[0].abs()[rounds["iteration"] >= 90]
    spread = distance.groupby(rounds["algorithm"]).quantile([0.5, 0.25, 0.75])
    problem = make_test_function("wdrbo_figure1")
    reference = 0.1 * math.sqrt(2 / math.pi)  # mean |c - .5| of N(.5, .1)
    truth = (problem.true_contexts() - 0.5).abs().mean().item()
    row = [len(total), 0, 0.5]
    row += [problem.optimal_decision.abs().item(), 10, 0]
    row += [*spread["wdrbo"], *spread["erbo"], 0.5, reference, truth, reference, 0.1]
    return [row]


def batches() -> list[Row]:
    joint = committed_table("batches.md", "Joint minus another way")
    greedily = [
        [x.value for x in numbers(cell)]
        for name in ("qUCB", "qEI")
        for cell in joint[f"{name}, jointly - {name}, greedily"]
    ]
    largest = max(abs(mean) / error for mean, error in greedily)
    hallucinated = numbers(joint["qUCB, jointly - UCB, hallucinated"][2])
    better = committed_table("batches.md", "Acquisition values on the same model")
    share = {name: numbers(cells[3])[0].value for name, cells in better.items()}
    warm = [share[f"{name}, jointly, warm"] for name in ("qUCB", "qEI")]
    cold = [share[f"{name}, jointly, cold"] for name in ("qUCB", "qEI")]
    return [[2, largest, *warm, *cold, *(x.value for x in hallucinated)]]


def batches_table() -> list[Row]:
    cells = committed_table("batches.md", "| method |").values()
    return [[x.value for i in (0, 1, 3) for x in numbers(row[i])] for row in cells]


def pending() -> list[Row]:
    lines = (RESULTS / "pending.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if "repelled - hallucinated" in line]
    ackley, newsvendor = (
        [x.value for x in numbers(row[4])] for row in rows if "branin" not in row[0]
    )
    return [[*ackley, *newsvendor]]


def bocu_long() -> list[Row]:
    table = pd.read_csv(RESULTS / "bocu_long/gp_prior_2_2/iterations.csv")
    total = table.pivot(index="decision", columns="method", values="mean")
    every = total.loc[100::100].diff().fillna(total.loc[[100]]) / 100
    return [[600, 100, *every["ts_bocu"], *every["random"]]]


def misspecified_text() -> list[Row]:
    waves = committed_table("misspecified/table.md", "**waves**")
    bumps = committed_table("misspecified/table.md", "**bumps**")
    plain = [[x.value for x in numbers(cell)] for cell in waves["gp_ucb"]]
    phased = [numbers(cell)[0].value for cell in bumps["phased_gp_us"]]
    ratio = plain[2][0] / plain[0][0]
    last = [plain[2][2], plain[0][2]]
    shares = [
        numbers(own)[0].value / numbers(first)[0].value
        for table in (waves, bumps)
        for own, first in zip(*(table[m] for m in WRONG_MODEL[:1:-1]), strict=True)
    ]
    saved = [100 * (1 - max(shares)), 100 * (1 - min(shares))]
    return [[0.3, ratio, *last, phased[0], phased[2], 0.3, 0.3, *saved]]


def action_sets() -> list[Row]:
    ratios: dict[str, list[float]] = {"own guesses": [], "lambda 1": []}
    for kind in ("**waves**", "**bumps**"):
        table = committed_table("action_sets/table.md", kind)
        for name, found in ratios.items():
            other = table[f"regret_balancing, {name}"]
            both = zip(table["regret_balancing"], other, strict=True)
            found += [numbers(a)[0].value / numbers(b)[0].value for a, b in both]
    own, wide = ratios.values()
    guesses = committed_table("action_sets/table.md", "| guesses |")["the paper's"][1]
    first, _, second, _ = (x.value for x in numbers(guesses.replace(":", " ")))
    return [[first, second, 300, min(own), max(own), min(wide), max(wide)]]


def speed_missed() -> list[Row]:
    new, old = (
        committed_table(name, "| recipe | iteration |")
        for name in ("speed.md", "speed_0.1.0.md")
    )

    def ratio(table: Mapping[str, list[str]], recipe: str) -> float:
        return float(table[recipe][2])

    def milliseconds(table: Mapping[str, list[str]], recipe: str) -> float:
        return float(table[recipe][0].removesuffix(" ms"))

    target = (
        "WDRBO over ERBO on the same contexts, value and gradient, (64, 100, 100, 1)"
    )
    limit = [
        numbers(committed_table(name, "### What must be reached")[target][0])[0].value
        for name in ("speed.md", "speed_0.1.0.md")
    ]
    row = [100, ratio(new, "wdrbo"), 1.5, ratio(old, "wdrbo")]
    row += [milliseconds(new, "wdrbo"), milliseconds(old, "wdrbo")]
    row += [milliseconds(new, "gp_ucb"), milliseconds(old, "gp_ucb"), 100, *limit]
    two = ("wdrbo_exact", "drbo_mmd")
    row += [*(ratio(new, name) for name in two), 2, *(ratio(old, name) for name in two)]
    row += [*(milliseconds(table, name) for table in (new, old) for name in two)]
    return [[*row, ratio(new, "drbo_mmd_minimax"), 1024]]


def first_places() -> list[Row]:
    """On how many problems EDRBO has the highest mean: theirs, ours, with the slip."""
    theirs = pd.read_csv(ROOT / "benchmarks" / "published" / "edrbo.csv")
    methods, rows = set(theirs["algorithm"]), []
    slip = results("edrbo_batch").replace({"algorithm": {"edrbo_batch": "edrbo"}})
    study = results("edrbo")
    others = study[study["algorithm"].isin(methods - {"edrbo"})]
    own = study[study["algorithm"].isin(methods)]
    for (first, last), part in theirs.groupby(["first", "last"]):
        tables = [part.groupby(["problem", "algorithm"])["value"].mean()]
        for runs in (own, pd.concat([slip, others])):
            inside = runs[runs["iteration"].between(first - 6, last - 6)]
            tables.append(inside.groupby(["problem", "algorithm"])["expected"].mean())
        if slip["iteration"].max() < last - 6:
            tables.pop()
        best = [table.unstack().idxmax(axis="columns") for table in tables]
        rows.append([float((each == "edrbo").sum()) for each in best])
    return rows


def search() -> list[Row]:
    lines = (RESULTS / "search.md").read_text().splitlines()
    rows = [numbers(line) for line in lines if "| all |" in line]
    values = [[number.value for number in row] for row in rows]
    few, tried, time, missed, _, full_time = zip(*values, strict=True)
    assert sum(missed) == 0
    cheaper = [100 * (1 - a / b) for a, b in zip(time, full_time, strict=True)]
    bound = 100 * (1 - 0.05 ** (1 / sum(tried)))  # exact, of none missed
    assert bound < 1
    return [[sum(tried), 1, 95, min(cheaper), max(cheaper), sum(few), sum(tried)]]


def attacks(title: str) -> list[Row]:
    """A table of the attacks, as it stands."""
    table = committed_table("reliability.md", title)
    return [[n.value for c in cells for n in numbers(c)] for cells in table.values()]


_RESULTS = "benchmarks/results/"
SOURCES: Mapping[str, Callable[[], list[Row]]] = {
    _RESULTS + "demo/shops.csv": demo,
    _RESULTS + "demo/shops.csv, paired": lambda: [demo_differences()],
    _RESULTS + "demo/*.csv": demo_gain,
    _RESULTS + "tournament/losses.parquet, ten contexts": tournament_ten,
    _RESULTS + "*/results.parquet": measured,
    _RESULTS + "*/results.parquet, paired": measured_less_erbo,
    _RESULTS + "*/results.parquet, default model": default_model,
    _RESULTS + "edrbo*/results.parquet, first places": first_places,
    _RESULTS + "*/results.parquet, default model in words": default_model_in_words,
    _RESULTS + "wdrbo/results.parquet, portfolio_normal": portfolio,
    _RESULTS + "figure1/results.parquet": figure1,
    _RESULTS + "batches.md": batches,
    _RESULTS + "batches.md, table": batches_table,
    _RESULTS + "pending.md": pending,
    _RESULTS + "bocu_long/gp_prior_2_2/iterations.csv": bocu_long,
    _RESULTS + "misspecified/table.md, ratios": misspecified,
    _RESULTS + "misspecified/table.md": misspecified_text,
    _RESULTS + "action_sets/table.md": action_sets,
    _RESULTS + "search.md": search,
    _RESULTS + "speed*.md": speed_missed,
    _RESULTS + "speed.md": speed,
    _RESULTS + "speed.md, large": speed_of_large,
    _RESULTS + "gpu_speed.md": gpu_speed,
    _RESULTS + "gpu_speed_h100.md": gpu_speed_h100,
    _RESULTS + "surrogate_speed.md": surrogate_speed,
    _RESULTS + "development/intervals_*.md": intervals,
    _RESULTS + "development/calibration.md": beyond,
    _RESULTS + "development/calibration.md, promises": promises,
    _RESULTS + "development/report.md": second_claim,
    _RESULTS + "development/report.md, later": later_questions,
    _RESULTS + "tournament/claims.md": claims,
    _RESULTS + "tournament/claims.md, which method": which_method,
    _RESULTS + "tournament/claims.md, without tension": without_tension,
    _RESULTS + "tournament/claims.md, learnt by erbo": learnt_by_erbo,
    _RESULTS + "tournament/claims.md, longer own runs": longer_own_runs,
    _RESULTS + "tournament/claims.md, newsvendor": newsvendor,
    _RESULTS + "tournament/methods.md": methods,
    _RESULTS + "tournament/report.md, drift": drift,
    _RESULTS + "tournament/claims.md, ignorance": claims_ignorance,
    _RESULTS + "tournament/claims.md, half B": claims_half_b,
    _RESULTS + "tournament/claims.md, own rows": claims_own_rows,
    _RESULTS + "inner_speed.md": inner_speed,
    _RESULTS + "lipschitz_gradients.md, accuracy.md": certainty,
    _RESULTS + "constraints.md": constraints,
    _RESULTS + "constraints.md, text": constraints_text,
    _RESULTS + "reliability.md, problems": lambda: attacks("## Random problems"),
    _RESULTS + "reliability.md, mutants": lambda: attacks("## Mutants"),
    _RESULTS + "reliability.md, coverage": lambda: attacks("## Coverage"),
    _RESULTS + "reliability.md, soak": lambda: attacks("## A long run"),
}
