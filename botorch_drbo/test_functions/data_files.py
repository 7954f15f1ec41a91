r"""Data files that are not part of the package: where they are and what is in them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
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
        place = Path(path)
    elif folder:
        place = Path(folder) / name
    else:
        place = Path(__file__).resolve().parents[3] / "shared" / "data" / name
    if not place.is_file():
        raise FileNotFoundError(
            f"No data file at {place}. Pass `path=`, or set {_DATA_VARIABLE} to the "
            f"folder that has {name}. {source}"
        )
    return place


def load_entries(place: Path, keys: Sequence[str]) -> dict[str, Tensor]:
    r"""Return entries of an ``.npz`` file as float64 tensors.

    Args:
        place: The file.
        keys: The entries it must have; others are left alone.

    Returns:
        The entries, by key.

    Raises:
        InputDataError: An entry is missing.
    """
    with np.load(place) as stored:
        missing = [key for key in keys if key not in stored]
        if missing:
            raise InputDataError(f"{place} lacks the entries {missing}.")
        return {key: torch.as_tensor(stored[key]).double() for key in keys}


def digest(data: Mapping[str, Tensor], keys: Sequence[str]) -> str:
    r"""Return a fingerprint of the numbers, whatever the file's own bytes.

    A stored optimum belongs to the data with one digest; others are searched for.

    Args:
        data: Entries as ``load_entries`` returns them.
        keys: Which of them, in a fixed order.

    Returns:
        A SHA-256 in hexadecimal.
    """
    state = hashlib.sha256()
    for key in keys:
        state.update(np.ascontiguousarray(data[key].numpy()).tobytes())
    return state.hexdigest()
