"""README.md and the quick start: short, and what they tell to type works."""

from __future__ import annotations

import re
import runpy
import shlex
import warnings
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from benchmarks.parser import make_parser
from botorch_drbo.cli.commands import app
from tests.page_numbers import PAGES, ROOT, numbers

README = (ROOT / "README.md").read_text()
QUICK_START = (ROOT / "docs" / "quickstart.md").read_text()
FIRST_SCREEN = 40  # lines
# Fits end a little elsewhere on other machines.
RELATIVE = 0.02


def test_the_readme_is_one_screen_and_a_half() -> None:
    lines = README.splitlines()
    assert len(lines) <= 110
    assert sum(line.startswith("|--") for line in lines) <= 1
    assert "±" not in "\n".join(lines[:FIRST_SCREEN])
    for command in ("make demo", "make test"):
        assert f"\n{command} " in README


def commands_to_type(page: str) -> list[list[str]]:
    """The lines of a page that begin with the program, without it and its comment."""
    lines = re.findall(r"^botorch-drbo .*$", page, re.MULTILINE)
    return [shlex.split(line, comments=True)[1:] for line in lines]


QUICK = {
    "suggest": ["--algorithm", "random"],
    "report": ["-q", "1", "--surrogate", "botorch"],
}


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, QUICK_START], ids=["README", "quick start"])
def test_the_commands_run_in_their_order(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = commands_to_type(page)
    assert lines[0] == ["example", "bakery"] and len(lines) >= 3
    shown = {}
    for words in lines:
        quick = QUICK.get(words[0], []) if page is QUICK_START else []
        done = CliRunner().invoke(app, [*words, *quick])
        assert done.exit_code == 0, done.output
        shown[words[0]] = done.stdout
    if page is QUICK_START:
        (said,) = re.findall(r"```text\n(decision .*?)```", page, re.DOTALL)
        assert differences(said, shown["recommend"]) == []


def test_what_the_quick_start_calls_true_is_so() -> None:
    """The price and the gain by the function that made the table."""
    found = re.search(r"step gives up (\d+\.\d) and saves (\d+\.\d)", QUICK_START)
    orders = re.findall(r"(\d+) loaves at (\d\.\d+)", QUICK_START)
    assert found is not None and len(orders) == 2
    made = runpy.run_path(str(ROOT / "examples" / "make.py"))
    random = Random(1)
    days = [made["noon"](random) for _ in range(20_000)]

    def earned(order: tuple[str, str], warmer: float) -> float:
        loaves, price = map(float, order)
        each = (made["bakery_profit"](loaves, price, day + warmer) for day in days)
        return sum(each) / len(days)

    plain, robust = orders
    given_up = earned(plain, 0.0) - earned(robust, 0.0)
    saved = earned(robust, 5.0) - earned(plain, 5.0)
    said = [float(word) for word in found.groups()]
    assert said == pytest.approx([given_up, saved], abs=0.3)


def differences(expected: str, found: str) -> list[str]:
    """Lines whose words differ, or a number by 2% and one in its last digit."""
    lines = list(zip(expected.splitlines(), found.splitlines(), strict=False))
    wrong = [f"{expected!r} against {found!r}"] if _count(expected, found) else []
    for old, new in lines:
        pairs = list(zip(numbers(old), numbers(new), strict=False))
        near = all(
            abs(a.value - b.value) <= max(a.unit, RELATIVE * abs(a.value)) * (1 + 1e-9)
            for a, b in pairs
        )
        if _words(old) != _words(new) or not near:
            wrong.append(f"{old!r} against {new!r}")
    return wrong


def _count(expected: str, found: str) -> bool:
    return len(expected.splitlines()) != len(found.splitlines())


def _words(line: str) -> list[str]:
    for number in numbers(line):
        line = line.replace(number.text, "#", 1)
    return line.split()


def test_a_wrong_digit_or_word_of_an_answer_is_found():
    said = "expected value  0.7111\nweight 0.083"
    assert differences(said, "expected  value 0.7049\nweight 0.0837") == []
    assert differences(said, "expected value  0.7311\nweight 0.083") != []
    assert differences(said, "expected value  0.7111\nweight 0.086") != []
    assert differences(said, "expected cost  0.7111\nweight 0.083") != []
    assert differences(said, "expected value  0.7111") != []


def in_ax(names: dict[str, Any]) -> None:
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig

    client = Client()
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name=name, parameter_type="float", bounds=(0, 1))
            for name in ("stock", "demand")
        ]
    )
    client.configure_optimization(objective="profit")
    names["client"] = client


def in_optuna(names: dict[str, Any]) -> None:
    import optuna
    from optuna.distributions import FloatDistribution

    names |= {"optuna": optuna, "FloatDistribution": FloatDistribution}


def in_xopt(names: dict[str, Any]) -> None:
    from gest_api.vocs import VOCS, ContextualVariable
    from xopt import Evaluator, Xopt

    drift = ContextualVariable(domain=[-1.0, 1.0])
    variables = {"current": [0.0, 1.0], "drift": drift}
    names["vocs"] = VOCS(variables=variables, objectives={"loss": "MINIMIZE"})
    names["evaluator"] = Evaluator(function=lambda inputs: inputs)
    names["Xopt"] = Xopt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "prepare"), [("ax", in_ax), ("optuna", in_optuna), ("xopt", in_xopt)]
)
def test_the_line_of_a_host_is_complete(host: str, prepare: Any) -> None:
    (line,) = re.findall(rf"^- \S+: .*docs/{host}\.md.*$", README, re.MULTILINE)
    names: dict[str, Any] = {"torch": torch}
    prepare(names)
    for code in re.findall(r"`([^`]+)`", line):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a host about itself
            exec(code, names)


def commands_of(page: str) -> list[str]:
    """What a page writes behind ``python -m benchmarks``."""
    text = (ROOT / page).read_text().replace("\\\n", " ")
    calls = re.findall(r"python -m benchmarks(?=\s)([^`#|\n]*)", text)
    return [call for call in calls if call.strip() and "CONFIG" not in call]


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_the_benchmarks_exist(page: str):
    for call in commands_of(page):
        assert make_parser().parse_args(shlex.split(call.strip(". ")))
