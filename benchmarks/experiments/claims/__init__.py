"""Five claims about methods, written down before the runs: ``claims.md``.

The recommendations of several rules from the same outcomes, and methods that learn for
themselves, on cases with and without tension between the plain and the robust decision.
"""
