"""Numbers that describe the levels of a category: what is taken, stored and refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning
from hypothesis import given
from hypothesis import strategies as st

from botorch_drbo import Category, NamedOptimizer, Space
from botorch_drbo.codec import decode, encode
from tests.models import uniform

LEVELS = ["A", "B", "C", "D"]
NUMBERS = [[1.0, 20.0], [2.0, 10.0], [4.0, 50.0], [3.0, 10.0]]
FRAME = pd.DataFrame(NUMBERS, index=LEVELS, columns=["size", "weight"])
FEW: dict[str, Any] = {"surrogate": "botorch", "num_restarts": 2, "raw_samples": 32}


@pytest.mark.parametrize(
    "given",
    [
        FRAME,
        FRAME.iloc[::-1],
        dict(zip(LEVELS, NUMBERS, strict=True)),
        {
            k: {"size": a, "weight": b}
            for k, (a, b) in zip(LEVELS, NUMBERS, strict=True)
        },
        NUMBERS,
        np.array(NUMBERS).tolist(),
    ],
)
def test_every_form_is_the_same_table(given: Any) -> None:
    assert Category(LEVELS, features=given).features == tuple(map(tuple, NUMBERS))


def test_rows_of_other_levels_are_ignored_and_said() -> None:
    more = pd.concat([FRAME, FRAME.iloc[:1].rename(index={"A": "Z"})])
    with pytest.warns(InputDataWarning, match=r"rows for \['Z'\].*are ignored"):
        found = Category(LEVELS, features=more)
    assert found == Category(LEVELS, features=FRAME)


UNITS = [1e-200, 1e-3, 1.0, 1e3, 1e200]


@given(st.integers(2, 8), st.integers(1, 12), st.sampled_from(UNITS), st.integers(0, 9))
def test_distances_are_those_of_standardised_columns(
    k: int, p: int, unit: float, seed: int
) -> None:
    """By definition, pair after pair; components leave them as they are."""
    rows = uniform(k, p, seed=seed).numpy() * unit
    embedding = Category([f"l{i}" for i in range(k)], rows.tolist()).embedding
    assert embedding is not None
    assert embedding.shape == (k, p if p < k else k - 1)
    rows = rows / unit
    columns = (rows - rows.mean(0)) / rows.std(0)
    wanted = np.square(columns[:, None] - columns).sum(-1)
    wanted *= 2.0 * k * (k - 1) / wanted.sum()  # two levels are 2 apart in the mean
    found = torch.cdist(embedding, embedding).square().numpy()
    assert np.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (FRAME.iloc[:3], r"no row for \['D'\]: every level needs"),
        ({"A": 1.0, "B": 2.0}, r"no row for \['C', 'D'\]"),
        (FRAME.assign(weight=3.0), "3 in weight of every level"),
        (FRAME.assign(kind=["x", "y", "x", "y"]), "got 'x' in kind of 'A'"),
        (FRAME.assign(size=[1.0, np.nan, 2.0, 3.0]), "got nan in size of 'B'"),
        (FRAME.assign(size=[1.0, np.inf, 2.0, 3.0]), "got inf in size of 'B'"),
        (pd.concat([FRAME, FRAME.iloc[:1]]), r"more than one row for \['A'\]"),
        (NUMBERS[:3], "got 3 rows"),
        ([[1.0], [2.0], [3.0], [4.0, 5.0]], r"rows of \[1, 2\] numbers"),
        ([[], [], [], []], r"rows of \[0\] numbers"),
        (dict.fromkeys(LEVELS, "ab"), "got 0 rows"),
        ({level: {"size": 1.0} if level == "A" else {} for level in LEVELS}, "None"),
        (7.0, "a DataFrame, a mapping or rows"),
        ("file.csv", "a DataFrame, a mapping or rows"),
    ],
)
def test_what_describes_no_level_is_refused(features: Any, message: str) -> None:
    with pytest.raises(InputDataError, match=message):
        Category(LEVELS, features=features)


def test_it_is_stored_with_the_run_and_old_records_have_none() -> None:
    described, plain = Category(LEVELS, FRAME), Category(LEVELS)
    assert decode(encode(described), Category) == described
    assert "features" not in encode(plain)["arguments"]
    assert hash(described) != hash(plain)
    space = Space({"x": (0.0, 1.0), "ligand": described}, {"c": plain}, outcome="y")
    assert list(space.search_space.joint_features) == [1]
    opt = NamedOptimizer("erbo", space, num_initial=2, **FEW)
    x = pd.DataFrame({"x": uniform(8), "ligand": ["A", "B", "C", "A"] * 2})
    opt.tell(x, pd.DataFrame({"c": LEVELS * 2}), uniform(8, seed=1).tolist())
    again = NamedOptimizer.from_state_dict(opt.state_dict())
    assert again.named_space.decisions["ligand"] == described
    assert again.ask().equals(opt.ask())


def test_the_check_says_how_well_a_new_level_is_predicted() -> None:
    """By hand: a fit for each level without its rows, with and without features."""
    names = [f"l{i}" for i in range(6)]
    height = uniform(6, seed=3)
    space = Space(
        {"x": (0.0, 1.0), "ligand": Category(names, height[:, None].tolist())},
        {"c": (0.0, 1.0)},
        outcome="y",
    )
    x = pd.DataFrame({"x": uniform(30), "ligand": names * 5})
    c = uniform(30, seed=1)
    level = torch.arange(30) % 6
    y = 10.0 * height[level] + uniform(30) + 0.1 * c
    opt = NamedOptimizer("erbo", space, **FEW)
    opt.tell(x, pd.DataFrame({"c": c}), y.tolist())
    check = opt.check()
    (new,) = check.new_levels
    assert new.column == "ligand"
    assert new.explained > 0.8 > 0.3 > new.without
    assert "a new ligand" in str(check) and new.words() in str(check)
    missed = total = 0.0
    for k in range(6):
        left = (level == k).tolist()
        some = NamedOptimizer("erbo", space, **FEW)
        kept = [not out for out in left]
        some.tell(x[kept], pd.DataFrame({"c": c[kept]}), y[kept].tolist())
        predicted = some.predict(x[left], pd.DataFrame({"c": c[left]}))["mean"]
        missed += ((y[left].numpy() - predicted) ** 2).sum()
        total += ((y[left] - y[kept].mean()) ** 2).sum().item()
    assert new.explained == pytest.approx(1.0 - missed / total, abs=1e-3)
