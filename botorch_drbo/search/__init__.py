"""Maximisation: starting points, gradient ascent, lists of candidates, mixed variables.

Internal: import its modules directly.
"""

__all__: list[str] = []
