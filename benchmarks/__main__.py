"""The command line of the benchmarks."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from benchmarks.parser import make_parser
from benchmarks.run.config import ConfigError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    options = make_parser().parse_args(arguments)
    # Libraries read these when they are first imported, here and in worker processes.
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    try:
        return options.command(options)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
