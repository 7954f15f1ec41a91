"""How exact the library's numbers are: the product path, and the searched ``L(x)``."""
