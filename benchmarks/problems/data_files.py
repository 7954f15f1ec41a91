r"""Data files that are not part of the package: their places and their contents."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

_DATA_VARIABLE = "BOTORCH_DRBO_DATA"


def find_data_file(name: str, path: str | Path | None, *, source: str) -> Path:
    r"""Return the path of a data file that is not part of the package.

    Looks at ``path``, then in the folder that the variable ``BOTORCH_DRBO_DATA``
    names, then in ``../shared/data`` beside a source checkout. A path or a folder
    that is given but lacks the file is an error, not a reason to look further.

    Args:
        name: The file's name.
        path: The file itself if the user gave it, or None.
        source: Where to get the file and what is in it; ends the error message.

    Returns:
        The path of an existing file.

    Raises:
        FileNotFoundError: There is no such file.
    """
    folder = os.environ.get(_DATA_VARIABLE)
    if path is not None:
        file = Path(path)
    elif folder:
        file = Path(folder) / name
    else:
        file = Path(__file__).resolve().parents[3] / "shared" / "data" / name
    if not file.is_file():
        raise FileNotFoundError(
            f"No data file at {file}. Pass `path=`, or set {_DATA_VARIABLE} to the "
            f"folder that has {name}. {source}"
        )
    return file


@dataclass(frozen=True)
class DataFile:
    r"""An ``.npz`` file that is not part of the package.

    Args:
        name: The file's name.
        keys: The entries that it must have; others are left alone.
        source: Where to get it; ends with "as the numpy entries".
        digest: The SHA-256 of the entries to which a stored optimum belongs, whatever
            the file's own bytes.
    """

    name: str
    keys: tuple[str, ...]
    source: str
    digest: str

    def load(self, path: str | Path | None) -> tuple[dict[str, Tensor], Path, bool]:
        r"""Return the entries in float64, the place, and whether the digest is theirs.

        Args:
            path: The file itself if the user gave it, or None.

        Raises:
            FileNotFoundError: There is no such file.
            InputDataError: An entry is missing.
        """
        source = f"{self.source} {', '.join(self.keys)}."
        file = find_data_file(self.name, path, source=source)
        with np.load(file) as stored:
            missing = [key for key in self.keys if key not in stored]
            if missing:
                raise InputDataError(f"{file} lacks the entries {missing}.")
            data = {key: torch.as_tensor(stored[key]).double() for key in self.keys}
        state = hashlib.sha256()
        for key in self.keys:
            state.update(np.ascontiguousarray(data[key].numpy()).tobytes())
        return data, file, state.hexdigest() == self.digest
