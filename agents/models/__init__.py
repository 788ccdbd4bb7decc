"""Base models and their adapters: where weights are, how they are loaded, and the memory that they take."""

from typing import Any

LOADING = ("ModelSettings", "load_base", "load_tokenizer")


def __getattr__(name: str) -> Any:
    """Returns a public name of ``loading``, which needs PyTorch; ``weights`` does not."""
    if name in LOADING:
        from gamespiel.agents.models import loading

        return getattr(loading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
