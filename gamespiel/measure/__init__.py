"""Measuring players: episodes played and kept, and `gamespiel eval` of policies, baselines and endpoints."""
