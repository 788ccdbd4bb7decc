"""Games for PettingZoo: one agent per seat, in turn (AEC) or at once (parallel).

Every agent's observation is ``{"observation": …, "action_mask": int8 (n,), 1 = legal}``, and the mask is in
its info too; with ``mask="info"`` it is only there. PettingZoo comes with the extra "pettingzoo".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from game_gym.backends.base import OBSERVATION_LENGTH
from game_gym.env import CUT_SHORT, GameSpielEnv
from game_gym.prompts import render, render_end, render_waiting
from game_gym.score import outcome
from game_gym.wrappers.tensor import one_tensor
from task_gym.arguments import read_action
from task_gym.contract import ILLEGAL_REWARD, illegal_info, is_success
from task_gym.env import OUTSIDE
from task_gym.errors import (
    ArgumentError,
    EpisodeError,
    ImportNameError,
    OpponentError,
    check_choice,
    illegal_action,
    quote,
)
from task_gym.opponents import OPEN
from task_gym.spaces import UnicodeText

try:
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.wrappers import OrderEnforcingWrapper
except ModuleNotFoundError as error:
    raise ImportNameError(
        "game_gym.pettingzoo: PettingZoo is not installed; pip install 'gamespiel[pettingzoo]'"
    ) from error

T = TypeVar("T")

Info = dict[str, Any]
Step = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]]


class SeatText(str):
    """A text with the type that its space has: PettingZoo's ``api_test`` asks observations for it."""

    dtype = np.dtype(str)


def env(**arguments: Any) -> Any:
    """Returns ``GameSpielAEC`` behind PettingZoo's check of the order of calls."""
    return OrderEnforcingWrapper(GameSpielAEC(**arguments))


def parallel_env(**arguments: Any) -> GameSpielParallel:
    """Returns ``GameSpielParallel``."""
    return GameSpielParallel(**arguments)


class _Seats:
    """The parts that both kinds of environment share: a game with every seat open, and each seat's view."""

    metadata: dict[str, Any] = {  # noqa: RUF012  (PettingZoo's)
        "name": "gamespiel_v0",
        "render_modes": ["ansi", "rgb_array", "human"],
        "is_parallelizable": False,
    }

    _more_actions = 0

    def __init__(
        self, observation: str = "text", reward: str = "score", mask: str = "observation", **arguments: Any
    ) -> None:
        check_choice("mask", mask, ("observation", "info"))
        check_choice("observation", observation, ("text", "tensor"))
        check_choice("reward", reward, ("score", "returns"))
        for name, allowed in (("opponent", OPEN), ("backend", "local")):
            if (value := arguments.pop(name, allowed)) != allowed:
                raise ArgumentError(
                    f"{name}: {quote(value)} was given, allowed: {allowed!r}, because every seat is an "
                    "agent's here"
                )
        self.game = GameSpielEnv(opponent=OPEN, **arguments)
        self.mask, self._pays_returns = mask, reward == "returns"
        self.render_mode = self.game.render_mode
        self.actions = int(self.game.action_space.n) + self._more_actions  # type: ignore[attr-defined]
        seats = max(variant.players for variant in self.game.variants)
        self.possible_agents = [f"player_{seat}" for seat in range(seats)]
        self.agents: list[str] = []
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        space: gym.Space[Any] = UnicodeText(OBSERVATION_LENGTH)
        self._tensor, self._size = "", 0
        if observation == "tensor":
            self._tensor, shape = one_tensor(self.game.variants)
            self._size, limits = int(np.prod(shape)), np.finfo(np.float32)
            space = gym.spaces.Box(limits.min, limits.max, shape=(self._size,), dtype=np.float32)
        if mask == "observation":
            masks = gym.spaces.Box(0, 1, shape=(self.actions,), dtype=np.int8)
            space = gym.spaces.Dict({"observation": space, "action_mask": masks})
        #: By agent, as libraries read them that do not call ``observation_space`` and ``action_space``.
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = {agent: gym.spaces.Discrete(self.actions) for agent in self.possible_agents}
        self._info: Info = {}  # the game's last
        self._rewards: list[float] = []  # for the last move, one per seat
        self._moves: list[int] = []  # one per seat

    def observation_space(self, agent: str) -> Any:
        """Returns an agent's space: a dictionary of ``observation`` and ``action_mask``, or the former's."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Returns an agent's space: Discrete."""
        return self.action_spaces[agent]

    def render(self) -> Any:
        """Returns the observation of the seat to move; see ``GameSpiel-v0``."""
        return self.game.render()

    def close(self) -> None:
        """Abandons the episode."""
        self.game.close()

    @property
    def _is_over(self) -> bool:
        return "result" in self._info

    @property
    def _is_cut(self) -> bool:
        """Whether the episode was cut, or failed."""
        return self._is_over and self._info["result"] in CUT_SHORT

    def _begin(self, seed: int | None, options: Info | None) -> None:
        # PettingZoo's tests reset with an option "options", which means nothing.
        options = {key: value for key, value in (options or {}).items() if key != "options"}
        opponent = options.get("opponent", OPEN)
        if opponent != OPEN:
            raise OpponentError(
                f"reset option 'opponent': {opponent!r} was given, allowed: {OPEN!r}, because every seat is "
                "an agent's here"
            )
        _, self._info = self.game.reset(seed=seed, options=options)
        players = self.game.variant.players
        self._rewards, self._moves = [0.0] * players, [0] * players
        self.agents = self.possible_agents[:players]

    def _move(self, action: Any) -> None:
        """Makes a move for the seat to move."""
        mover = self._info["seat"]
        _, reward, _, _, self._info = self.game.step(action)
        self._rewards = [0.0] * len(self._rewards)
        if "error" in self._info:
            self._rewards[mover] = reward
        else:
            self._moves[mover] += 1
        if self._is_over:
            key = "returns" if self._pays_returns and not self._is_cut else "scores"
            for seat, payment in enumerate(self._info[key]):
                self._rewards[seat] += float(payment)

    def _legal(self, seat: int) -> list[int]:
        """Returns the actions that a seat may take now; none if it is not its turn."""
        if self._is_over:
            return []
        if seat == self._info["seat"]:
            return list(self._info["legal_actions"])
        state = self.game.state
        # If all choose at once, the environment asks them in the order of their seats.
        waits = not state.is_simultaneous_node() or seat < self._info["seat"]
        return [] if waits else list(state.legal_actions(seat))

    def _mask(self, seat: int) -> NDArray[np.int8]:
        mask = np.zeros(self.actions, dtype=np.int8)
        mask[self._legal(seat)] = 1
        return mask

    def _observe(self, seat: int) -> Any:
        """Returns a seat's observation, also when it is not its turn or the game is over."""
        observation = self._show_tensor(seat) if self._tensor else SeatText(self._show_text(seat))
        if self.mask == "info":
            return observation
        return {"observation": observation, "action_mask": self._mask(seat)}

    def _show_tensor(self, seat: int) -> NDArray[np.float32]:
        if self._is_over:
            return np.zeros(self._size, dtype=np.float32)
        return np.array(getattr(self.game.state, self._tensor)(seat), dtype=np.float32).reshape(-1)

    def _show_text(self, seat: int) -> str:
        game, variant = self.game, self.game.variant
        if self._is_over:
            returns, score = self._info["returns"], self._info["scores"][seat]
            return render_end(variant, seat, returns, score, self._result(seat))
        if self._legal(seat):
            return render(variant, game.state, seat, game.rules, game.list_actions)
        return render_waiting(variant, game.state, seat, game.rules)

    def _result(self, seat: int) -> str:
        """Returns how the game ended for a seat."""
        if self._is_cut or seat == self._info["seat"]:
            return str(self._info["result"])
        return outcome(self._info["returns"], seat, self._info["scores"][seat])

    def _inform(self, seat: int) -> Info:
        """Returns a seat's info: mask and address, and at the end score, returns and result."""
        mask = self._mask(seat)
        info = {
            "action_mask": mask,
            "legal_actions": np.flatnonzero(mask).tolist(),
            **{key: self._info[key] for key in ("task_id", "seed", "opponent", "game")},
            # The seat's own: all moves together would tell how often the others tried in phantom_ttt.
            "turn": self._moves[seat],
            "seat": seat,
        }
        if seat == self._info["seat"] and "error" in self._info:
            info["error"] = self._info["error"]
        if self._is_over:
            info["score"], info["result"] = self._info["scores"][seat], self._result(seat)
            info["success"] = is_success(info["score"])
            info["returns"], info["history"] = list(self._info["returns"]), list(self._info["history"])
        return info


class GameSpielAEC(_Seats, AECEnv):
    """A game of OpenSpiel in which the agents ``player_0``, ``player_1``, … move in turn.

    An illegal action costs 0.01 and is the same agent's turn again; the third in a row gives the game up. The
    observation of an agent that is not to move ends with the state, and its mask has no legal action. If all
    players choose at once, they are asked one after the other, and nobody sees what the others chose.

    Args:
        observation: "text", or "tensor" for OpenSpiel's flat tensor, float32.
        reward: Payment of each agent at the end: its "score" in [0, 1], or the game's own "returns".
        mask: "observation": the mask is in the observation and in the info. "info": it is only in the info,
            where AgileRL looks for it.
        **arguments: Those of ``GameSpiel-v0`` (``game``, ``params``, ``task_id``, ``task_ids``, …), without
            ``opponent``, ``reward`` and ``backend``.

    Attributes:
        game: The ``GameSpiel-v0`` that is played, with opponent "open".

    Raises:
        TaskGymError: an argument is outside what is allowed.
    """

    def reset(self, seed: int | None = None, options: Info | None = None) -> None:
        """Begins an episode; the options are ``task_id`` and, as samplers name it, ``opponent="open"``."""
        self._begin(seed, options)
        self._skip_agent_selection = None
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._update()

    def observe(self, agent: str) -> Any:
        """Returns an agent's observation."""
        return self._observe(self._seats[agent])

    def step(self, action: Any) -> None:
        """Makes a move for ``agent_selection``; None for an agent whose game is over."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._move(action)
        self._update()
        self._accumulate_rewards()

    def _update(self) -> None:
        """Sets what PettingZoo reads."""
        # At the end, the one that moved last.
        self.agent_selection = self.possible_agents[self._info["seat"]]
        self.rewards = dict(zip(self.agents, self._rewards, strict=True))
        self.terminations = dict.fromkeys(self.agents, self._is_over and not self._is_cut)
        self.truncations = dict.fromkeys(self.agents, self._is_cut)
        self.infos = {agent: self._inform(self._seats[agent]) for agent in self.agents}


class GameSpielParallel(_Seats, ParallelEnv):
    """A game of OpenSpiel in which every agent acts at every step.

    An agent that is not to move has one legal action, the last one, which does nothing: ``wait``. So spaces
    have one action more than the game. An agent's illegal action costs it 0.01; its seat is asked again.

    Args:
        observation: See ``GameSpielAEC``.
        reward: See there.
        mask: See there.
        **arguments: See there.

    Attributes:
        game: See there.
        wait: The action of agents that are not to move.

    Raises:
        TaskGymError: an argument is outside what is allowed.
    """

    _more_actions = 1

    @property
    def wait(self) -> int:
        """The action of agents that are not to move."""
        return self.actions - 1

    def reset(
        self, seed: int | None = None, options: Info | None = None
    ) -> tuple[dict[str, Any], dict[str, Info]]:
        """Begins an episode; see ``GameSpielAEC.reset``."""
        self._begin(seed, options)
        return self._map_agents(self._observe), self._map_agents(self._inform)

    def step(self, actions: dict[str, Any]) -> Step:
        """Takes one action of every agent.

        Raises:
            ArgumentError: an agent's action is missing, or is not a whole number.
            EpisodeError: the environment was not reset.
        """
        if not self._info:
            raise EpisodeError(OUTSIDE)
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            raise ArgumentError(f"actions: none was given for {', '.join(missing)}, allowed: one per agent")
        moves = {agent: read_action(actions[agent]) for agent in self.agents}
        moving = [agent for agent in self.agents if self._legal(self._seats[agent])]
        rewards, errors = dict.fromkeys(self.agents, 0.0), {}
        for agent in self.agents:
            if agent not in moving and moves[agent] != self.wait:
                rewards[agent] = ILLEGAL_REWARD
                message = illegal_action(f"action: {quote(moves[agent])} was given", [self.wait])
                errors[agent] = illegal_info(message)["error"]
        for agent in moving:
            if self._is_over or self._info["seat"] != self._seats[agent]:
                continue  # a seat before it gave the game up, or has to choose again
            self._move(moves[agent])
            for other, reward in zip(self.agents, self._rewards, strict=True):
                rewards[other] += reward
            if "error" in self._info:
                break
        observations, infos = self._map_agents(self._observe), self._map_agents(self._inform)
        for agent, error in errors.items():
            infos[agent]["error"] = error
        terminated = dict.fromkeys(self.agents, self._is_over and not self._is_cut)
        truncated = dict.fromkeys(self.agents, self._is_cut)
        if self._is_over:
            self.agents = []
        return observations, rewards, terminated, truncated, infos

    def _mask(self, seat: int) -> NDArray[np.int8]:
        mask = super()._mask(seat)
        mask[self.wait] = not self._is_over and not mask.any()
        return mask

    def _map_agents(self, call: Callable[[int], T]) -> dict[str, T]:
        """Returns what a function of a seat returns for each agent."""
        return {agent: call(self._seats[agent]) for agent in self.agents}
