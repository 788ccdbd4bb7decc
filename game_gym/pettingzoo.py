"""Games for PettingZoo: one agent per seat, in turn (AEC) or at once (parallel).

Every agent's observation is ``{"observation": …, "action_mask": int8 (n,), 1 = legal}``, and the mask is in
its info too; with ``mask="info"`` it is only there. PettingZoo comes with the extra "pettingzoo".
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from game_gym.seats import Seats
from task_gym.arguments import read_action
from task_gym.contract import ILLEGAL_REWARD, illegal_info
from task_gym.env import OUTSIDE
from task_gym.errors import ArgumentError, EpisodeError, ImportNameError, check_choice, illegal_action, shown

try:
    from pettingzoo import AECEnv, ParallelEnv
    from pettingzoo.utils.wrappers import OrderEnforcingWrapper
except ModuleNotFoundError as error:
    raise ImportNameError(
        "game_gym.pettingzoo: PettingZoo is not installed; pip install 'gamespiel[pettingzoo]'"
    ) from error

Info = dict[str, Any]
Step = tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]]


def env(**arguments: Any) -> Any:
    """Returns ``GameSpielAEC`` behind PettingZoo's check of the order of calls."""
    return OrderEnforcingWrapper(GameSpielAEC(**arguments))


def parallel_env(**arguments: Any) -> GameSpielParallel:
    """Returns ``GameSpielParallel``."""
    return GameSpielParallel(**arguments)


class _Agents:
    """The parts that both kinds of environment share: agents, spaces, rendering."""

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
        self.mask = mask
        self.game = Seats(observation, reward, **arguments)
        self.render_mode = self.game.env.render_mode
        self.actions = self.game.actions + self._more_actions
        self.possible_agents = [f"player_{seat}" for seat in range(self.game.seats)]
        self.agents: list[str] = []
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        space: Any = self.game.space(self.actions)
        shown_space = space if mask == "observation" else space["observation"]
        #: By agent, as libraries read them that do not call ``observation_space`` and ``action_space``.
        self.observation_spaces = dict.fromkeys(self.possible_agents, shown_space)
        self.action_spaces = {agent: gym.spaces.Discrete(self.actions) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> Any:
        """Returns an agent's space: a dictionary of ``observation`` and ``action_mask``, or the former's."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Returns an agent's space: Discrete."""
        return self.action_spaces[agent]

    def _observation(self, seat: int, mask: Any) -> Any:
        shown = self.game.observe(seat)
        return {"observation": shown, "action_mask": mask} if self.mask == "observation" else shown

    def render(self) -> Any:
        """Returns the observation of the seat to move; see ``GameSpiel-v0``."""
        return self.game.env.render()

    def close(self) -> None:
        """Abandons the episode."""
        self.game.env.close()

    def _begin(self, seed: int | None, options: Info | None) -> None:
        # PettingZoo's tests reset with an option "options", which means nothing.
        given = {key: value for key, value in (options or {}).items() if key != "options"}
        self.game.reset(seed, given)
        self.agents = self.possible_agents[: self.game.players]


class GameSpielAEC(_Agents, AECEnv):
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

    Raises:
        TaskGymError: an argument is outside what is allowed.
    """

    def reset(self, seed: int | None = None, options: Info | None = None) -> None:
        """Begins an episode; the options are ``task_id`` and, as samplers name it, ``opponent="open"``."""
        self._begin(seed, options)
        self._skip_agent_selection = None
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._show()

    def observe(self, agent: str) -> Any:
        """Returns an agent's observation."""
        seat = self._seats[agent]
        return self._observation(seat, self.game.mask(seat))

    def step(self, action: Any) -> None:
        """Makes a move for ``agent_selection``; None for an agent whose game is over."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self.game.step(action)
        self._show()
        self._accumulate_rewards()

    def _show(self) -> None:
        game = self.game
        self.agent_selection = self.possible_agents[game.seat]
        self.rewards = dict(zip(self.agents, game.rewards, strict=True))
        self.terminations = dict.fromkeys(self.agents, game.over and not game.truncated)
        self.truncations = dict.fromkeys(self.agents, game.truncated)
        self.infos = {agent: game.info_of(self._seats[agent]) for agent in self.agents}


class GameSpielParallel(_Agents, ParallelEnv):
    """A game of OpenSpiel in which every agent acts at every step.

    An agent that is not to move has one legal action, the last one, which does nothing: ``wait``. So spaces
    have one action more than the game. An agent's illegal action costs it 0.01; its seat is asked again.

    Args:
        observation: See ``GameSpielAEC``.
        reward: See there.
        mask: See there.
        **arguments: See there.

    Attributes:
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
        return self._seen(), self._infos()

    def step(self, actions: dict[str, Any]) -> Step:
        """Takes one action of every agent.

        Raises:
            ArgumentError: an agent's action is missing, or is not a whole number.
            EpisodeError: the environment was not reset.
        """
        game = self.game
        if not game.info:
            raise EpisodeError(OUTSIDE)
        missing = [agent for agent in self.agents if agent not in actions]
        if missing:
            raise ArgumentError(f"actions: none was given for {', '.join(missing)}, allowed: one per agent")
        given = {agent: read_action(actions[agent]) for agent in self.agents}
        moving = [agent for agent in self.agents if game.legal(self._seats[agent])]
        paid, errors = dict.fromkeys(self.agents, 0.0), {}
        for agent in self.agents:
            if agent not in moving and given[agent] != self.wait:
                paid[agent] = ILLEGAL_REWARD
                message = illegal_action(f"action: {shown(given[agent])} was given", [self.wait])
                errors[agent] = illegal_info(message)["error"]
        for agent in moving:
            if game.over or game.seat != self._seats[agent]:
                continue  # a seat before it gave the game up, or has to choose again
            game.step(given[agent])
            for other, reward in zip(self.agents, game.rewards, strict=True):
                paid[other] += reward
            if "error" in game.info:
                break
        return self._outcome(paid, errors)

    def _outcome(self, paid: dict[str, float], errors: dict[str, Any]) -> Step:
        over, cut = self.game.over, self.game.truncated
        infos = self._infos()
        for agent, error in errors.items():
            infos[agent]["error"] = error
        terminated = dict.fromkeys(self.agents, over and not cut)
        truncated = dict.fromkeys(self.agents, cut)
        seen = self._seen()
        if over:
            self.agents = []
        return seen, paid, terminated, truncated, infos

    def _mask(self, seat: int) -> Any:
        mask = self.game.mask(seat, self.actions)
        mask[self.wait] = not self.game.over and not mask.any()
        return mask

    def _seen(self) -> dict[str, Any]:
        seats = {agent: self._seats[agent] for agent in self.agents}
        return {agent: self._observation(seat, self._mask(seat)) for agent, seat in seats.items()}

    def _infos(self) -> dict[str, Info]:
        infos = {agent: self.game.info_of(self._seats[agent]) for agent in self.agents}
        for agent, info in infos.items():
            info["action_mask"] = self._mask(self._seats[agent])
            info["legal_actions"] = np.flatnonzero(info["action_mask"]).tolist()
        return infos
