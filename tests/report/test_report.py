"""The page: its numbers are those of the optimizer, and it is sound HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo import Category, Integer, NamedOptimizer, RobustOptimizer, Space
from botorch_drbo.report import findings, write_report
from botorch_drbo.report.evidence import with_measured
from botorch_drbo.report.findings import STEPS, Findings, movement
from botorch_drbo.report.page import page
from botorch_drbo.space import LinearConstraint, Log
from botorch_drbo.surrogate import FixedHyperparameters

# Nothing is fitted, and hardly searched: the page is the subject.
KNOWN = FixedHyperparameters(lengthscale=0.5, noise_variance=0.05)
FEW = {
    "hyperparameters": KNOWN,
    "num_restarts": 1,
    "raw_samples": 8,
    "max_iterations": 5,
}
VOID = {"meta", "br", "hr", "img", "link", "input"}
SECTIONS = "decision model radius policy slices importance history next assumptions"


@pytest.fixture(autouse=True)
def no_window() -> None:
    matplotlib.use("Agg")


@pytest.fixture(autouse=True, scope="module")
def few_values() -> Iterator[None]:
    """Two values of a number in a table of decisions: each is a search."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "_NUM_VALUES", 2)
        yield


class Sound(HTMLParser):
    """Refuses elements that are not closed; collects text, ids and addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value or "")
            if key in ("href", "src", "xlink:href", "data", "action", "srcset"):
                self.addresses.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def check_sound(text: str) -> Sound:
    found = Sound(text)
    assert len(found.ids) == len(set(found.ids))
    assert set(SECTIONS.split()) <= set(found.ids)
    assert all(address.startswith("#") for address in found.addresses)
    assert {address[1:] for address in found.addresses} <= set(found.ids)
    assert found.tags.isdisjoint({"script", "link", "img", "iframe", "object"})
    assert "http" not in text and "@import" not in text
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    # Colours of pictures are those of the theme.
    assert (
        re.findall(r"#(?:010203|fdfcfb|000000|0072b2)", text.split("</style>")[1]) == []
    )
    return found


def table(num: int = 14) -> pd.DataFrame:
    draws = torch.rand(num, 4, generator=torch.Generator().manual_seed(1)).tolist()
    rows = [
        {
            "N <kg> & $x$ $y$": 20.0 + 180.0 * a,
            "seed": round(100 + 300 * b),
            "variety": "A<B" if c < 0.5 else "C&D",
            "lime": 0.1 * 100.0**d,
            "weather": ("dry", "wet")[round(a * d)],
            "temp": 10.0 + 20.0 * c * b,
            "cost [EUR]": 3.0 - a + b * c + 0.2 * d,
        }
        for a, b, c, d in draws
    ]
    columns = ["N <kg> & $x$ $y$", "seed", "variety", "lime", "weather", "temp"]
    return pd.DataFrame(rows, columns=[*columns, "cost [EUR]"])


def farm(df: pd.DataFrame, **options: object) -> NamedOptimizer:
    known: dict = {"algorithm": "dro", "maximize": False, **FEW, **options}
    return NamedOptimizer.from_dataframe(
        df,
        decisions={
            "N <kg> & $x$ $y$": (20.0, 200.0),
            "seed": Integer(100, 400),
            "variety": Category(["A<B", "C&D"]),
            "lime": Log(0.1, 10.0),
        },
        contexts={
            "weather": Category(["dry", "wet"]),
            "temp": (8.0, 32.0),
        },
        outcome="cost [EUR]",
        constraints=[
            LinearConstraint({"N <kg> & $x$ $y$": 1.0, "seed": 1.0}, upper=560.0)
        ],
        **known,
    )


def one_context(num: int, algorithm: str, **options: object) -> NamedOptimizer:
    space = Space({"x": (0.0, 1.0)}, {"c": (0.0, 1.0)}, outcome="profit")
    opt = NamedOptimizer(algorithm, space, **{**FEW, **options})
    X, C = torch.rand(2, num, 1, generator=torch.Generator().manual_seed(0)).double()
    opt.tell(X, C, -(X - C).square(), closes_pending=False)
    return opt


@pytest.fixture(scope="module")
def mixed() -> Findings:
    df = table()
    df.loc[12, "cost [EUR]"] = None
    df.loc[13, ["weather", "temp", "cost [EUR]"]] = None
    opt = farm(df)
    failed = df.head(1)
    opt.tell(failed, failed, failed=True, closes_pending=False)
    return Findings.of(opt, q=1, source="farm <1>.csv")


def test_a_page_of_every_kind_of_column_is_sound(mixed: Findings) -> None:
    text = page(mixed)
    found = check_sound(text)
    for name in ("N <kg> & $x$ $y$", "A<B", "C&D", "cost [EUR]", "farm <1>.csv"):
        assert name in found.text
    assert "<kg>" not in text and "A<B" not in text and "<1>" not in text
    assert "15: 12 complete, 2 pending, 1 failed" in found.text
    assert "2 decisions have no outcome yet" in found.text
    assert "as low as possible" in found.text and "The lowest cost [EUR]" in found.text
    # Check, profile, four decisions, history; by temp the decision does not move.
    assert text.count("<svg") == 7
    assert "need not be known" not in text
    assert "prefers-color-scheme: dark" in text


def test_its_numbers_are_those_of_the_optimizer(mixed: Findings) -> None:
    opt = mixed.optimizer
    best = opt.recommend()
    assert best.expected_interval is not None
    for part, name in zip(mixed.slices, opt.named_space.decisions, strict=True):
        at = part.index
        low, high = best.expected_interval
        assert part.mean[at].item() == pytest.approx(best.expected_value, rel=1e-6)
        assert part.lower[at].item() == pytest.approx(low, rel=1e-6)
        assert part.upper[at].item() == pytest.approx(high, rel=1e-6)
        own = opt.named_space.decisions[name].decode(part.values)[at]
        assert own == pytest.approx(best.x[name].tolist()[0])
    profile = mixed.profile
    assert not isinstance(profile, str)
    now = profile.values[mixed.steps.index(1.0)].item()
    assert now == pytest.approx(best.worst_case_value, rel=1e-4)
    assert profile.values[0].item() == pytest.approx(best.expected_value, rel=1e-6)
    assert isinstance(mixed.policies, dict)
    dry = opt.recommend(context={"weather": "dry"}).x
    row = mixed.policies["weather"][list(dry.columns)].head(1)
    pd.testing.assert_frame_equal(row.reset_index(drop=True), dry, rtol=1e-6)


def test_steps_are_shown_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opt, path = one_context(4, "erbo"), tmp_path / "r.html"
    write_report(opt, path, q=1)
    assert not any(capsys.readouterr())
    write_report(opt, path, q=1, progress=True)
    out, err = capsys.readouterr()
    assert not out and f"{STEPS}/{STEPS}" in err
    with pytest.raises(InputDataError, match="progress"):
        write_report(opt, path, progress=1)  # pyright: ignore[reportArgumentType]


def test_nothing_is_recorded(mixed: Findings) -> None:
    opt = mixed.optimizer
    assert len(opt.trials) == 15
    proposed = mixed.next_decisions
    again = NamedOptimizer.from_state_dict(opt.state_dict()).ask(1)
    pd.testing.assert_frame_equal(proposed, again)


def test_few_rows_and_no_radius_are_said(tmp_path: Path) -> None:
    write_report(one_context(4, "erbo"), tmp_path / "r.html", q=1)
    found = check_sound((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "knows nearly nothing: it has 4 outcomes" in found.text
    assert "The recipe erbo has no radius" in found.text


def test_measured_limits_are_said() -> None:
    opt = one_context(1, "erbo")
    X, C = torch.rand(2, 6, 1, generator=torch.Generator().manual_seed(3)).double()
    opt.tell(X, C, X, constraints=1.2 - X - C, closes_pending=False)
    found = check_sound(page(Findings.of(opt, q=1, limits=["runoff <= 9"]))).text
    assert "The measured limits (runoff <= 9) are met with probability" in found
    assert "runoff <= 9; they have to hold with probability 0.95" in found
    assert "or to meet the measured limits" in found
    assert "not named here; they have" in check_sound(page(Findings.of(opt, q=1))).text


def test_rows_are_named_by_the_lines_of_the_file() -> None:
    opt = one_context(6, "erbo")
    found = Findings.of(opt, q=1, lines=[3, 4, 6, 7, 8, 9])
    check = found.best.model_check
    assert check is not None
    assert check.worst == tuple([3, 4, 6, 7, 8, 9][t] for t in opt.check().worst)
    text = check_sound(page(found)).text
    best = [3, 4, 6, 7, 8, 9][opt.history["profit"].argmax()]
    assert f", in line {best} (" in text
    assert f"line {check.worst[0]}: " in text  # of the check in full
    assert "The last 6 rows line x c" in text
    assert "trial" not in text
    plain = check_sound(page(Findings.of(opt, q=1))).text
    assert "trial 0 is the first one" in plain and "line 3" not in plain


def test_a_picture_of_a_category_has_no_line_and_no_band(mixed: Findings) -> None:
    text = check_sound(page(mixed)).text
    space = mixed.optimizer.named_space.decisions
    for name, variable in space.items():
        named = isinstance(variable, Category)
        assert (f"{name}: the dot is the expected" in text) is named
        assert (f"{name}: the line is the expected" in text) is not named
    assert {isinstance(variable, Category) for variable in space.values()} == {
        False,
        True,
    }
    assert "measured limits (" not in text


def test_a_decision_without_a_rival_has_its_radius_all_the_same() -> None:
    opt = one_context(1, "wdrbo_exact", radius=0.1)
    X, C = torch.rand(2, 6, 1, generator=torch.Generator().manual_seed(3)).double()
    opt.tell(X, C, X, constraints=-1.0 - X, closes_pending=False)  # none meets it
    with pytest.warns(BotorchWarning, match="No decision was found"):
        found = Findings.of(opt, q=1)
    assert found.best.stability is None and found.radius == pytest.approx(0.1)
    text = check_sound(page(found)).text
    assert "has no radius" not in text
    assert "if the contexts shift (on average by 0.1 of c)" in text


def test_a_radius_by_column_is_said_in_its_units() -> None:
    opt = one_context(5, "wdrbo_exact", radius={"c": 0.2})
    found = Findings.of(opt, q=1)
    assert found.has_radius and "0.2 of c" in check_sound(page(found)).text
    assert not isinstance(found.profile, str)
    assert found.profile.radii.tolist() == list(found.steps)
    text = check_sound(page(found)).text
    assert "if the contexts shift (on average by 0.2 of c)" in text
    assert "2.0 0.4 of c" in text or "2 0.4 of c" in text  # twice the radius


def test_how_far_a_multiple_of_the_radius_reaches() -> None:
    opt = farm(table(0), algorithm="wdrbo_exact")
    # The bounds of temp are 24 apart, categories one.
    words = "another weather in 20% of cases or 4.8 of temp"
    moved_by, by_column = movement(opt, None), movement(opt, {"temp": 3})
    assert moved_by is not None and by_column is not None
    assert moved_by(0.2) == words and moved_by(0.0) == "nothing"
    assert by_column(2.0) == "6 of temp"
    assert movement(farm(table(0)), None) is None


def test_a_recipe_that_knows_no_context() -> None:
    found = Findings.of(one_context(5, "gp_ucb"), q=1)
    assert isinstance(found.policies, str) and not found.has_radius
    assert "There is no policy" in check_sound(page(found)).text


def test_what_cannot_be_reported_is_refused(tmp_path: Path) -> None:
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    with pytest.raises(InputDataError, match="needs a NamedOptimizer"):
        write_report(RobustOptimizer("erbo", unit, unit), tmp_path / "r.html")  # pyright: ignore[reportArgumentType]
    space = Space({"x": (0.0, 1.0)}, {"c": (0.0, 1.0)})
    with pytest.raises(InputDataError, match="no outcome"):
        write_report(NamedOptimizer("erbo", space), tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_a_decision_that_follows_the_context_is_drawn() -> None:
    """And one that moves by rounding alone is not."""
    found = Findings.of(one_context(12, "erbo"), q=1)
    assert "the dashed line is the recommended decision" in page(found)
    assert isinstance(found.policies, dict)
    (name, rows), *_ = found.policies.items()
    still = rows.assign(x=[0.5 + 1e-9 * k for k in range(len(rows))])
    assert "dashed line" not in page(replace(found, policies={name: still}))


def test_what_was_measured_has_its_own_name_and_unit() -> None:
    """The room to a limit is no column of the file."""
    trials = pd.DataFrame(
        {
            "x": [1.0, 2.0],
            "yield": [5.0, 6.0],
            "constraint1": [4.0, -1.0],  # acidity - 3
            "constraint2": [2.0, 7.0],  # 9 - acidity
            "constraint3": [0.5, float("nan")],  # 1.5 - salt
            "status": "complete",
        }
    )
    limits = ["acidity <= 9", "salt <= 1.5", "acidity >= 3"]
    shown = with_measured(trials, limits)
    assert list(shown.columns) == ["x", "yield", "acidity", "salt", "status"]
    assert shown["acidity"].tolist() == [7.0, 2.0]
    assert shown["salt"].tolist()[0] == 1.0 and shown["salt"].isna().tolist()[1]
    assert with_measured(trials, []) is trials


def limited() -> NamedOptimizer:
    opt = one_context(1, "erbo")
    X, C = torch.rand(2, 6, 1, generator=torch.Generator().manual_seed(3)).double()
    opt.tell(X, C, X, constraints=9.0 - X - C, closes_pending=False)
    return opt


def test_a_page_names_measured_columns_and_counts_rows() -> None:
    text = check_sound(page(Findings.of(limited(), q=1, limits=["acid <= 9"]))).text
    assert "profit acid status" in text and "constraint1" not in text
    assert "held in 6 of the 6 rows that measured them" in text


def test_the_headline_names_the_row_that_spoils_the_model() -> None:
    opt = one_context(1, "erbo", hyperparameters=None, surrogate="botorch")
    X, C = torch.rand(2, 16, 1, generator=torch.Generator().manual_seed(3)).double()
    Y = -(X - C).square()
    right = one_context(1, "erbo", hyperparameters=None, surrogate="botorch")
    right.tell(X, C, Y, closes_pending=False)
    right.withdraw(8)
    Y[7] = 100.0  # the trial after that of `one_context`
    opt.tell(X, C, Y, closes_pending=False)
    found = Findings.of(opt, q=1, lines=[*range(2, 19)])
    assert found.explained_without == pytest.approx(right.check().explained, abs=0.05)
    (headline, *_) = re.findall(r'<p class="lead">(.*?)</p>', page(found))
    assert headline.startswith("Line 10 (100) dwarfs all others (")
    assert headline.endswith(
        f": correct it, then the model explains {found.explained_without:.0%} and not "
        f"{max(opt.check().explained, 0):.0%}."
    )


def test_the_headline_says_what_lies_beyond_the_data() -> None:
    found = Findings.of(one_context(6, "erbo"), q=1)
    beyond = replace(
        found.best,
        x=pd.DataFrame({"x": [2.5]}),
        beyond="9% of its weight: c never seen",
    )
    leads = re.findall(r'<p class="lead">(.*?)</p>', page(replace(found, best=beyond)))
    tried = found.optimizer.history["x"]
    assert leads[0] == (
        f"The decision lies beyond the data: x was tried from {tried.min():.4g} to "
        f"{tried.max():.4g}, not at 2.5."
    )
    assert leads[1].endswith("the model guesses, with 9% of its weight: c never seen.")
    assert leads[2].startswith("Choose x = ")


def test_policies_have_the_digits_of_the_file() -> None:
    def rounded(x: pd.DataFrame, taken: pd.DataFrame) -> pd.DataFrame:
        return x.map(lambda value: f"{value:.1f}")

    found = Findings.of(one_context(12, "erbo"), q=1, rounded=rounded)
    assert isinstance(found.policies, dict)
    rows = found.policies["c"]
    text = check_sound(page(found)).text
    low, high = rows["x"].min(), rows["x"].max()
    assert f"By c: x from {low:.1f} to {high:.1f}." in text
    assert found.in_digits(rows[["x"]])["x"].tolist() == [f"{v:.1f}" for v in rows["x"]]
