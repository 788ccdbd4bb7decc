"""A run: its training, what happens between its steps, and its measures before and after."""
