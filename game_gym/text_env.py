"""GameSpielText-v0: the same environment with replies as text for actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from game_gym.env import GameSpielEnv
from game_gym.spec import strip_number
from task_gym.arguments import read_reply
from task_gym.errors import check_choice
from task_gym.replies import NoAction, Parser, first_number, last_named, read_name, whole_reply
from task_gym.spaces import UnicodeText

REPLY_LENGTH = 1 << 20
"""The most characters that a reply may have."""

# Upstream reads replies by one rule in reset/step and by another in evaluate.
_UPSTREAM: dict[str, Parser] = {"openenv": first_number, "evaluate": whole_reply}


class GameSpielTextEnv(GameSpielEnv, gym.Env[str, Any]):
    """``GameSpielEnv`` with a text action: a language model's reply.

    A reply that names no legal action is an illegal action.

    Each rule looks for ids before names, and it finds them inside names too. In tic_tac_toe the move x(1,1)
    is action 4, but "my move is x(1,1)" is read as action 1::

        reply                          parse="upstream"  parse="last"
        "my move is x(1,1)"            1                 1
        "my move is x(1,1), action 4"  1                 4
        "4"                            4                 4

    With ``seeding="evaluate"``, "upstream" reads these three in the same way.

    Where the legal actions are not listed, no id was shown: whatever ``parse`` is, a reply is read by
    ``task_gym.replies.read_name``. Of names that begin with ids the rest is enough.

    Args:
        parse: "upstream" reads a reply as affinetes does under the seeding protocol in use, so that training
            and affinetes' scores agree. With ``seeding="openenv"`` the first run of digits in the reply is
            the action. "last" strips reasoning and takes the last legal id named, else the legal action's
            name that ends last.
        **arguments: As for ``GameSpielEnv``.
    """

    def __init__(self, *positional: Any, parse: str = "upstream", **arguments: Any) -> None:
        check_choice("parse", parse, ("upstream", "last"))
        super().__init__(*positional, **arguments)
        self._parse: Parser = last_named if parse == "last" else _UPSTREAM[self.seeding]
        self._arguments["parse"] = parse
        self.action_space = UnicodeText(REPLY_LENGTH)

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Reads a reply and makes the move it names."""
        reply = read_reply(action)
        self._check_playing()
        turn = self._turn
        assert turn is not None
        parse = self._parse if self.list_actions else read_unlisted
        chosen = parse(reply, turn.legal, turn.names)
        return self._step(NoAction(reply[:80]) if chosen is None else chosen)


def read_unlisted(reply: str, legal: Sequence[int], names: Sequence[str]) -> int | None:
    """Returns the action that a reply names where no list was shown; of numbered names the rest is enough."""
    chosen = read_name(reply, legal, names)
    plain = [strip_number(name) for name in names]
    return read_name(reply, legal, plain) if chosen is None and plain != list(names) else chosen
