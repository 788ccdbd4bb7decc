"""Games as a kind of task."""
