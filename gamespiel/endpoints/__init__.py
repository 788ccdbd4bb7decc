"""Agents behind OpenAI-compatible endpoints, played by the rules of affinetes' ``evaluate``."""

PREFIX = "openai:"
"""The beginning of the name of an agent or opponent behind an endpoint."""

USAGE = "openai:MODEL@URL"
"""The form of such a name."""
