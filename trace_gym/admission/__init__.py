"""The conditions of a program that is asked about, and the cost of running it."""
