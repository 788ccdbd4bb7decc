"""The parts of every kind of task: a declaration, a player and a presenter, each in its own file.

A caller uses the part that answers it: configuration, options and the schema ask the declaration, training
and evaluation ask the player, reports and names of files ask the presenter.
"""

from dataclasses import dataclass
from typing import Generic

from gamespiel.kinds.base.declaration import Baselines, Declaration, Replies
from gamespiel.kinds.base.keys import (
    PART,
    TASK_IDS,
    EnvKeys,
    Keys,
    Name,
    Opponents,
    TaskRange,
    format_opponent,
    names_of,
    server_arguments,
    server_keys_without_effect,
)
from gamespiel.kinds.base.player import (
    THINK,
    Deal,
    EpisodeAddress,
    MakeEnvs,
    Player,
    ShowProgress,
    Thinking,
    answers_of,
)
from gamespiel.kinds.base.presenter import Presenter

__all__ = [
    "PART",
    "TASK_IDS",
    "THINK",
    "Baselines",
    "Deal",
    "Declaration",
    "EnvKeys",
    "EpisodeAddress",
    "Keys",
    "Kind",
    "MakeEnvs",
    "Name",
    "Opponents",
    "Player",
    "Presenter",
    "Replies",
    "ShowProgress",
    "TaskRange",
    "Thinking",
    "answers_of",
    "format_opponent",
    "names_of",
    "server_arguments",
    "server_keys_without_effect",
]


@dataclass(frozen=True)
class Kind(Generic[Keys]):
    """A kind of task. It has no state: the configuration's ``env`` section chooses tasks and how to play.

    Attributes:
        declaration: Its name and its keys, what they mean and which of them agree.
        player: Its environments, and the play of their episodes.
        presenter: Its words in reports.
    """

    declaration: Declaration[Keys]
    player: Player[Keys]
    presenter: Presenter[Keys]
