"""The experiments that are more than a config: each has its own worlds and tables."""
