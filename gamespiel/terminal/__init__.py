"""Commands for people at a terminal: list games, play one, watch a policy."""
