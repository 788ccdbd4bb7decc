"""Mutants: programs with one thing changed, and the false outputs that they print."""
