"""What builds the documentation: parts of `conf.py`."""
