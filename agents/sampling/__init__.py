"""Sampling: requests for answers, and the decisions that a sampler returns."""
