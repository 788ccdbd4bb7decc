"""Documentation, and the generators of its pages about facts of the code."""
