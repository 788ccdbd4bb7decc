"""GameSpielText-v0: the same environment, taking a reply as text."""

from __future__ import annotations

from typing import Any

from game_gym.env import GameSpielEnv
from task_gym.errors import ArgumentError, check_choice
from task_gym.replies import Parser, first_number, last_named, whole_reply
from task_gym.spaces import UnicodeText

#: Characters a reply may have.
REPLY_LENGTH = 1 << 20

#: Stands for a reply that names no legal action; never legal.
NO_ACTION = -1

# Upstream reads replies by one rule in reset/step and by another in evaluate.
_UPSTREAM: dict[str, Parser] = {"openenv": first_number, "evaluate": whole_reply}


class GameSpielTextEnv(GameSpielEnv):
    """:class:`GameSpielEnv` with a text action: what a language model replied.

    Args:
        parse: "upstream" reads a reply as affinetes does under the seeding protocol in use, so that what
            trains here scores there. With ``seeding="openenv"`` the first run of digits in the reply is the
            action. "last" strips reasoning and takes the last legal id named, else the legal action's name
            that ends last.
        **arguments: As for :class:`GameSpielEnv`.

    A reply that names no legal action is an illegal action.

    Each rule looks for ids before names, and it finds them inside names too. In tic_tac_toe the move x(1,1)
    is action 4, but "my move is x(1,1)" is read as action 1::

        reply                          parse="upstream"  parse="last"
        "my move is x(1,1)"            1                 1
        "my move is x(1,1), action 4"  1                 4
        "4"                            4                 4

    With ``seeding="evaluate"``, "upstream" reads these three in the same way.
    """

    def __init__(self, *positional: Any, parse: str = "upstream", **arguments: Any) -> None:
        check_choice("parse", parse, ("upstream", "last"))
        super().__init__(*positional, **arguments)
        self._parse: Parser = last_named if parse == "last" else _UPSTREAM[self.seeding]
        self._arguments["parse"] = parse
        self.action_space = UnicodeText(REPLY_LENGTH)

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Read a reply and make the move it names."""
        if not isinstance(action, str):
            raise ArgumentError(f"action: {action!r} was given, allowed: a reply as text")
        turn = self._current()
        chosen = self._parse(action, turn.legal, turn.names)
        if chosen is None:
            return self._step(NO_ACTION, f"reply: {action[:80]!r} names no legal action")
        return self._step(chosen, None)
