"""The games as affinetes' own server template loads them: a class ``Actor`` without arguments."""

from gamespiel.serving.games import GameActor
from gamespiel.serving.options import ServeOptions


class Actor(GameActor):
    """Plays the games of the task-id table."""

    def __init__(self) -> None:
        super().__init__(ServeOptions())
