"""What a limit on the price of robustness buys: claims, cases, rules, judgement.

Written down before any run: ``claims.md``.
"""
