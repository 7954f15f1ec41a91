"""Uses an installed package as its user would; .ci/packages runs it, off a checkout.

python -I use_package.py core|all
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib import import_module
from importlib.metadata import distributions, version
from pathlib import Path

# Of the extras, what a user of the core alone does not have. Distributions, and not
# modules: BoTorch's wheel has a folder `sphinx`.
EXTRA = {"ax-platform", "matplotlib", "optuna", "pandas", "pytest", "sphinx", "xopt"}


def seconds(statement: str) -> float:
    """Of the processor, the best of three, each in a process of its own."""
    code = f"import time; t = time.process_time(); {statement}; "
    code += "print(time.process_time() - t)"
    command = [sys.executable, "-I", "-c", code]
    return min(float(subprocess.check_output(command)) for _ in range(3))


def main(kind: str) -> None:
    import torch

    import botorch_drbo
    from botorch_drbo import RobustOptimizer
    from botorch_drbo.ambiguity import TotalVariation

    assert "site-packages" in botorch_drbo.__file__, botorch_drbo.__file__
    assert botorch_drbo.__version__ == version("botorch-drbo")
    assert Path(botorch_drbo.__file__).with_name("py.typed").is_file()
    here = {part.name.lower() for part in distributions()}
    if kind == "core":
        assert not here & EXTRA, f"the core brings {here & EXTRA}"
    else:
        import_module("botorch_drbo.plotting")
        report = Path(import_module("botorch_drbo.report").__file__).parent
        assert (report / "page.html").is_file() and (report / "style.css").is_file()
        command = Path(sys.executable).with_name("botorch-drbo")
        assert "Usage" in subprocess.check_output([command, "--help"], text=True)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.check_call([command, "example", "bakery"], cwd=folder)
            assert (Path(folder) / "bakery.csv").is_file()

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
        optimizer.close()
        with RobustOptimizer.resume(journal) as resumed:
            best = resumed.recommend()
    assert best.worst_case_value <= best.expected_value

    if kind != "core":
        return
    alone = seconds("import botorch")
    package = seconds("import botorch, botorch_drbo") - alone
    loop = seconds("import botorch; from botorch_drbo import RobustOptimizer") - alone
    print(
        f"import botorch {alone:.2f} s; import botorch_drbo {package:+.2f} s, "
        f"from it RobustOptimizer {loop:+.2f} s"
    )


if __name__ == "__main__":
    main(sys.argv[1])
