"""What is fitted to one state of a run is fitted once, whatever is asked of it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from torch import Tensor

from botorch_drbo import NamedOptimizer, RobustOptimizer, Space
from botorch_drbo.posterior.mixture import joint_moments
from botorch_drbo.report import write_report
from botorch_drbo.surrogate import ModelData
from botorch_drbo.surrogate.botorch_default import BoTorchDefault
from botorch_drbo.surrogate.gaussian_process import GaussianProcess

FEW: dict[str, Any] = {"num_restarts": 2, "raw_samples": 16}
SPACE = Space({"x": (0, 1)}, {"c": (0, 1)})
UNIT = torch.tensor([[0.0], [1.0]], dtype=torch.double)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The members of ensembles that were fitted, in order."""
    found: list[str] = []
    for kind in (GaussianProcess, BoTorchDefault):
        for name in ("fit", "predict_others"):  # of folds
            fit = getattr(kind, name)

            def counted(self: Any, *data: ModelData, fit: Any = fit) -> Any:
                found.append(type(self).__name__)
                return fit(self, *data)

            monkeypatch.setattr(kind, name, counted)
    return found


def told(num: int = 30, **options: Any) -> NamedOptimizer:
    opt = NamedOptimizer("wdrbo_exact", SPACE, **FEW, **options)
    x, c = torch.rand(2, num, generator=torch.Generator().manual_seed(0)).double()
    y = (x * c).tolist()
    opt.tell({"x": x.tolist()}, {"c": c.tolist()}, y, closes_pending=False)
    return opt


def test_twenty_four_fits_serve_all_questions(fits: list[str], tmp_path: Path) -> None:
    opt = told()
    opt.ask()
    assert len(fits) == 4  # members of the ensemble
    best = opt.recommend()
    assert len(fits) == 4  # nobody has looked at an interval
    str(best)
    assert len(fits) == 4 + 5 * 4  # and of each fold
    opt.recommend(context={"c": 0.3})
    opt.check()
    opt.compare()
    opt.preview()
    opt.policy({"c": [0.2, 0.6]})
    opt.predict({"x": 0.5}, {"c": 0.5})
    _ = opt.model, opt.tensors.model
    opt.robustness_profile({"x": 0.5})
    write_report(opt, tmp_path / "report.html")
    assert len(fits) == 24


def test_what_is_read_late_is_what_was_meant(fits: list[str]) -> None:
    """An interval does not depend on when it is read, nor a copy on its original."""
    text = str(told(12, surrogate="rbf").recommend())
    opt = told(12, surrogate="rbf")
    best, late = opt.recommend(), opt.recommend()
    opt.tell({"x": 0.5}, {"c": 0.5}, 0.3, closes_pending=False)
    torch.manual_seed(5)
    known = torch.get_rng_state()
    assert str(best) == text
    assert torch.equal(torch.get_rng_state(), known)
    fits.clear()
    for copied in (copy.deepcopy(late), pickle.loads(pickle.dumps(late))):
        assert str(copied) == str(late) == text
    assert not fits  # of the same state


def test_what_is_told_and_withdrawn_is_fitted_anew(fits: list[str]) -> None:
    opt = told(8)
    before = opt.model
    opt.tell({"x": 0.5}, {"c": 0.5}, 3.0, closes_pending=False)
    after = opt.model
    assert len(fits) == 8
    assert len(after.models[0].train_targets) == 9  # pyright: ignore
    opt.withdraw(8)
    assert len(opt.model.models[0].train_targets) == 8  # pyright: ignore
    assert len(fits) == 12
    Z = torch.rand(5, 2, dtype=torch.double)
    moments = [joint_moments(model, Z) for model in (before, opt.model)]
    assert torch.equal(moments[0][0], moments[1][0])


def test_a_model_that_draws_at_random_is_that_of_each_seed() -> None:
    """Answers do not depend on the questions before them."""
    seen: list[float] = []

    def model(X: Tensor, Y: Tensor, Yvar: Tensor | None, bounds: Tensor) -> Model:
        gp = SingleTaskGP(X, Y)
        seen.append(0.2 + 0.3 * torch.rand(1).item())
        gp.covar_module.lengthscale = seen[-1]  # pyright: ignore
        return gp

    def run() -> RobustOptimizer:
        opt = RobustOptimizer("dro", UNIT, UNIT, model=model, **FEW)
        X, C = torch.rand(2, 8, 1, generator=torch.Generator().manual_seed(1)).double()
        opt.tell(X, C, -(X - C).square(), closes_pending=False)
        return opt

    asked, (best, again) = run(), [run().recommend() for _ in range(2)]
    x = asked.preview()
    assert len(set(seen)) == 2  # one of proposals, one of recommendations
    for _ in range(2):
        found = asked.recommend()
        assert torch.equal(found.x, best.x) and torch.equal(found.x, again.x)
        assert found.worst_case_value == best.worst_case_value
        assert torch.equal(asked.preview(), x)
    assert len(set(seen)) == 2
