"""The page *Your own*: its file runs, in public names, and passes the contracts."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch
from scipy.optimize import linprog

from botorch_drbo import RobustOptimizer
from botorch_drbo.adversaries import ADVERSARIES
from botorch_drbo.ambiguity import CvxpyAmbiguity, FullSimplex
from botorch_drbo.contexts import ContextSet
from botorch_drbo.policies import POLICIES
from botorch_drbo.recipes import RECIPES
from botorch_drbo.testing import (
    AdversaryCase,
    AdversaryContract,
    AmbiguitySetCase,
    AmbiguitySetContract,
)
from tests.models import make_model

FILE = Path(__file__).parents[1] / "docs" / "extending.py"
PAGE = FILE.with_suffix(".md")


def loaded() -> ModuleType:
    """The module of the page; its registrations are undone."""
    if FILE.stem in sys.modules:
        return sys.modules[FILE.stem]
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[FILE.stem] = module  # for the codec, and dataclasses
    registries = ADVERSARIES, POLICIES, RECIPES
    before = [dict(registry) for registry in registries]
    try:
        spec.loader.exec_module(module)
    finally:
        module.added = [  # pyright: ignore[reportAttributeAccessIssue]
            {key: registry.pop(key) for key in set(registry) - set(old)}
            for registry, old in zip(registries, before, strict=True)
        ]
    return module


yours = loaded()


@pytest.fixture
def registered():
    registries = ADVERSARIES, POLICIES, RECIPES
    for registry, added in zip(registries, yours.added, strict=True):
        registry.update(added)
    yield
    for registry, added in zip(registries, yours.added, strict=True):
        for key in added:
            registry.pop(key)


class TestSets(AmbiguitySetContract):
    cases = [
        AmbiguitySetCase("contamination", lambda r, n: yours.Contamination(r)),
        AmbiguitySetCase("hellinger", lambda r, n: yours.Hellinger(r)),
    ]


@pytest.mark.parametrize("radius", [0.0, 0.3, 1.0, 1.5])
def test_contamination_is_a_linear_program(radius: float) -> None:
    f = torch.tensor([2.0, -1.0, 0.5, 4.0], dtype=torch.double)
    p = torch.tensor([0.5, 0.0, 0.3, 0.2], dtype=torch.double)
    bounds = [(a, 1) for a in ((1 - min(radius, 1.0)) * p).tolist()]
    lowest = linprog(f.tolist(), A_eq=[[1.0] * 4], b_eq=[1.0], bounds=bounds)
    found = yours.Contamination(radius).worst_case(f, p)
    assert found.value.item() == pytest.approx(lowest.fun)


class TestHellingerBall(AdversaryContract):
    cases = [AdversaryCase("hellinger", yours.HellingerBall())]


def test_the_objective_by_hand() -> None:
    f = torch.tensor([[1.0, 3.0, 2.0], [0.0, 0.0, 6.0]], dtype=torch.double)
    p = torch.tensor([0.5, 0.25, 0.25], dtype=torch.double)
    found = yours.half_way(FullSimplex())(f, p)  # the lowest score of all
    torch.testing.assert_close(found, torch.tensor([1.375, 0.75]).double())


def test_the_objective_runs_and_resumes(tmp_path) -> None:
    journal = tmp_path / "run.jsonl"
    options = {"num_restarts": 2, "raw_samples": 16, "objective": yours.half_way}
    with yours.run("wdrbo_exact", rounds=4, journal=journal, **options) as optimizer:
        state = optimizer.state_dict()
    with RobustOptimizer.resume(journal, objective=yours.half_way) as again:
        asked = again.ask()
    restored = RobustOptimizer.from_state_dict(state, objective=yours.half_way)
    assert torch.equal(restored.ask(), asked)


@pytest.mark.slow
def test_the_page_s_contracts_pass_from_its_own_folder() -> None:
    done = subprocess.run(
        [
            sys.executable,
            *("-m", "pytest", "-q", "-c", os.devnull, "--rootdir=."),
            *("-p", "no:cacheprovider", "extending_contracts.py"),
        ],
        capture_output=True,
        text=True,
        cwd=FILE.parent,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 100


def test_the_set_against_cvxpy() -> None:
    def ball(q, p, radius):
        import cvxpy as cp

        # sum sqrt(p q) >= 1 - radius / 2, with one cone for each product
        root = cp.Variable(q.size, nonneg=True)
        scale = p.value if p.value is not None else p
        return [
            cp.SOC(q + scale, cp.vstack([2 * root, q - scale])),
            cp.sum(root) >= 1 - radius / 2,
        ]

    generator = torch.Generator().manual_seed(0)
    f = torch.randn(3, 5, generator=generator, dtype=torch.double)
    p = torch.tensor([0.1, 0.3, 0.2, 0.15, 0.25], dtype=torch.double)
    for radius in (0.05, 0.4, 1.9):
        found = yours.Hellinger(radius).value(f, p)
        expected = CvxpyAmbiguity(ball, radius).value(f, p)
        torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-5)


def test_the_acquisition_function_by_hand() -> None:
    points = torch.tensor([[0.2], [0.9]], dtype=torch.double)
    p = torch.tensor([0.25, 0.75], dtype=torch.double)
    model = make_model(d=2)
    acqf = yours.MeanLessDeviation(model, 4.0, ContextSet(points, p), 0.5)
    X = torch.tensor([[[0.3]], [[0.8]]], dtype=torch.double)
    for x, value in zip(X, acqf(X), strict=True):
        posterior = model.posterior(torch.cat([x.expand(2, 1), points], -1)[:, None])
        s = (posterior.mean + 2.0 * posterior.variance.sqrt()).flatten()
        expected = p @ s - 0.5 * (p @ s.square() - (p @ s).square()).sqrt()
        torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["hellinger_bo", "cautious_bo"])
def test_the_recipes_run_and_resume(registered, tmp_path, name) -> None:
    journal = tmp_path / "run.jsonl"
    budget = {"num_restarts": 2, "raw_samples": 16}
    with yours.run(name, rounds=4, journal=journal, **budget) as optimizer:
        best = optimizer.recommend()
        assert best.worst_case_value <= best.expected_value
        state = optimizer.state_dict()
    with RobustOptimizer.resume(journal) as again:
        assert again.algorithm.name == name
        asked = again.ask()
    assert torch.equal(RobustOptimizer.from_state_dict(state).ask(), asked)


def test_the_parts_have_names_and_options(registered) -> None:
    unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
    optimizer = RobustOptimizer(
        "wdrbo_exact", unit, unit, adversary="hellinger", radius=0.3
    )
    assert optimizer.algorithm.options["radius"] == 0.3
    optimizer = RobustOptimizer("erbo", unit, unit, policy="cautious_mean", gamma=2.0)
    assert optimizer.algorithm.options["gamma"] == 2.0


def test_the_file_takes_public_names_only() -> None:
    tree = ast.parse(FILE.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_") or node.attr == "__init__", node.attr
        if isinstance(node, ast.FunctionDef):
            assert not node.name.startswith("_") or node.name == "__init__", node.name
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        if not node.module.startswith("botorch_drbo"):
            continue
        assert "._" not in node.module, node.module
        module = import_module(node.module)
        public = getattr(module, "__all__", [n for n in dir(module) if n[0] != "_"])
        assert {alias.name for alias in node.names} <= set(public), node.module


def test_the_page_shows_the_whole_file() -> None:
    marks = [line[3:-1] for line in FILE.read_text().splitlines() if line[:3] == "# ["]
    page = PAGE.read_text()
    for start, end in itertools.pairwise(marks):
        assert f':start-after: "# [{start}]"' in page
        assert f':end-before: "# [{end}]"' in page
