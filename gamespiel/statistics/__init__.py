"""Statistics of comparisons, as pure functions of numbers: means over deals, families, sequences, ratings."""
