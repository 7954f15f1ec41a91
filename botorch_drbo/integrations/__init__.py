"""Recipes inside Ax, Optuna and Xopt, with one module for each.

Each needs the extra of its name, such as ``pip install '.[ax]'`` in a clone.
"""
