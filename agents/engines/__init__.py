"""Where the model's forward passes run."""

from agents.engines.transformers import TransformersEngine

__all__ = ["TransformersEngine"]
