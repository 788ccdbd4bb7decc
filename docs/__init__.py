"""Documentation, and what generates the parts of it that are facts about the code."""
