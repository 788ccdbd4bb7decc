"""Where the model's forward passes run."""

from gamespiel.agents.engines.transformers import TransformersEngine

__all__ = ["TransformersEngine"]
