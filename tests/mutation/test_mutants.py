"""Mutants are what they say, one fault each."""

from __future__ import annotations

import ast
import json

from tests.mutation.__main__ import files_for, report, sample
from tests.mutation.mutants import mutant, num_mutants

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


def test_the_sample_is_drawn_by_a_seed_and_finds_the_files_for_a_module():
    faults = [fault for fault, _ in sample(["space", "problem"], 5, seed=1)]
    assert faults == [fault for fault, _ in sample(["space", "problem"], 5, seed=1)]
    assert (
        files_for("problem/search_space.py")[0] == "tests/problem/test_search_space.py"
    )


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
