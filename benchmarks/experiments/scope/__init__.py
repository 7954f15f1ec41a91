"""One decision for a list of contexts: which rows to try, and how to decide."""
