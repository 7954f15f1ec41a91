"""Experiments that need more than a config, each with its own problems and tables."""
