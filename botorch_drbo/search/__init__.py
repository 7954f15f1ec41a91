"""How a maximum is found: starts, ascents, lists of candidates, mixed variables.

Of use to the library alone: its modules are imported one by one.
"""

__all__: list[str] = []
