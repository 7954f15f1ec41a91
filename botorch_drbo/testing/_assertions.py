"""Assertions of the contracts say what differs; imported before all of them."""

import pytest

CONTRACTS = (
    "acquisition",
    "adversaries",
    "ambiguity_sets",
    "fixtures",
    "policies",
    "recipes",
)
"""Modules in which pytest rewrites assertions, as it does in files of tests."""

pytest.register_assert_rewrite(*(f"botorch_drbo.testing.{name}" for name in CONTRACTS))
