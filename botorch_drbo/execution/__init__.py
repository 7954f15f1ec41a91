"""Calls of a function elsewhere: in processes of this machine, or by an executor.

Of use to the library alone: its modules are imported one by one.
"""

__all__: list[str] = []
