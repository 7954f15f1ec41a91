r"""Record what the recipes answer: ``python -m tests.recipes_golden.make [NAME ...]``.

The record was made from 0.2.0. A change of it is a change of what users get: name the
recipes whose answers are meant to change, and say so in the commit. ``--journals``
writes the journals anew, which only the code of 0.2.0 may do.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import torch

from botorch_drbo.recipes import ALGORITHMS
from tests.recipes_golden import journals, record
from tests.recipes_golden.cases import questions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="recipes; by default all")
    parser.add_argument("--journals", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if arguments.journals:
        record.save(record.JOURNALS, _journals())
        return
    answers = record.load(record.FILE)["answers"] if record.FILE.exists() else {}
    for name in arguments.names or ALGORITHMS:
        answers[name] = {key: ask() for key, ask in questions(name).items()}
        print(name, len(answers[name]), flush=True)
    record.save(record.FILE, answers)


def _journals() -> dict[str, dict[str, list[str]]]:
    found = {}
    for key, (name, options) in journals.runs().items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.jsonl"
            journals.write(path, name, options)
            lines = path.read_text().splitlines()
            found[key] = {"lines": lines, "then": journals.follow(path)}
    return found


if __name__ == "__main__":
    main()
