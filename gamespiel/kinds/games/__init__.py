"""Games: their keys, environments, baselines, groups of results and exact values."""

from gamespiel.kinds.base import Kind
from gamespiel.kinds.games.declaration import DECLARATION
from gamespiel.kinds.games.keys import GameKeys
from gamespiel.kinds.games.player import GamePlayer
from gamespiel.kinds.games.presenter import GamePresenter

__all__ = ["KIND", "GameKeys"]

KIND = Kind(DECLARATION, GamePlayer(DECLARATION), GamePresenter())
