"""Uses an installed package as its user would; .ci/packages runs it, off a checkout.

python -I use_package.py core|all
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import metadata, version
from importlib.util import find_spec
from pathlib import Path

# Of the extras, what a user of the core alone does not have.
ABSENT_FROM_CORE = ("ax", "matplotlib", "optuna", "pandas", "pytest", "sphinx", "xopt")


def seconds(statement: str) -> float:
    """The best of three, each in a process of its own."""
    code = f"import time; t = time.perf_counter(); {statement}; "
    code += "print(time.perf_counter() - t)"
    runs = [
        subprocess.run(
            [sys.executable, "-I", "-c", code],
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(3)
    ]
    return min(float(done.stdout) for done in runs)


def main(kind: str) -> None:
    import torch

    import botorch_drbo
    from botorch_drbo import RobustOptimizer
    from botorch_drbo.ambiguity import TotalVariation

    assert "site-packages" in botorch_drbo.__file__, botorch_drbo.__file__
    assert botorch_drbo.__version__ == version("botorch-drbo")
    assert Path(botorch_drbo.__file__).with_name("py.typed").is_file()
    found = [name for name in ABSENT_FROM_CORE if find_spec(name)]
    if kind == "core":
        assert not found, f"the core brings {found}"
    else:
        extras = set(metadata("botorch-drbo").get_all("Provides-Extra") or ())
        missing = [n for n in ABSENT_FROM_CORE if n in extras and n not in found]
        assert not missing, f"[all] lacks {missing}"
        import botorch_drbo.plotting  # noqa: F401

        command = Path(sys.executable).with_name("botorch-drbo")
        assert "Usage" in subprocess.check_output([command, "--help"], text=True)

    f = torch.tensor([0.0, 1.0, 4.0], dtype=torch.double)
    p, ball = torch.full((3,), 1 / 3, dtype=torch.double), TotalVariation(0.3)
    by_cvxpy = ball.worst_case(f, p, solver="cvxpylayers").value
    torch.testing.assert_close(
        by_cvxpy, ball.worst_case(f, p).value, atol=1e-4, rtol=0.0
    )

    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    with tempfile.TemporaryDirectory() as folder:
        options = {"seed": 0, "num_initial": 2, "num_restarts": 2, "raw_samples": 16}
        journal = Path(folder) / "run.jsonl"
        optimizer = RobustOptimizer("wdrbo", unit, unit, journal=journal, **options)
        for c in torch.rand(3, 1, dtype=torch.double).split(1):
            x = optimizer.ask()
            optimizer.tell(x, c, 1 - (x - 0.6).square() - (c - x).square())
        best = RobustOptimizer.resume(journal).recommend()
    assert best.worst_case_value <= best.expected_value

    alone = seconds("import botorch")
    more = seconds("import botorch; import botorch_drbo") - alone
    print(f"{kind}: import botorch {alone:.2f} s, botorch_drbo on top {more:.2f} s")


if __name__ == "__main__":
    main(sys.argv[1])
