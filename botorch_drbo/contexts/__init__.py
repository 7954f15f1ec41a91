"""Contexts: weighted point sets, the one form of a context distribution."""

from botorch_drbo.contexts.context_set import ContextSet

__all__ = ["ContextSet"]
