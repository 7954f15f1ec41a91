"""Calls of a function elsewhere: in processes of this machine, or by an executor."""

__all__: list[str] = []
