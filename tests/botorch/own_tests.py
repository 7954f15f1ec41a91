"""BoTorch's own tests, with our acquisition functions in the place of BoTorch's.

    python -m tests.botorch.own_tests PATH_OF_A_BOTORCH_CHECKOUT [NAME ...]

The checkout must be of the installed version (its `test` folder is not in the wheel).
Tests run that make an acquisition function of `REPLACED`: first with BoTorch's upper
confidence bound in its place, because a test may ask for more than any other class can
give; those that pass then, with each of ours (or with those named). Ours read the last
column of a model's inputs as the context. What fails is printed with its reason out of
`REASONS`, which docs/botorch.md repeats, and the command fails if one has none.
"""

from __future__ import annotations

import importlib
import re
import sys
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from botorch.acquisition import (
    AcquisitionFunction,
    UpperConfidenceBound,
    qUpperConfidenceBound,
)
from botorch.acquisition.objective import PosteriorTransform
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo.acquisition import OverJointInputs
from botorch_drbo.posterior.models import some_inputs
from tests.botorch.compatibility import FAMILIES

MODULES = (
    "acquisition.test_analytic_harness",
    "acquisition.test_fixed_feature",
    "acquisition.test_mc_harness",
    "acquisition.test_penalized",
    "acquisition.test_prior_guided",
    "acquisition.test_proximal",
    "generation.test_gen",
    "optim.test_homotopy",
    "optim.test_initializers",
    "optim.test_optimize",
    "optim.test_optimize_mixed",
)
REPLACED = (
    "ExpectedImprovement",
    "LogExpectedImprovement",
    "UpperConfidenceBound",
    "qExpectedImprovement",
    "qLogExpectedImprovement",
    "qLogNoisyExpectedImprovement",
    "qNoisyExpectedImprovement",
    "qUpperConfidenceBound",
)
# What a failed test and its error say, and why it is so.
REASONS: dict[str, str] = {
    "decision at a time": (
        "a confidence bound is maximised one decision at a time: `sequential=True`"
    ),
    r"q = 1 decisions per batch": "as many decisions at once as there are sample paths",
    "takes no pending decisions": "Thompson sampling knows no pending decisions",
    "MockModel|Mock": "a mock of a model has no inputs to tell the columns by",
    "needs (posterior )?sample paths": "no sample paths can be drawn of the model",
    "does not tell how many inputs": (
        "a deterministic model does not tell its columns: `num_inputs`"
    ),
    "is a batch of models|batch of models": "a batch of models is refused",
    r"test_sampler_base_samples.*attribute 'sampler'": (
        "no `sampler` of BoTorch: sample paths are drawn from a `seed`"
    ),
    "_non_reduced_forward": (
        "no value for each draw: `PriorGuidedAcquisitionFunction` with q = 1"
    ),
    r"test_fixed_features: AssertionError: Tensor-likes": (
        "pending rows come back with the mean context, since theirs is not known"
    ),
    r"test_optimize_acqf_mixed\w*: AssertionError: tensor\(0\.": (
        "another context changes nothing: its column is not read"
    ),
}


def with_context(model: SingleTaskGP) -> SingleTaskGP:
    """A second column, for a model that has but one."""
    X, Y = model.train_inputs[0], model.train_targets
    column = torch.linspace(0, 1, len(X)).to(X).unsqueeze(-1)
    return SingleTaskGP(torch.cat([X, column], dim=-1), Y.unsqueeze(-1)).eval()


BOUNDS = FAMILIES["confidence bounds"].values()


def stand(make: Callable[..., Any]) -> type:
    """One of ours, made from what BoTorch's tests give to theirs."""

    class Stand:
        made = 0

        def __new__(
            cls,
            model: Model,
            *_: Any,
            X_pending: Tensor | None = None,
            posterior_transform: PosteriorTransform | None = None,
            **__: Any,
        ) -> AcquisitionFunction:
            cls.made += 1
            options: dict[str, Any] = {"posterior_transform": posterior_transform}
            if hasattr(model, "root") and make in BOUNDS:
                options["num_inputs"] = model.root.shape[-1]
            inputs = some_inputs(model)
            if inputs is not None and inputs.shape[-1] == 1:
                acqf = make(with_context(model), 1, **options)
            else:
                acqf = OverJointInputs(make(model, 1, **options))
            acqf.set_X_pending(X_pending)
            return acqf

    return Stand


class Control:
    """BoTorch's own upper confidence bounds."""

    made = 0

    def __new__(
        cls,
        model: Model,
        *_: Any,
        posterior_transform: PosteriorTransform | None = None,
        **__: Any,
    ) -> AcquisitionFunction:
        Control.made += 1
        return cls.theirs(model, beta=2.0, posterior_transform=posterior_transform)

    theirs: Callable[..., AcquisitionFunction] = UpperConfidenceBound


class BatchControl(Control):
    theirs = qUpperConfidenceBound


class Result(unittest.TestResult):
    """Which tests made one, and how those that failed ended."""

    def __init__(self, counter: Any) -> None:
        super().__init__()
        self.counter, self.before = counter, 0
        self.ran: dict[str, str | None] = {}

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.before = self.counter.made

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        if self.counter.made > self.before:
            self.ran.setdefault(test.id(), None)

    def _failed(self, test: Any, error: Any) -> None:
        name = getattr(test, "test_case", test).id()
        if self.ran.get(name) is None:
            self.ran[name] = f"{error[0].__name__}: {error[1]}".replace("\n", " ")

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self._failed(test, err)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._failed(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._failed(test, err)


def cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from cases(part)
        else:
            yield part


def run(replacement: Callable[[str], Any], counter: Any, only: set[str]) -> Result:
    """All tests, or only some, with `replacement(name)` in the place of that class."""
    result = Result(counter)
    for name in MODULES:
        module = importlib.import_module(f"test.{name}")
        originals = {n: vars(module)[n] for n in REPLACED if n in vars(module)}
        vars(module).update({n: replacement(n) for n in originals})
        found = unittest.defaultTestLoader.loadTestsFromModule(module)
        for case in cases(found):
            if not only or case.id() in only:
                torch.manual_seed(0)
                case.run(result)
        vars(module).update(originals)
    # A test may fail without having made one: then it is not about ours.
    result.ran = {k: v for k, v in result.ran.items() if k.startswith("test.")}
    return result


def main(checkout: Path, names: list[str]) -> int:
    sys.path.insert(0, str(checkout))
    warnings.simplefilter("ignore")
    control = run(lambda n: BatchControl if n[0] == "q" else Control, Control, set())
    fair = {name for name, error in control.ran.items() if error is None}
    print(f"BoTorch's upper confidence bounds: {len(fair)} of {len(control.ran)} pass")
    unexplained = 0
    for family in FAMILIES.values():
        for name, make in family.items():
            if names and name not in names:
                continue
            ours = stand(make)
            result = run(lambda _, ours=ours: ours, ours, fair)
            failed = {k: v for k, v in result.ran.items() if v is not None}
            print(f"{name}: {len(result.ran) - len(failed)} of {len(fair)} pass")
            why: Counter[str] = Counter()
            for test, error in failed.items():
                for pattern, reason in REASONS.items():
                    if re.search(pattern, f"{test}: {error}"):
                        why[reason] += 1
                        break
                else:
                    unexplained += 1
                    print(f"    {test}: {error[:300]}")
            for reason, number in why.most_common():
                print(f"    {number} {reason}")
    return min(unexplained, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
