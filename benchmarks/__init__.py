"""The benchmark suite: problems, algorithms, seeds and storage apart from the command
line.

``config`` says what to run, ``problems`` makes the paired worlds, ``runner`` runs them,
``storage`` keeps them, ``report`` reads them, ``speed`` measures time and memory, and
``__main__`` is the command line. ``python -m benchmarks --help`` lists the commands.
"""
