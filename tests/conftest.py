"""What every test shares: one thread, a seed, and the default dtype of torch.

The global default dtype stays float32 on purpose: code that silently relies on it,
where the user's tensors are float64, is found only then.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings

from tests.attacks import counted

for name in ("functions", "view_case", "views"):
    pytest.register_assert_rewrite(f"tests.contracts.{name}")

# Processes run in parallel (pytest-xdist); threads on top of them only slow them down.
torch.set_num_threads(1)

# Tensors that a test file draws while it is collected are the same in every process:
# the processes refuse to work together when they find different parameters.
torch.manual_seed(0)

# The first call of a torch function is slow, and a failure must repeat on the next run.
settings.register_profile("botorch_drbo", deadline=None, derandomize=True)
settings.load_profile("botorch_drbo")


def pytest_configure(config):
    """Random problems are counted, and the summary says how many."""
    config.pluginmanager.register(counted)


@pytest.fixture(autouse=True)
def seed() -> int:
    """Seed torch's global generator before each test, and return the seed."""
    torch.manual_seed(0)
    return 0
