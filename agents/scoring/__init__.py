"""Scoring: what the policy, and others that it is compared with, make of decisions."""
