"""How numbers print in reports."""

from __future__ import annotations


def shown(value: object) -> str:
    """A float with four significant digits, and all of those before the point."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
