"""The generator inside a real Xopt object."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.exceptions.warnings import InputDataWarning
from gest_api.vocs import VOCS, ContextualVariable
from pydantic import ValidationError
from xopt import Evaluator, Xopt
from xopt.errors import VOCSError

from botorch_drbo import ContextSet, RobustOptimizer
from botorch_drbo.integrations.xopt import RobustGenerator
from botorch_drbo.recipes import RECIPES
from botorch_drbo.testing.fixtures import PRIOR, SMALL

QUICK = {"hyperparameters": PRIOR, **SMALL, "max_iterations": 10}
# Not in alphabetical order: Xopt's YAML forgets the order of its variables.
VARIABLES: dict[str, Any] = {
    "zeta": [0.0, 1.0],
    "alpha": [-1.0, 1.0],
    "warmth": ContextualVariable(domain=[0.0, 10.0]),
}


def vocs(goal: str = "MAXIMIZE", **changes: Any) -> VOCS:
    settings = {"variables": VARIABLES, "objectives": {"gain": goal}, **changes}
    return VOCS(**settings)


def generator(goal: str = "MAXIMIZE", **fields: Any) -> RobustGenerator:
    settings = {"algorithm": "wdrbo", "options": QUICK, "num_initial": 3, **fields}
    return RobustGenerator(**{"vocs": vocs(goal), **settings})


def world(inputs: dict[str, float], sign: float = -1.0) -> dict[str, float]:
    """The context is what it is, whatever was decided; here it follows from it."""
    warmth = (1e4 * (inputs["zeta"] + inputs["alpha"])) % 10.0
    gap = inputs["zeta"] - warmth / 10.0
    return {"warmth": warmth, "gain": sign * (gap**2 + inputs["alpha"] ** 2)}


def mirrored(inputs: dict[str, float]) -> dict[str, float]:
    return world(inputs, 1.0)


def fails_to_the_right(inputs: dict[str, float]) -> dict[str, float]:
    if inputs["zeta"] > 0.5:
        raise RuntimeError("too hot")
    return world(inputs)


def xopt(made: RobustGenerator, function: Any = world, steps: int = 0) -> Xopt:
    made_xopt = Xopt(
        generator=made, evaluator=Evaluator(function=function), strict=False
    )
    for _ in range(steps):
        made_xopt.step()
    return made_xopt


def tensor(data: pd.DataFrame, *columns: str) -> torch.Tensor:
    return torch.tensor(data[list(columns)].to_numpy(float), dtype=torch.double)


@pytest.mark.parametrize("goal", ["MAXIMIZE", "MINIMIZE"])
def test_it_recommends_what_the_optimizer_does_of_the_same_rows(goal: str) -> None:
    function = world if goal == "MAXIMIZE" else mirrored
    made = xopt(generator(goal), function, steps=5)
    failed = pd.DataFrame([{"zeta": 0.9, "alpha": 0.0, "warmth": 9.0, "gain": None}])
    made.add_data(failed.assign(xopt_error=True))
    opt = RobustOptimizer(
        "wdrbo",
        torch.tensor([[-1.0, 0.0], [1.0, 1.0]], dtype=torch.double),
        torch.tensor([[0.0], [10.0]], dtype=torch.double),
        maximize=goal == "MAXIMIZE",
        **QUICK,
    )
    rows = made.data.iloc[:5]
    x, c = tensor(rows, "alpha", "zeta"), tensor(rows, "warmth")
    opt.tell(x, c, tensor(rows, "gain"), closes_pending=False)
    opt.tell(
        torch.tensor([[0.0, 0.9]]).double(),
        torch.tensor([[9.0]]).double(),
        failed=True,
        closes_pending=False,
    )
    ours, theirs = made.generator.recommend(), opt.recommend()
    assert ours.expected_value == pytest.approx(theirs.expected_value, abs=1e-4)
    assert ours.worst_case_value == pytest.approx(theirs.worst_case_value, abs=1e-4)
    low, high = ours.expected_interval
    assert low < ours.expected_value < high
    low, high = ours.worst_case_interval
    assert low < ours.worst_case_value < high
    found = [ours.params["alpha"], ours.params["zeta"]]
    assert found == pytest.approx(theirs.x.tolist(), abs=1e-2)
    assert "zeta = " in str(ours) and "warmth = " in str(ours)
    known = made.generator.recommend({"warmth": 2.0})
    theirs = opt.recommend(context=torch.tensor([2.0]).double())
    assert known.expected_value == pytest.approx(theirs.expected_value, abs=1e-4)
    assert known.expected_value != pytest.approx(ours.expected_value, abs=1e-4)


def test_both_directions_ask_the_same() -> None:
    up, down = (
        xopt(generator(goal), function, steps=5)
        for goal, function in (("MAXIMIZE", world), ("MINIMIZE", mirrored))
    )
    columns = ["zeta", "alpha"]
    pd.testing.assert_frame_equal(up.data[columns], down.data[columns])


def quick(name: str) -> dict[str, Any]:
    """Options of a recipe."""
    options = {} if name == "random" else {"num_restarts": 1, "raw_samples": 8}
    ranged = {"reward_range": (-2.0, 0.0)} if name == "regret_balancing" else {}
    return {**options, **ranged}


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_recipe_by_its_name_and_from_its_dump(name: str) -> None:
    made = generator(algorithm=name, options=quick(name))
    assert RobustGenerator.from_yaml(made.yaml()).yaml() == made.yaml()


@pytest.mark.parametrize(
    "name", ["random", "gp_ucb", "dro", "ts_bocu", "phased_gp_us", "regret_balancing"]
)
def test_recipes_of_every_kind_run(name: str) -> None:
    made = generator(algorithm=name, options=quick(name), num_initial=2)
    assert xopt(made, steps=3).data["gain"].notna().all()


def test_a_batch_spreads() -> None:
    made = xopt(generator(), steps=4).generator
    asked = pd.DataFrame(made.generate(3))
    assert sorted(asked.columns) == ["alpha", "zeta"]
    assert torch.pdist(tensor(asked, "alpha", "zeta")).min() > 0.01
    assert made.generate(3) == asked.to_dict("records")  # until there are data


def test_a_dump_goes_on_as_the_uninterrupted_one() -> None:
    made = xopt(generator(), steps=4)
    loaded = Xopt(made.yaml())
    assert loaded.generator.options == made.generator.options
    asked, same = (pd.DataFrame(m.generator.generate(2)) for m in (made, loaded))
    # Xopt writes data with ten decimals.
    pd.testing.assert_frame_equal(asked, same, check_like=True, rtol=0.0, atol=1e-6)
    exact = RobustGenerator.from_yaml(made.generator.yaml())
    exact.add_data(made.data)
    pd.testing.assert_frame_equal(asked, pd.DataFrame(exact.generate(2)))


def test_options_of_every_kind_survive_a_dump() -> None:
    reference = ContextSet(torch.tensor([[2.0], [3.0]]).double())
    made = generator(options={"reference": reference, "half_life": None, "beta": 4.0})
    loaded = RobustGenerator.from_yaml(made.yaml())
    assert torch.equal(loaded.options["reference"].points, reference.points)
    assert loaded.options["half_life"] is None and loaded.options["beta"] == 4.0


@pytest.mark.parametrize("goal", ["MAXIMIZE", "MINIMIZE"])
def test_what_is_maximised_is_said_in_words_and_survives_a_dump(goal: str) -> None:
    options = {**QUICK, "objective": "worst fifth"}
    made = generator(goal, algorithm="erbo", options=options)
    function = world if goal == "MAXIMIZE" else mirrored
    made.add_data(xopt(made, function, 5).data)
    best = made.recommend().details
    assert best.decided_for == "worst fifth"
    loaded = RobustGenerator.from_yaml(made.yaml())
    loaded.add_data(made.data)
    assert loaded.recommend().details.worst_case_value == best.worst_case_value
    wrong = {"MAXIMIZE": "maximum", "MINIMIZE": "minimum"}[goal]
    with pytest.raises(InputDataError, match="is of the good outcomes"):
        generator(goal, algorithm="erbo", options={**QUICK, "objective": wrong})


def test_yaml_by_hand() -> None:
    made = Xopt(
        """
generator:
  name: distributionally_robust
  algorithm: wdrbo
  options: {radius: 0.1}
  vocs:
    variables:
      x: [0, 1]
      c: {type: ContextualVariable, domain: [0, 1]}
    objectives: {y: MINIMIZE}
evaluator: {function: xopt.resources.test_functions.tnk.evaluate_TNK}
"""
    )
    assert made.generator.options == {"radius": 0.1}
    assert [list(candidate) for candidate in made.generator.generate(1)] == [["x"]]


def test_the_seed_decides() -> None:
    first, same, other = (xopt(generator(seed=s), steps=4).data for s in (0, 0, 1))
    assert first["zeta"].tolist() == same["zeta"].tolist() != other["zeta"].tolist()


def test_failed_evaluations_and_removed_rows() -> None:
    made = xopt(generator(algorithm="erbo"), fails_to_the_right, steps=6)
    assert made.data["gain"].isna().any() and made.data["gain"].notna().any()
    before = made.generator.recommend().expected_value
    made.remove_data([int(made.data["gain"].first_valid_index())])
    assert made.generator.recommend().expected_value != before


@pytest.mark.slow
def test_discrete_variables_keep_to_their_values() -> None:
    variables = {**VARIABLES, "mode": {1, 2, 5}}
    made = generator(vocs=vocs(variables=variables))
    done = xopt(made, steps=5)
    assert set(done.data["mode"]) <= {1.0, 2.0, 5.0}
    loaded = RobustGenerator.from_yaml(done.generator.yaml())
    loaded.add_data(done.data)
    assert loaded.generate(1) == done.generator.generate(1)


def test_constants_are_left_to_xopt() -> None:
    made = RobustGenerator(vocs=vocs(constants={"k": 2.0}), options=QUICK)
    done = xopt(made, steps=2)
    assert done.data["k"].tolist() == [2.0, 2.0]
    assert all("k" not in candidate for candidate in done.generator.generate(1))


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"algorithm": "wdrboo"}, InputDataError, "Did you mean `wdrbo`"),
        ({"options": {"radios": 1.0}}, InputDataError, "Did you mean `radius`"),
        ({"options": {"maximize": True}}, InputDataError, "host's own problem"),
        ({"option": {}}, ValidationError, "Extra inputs are not permitted"),
        ({"seed": -1}, InputDataError, "`seed`"),
        ({"outside": "drop"}, ValidationError, "'raise', 'skip' or 'clip'"),
        (
            {"vocs": vocs(variables={"x": [0, 1]})},
            UnsupportedError,
            r"None of the variables \['x'\] is contextual",
        ),
        (
            {"vocs": vocs(variables={"x": [0, 1], "c": "contextual"})},
            InputDataError,
            "'c' has the domain.*two ends",
        ),
        ({"vocs": vocs("EXPLORE")}, UnsupportedError, "to be explored"),
        (
            {"vocs": vocs(objectives={"a": "MINIMIZE", "b": "MINIMIZE"})},
            VOCSError,
            "multi-objective",
        ),
        (
            {"vocs": vocs(constraints={"cost": ["LESS_THAN", 1.0]})},
            VOCSError,
            "constraints",
        ),
        (
            {"vocs": vocs(variables={**VARIABLES, "k": {"A", "B"}})},
            InputDataError,
            "takes finite numbers",
        ),
    ],
)
def test_what_is_refused_at_construction(
    fields: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        RobustGenerator(**{"vocs": vocs(), **fields})


UNUSABLE = [
    ({"gain": 1.0}, r"outcome of row 3 has no \['warmth'\]"),
    ({"warmth": None, "gain": 1.0}, r"outcome of row 3 has no \['warmth'\]"),
    ({"warmth": float("nan"), "gain": 1.0}, r"outcome of row 3 has no \['warmth'\]"),
    ({"warmth": 11.0, "gain": 1.0}, "'warmth' of row 3 must lie between 0 and 10"),
    ({"warmth": float("inf"), "gain": 1.0}, "'warmth' of row 3 must be a finite"),
    ({"warmth": "hot", "gain": 1.0}, "'warmth' of row 3 must be a finite number"),
    ({"warmth": 1.0, "gain": float("inf")}, "outcome of row 3 must be a finite number"),
    ({"warmth": 1.0, "gain": 1e200}, "outcome of row 3.*cannot be modelled"),
    ({"zeta": 7.0, "warmth": 1.0, "gain": 1.0}, "'zeta' of row 3 must lie between"),
]


def unusable(row: dict[str, Any], outside: str) -> Xopt:
    """Four rows, of which the last one is of no use."""
    made = xopt(generator(algorithm="erbo", outside=outside), steps=3)
    (decision,) = made.generator.generate(1)
    made.add_data(pd.DataFrame([{**decision, **row}]))
    return made


@pytest.mark.parametrize(("row", "message"), UNUSABLE)
def test_a_row_that_cannot_be_used_counts_as_failed_and_its_dump_can_be_opened(
    row: dict[str, Any], message: str
) -> None:
    with pytest.warns(InputDataWarning, match=message):
        made = unusable(row, "skip")
    failed = xopt(generator(algorithm="erbo"), steps=3)
    (decision,) = failed.generator.generate(1)
    measured = {"gain": None}
    if row.get("warmth") == 1.0:
        measured["warmth"] = row["warmth"]  # its context counts
    failed.add_data(pd.DataFrame([{**decision, **measured}]))
    loaded = Xopt(made.yaml())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)
        if "zeta" not in row:  # else nobody knows which decision it was, to avoid it
            assert made.generator.generate(1) == failed.generator.generate(1)
        asked, again = made.generator.generate(1)[0], loaded.generator.generate(1)[0]
    assert again == pytest.approx(asked, abs=1e-6)  # it writes ten decimals


@pytest.mark.parametrize(("row", "message"), UNUSABLE)
def test_where_such_a_row_is_refused_it_can_be_loaded_and_removed(
    row: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputDataError, match=message):
        unusable(row, "raise")
    made = xopt(generator(algorithm="erbo", outside="raise"), steps=3)
    (decision,) = made.generator.generate(1)
    with pytest.raises(InputDataError, match=message):
        made.add_data(pd.DataFrame([{**decision, **row}]))
    assert len(made.data) == len(made.generator.data) == 4
    loaded = Xopt(made.yaml())
    if row["gain"] != float("inf"):  # Xopt's YAML has null for it
        lost = row.get("warmth") == float("inf")
        with pytest.raises(InputDataError, match="has no" if lost else message):
            loaded.generator.generate(1)
    loaded.remove_data([3])
    assert loaded.generator.generate(1) == [pytest.approx(decision, abs=1e-6)]


def test_a_context_beyond_its_domain_is_clipped_where_asked() -> None:
    with pytest.warns(InputDataWarning, match="It is taken as 10"):
        clipped = unusable({"warmth": 11.0, "gain": -1.0}, "clip")
        asked = clipped.generator.generate(1)
    assert asked == unusable(
        {"warmth": 10.0, "gain": -1.0}, "raise"
    ).generator.generate(1)
    assert clipped.data["warmth"].iloc[3] == 11.0  # the record stays as it was


def test_a_row_without_the_objective_is_refused_by_every_rule() -> None:
    with pytest.raises(InputDataError, match="Row 3 has no 'gain', only"):
        unusable({"warmth": 1.0, "gian": 2.0}, "skip")
    with pytest.raises(InputDataError, match="Row 0 has no 'gain', only"):
        xopt(generator(), lambda inputs: {"gian": 2.0, "warmth": 1.0}, steps=1)


def test_recommend_refuses() -> None:
    made = generator()
    with pytest.raises(InputDataError, match="no outcome yet"):
        made.recommend()
    with pytest.raises(InputDataError, match=r"no context 'warmt'.*Did you mean"):
        made.recommend({"warmt": 1.0})
