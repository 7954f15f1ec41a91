"""From a config to results: what runs, in which worlds, where it is kept, and what is
seen of it.
"""
