"""How numbers print in reports."""

from __future__ import annotations


def widened(factor: float) -> str:
    """By what intervals are stretched, in words; nothing if by less than a percent."""
    if factor < 1.01:
        return ""
    return f"widened {factor:.{2 if factor >= 1.1 else 3}g} times"


def shown(value: object) -> str:
    """A float with four significant digits, and all of those before the point."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
