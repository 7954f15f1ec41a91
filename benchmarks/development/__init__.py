"""The development set: on which functions defaults are chosen, and how.

``cases.py`` lists the functions and splits them into two halves; ``claims.md`` says,
written before anything was measured, what will be called better. Functions that are not
in the list stay unseen, for those who judge the library from outside.
"""
