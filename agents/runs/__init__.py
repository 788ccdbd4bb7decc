"""The records of a run: checkpoints, logs, and measures of the policy."""
