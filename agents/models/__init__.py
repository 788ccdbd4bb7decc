"""Base models and their adapters: where weights are, how they are loaded, and the memory that they take."""

from typing import Any

NEWEST = "newest"
"""The adapters that learn, as they are."""

BASE = "base"
"""The model without adapters: the reference policy."""

MAGNET = "magnet"
"""The moving reference of ``gamespiel.agents.learning.snapshots``."""

AVERAGE = "average"
"""The average of the last policies, of ``gamespiel.agents.learning.snapshots``."""

LOADING = ("ModelSettings", "load_base", "load_tokenizer")


def __getattr__(name: str) -> Any:
    """Returns a public name of ``loading``, which needs PyTorch; ``weights`` does not."""
    if name in LOADING:
        from gamespiel.agents.models import loading

        return getattr(loading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
