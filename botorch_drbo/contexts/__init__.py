"""Context distributions as weighted point sets."""

from botorch_drbo.contexts.context_set import ContextSet

__all__ = ["ContextSet"]
