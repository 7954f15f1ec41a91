"""The benchmark suite.

``run`` goes from a config to results: what runs, the paired worlds, processes and
machines, storage, reports. ``experiments`` are the experiments that are more than a
config. ``speed`` measures time and memory, ``accuracy`` measures errors. ``__main__``
is the command line: ``python -m benchmarks --help`` lists the commands.
"""
