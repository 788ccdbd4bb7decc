"""The games' taskset for verifiers, which finds it by this module's name: ``vf-eval gamespiel-games``."""

from game_gym.verifiers import GameSpielChat, GameSpielTaskset, GameSpielVerifiers

__all__ = ["GameSpielChat", "GameSpielTaskset", "GameSpielVerifiers"]
