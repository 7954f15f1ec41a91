"""The next decision from a CSV file, without Python: ``botorch-drbo suggest data.csv``.

typer, rich and pandas come with the extra ``cli``.
"""

from botorch_drbo.cli.commands import main

__all__ = ["main"]
