"""How a maximum is found: starts, lists of candidates, mixed variables."""
