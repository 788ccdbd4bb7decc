"""The names of adapters that every run has; others are published (``adapter_sets``)."""

NEWEST = "newest"
"""The adapters that learn, as they are."""

BASE = "base"
"""The model without adapters: the reference policy."""

MAGNET = "magnet"
"""The moving reference of ``gamespiel.agents.learning.magnet``."""

AVERAGE = "average"
"""The average of the last policies, of ``gamespiel.agents.learning.average``."""
