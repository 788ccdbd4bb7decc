"""The environments and their prompts."""
