"""Sobol points: exact, seeded, and the same whatever torch's default dtype is."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import qmc
from torch import Tensor

from botorch_drbo.sampling import sobol, sobol_in_box, sobol_inside

BOX = torch.tensor([[-1.0, 2.0, 0.0], [1.0, 10.0, 0.5]], dtype=torch.double)


@pytest.fixture(params=[torch.float32, torch.float64])
def default_dtype(request):
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


@pytest.mark.parametrize("num", [1, 8])
def test_every_point_is_a_whole_number_of_cells(num: int, default_dtype) -> None:
    for seed in range(5):
        points = sobol(num, 3, seed)
        assert points.dtype == torch.double
        cells = points * 2**30
        assert torch.equal(cells, cells.round())
        assert (points < 1).all()


def test_a_first_point_that_float32_would_round_to_one(monkeypatch) -> None:
    class LastCell(torch.quasirandom.SobolEngine):
        """A scrambling that moves the first point to the last cell."""

        def _scramble(self) -> None:
            self.shift = torch.full((self.dimension,), 2**30 - 1)

    monkeypatch.setattr("botorch_drbo.sampling.SobolEngine", LastCell)
    assert (sobol(2, 2, 0)[0] == 1 - 2.0**-30).all()
    assert torch.special.ndtri(sobol_inside(2, 2, 0)).isfinite().all()


def test_the_unscrambled_sequence_is_scipys() -> None:
    theirs = torch.from_numpy(qmc.Sobol(3, scramble=False).random(16))
    assert torch.equal(sobol(16, 3, scramble=False), theirs)


def test_skipping_goes_on_with_the_sequence() -> None:
    whole = sobol(12, 2, seed=3)
    assert torch.equal(torch.cat([sobol(5, 2, 3), sobol(7, 2, 3, skip=5)]), whole)


def test_a_seed_leaves_the_generator_alone_and_none_draws_from_it() -> None:
    def state() -> Tensor:
        return torch.random.get_rng_state()

    before = state()
    assert torch.equal(sobol(4, 2, 7), sobol(4, 2, 7))
    assert torch.equal(state(), before)
    assert not torch.equal(sobol(4, 2, None), sobol(4, 2, None))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_points_in_a_box_keep_its_dtype_and_stay_inside(dtype) -> None:
    bounds = BOX.to(dtype)
    points = sobol_in_box(256, bounds, seed=1)
    assert points.dtype == dtype
    assert (points >= bounds[0]).all() and (points <= bounds[1]).all()
    expected = BOX[0] + sobol(256, 3, 1) * (BOX[1] - BOX[0])
    assert torch.allclose(points.double(), expected, atol=1e-5)
