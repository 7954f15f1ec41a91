r"""Record what the recipes answer: ``python -m tests.recipes_golden.make [NAME ...]``.

The record was made from 0.2.0. A change of it is a change of what users get: name the
recipes whose answers are meant to change, and say so in the commit.
"""

from __future__ import annotations

import argparse
import warnings

import torch

from botorch_drbo.recipes import RECIPES
from tests.recipes_golden import record
from tests.recipes_golden.cases import questions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="recipes; by default all")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    answers = record.load(record.FILE)["answers"] if record.FILE.exists() else {}
    for name in arguments.names or RECIPES:
        answers[name] = {key: ask() for key, ask in questions(name).items()}
        print(name, len(answers[name]), flush=True)
    record.save(record.FILE, answers)


if __name__ == "__main__":
    main()
