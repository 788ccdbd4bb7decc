"""The engines, which run the model's forward passes."""

from gamespiel.agents.engines.transformers import TransformersEngine

__all__ = ["TransformersEngine"]
