"""The statements of the papers' texts, compared with the committed results.

A claim is judged by a rule, not by hand: it *holds* if the difference goes its way with
p below .05, it *does not* if it goes the other way with p below .05, and else it
*cannot be decided*.
"""
