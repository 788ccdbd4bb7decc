"""A game as all of its seats see it at once, the base of adapters for multi-agent libraries."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from game_gym.backends.base import OBSERVATION_LENGTH
from game_gym.env import CUT_SHORT, GameSpielEnv
from game_gym.prompts import render, render_end, render_waiting
from game_gym.score import outcome
from game_gym.wrappers.tensor import one_tensor
from task_gym.contract import is_success
from task_gym.errors import ArgumentError, OpponentError, check_choice, shown
from task_gym.opponents import OPEN
from task_gym.spaces import UnicodeText

OBSERVATIONS = ("text", "tensor")
REWARDS = ("score", "returns")


class SeatText(str):
    """A text with the type that its space has: PettingZoo's ``api_test`` asks observations for it."""

    dtype = np.dtype(str)


class Seats:
    """A game with every seat open, and what each seat sees, may do and is paid.

    Args:
        observation: "text", or "tensor" for OpenSpiel's flat tensor, float32.
        reward: Payment of each seat at the end: its "score" in [0, 1], or the game's own "returns".
        **arguments: Those of ``GameSpiel-v0``, without ``opponent``, ``reward`` and ``backend``.

    Attributes:
        env: The environment that is played, with opponent "open".
        seats: The most seats of any game that may be drawn.
        space: One seat's observation space: a dictionary of ``observation`` and ``action_mask``.
        rewards: Payments of the last move, one per seat.
        info: The last info of ``env``.

    Raises:
        TaskGymError: an argument is outside what is allowed.
    """

    def __init__(self, observation: str = "text", reward: str = "score", **arguments: Any) -> None:
        check_choice("observation", observation, OBSERVATIONS)
        check_choice("reward", reward, REWARDS)
        for name, allowed in (("opponent", OPEN), ("backend", "local")):
            if (given := arguments.pop(name, allowed)) != allowed:
                raise ArgumentError(
                    f"{name}: {shown(given)} was given, allowed: {allowed!r}, because every seat is an "
                    "agent's here"
                )
        self.env = GameSpielEnv(opponent=OPEN, **arguments)
        self.seats = max(variant.players for variant in self.env.variants)
        self.actions = int(self.env.action_space.n)  # type: ignore[attr-defined]
        self._pays_returns = reward == "returns"
        seen: gym.spaces.Space[Any] = UnicodeText(OBSERVATION_LENGTH)
        self._tensor = ""
        if observation == "tensor":
            self._tensor, shape = one_tensor(self.env.variants)
            limits = np.finfo(np.float32)
            size = int(np.prod(shape))
            seen = gym.spaces.Box(limits.min, limits.max, shape=(size,), dtype=np.float32)
        self.seen = seen
        self.rewards: list[float] = []
        self.info: dict[str, Any] = {}
        self._moves: list[int] = []

    def space(self, actions: int) -> gym.spaces.Dict:
        """Returns a new observation space of a seat with so many actions."""
        mask = gym.spaces.Box(0, 1, shape=(actions,), dtype=np.int8)
        return gym.spaces.Dict({"observation": self.seen, "action_mask": mask})

    @property
    def players(self) -> int:
        """The seats of the game being played."""
        return self.env.variant.players

    @property
    def seat(self) -> int:
        """The seat to move; at the end, the one that moved last."""
        return int(self.info["seat"])

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return "result" in self.info

    @property
    def truncated(self) -> bool:
        """Whether it was cut, or failed."""
        return self.over and self.info["result"] in CUT_SHORT

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> None:
        """Begins an episode.

        Raises:
            OpponentError: the options name an opponent other than "open".
        """
        asked = (options or {}).get("opponent", OPEN)
        if asked != OPEN:
            raise OpponentError(
                f"reset option 'opponent': {asked!r} was given, allowed: {OPEN!r}, because every seat is an "
                "agent's here"
            )
        self.rewards = []
        _, self.info = self.env.reset(seed=seed, options=options)
        self.rewards = [0.0] * self.players
        self._moves = [0] * self.players

    def step(self, action: Any) -> None:
        """Makes a move for the seat to move."""
        mover = self.seat
        _, reward, _, _, self.info = self.env.step(action)
        self.rewards = [0.0] * self.players
        if "error" in self.info:
            self.rewards[mover] = reward
        else:
            self._moves[mover] += 1
        if self.over:
            key = "returns" if self._pays_returns and not self.truncated else "scores"
            for seat, paid in enumerate(self.info[key]):
                self.rewards[seat] += float(paid)

    def legal(self, seat: int) -> list[int]:
        """Returns the actions that a seat may take now; none if it is not its turn."""
        if self.over:
            return []
        if seat == self.seat:
            return list(self.info["legal_actions"])
        state = self.env.state
        # If all choose at once, the environment asks them in the order of their seats.
        waits = not state.is_simultaneous_node() or seat < self.seat
        return [] if waits else list(state.legal_actions(seat))

    def mask(self, seat: int, actions: int | None = None) -> NDArray[np.int8]:
        """Returns the mask of a seat's legal actions, int8, 1 = legal."""
        mask = np.zeros(actions or self.actions, dtype=np.int8)
        mask[self.legal(seat)] = 1
        return mask

    def observe(self, seat: int) -> Any:
        """Returns a seat's observation, also when it is not its turn or the game is over."""
        local = self.env
        if self._tensor:
            if self.over:
                return np.zeros(self.seen.shape or (), dtype=np.float32)
            return np.array(getattr(local.state, self._tensor)(seat), dtype=np.float32).reshape(-1)
        if self.over:
            returns, score = self.info["returns"], self.info["scores"][seat]
            text = render_end(local.variant, seat, returns, score, self.result(seat))
        elif self.legal(seat):
            text = render(local.variant, local.state, seat, local.rules, local.list_actions)
        else:
            text = render_waiting(local.variant, local.state, seat, local.rules)
        return SeatText(text)

    def result(self, seat: int) -> str:
        """Returns how the game ended for a seat."""
        if self.truncated or seat == self.seat:
            return str(self.info["result"])
        return outcome(self.info["returns"], seat, self.info["scores"][seat])

    def info_of(self, seat: int) -> dict[str, Any]:
        """Returns a seat's info: mask and address, and at the end score, returns and result."""
        legal = self.legal(seat)
        info = {
            "action_mask": self.mask(seat),
            "legal_actions": legal,
            **{key: self.info[key] for key in ("task_id", "seed", "opponent", "game")},
            # The seat's own: all moves together would tell how often the others tried in phantom_ttt.
            "turn": self._moves[seat],
            "seat": seat,
        }
        if seat == self.seat and "error" in self.info:
            info["error"] = self.info["error"]
        if self.over:
            info["score"], info["result"] = self.info["scores"][seat], self.result(seat)
            info["success"] = is_success(info["score"])
            info["returns"], info["history"] = list(self.info["returns"]), list(self.info["history"])
        return info
