"""Sampling on vLLM servers: requests by HTTP, adapters that follow the learner, and checks of both."""
