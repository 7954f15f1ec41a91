"""The examples of README.md run as they stand there, and print what it says."""

from __future__ import annotations

import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from typer.testing import CliRunner

from benchmarks.parser import make_parser
from botorch_drbo.cli.commands import app
from tests.page_numbers import PAGES, ROOT, numbers

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
# Fits end a little elsewhere on other machines.
RELATIVE = 0.02


def printed_by_readme() -> list[tuple[str, str]]:
    """Each Python example, and the block behind it if that is what it prints."""
    behind = [*BLOCKS[1:], ("python", "")]
    return [
        (code, text if language == "" else "")
        for (kind, code), (language, text) in zip(BLOCKS, behind, strict=True)
        if kind == "python"
    ]


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


def ax_client() -> Client:
    client = Client()
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name=name, parameter_type="float", bounds=(0.0, 1.0))
            for name in ("x", "c")
        ]
    )
    client.configure_optimization(objective="profit")
    return client


@pytest.mark.slow
def test_examples_print_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names: dict[str, object] = {"client": ax_client()}
    shown = 0
    for code, expected in printed_by_readme():
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)
        assert differences(expected, printed.getvalue()) == []
        shown += bool(expected)
    assert shown == 2
    ((_, trial),) = names["client"].get_next_trials(max_trials=1).items()
    assert trial.keys() == {"x"}


def test_a_wrong_digit_or_word_of_an_example_is_found():
    said = "expected value  0.7111\nweight 0.083"
    assert differences(said, "expected  value 0.7049\nweight 0.0837") == []
    assert differences(said, "expected value  0.7311\nweight 0.083") != []
    assert differences(said, "expected value  0.7111\nweight 0.086") != []
    assert differences(said, "expected cost  0.7111\nweight 0.083") != []
    assert differences(said, "expected value  0.7111") != []
    assert differences("order 0.31", "order 0.31 and 2") != []


SHOP = """price,stock,temperature,profit
20,10,5,12
30,20,15,160
45,15,30,240
60,25,20,410
80,30,10,120
"""


CATEGORIES = """price,stock,temperature,profit
20,10,low,12
30,20,high,160
45,15,high,240
60,25,high,410
80,30,low,120
"""


@pytest.mark.slow
@pytest.mark.parametrize("table", [SHOP, CATEGORIES], ids=["numbers", "categories"])
def test_the_first_commands_run(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(table)
    text = "".join(text for _, text in BLOCKS)
    lines = [line for line in text.splitlines() if line.startswith("botorch-drbo ")]
    assert [line.split()[1] for line in lines] == ["suggest", "recommend"]
    for line in lines:
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "data.csv").read_text().count("\n") == table.count("\n") + 1


def commands_of(page: str) -> list[str]:
    """What a page writes behind ``python -m benchmarks``."""
    text = (ROOT / page).read_text().replace("\\\n", " ")
    calls = re.findall(r"python -m benchmarks(?=\s)([^`#|\n]*)", text)
    return [call for call in calls if call.strip() and "CONFIG" not in call]


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_the_benchmarks_exist(page: str):
    for call in commands_of(page):
        assert make_parser().parse_args(shlex.split(call.strip(". ")))
