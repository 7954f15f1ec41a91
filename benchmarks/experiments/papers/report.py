"""All claims, paper by paper."""

from __future__ import annotations

from benchmarks.experiments.commits import commits_table
from benchmarks.experiments.papers.bandits import claims_of_bocu, claims_of_misspecified
from benchmarks.experiments.papers.edrbo import claims_of_edrbo
from benchmarks.experiments.papers.edrbo_values import values_tables
from benchmarks.experiments.papers.judge import RESULTS
from benchmarks.experiments.papers.sbo_kde import claims_of_sbo_kde
from benchmarks.experiments.papers.wdrbo import claims_of_wdrbo
from benchmarks.run.report import Report, Table

_ABOUT = """`python -m benchmarks papers` writes this page from the files that it
names. The verdict is by rule: *holds* or *does not hold* needs p < .05 (Wilcoxon's
test, two-sided), all else *cannot be decided*. A claim that several methods are
before several others is tested pair by pair, and one about each problem problem by
problem, both with Holm's correction. Where several problems are taken together, a
block is a problem and a seed, and what is compared in it are the methods' ranks by
cumulative regret (1 is best): two seeds of a problem are not two problems, so such a
p flatters. Of two methods this is a sign test: it counts who is ahead, not by how
much. Fewer than six blocks cannot give p < .05. Bounds, costs and what is said
of *always* are judged by the numbers alone, without a p. A bare number is no
verdict: nothing is tested there. Claims of different rows are not corrected for each
other. A verdict is about the runs that are *finished*; some are shorter than the
papers', and of some papers the text does not tell the size. How hard each
acquisition function is searched stands in the head of the results' `table.md`."""


def make_report() -> Report:
    """All claims, paper by paper."""
    blocks: list[str | Table] = [_ABOUT]
    for title, claims in (
        ("WDRBO (Micheli et al. 2025)", claims_of_wdrbo()),
        ("SBO-KDE (Huang et al. 2024)", claims_of_sbo_kde()),
        ("BOCU (Tay et al. 2024)", claims_of_bocu()),
        (
            "Misspecified GP bandits (Bogunovic and Krause 2021)",
            claims_of_misspecified(),
        ),
        ("EDRBO (Ramazyan and Derkach 2026)", claims_of_edrbo()),
    ):
        head = ["the text says", "verdict", "measured here", "why", "finished", "file"]
        rows = [
            [c.text, f"**{c.verdict}**", c.measured, c.why, c.size, f"`{c.file}`"]
            for c in claims
        ]
        blocks += [f"## {title}", Table(head, rows, left=6)]
    return Report(
        "Against the papers' words",
        blocks,
        texts={
            "commits.md": f"{commits_table(RESULTS)}\n",
            "edrbo_values.md": f"{values_tables()}\n",
        },
    )
