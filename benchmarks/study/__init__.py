"""One engine for studies in which methods learn on cases and are then judged.

A study says what its cases are (``cases.py``), who learns in them (``play.py``), what
is true of a case (``truth.py``, ``laws.py``), how a block of runs is judged
(``judge.py``), and what is compared (``compare.py``); runs are made and kept by
``benchmarks.run``. The studies are ``benchmarks/experiments/tournament``,
``benchmarks/experiments/claims`` and ``benchmarks/development``.
"""
