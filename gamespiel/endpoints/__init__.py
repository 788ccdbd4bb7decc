"""Agents behind OpenAI-compatible endpoints, played by the rules of affinetes' ``evaluate``."""

PREFIX = "openai:"
"""The beginning of the name of an agent or opponent behind an endpoint."""

USAGE = "openai:MODEL@URL"
"""The form of such a name."""

LIMIT = "max_tokens"
"""The setting that may follow an opponent's name, as "openai:MODEL@URL#max_tokens=16"."""

EPISODE_S = {"game": 1800.0, "trace": 600.0}
"""Seconds that an episode may take in upstream's environments of games and of traces."""
