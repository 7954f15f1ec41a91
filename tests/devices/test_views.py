"""Every posterior view on the pretended device."""

from __future__ import annotations

import pytest
import torch

from botorch_drbo.posterior import marginal_posterior
from tests.devices.pretend import ELSEWHERE, here, pretended, there
from tests.devices.reads import READS
from tests.posterior.cases import SETTINGS, make_inputs

VIEWS = [
    (name, method) for name, setting in SETTINGS.items() for method in setting.methods
]


def moments(view, X):
    """Moments, slopes, and the gradient of the moments."""
    X = X.clone().requires_grad_()
    at = view.at(X)
    mean, variance = at.moments()
    (gradient,) = torch.autograd.grad(mean.sum() + variance.sum(), X)
    return [mean, variance, *at.slopes(), gradient]


@pytest.mark.parametrize(("name", "method"), VIEWS)
def test_a_view_stays_on_its_device_and_reads_no_more_for_more_decisions(name, method):
    setting = SETTINGS[name]
    X, contexts = make_inputs(3, columns=setting.columns, units=setting.units)
    model = setting.make().eval()

    def view(model, contexts, options):
        made = marginal_posterior(model, setting.columns, method=method, **options)
        return made.over(contexts)

    expected = moments(view(model, contexts, setting.options), X)
    with pretended() as device:
        moved = view(there(model), there(contexts), there(dict(setting.options)))
        device.reads.clear()
        found = moments(moved, there(X))
        few = device.reads.copy()
        device.reads.clear()
        moments(moved, there(X.repeat(3, 1)))
    assert device.reads == few
    assert set(few) <= set(READS)
    if method != "generic" and "exact.py:_block" not in str(few):
        assert not few  # nothing is read at all
    for a, b in zip(found, expected, strict=True):
        assert a.device == ELSEWHERE
        torch.testing.assert_close(here(a.detach()), b.detach(), rtol=1e-6, atol=1e-8)
