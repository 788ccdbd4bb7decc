"""GameSpiel-v0: OpenSpiel games with text observations and legal-action masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import game_gym.opponents  # noqa: F401  (registers the games' own opponents)
from game_gym.backends import Turn, make_backend
from game_gym.checks import check_max_turns, check_opponent, find_task, read_options
from game_gym.protocols import PROTOCOLS
from game_gym.spec import State, Variant
from game_gym.task import Task, TaskSet
from task_gym.contract import ILLEGAL_REWARD, STRIKES
from task_gym.errors import (
    ArgumentError,
    EpisodeError,
    IllegalActionError,
    PickleError,
    check_choice,
    illegal_action,
)
from task_gym.lazy_generator import LazyGeneratorEnv
from task_gym.opponents import OPEN, find_opponent, playing_name
from task_gym.seeding import SEED_LIMIT, check_seed
from task_gym.spaces import UnicodeText

#: Results of games that were not played to an end.
CUT_SHORT = ("cut", "fault")

# A dtype, where NumPy would look one up for the type on every call.
_INT8 = np.dtype(np.int8)

#: Characters an observation may have.
OBSERVATION_LENGTH = 65536


class GameSpielEnv(LazyGeneratorEnv[str, Any]):
    """A game against an opponent, told in words.

    ## Observation space
    A string: rules (unless ``rules=False``), seat, state, legal actions and what to answer. It is complete in
    itself and depends on the player's information state alone.

    ## Action space
    ``Discrete(n)``, n the greatest number of actions over every game and variant that may be drawn.

    ## Info
    Always: ``action_mask`` (int8, shape (n,), 1 = legal, all zeros only after the end), ``legal_actions``,
    ``admissible_commands`` (their names), ``task_id`` (None where the game was named), ``seed``, ``game``,
    ``seat``, ``opponent`` (who really plays), ``turn`` (legal moves made). After a step: ``upstream_reward``.
    After an illegal action: ``error``, with ``type`` and ``message``. At the end: ``score``, ``scores`` (one
    a seat), ``success``, ``returns`` (one a seat), ``result`` ("win", "draw", "loss", "cut", "fault"),
    ``history``.

    ## Rewards
    0 until the end, then the score; an illegal action -0.01. With ``reward="upstream"``, what affinetes'
    session pays.

    ## End
    ``terminated`` when the game is over or given up; ``truncated`` when ``max_turns`` cut a game that could
    have gone on. A cut keeps the text and the mask of the position that it cut. Also where OpenSpiel leaves a
    game without a legal move and without an end: a "fault", with score None and reward 0.

    A game may be over before the caller's first turn: in euchre, where the partner of a player who goes alone
    sits out, and in some of the games outside the table. ``reset`` then returns the closing text, a mask of
    zeros and everything that ``info`` has at the end (``upstream_reward`` is the score): look there for
    ``"result"``. Vector environments do not look, so one step may follow; whatever its action, it says the
    same.

    Args:
        task_id: One task id. Exactly one of ``task_id``, ``task_ids`` and ``game`` is given.
        task_ids: A list of ids and (first, last) ranges, ends included; each reset draws one.
        game: An OpenSpiel game by name, with ``params``: one that is declared here, or any other that
            OpenSpiel loads, told in its own strings.
        params: Parameters of ``game``.
        opponent: "random", "first", a search, or "open", which leaves every seat to the caller: each turn is
            the turn of ``info["seat"]``, and reward and score are those of the seat that moved last. Searches
            are "mcts" and "mcts-python", which read hidden cards, and "ismcts", which does not; each takes a
            budget, as "mcts:SIMS" or "mcts:SIMSxROLLOUTS". In games of simultaneous moves "random" plays in
            their place, and ``info["opponent"]`` says so.
        backend: "local".
        seeding: "openenv" or "evaluate": which of upstream's protocols expands the seed.
        rules: Whether every observation begins with the rules.
        reward: "score" or "upstream".
        illegal: "penalize" (the third in a row gives the game up), "forfeit" (the first does) or "raise".
        max_turns: Legal moves after which the game is cut, at least 2; None for no limit.
        render_mode: "ansi" (``render()`` returns the observation) or "human" (every observation is printed).

    Raises:
        TaskGymError: a named subclass for each argument, reset option or seed outside what is allowed.
    """

    # render_fps is required by Gymnasium's checker of every environment that renders.
    metadata = {"render_modes": ["ansi", "human"], "render_fps": 4}  # noqa: RUF012  (Gymnasium's attribute)

    def __init__(
        self,
        task_id: int | None = None,
        task_ids: Sequence[int | Sequence[int]] | None = None,
        game: str | None = None,
        params: Mapping[str, Any] | None = None,
        opponent: str = "random",
        backend: str = "local",
        seeding: str = "openenv",
        rules: bool = True,
        reward: str = "score",
        illegal: str = "penalize",
        max_turns: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._arguments = {
            "task_id": task_id, "task_ids": task_ids, "game": game, "params": params, "opponent": opponent,
            "backend": backend, "seeding": seeding, "rules": rules, "reward": reward, "illegal": illegal,
            "max_turns": max_turns, "render_mode": render_mode,
        }  # fmt: skip
        check_choice("seeding", seeding, PROTOCOLS)
        check_choice("rules", rules, (True, False))
        check_choice("reward", reward, ("score", "upstream"))
        check_choice("illegal", illegal, ("penalize", "forfeit", "raise"))
        check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        check_max_turns(max_turns)
        self._backend = make_backend(backend, seeding, rules)
        self._tasks = TaskSet(task_id, task_ids, game, params)
        check_opponent(opponent, self._tasks)
        self._opponent, self._reward, self._illegal, self._max_turns = opponent, reward, illegal, max_turns
        self.render_mode = render_mode
        #: Which of upstream's protocols expands the seed.
        self.seeding = seeding
        #: Whether every observation begins with the rules.
        self.rules = rules
        self._actions = max(variant.actions for variant in self._tasks.variants)
        self.observation_space = UnicodeText(OBSERVATION_LENGTH)
        self.action_space = gym.spaces.Discrete(self._actions)
        self._turn: Turn | None = None
        self._over = True
        self._seed = self._moves = self._strikes = 0
        self._task: Task | None = None
        #: The opponent that the address names, and the one that plays in its place or itself.
        self._asked = self._playing = opponent
        #: Every action given this episode, illegal ones included: what a copy replays.
        self._given: list[int] = []

    @property
    def state(self) -> State:
        """The live ``pyspiel.State``; None before the first reset."""
        return self._backend.state

    @property
    def variant(self) -> Variant:
        """The game being played, with its parameters; the first declared one before the first reset."""
        return self._tasks.variants[0] if self._task is None else self._task.variant

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Every game, with its parameters, that may be drawn."""
        return self._tasks.variants

    @property
    def seat(self) -> int | None:
        """The seat that the caller plays now, as ``info["seat"]``; None before the first reset."""
        return None if self._turn is None else self._turn.seat

    def action_masks(self) -> NDArray[np.bool_]:
        """The mask: bool, shape (n,), True = legal; all False before the first reset and after
        the end; a cut by ``max_turns`` keeps the mask of the position it cut.
        """
        mask = np.zeros(self._actions, dtype=np.bool_)
        if self._turn is not None:
            mask[self._turn.legal] = True
        return mask

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: Played itself, 0 … 2**32 - 201; None draws one from the environment's generator.
            options: "task_id" (of the declared set) and "opponent", for this episode only.
        """
        task, opponent = read_options(options, self._tasks, self._opponent)
        if seed is not None:
            seed = check_seed(seed)
            super().reset(seed=seed)
        if task is None:
            task = self._tasks.only or self._tasks.draw(self.np_random)
        if seed is None:
            # Eight times as fast as integers(), and as even: 53 random bits for 32.
            seed = int(self.np_random.random() * SEED_LIMIT)
        self._begin(task, seed, opponent)
        if self.render_mode == "human":
            self.render()
        turn = self._turn
        assert turn is not None
        info = self._info(turn)
        if turn.ending is not None:  # before the caller's first turn
            info["upstream_reward"] = turn.reward
            info.update(turn.ending.info())
        return turn.text, info

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Make a move; ``action`` is a whole number."""
        try:
            number = index(action)
        except TypeError as error:
            raise ArgumentError(f"action: {action!r} was given, allowed: a whole number") from error
        return self._step(number, None)

    def render(self) -> Any:
        """The current observation: returned ("ansi") or printed ("human")."""
        text = "" if self._turn is None else self._turn.text
        if self.render_mode == "human":
            print(text)
            return None
        return text if self.render_mode == "ansi" else super().render()

    def _begin(self, task: Task, seed: int, opponent: str) -> None:
        self._over, self._turn = True, None  # stays so if the opponent refuses the game
        turn = self._backend.start(task, seed, opponent)
        self._task, self._seed, self._asked = task, seed, opponent
        self._playing = playing_name(opponent, task.variant.game) if task.variant.players > 1 else opponent
        self._moves = self._strikes = 0
        self._given = []
        self._turn, self._over = turn, False

    def _step(self, action: int, complaint: str | None) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """One step; ``complaint`` says why a reply named no action, where one was read."""
        turn = self._turn
        if turn is None or self._over:
            raise EpisodeError("step was called outside an episode; allowed: after reset and before the end")
        undecided = turn.ending is None  # else the game was over at its reset
        if undecided and action not in turn.legal:
            return self._step_illegal(turn, action, complaint)
        self._given.append(action)
        if undecided:
            self._strikes = 0
            self._moves += 1
            self._turn = turn = self._backend.play(action)
        ending, truncated = turn.ending, False
        if ending is None and self._moves == self._max_turns:
            ending = self._backend.cut()
        self._over = ending is not None
        info = self._info(turn)
        info["upstream_reward"] = turn.reward
        reward = 0.0
        if ending is not None:
            reward, truncated = ending.score or 0.0, ending.result in CUT_SHORT
            info.update(ending.info())
        if self._reward == "upstream":
            reward = turn.reward
        if self.render_mode == "human":
            self.render()
        return turn.text, reward, self._over and not truncated, truncated, info

    def _step_illegal(
        self, turn: Turn, action: int, complaint: str | None
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        message = illegal_action(complaint or f"action: {action} was given", turn.legal)
        if self._illegal == "raise":
            raise IllegalActionError(message)
        self._given.append(action)
        self._strikes += 1
        if self._strikes >= (STRIKES if self._illegal == "penalize" else 1):
            self._turn = turn = self._backend.forfeit()
            self._over = True
        info = self._info(turn)
        info["upstream_reward"] = ILLEGAL_REWARD
        info["error"] = {"type": "invalid_action", "message": message}
        if turn.ending is not None:
            info.update(turn.ending.info())
        if self.render_mode == "human":
            print(message)
            self.render()
        return turn.text, ILLEGAL_REWARD, self._over, False, info

    def _info(self, turn: Turn) -> dict[str, Any]:
        assert self._task is not None
        # Bytes are several times faster to set one by one than an array is to index.
        mask = bytearray(self._actions)
        for action in turn.legal:
            mask[action] = 1
        return {
            "action_mask": np.frombuffer(mask, _INT8),
            "legal_actions": turn.legal.copy(),
            "admissible_commands": turn.names.copy(),
            "task_id": self._task.task_id,
            "seed": self._seed,
            "game": self._task.variant.spec.name,
            "seat": turn.seat,
            "opponent": self._playing,
            "turn": self._moves,
        }

    def __getstate__(self) -> dict[str, Any]:
        """Arguments, address and the actions so far: what a copy is replayed from.

        Raises:
            PickleError: in mid-game against an opponent that would not play the same moves again.
        """
        reason = "" if self._asked == OPEN else find_opponent(self._asked).why_not_replayable
        if reason and not self._over:
            raise PickleError(f"opponent {self._asked!r} cannot be carried in mid-game: {reason}")
        episode = None
        if self._task is not None and self._turn is not None and not reason:
            history = self.state.history()
            episode = (self._task.task_id, self._seed, self._asked, self._given, history)
        return {
            "arguments": self._arguments,
            "episode": episode,
            "spec": self.spec,
            "generator": (self._np_random, self._np_random_seed),
            "spaces": (self.observation_space, self.action_space),
        }

    def __setstate__(self, carried: dict[str, Any]) -> None:
        self.__init__(**carried["arguments"])  # type: ignore[misc]
        self.spec = carried["spec"]
        self.observation_space, self.action_space = carried["spaces"]
        if carried["episode"] is not None:
            self._replay(*carried["episode"])
        self._np_random, self._np_random_seed = carried["generator"]

    def _replay(
        self, task_id: int | None, seed: int, opponent: str, given: list[int], history: list[int]
    ) -> None:
        task = (
            self._tasks.draw(np.random.default_rng(0)) if task_id is None else find_task(task_id, self._tasks)
        )
        shown, self.render_mode = self.render_mode, None  # what was printed once is not printed again
        self._begin(task, seed, opponent)
        for action in given:
            self._step(action, None)
        self.render_mode = shown
        if self.state.history() != history:
            raise PickleError(
                f"opponent {opponent!r} played other moves when the episode was replayed: "
                f"{self.state.history()} instead of {history}"
            )
