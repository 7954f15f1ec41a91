"""Every posterior view on each device."""

from __future__ import annotations

import pytest
import torch

from botorch_drbo.posterior import marginal_posterior
from tests.devices.places import on_each_place
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


@on_each_place
@pytest.mark.parametrize(("name", "method"), VIEWS)
def test_a_view_stays_on_its_device_and_reads_no_more_for_more_decisions(
    name, method, place
):
    setting = SETTINGS[name]
    X, contexts = make_inputs(3, columns=setting.columns, units=setting.units)
    model = setting.make().eval()

    def view(model, contexts, options):
        made = marginal_posterior(model, setting.columns, method=method, **options)
        return made.over(contexts)

    expected = moments(view(model, contexts, setting.options), X)
    few_inputs, many_inputs = X, X.repeat(3, 1)
    with place.running() as device:
        parts = (model, contexts, dict(setting.options), few_inputs, many_inputs)
        model, contexts, options, few_inputs, many_inputs = map(place.there, parts)
        moved = view(model, contexts, options)
        moments(moved, few_inputs)  # what is made at the first call is made once
        device.reads.clear()
        found = moments(moved, few_inputs)
        few = device.reads.copy()
        device.reads.clear()
        moments(moved, many_inputs)
    assert device.reads == few
    assert place.unlisted(few) == set()
    by_others = set(few) & {"posterior/exact.py:_block", "posterior/exact.py:inside"}
    if method != "generic" and not by_others:
        assert not few  # nothing is read at all
    rtol, atol = (1e-4, 1e-6) if name == "float32" else (1e-6, 1e-8)
    for a, b in zip(found, expected, strict=True):
        place.assert_equal(a, b, rtol=rtol, atol=atol)
