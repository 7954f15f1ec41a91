"""Function calls in processes of this machine or by an executor.

Internal: import its modules directly.
"""

__all__: list[str] = []
