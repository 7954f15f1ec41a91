"""What is read from the files of EDRBO's authors, and what is refused."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.read_edrbo import PARTS, read

NAME = "{}_{}_{}_200_3_0.5_0.2_1.5_results.pkl"


def write(folder: Path, method: str, problem: str, seed: int, values: object) -> None:
    content = {"Y": np.zeros(200), "stochastic_Y": values, "time": 3.0}
    path = folder / NAME.format(method, problem, seed)
    path.write_bytes(pickle.dumps(content))


def test_means_of_the_parts_by_hand(tmp_path: Path):
    values = np.arange(1.0, 201.0)  # decision n is worth n
    write(tmp_path, "MMD_Minimax_Approx", "Hartmann_complicated", 101, values)
    write(tmp_path, "MMD", "Hartmann", 100, values[:, None] + 1000.0)
    table = read(tmp_path)
    assert [*zip(table["first"], table["last"], strict=True)] == [*PARTS, *PARTS]
    assert table["value"].tolist() == [1018.0, 1065.5, 1150.5, 18.0, 65.5, 150.5]
    runs = table.drop_duplicates("problem")[["problem", "algorithm", "seed"]]
    assert runs.to_numpy().tolist() == [
        ["hartmann_5_1", "drbo_mmd", 100],
        ["complicated_hartmann", "drbo_mmd_minimax", 101],
    ]


def test_what_is_no_result_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="has no results"):
        read(tmp_path)
    (tmp_path / "other.pkl").write_bytes(pickle.dumps({}))
    with pytest.raises(ValueError, match=r"other\.pkl is no result"):
        read(tmp_path)
    (tmp_path / "other.pkl").unlink()
    write(tmp_path, "UCB", "Ackley", 100, np.zeros(199))
    with pytest.raises(ValueError, match="values of shape"):
        read(tmp_path)


@pytest.mark.parametrize("harmful", [os.getcwd, pd.DataFrame()])
def test_nothing_but_arrays_is_unpickled(tmp_path: Path, harmful: object):
    write(tmp_path, "UCB", "Ackley", 100, harmful)
    with pytest.raises(pickle.UnpicklingError, match="no array of numbers"):
        read(tmp_path)
