"""Mutants are what they say, one fault each."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from tests.mutation.__main__ import report, sample
from tests.mutation.mutants import mutant, num_mutants
from tests.mutation.record import ROOT, Recorded

SOURCE = """
def f(x: tuple[int, 3], y=2):
    '''Not 5.'''
    if x < y and not y:
        raise ValueError(f"{x + 7}")
    return x.amin(-1) * 0.5
"""


def test_each_mutant_has_one_fault():
    plain = ast.unparse(ast.parse(SOURCE))
    made = [mutant("a.py", SOURCE, k) for k in range(num_mutants(SOURCE))]
    assert len({source for _, source in made}) == len(made)
    for fault, source in made:
        compile(source, "a.py", "exec")
        changed = [
            a
            for a, b in zip(plain.splitlines(), source.splitlines(), strict=True)
            if a != b
        ]
        assert len(changed) == 1, (fault, changed)
    what = " ".join(fault.what for fault, _ in made)
    for part in ("x < y  ->  x <= y", "amax", "0.5  ->  1.0", "2  ->  3", " or "):
        assert part in what
    assert "7" not in what and "int" not in what  # no message, no annotation


def test_the_lines_of_a_statement_are_without_those_inside_it():
    source = "def f(\n    x=1,\n):\n    if x > (\n        2\n    ):\n        return 3\n"
    made = [mutant("a.py", source, k)[0] for k in range(num_mutants(source))]
    lines = {fault.what: fault.lines for fault in made}
    assert lines["1  ->  2"] == (1, 2, 3)
    assert lines["2  ->  3"] == lines["x > 2  ->  x >= 2"] == (4, 5, 6)
    assert lines["3  ->  4"] == (7,)


def test_the_sample_is_drawn_by_a_seed_and_a_larger_one_begins_with_it():
    faults = [fault for fault, _ in sample(["space", "problem"], 5, seed=1)]
    more = [fault for fault, _ in sample(["space", "problem"], 9, seed=1)]
    assert more[:5] == faults
    assert faults != [fault for fault, _ in sample(["space", "problem"], 5, seed=2)]


def test_tests_that_execute_a_line_come_fastest_first():
    fast, slow, other = (
        f"tests/{name}" for name in ("space/a.py::f", "space/a.py::s", "cli/b.py::o")
    )
    lines = {
        1: [""],
        5: [f"{slow}|run", f"{fast}|run", f"{fast}|setup"],
        6: [other + "|run"],
    }
    recorded = Recorded({"space/a.py": lines}, {fast: 0.1, slow: 0.3, other: 0.01})
    assert recorded.tests_of("space/a.py", [5]) == [fast, slow]
    assert recorded.tests_of("space/a.py", [5, 6]) == [fast, slow, other]
    assert recorded.tests_of("space/a.py", [7]) == []
    assert recorded.tests_of("space/a.py", [1, 2]) == [fast, slow, other]


SCRIPT = """
import sys, torch
from tests.mutation.forked import run
test = sys.argv[1] + "::test_it"
path, plain = "sampling.py", open("botorch_drbo/sampling.py").read()
for more in ("", "FAULT = 1", "FAULT = 2", "FAULT =", "raise ValueError"):
    outcome, by = run(path, plain + more, [test], {test: -1.9}, limit=60)
    print(outcome.name, by)
print(run(path, plain, [sys.argv[1] + "::test_that"], {}, limit=60)[0].name)
print(run(path, plain, [test], {}, limit=-1)[0].name)
"""
TEST = """
from botorch_drbo import sampling

def test_it():
    fault = getattr(sampling, "FAULT", 0)
    while fault == 2:
        pass
    assert fault == 0
"""


@pytest.mark.slow
def test_a_mutant_is_imported_and_killed_by_what_fails_or_never_ends(tmp_path):
    file = tmp_path / "test_of_a_mutant.py"
    file.write_text(TEST)
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert said[0] == "SURVIVED "
    assert said[1].startswith("KILLED ") and said[1].endswith("::test_it")
    assert said[2:] == [
        "KILLED SIGPROF",
        "KILLED import: SyntaxError",
        "KILLED import: ValueError",
        "UNDECIDED",
        "UNDECIDED",
    ]


def test_the_report_counts(tmp_path):
    file = tmp_path / "mutants.jsonl"
    row = {"path": "space/space.py", "line": 3, "what": "1  ->  2", "number": 0}
    outcomes = ("killed", "killed", "killed", "survived", "undecided")
    file.write_text(
        "".join(json.dumps({**row, "outcome": outcome}) + "\n" for outcome in outcomes)
    )
    text = report(file)
    assert "| space | 5 | 3 | 1 | 1 |" in text
    assert "Killed: 60% of all" in text
