"""Derived seeds and isolated generators."""

from __future__ import annotations

import threading
import time

import pytest
import torch

from botorch_drbo.sampling import derive_seed, isolated_rng, standard_dtype


def test_derived_seeds_differ_and_are_stable() -> None:
    seeds = {
        derive_seed(a, b, c) for a in range(5) for b in range(3) for c in range(50)
    }
    assert len(seeds) == 5 * 3 * 50
    # A resumed run relies on this number: it must not change between versions.
    assert derive_seed(0, 1, 2) == 3884055042


def test_isolated_rng_is_reproducible_and_leaves_no_trace() -> None:
    before = torch.random.get_rng_state()
    draws = []
    for _ in range(2):
        with isolated_rng(7, torch.device("cpu")):
            draws.append(torch.rand(3))
    assert torch.equal(draws[0], draws[1])
    assert torch.equal(torch.random.get_rng_state(), before)


def test_threads_take_turns() -> None:
    """The generator, the dtype and GPyTorch's settings belong to the process."""
    draws: list[list[float]] = []

    def draw() -> None:
        with isolated_rng(7, torch.device("cpu")):
            found = []
            for _ in range(5):
                time.sleep(0.005)  # lets another thread run
                found.append(torch.rand(()).item())
        draws.append(found)

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    draw()
    assert draws[0] == draws[1] == draws[2] == draws[3]


def test_isolated_rng_restores_after_an_error() -> None:
    before = torch.random.get_rng_state()
    try:
        with isolated_rng(7, torch.device("cpu")):
            torch.rand(3)
            raise KeyError
    except KeyError:
        pass
    assert torch.equal(torch.random.get_rng_state(), before)


def test_isolated_rng_runs_under_the_standard_dtype_and_gives_the_other_back() -> None:
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        with isolated_rng(7, torch.device("cpu")):
            assert torch.rand(3).dtype == torch.float32
        assert torch.get_default_dtype() == torch.float64
        with pytest.raises(KeyError), standard_dtype():
            raise KeyError
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(before)
