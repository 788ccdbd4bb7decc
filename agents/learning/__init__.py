"""The learning rule: what an update minimises, and what it compares the policy with."""
