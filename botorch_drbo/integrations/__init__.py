"""The recipes inside other hosts: one module for each, imported when you ask for it.

Each needs the extra of its name, such as ``pip install '.[ax]'`` in a clone.
"""
