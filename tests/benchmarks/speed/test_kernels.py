"""The report by kernel: which view each takes, and the verdict."""

from __future__ import annotations

from pathlib import Path

from benchmarks.__main__ import main
from benchmarks.speed.job import Job
from benchmarks.speed.kernels import FACTORISING, JOINT, Found, measure, section

JOB = Job(2, 120, 20, 1)


def test_kernels_that_factorise_take_the_product_view_and_others_the_exact_one() -> (
    None
):
    for name, kernel in {**FACTORISING, **JOINT}.items():
        found = measure(name, kernel(JOB.d), JOB, 1)
        assert found.takes.split()[0] == ("product" if name in FACTORISING else "exact")
        assert set(found.seconds) == {"auto", "first call", "exact", "idiom", "GEMM"}


def test_a_kernel_that_factorises_misses_above_two() -> None:
    def found(gemms: float) -> list[Found]:
        return [
            Found(name, JOB, "product", {"auto": [gemms], "GEMM": [1.0]})
            for name in FACTORISING
        ]

    (note,) = section(JOB, found(2.0)).notes
    assert note.endswith("met.")
    (note,) = section(JOB, found(2.5)).notes
    assert "**missed** by RBF(x, c) (2.5)" in note
    joint = [Found(name, JOB, "exact", found(3.0)[0].seconds) for name in JOINT]
    (note,) = section(JOB, [*found(1.0), *joint]).notes
    assert note.endswith("met.")  # nothing is asked of these


def test_command_writes_its_report(tmp_path: Path) -> None:
    out = tmp_path / "folder" / "kernels.md"
    line = ["speed", "kernels", "--quick", "--repeats", "1", "--out", str(out)]
    assert main(line) == 0
    assert out.read_text().count("Matern-5/2(x, c)") == 2
