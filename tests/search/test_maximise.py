"""A search goes on where the acquisition function is not a number."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models import SingleTaskGP
from torch import Tensor

from botorch_drbo.problem.search_space import SearchSpace
from botorch_drbo.search.candidates import best_apart, best_of_many, score
from botorch_drbo.search.maximise import Effort, maximise

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
EFFORT = Effort(num_restarts=4, raw_samples=64, max_iterations=50, seed=0)


class Broken(AcquisitionFunction):
    """Highest at (.6, .6), and no number where the first coordinate is below .5."""

    _log = False

    def __init__(self, wrong: float) -> None:
        Z = torch.rand(4, 2, generator=torch.Generator().manual_seed(0)).double()
        super().__init__(SingleTaskGP(Z, Z.sum(-1, keepdim=True)))
        self.wrong = wrong

    def forward(self, X: Tensor) -> Tensor:
        X = X.squeeze(-2)
        values = -(X - 0.6).square().sum(-1)
        # Neither has it a slope there.
        return values * torch.where(X[:, 0] < 0.5, -self.wrong, 1.0)


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_a_value_that_is_no_number_is_the_worst(wrong: float) -> None:
    acqf = Broken(wrong)
    space = SearchSpace(BOUNDS, BOUNDS[:, :1])
    ends, values = maximise(acqf, space, EFFORT)
    best = ends[values.argmax()]
    torch.testing.assert_close(best, torch.full_like(best, 0.6), rtol=0.0, atol=1e-3)
    rows = torch.tensor([[0.1, 0.6], [0.7, 0.9], [0.6, 0.5]]).double()
    assert score(acqf, rows).argmax() == 2
    many = torch.cat([rows, torch.full((80, 2), 0.2).double()])
    assert torch.equal(best_of_many(acqf, many), rows[2])
    apart = best_apart(acqf, ends, values, best[None], rows[:0], space, 0, 64)
    assert apart[0, 0] >= 0.5


def test_what_is_known_is_climbed_again_though_a_rough_function_misleads() -> None:
    """The rough one climbs to a lower hill; the decision known stands on the higher."""

    class Hills(Broken):
        def forward(self, X: Tensor) -> Tensor:
            low, high = (
                (X.squeeze(-2) - place).square().sum(-1) for place in (0.2, 0.8)
            )
            if self.wrong:
                return -low
            return torch.exp(-40.0 * low) + 2.0 * torch.exp(-40.0 * high)

    space, known = SearchSpace(BOUNDS, BOUNDS[:, :1]), torch.full((1, 2), 0.75).double()
    for given in ({"start": known.unsqueeze(0)}, {"near": known}):
        values = maximise(Hills(0.0), space, EFFORT, rough=Hills(1.0), **given)[1]
        assert values.max().item() == pytest.approx(2.0, abs=1e-4)
    alone = maximise(Hills(0.0), space, EFFORT, rough=Hills(1.0))[1]
    assert alone.max().item() == pytest.approx(1.0, abs=1e-4)


def test_of_a_rough_functions_ends_four_that_differ_are_evaluated() -> None:
    """Best first by the rough values: one of each hill, however many end there."""
    hills = torch.tensor([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]]).double()
    hills = torch.cat([hills, torch.full((1, 2), 0.5).double()])
    heights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]).double()
    looked = []

    class Hills(Broken):
        def forward(self, X: Tensor) -> Tensor:
            if not self.wrong and not X.requires_grad:
                looked.append(X.squeeze(-2))
            low = (X - hills).square().sum(-1)
            return (heights * torch.exp(-60.0 * low)).amax(-1)

    space = SearchSpace(BOUNDS, BOUNDS[:, :1])
    effort = Effort(num_restarts=12, raw_samples=256, max_iterations=50, seed=0)
    values = maximise(Hills(0.0), space, effort, rough=Hills(1.0))[1]
    assert values.max().item() == pytest.approx(5.0, abs=1e-4)
    ends = looked[1]  # after the middle of the box, and before the last ends
    torch.testing.assert_close(ends, hills[[4, 3, 2, 1]], rtol=0.0, atol=1e-3)


def test_a_function_without_a_number_has_some_decision() -> None:
    class Nowhere(Broken):
        def forward(self, X: Tensor) -> Tensor:
            return super().forward(X) * torch.nan

    space = SearchSpace(BOUNDS, BOUNDS[:, :1])
    ends, values = maximise(Nowhere(torch.nan), space, EFFORT)
    assert ends.isfinite().all() and (values == -torch.inf).all()
