"""Speed and memory: how far the posterior and whole iterations are from the limit."""
