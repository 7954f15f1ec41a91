r"""Record whole runs: ``python -m tests.transcripts [NAME ...]``; by default all.

``--diff`` shows what has changed instead, and writes nothing. A change of the record is
a change of what users get: say in the commit which runs were meant to change.
"""

from __future__ import annotations

import argparse
import time

import torch

from tests.transcripts.runs import RUNS
from tests.transcripts.transcript import load, played, same_machine, save, to_the_bit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="runs; by default all")
    parser.add_argument("--diff", action="store_true", help="show, and write nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.names and not arguments.diff and not same_machine():
        parser.error("the record is of another machine: record all runs, without names")
    known = load()
    found = dict(known)
    for name in arguments.names or RUNS:
        began = time.process_time()
        found[name] = played(name)
        print(f"{time.process_time() - began:6.1f} s  {name}", flush=True)
        if arguments.diff:
            changes = to_the_bit(found[name], known.get(name))
            print("".join(f"          {line}\n" for line in changes), end="")
    if not arguments.diff:
        save({name: found[name] for name in RUNS if name in found})


if __name__ == "__main__":
    main()
