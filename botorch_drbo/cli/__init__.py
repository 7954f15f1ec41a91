"""The next decision from a CSV file, without Python: ``botorch-drbo suggest data.csv``.

typer, rich and pandas come with the extra ``cli``.
"""

from botorch_drbo._deprecation import moved_names
from botorch_drbo.cli.commands import main

__all__ = ["main"]

# Public in version 0.2.0, of use to the library alone: by the module they live in.
_MOVED = {
    "app": "botorch_drbo.cli.commands",
}
__getattr__ = moved_names(__name__, _MOVED)
