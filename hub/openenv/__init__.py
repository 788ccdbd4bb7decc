"""The environment game_spiel for OpenEnv."""

from .client import GameSpielEnv
from .models import GameSpielAction, GameSpielObservation, GameSpielState

__all__ = ["GameSpielAction", "GameSpielEnv", "GameSpielObservation", "GameSpielState"]
