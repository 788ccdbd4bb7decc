"""GameSpiel-v0: OpenSpiel games with text observations and legal-action masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import game_gym.opponents  # noqa: F401  (registers the games' own opponents)
from game_gym.backends import GameBackend, GameTurn, make_backend
from game_gym.backends.base import OBSERVATION_LENGTH
from game_gym.opponents.costs import estimate_mean
from game_gym.options import (
    check_max_turns,
    check_opponent,
    opponent_may_search,
    read_list_actions,
    read_opponent,
    read_seat,
)
from game_gym.prompts import hide_choices
from game_gym.protocols import PROTOCOLS, SEEDS, own_seed
from game_gym.spec import State, Variant
from game_gym.task import Task, TaskSet
from task_gym.arguments import check_names, read_action
from task_gym.contract import ILLEGAL_REWARD, Strikes, illegal_info
from task_gym.env import OUTSIDE, TaskEnv, say
from task_gym.errors import (
    ArgumentError,
    EpisodeError,
    OptionError,
    PickleError,
    check_choice,
    illegal_action,
    quote,
)
from task_gym.opponents import OPEN, find_opponent, opponent_waits
from task_gym.remote.settings import DEFAULTS
from task_gym.replies import NoAction
from task_gym.spaces import UnicodeText

CUT_SHORT = ("cut", "fault")
"""Results of games that were not played to an end."""

# A dtype, because NumPy would look one up for the type on every call.
_INT8 = np.dtype(np.int8)


DEFAULT_GAME = "leduc_poker"


class GameSpielEnv(TaskEnv, gym.Env[str, Any]):
    """A game against an opponent, described in words.

    ## Observation space
    A string: rules (unless ``rules=False``), seat, state, legal actions and what to answer. It is complete in
    itself, and depends only on the player's information state.

    ## Action space
    ``Discrete(n)``: n is the greatest number of actions over every game and variant that may be drawn.

    ## Info
    Always: ``action_mask`` (int8, shape (n,), 1 = legal, all zeros only after the end), ``legal_actions``,
    ``admissible_commands`` (their names), ``task_id`` (None if the game was named), ``seed``, ``game``,
    ``seat``, ``opponent`` (who really plays), ``turn`` (legal moves made), ``upstream_reward`` (0 at reset).
    After an illegal action: ``error``, with ``type`` and ``message``. At the end: ``score``, ``scores`` (one
    per seat), ``success``, ``returns`` (one per seat), ``result`` ("win", "draw", "loss", "cut", "fault"),
    ``history``.

    If the opponent that plays was registered with ``illegal="forfeit"`` (see
    ``task_gym.opponents.register_opponent``), every info has ``opponent_illegal``: the number of illegal
    actions by opponents in this episode so far. A seat that gives the game up has its least return. The
    caller's ``score`` and ``result`` follow from that, also at ``reset``.

    ## Rewards
    0 until the end, then the score; an illegal action -0.01. With ``reward="upstream"``, what affinetes'
    session pays.

    ## End
    ``terminated`` when the game is over or given up; ``truncated`` when ``max_turns`` cut a game that could
    have gone on. A cut keeps the text and the mask of the position that it cut. ``truncated`` also marks a
    "fault", with score None and reward 0: OpenSpiel left the game without a legal move and without an end, or
    a search ended its process. ``info["fault"]`` says which.

    A game may be over before the caller's first turn: in euchre, when the partner of a player who goes alone
    sits out, and in some of the games outside the table. ``reset`` then returns the closing text, a mask of
    zeros and everything that ``info`` has at the end (``upstream_reward`` is the score): look there for
    ``"result"``. Vector environments do not look, so one step may follow. It returns the same for any action.

    Args:
        task_id: One task id. One of ``task_id``, ``task_ids`` and ``game`` is given; without any, the game is
            "leduc_poker".
        task_ids: A list of ids and (first, last) ranges, ends included; each reset draws one.
        game: An OpenSpiel game by name, with ``params``: one that is declared here, or any other that
            OpenSpiel loads, described by its own strings.
        params: Parameters of ``game``.
        allow_files: Whether a parameter may name a file, which OpenSpiel opens, as that of "efg_game" does.
        opponent: "random", "first", a search, or "open", which leaves every seat to the caller: each turn is
            the turn of ``info["seat"]``, and reward and score are those of the seat that moved last. Searches
            are "mcts" and "mcts-python", which read hidden cards, "ismcts", which does not, and "mcts-fast",
            the search of "mcts" with compiled rules, for a few games (extra ``fast``). Each takes a
            budget, as "mcts:SIMS" or "mcts:SIMSxROLLOUTS". In games of simultaneous moves "random" plays in
            their place, and ``info["opponent"]`` says so.
        backend: "local", or "affinetes" for a server (docs/affinetes.md). Then ``history``, ``returns`` and
            ``scores`` are in ``info`` only if the server tells them, and a fault has ``info["fault"]``.
        seeding: "openenv" or "evaluate": the one of upstream's protocols that expands the seed.
        rules: Whether every observation begins with the rules.
        reward: "score" or "upstream".
        illegal: "penalize" (the third in a row gives the game up), "forfeit" (the first does) or "raise".
        max_turns: Legal moves after which the game is cut, at least 2; None for no limit.
        render_mode: "ansi" (``render()`` returns the observation), "rgb_array" (returns its picture, a uint8
            array that always has the same shape) or "human" (every observation is printed).
        list_actions: Whether every observation lists the legal actions. If not, a line says how an action is
            written, and the text asks for its name; mask and info have the legal actions as before. The reset
            option ``list_actions`` decides for one episode.
        seeds: "drawn", or "affine": each task id has a seed of its own, by ``protocols.own_seed``, as in
            affinetes' competition. It is ``info["seed"]``; the seed of ``reset`` then only draws the task.
        **server: With ``backend="affinetes"``: how the server is reached, see docs/affinetes.md.
            ``mode="url"`` has ``base_url`` (as "http://127.0.0.1:8000"); ``mode="docker"`` has ``image``,
            ``env_vars``, ``mem_limit``, ``cpu_limit``, ``pull`` and ``host``; both have ``timeout``, the
            seconds that one call may take.

    Attributes:
        seeding: As given.
        rules: As given.
        list_actions: Whether the texts of this episode list the legal actions.
        is_local: Whether games are played in this process.
        waits: Whether ``reset`` and ``step`` wait for a server or for a slow opponent, so that threads can
            overlap them.
        searches: Whether an opponent searches in ``reset`` and ``step``, so that as many threads as there are
            cores can share them.
        search_seconds: About how many CPU seconds of search a move of the opponent takes, or less. It follows
            from game, opponent and budget, not from this machine.

    Raises:
        TaskGymError: an argument, reset option or seed is outside what is allowed; each kind has a subclass.
    """

    reset_options = ("task_id", "opponent", "seat", "list_actions")

    _tasks: TaskSet

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
        seeds: str = SEEDS[0],
        allow_files: bool = False,
        list_actions: bool = True,
        **server: Any,
    ) -> None:
        arguments = {
            "task_id": task_id, "task_ids": task_ids, "game": game, "params": params, "opponent": opponent,
            "backend": backend, "seeding": seeding, "rules": rules, "reward": reward, "illegal": illegal,
            "max_turns": max_turns, "render_mode": render_mode, "seeds": seeds,
            "allow_files": allow_files, "list_actions": list_actions, **server,
        }  # fmt: skip
        check_names(type(self), server, DEFAULTS)
        check_choice("seeding", seeding, PROTOCOLS)
        check_choice("seeds", seeds, SEEDS)
        if task_id is None and task_ids is None and game is None and params is None:
            game = DEFAULT_GAME
        if seeds == "affine" and game is not None:
            raise ArgumentError(
                f"seeds: 'affine' was given with game {game!r:.80}, allowed: with task_id or task_ids, from "
                "which the seeds follow"
            )
        self._own_seeds = seeds == "affine"
        check_choice("rules", rules, (True, False))
        check_choice("list_actions", list_actions, (True, False))
        check_choice("reward", reward, ("score", "upstream"))
        self._strikes = Strikes(illegal)
        check_max_turns(max_turns)
        self._backend: GameBackend = make_backend(backend, seeding, rules, server)
        check_choice("allow_files", allow_files, (True, False))
        super().__init__(TaskSet(task_id, task_ids, game, params, allow_files), arguments)
        check_opponent(opponent, self._tasks)
        self.waits = backend != "local" or opponent_waits(opponent)
        self.is_local = backend == "local"
        self.searches = self.may_search(opponent)
        self.search_seconds = self.estimate_search(opponent)
        self._opponent, self._reward, self._max_turns = opponent, reward, max_turns
        self.seeding, self.rules = seeding, rules
        self.list_actions = self._lists = list_actions
        self._actions = max(variant.actions for variant in self._tasks.variants)
        self.observation_space = UnicodeText(OBSERVATION_LENGTH)
        self.action_space = gym.spaces.Discrete(self._actions)
        self._turn: GameTurn | None = None
        self._task: Task | None = None
        self._moves = 0
        self._playing = opponent  # or its stand-in

    @property
    def state(self) -> State:
        """The live ``pyspiel.State``; None before the first reset, and always with a remote backend."""
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

    @property
    def opponent(self) -> str:
        """The opponent that really plays now, as ``info["opponent"]``."""
        return self._playing

    @property
    def opponents(self) -> tuple[str, ...]:
        """Names of the opponents that may play."""
        return (self._opponent,)

    @property
    def turn(self) -> GameTurn | None:
        """The turn that is to be decided, or the end; None before the first reset."""
        return self._turn

    @property
    def seats(self) -> int:
        """Number of seats of the game being played; of the first declared one before the first reset."""
        return self.variant.players

    @property
    def zero_sum(self) -> bool:
        """Whether the returns of every game that may be drawn always sum to zero."""
        return all(variant.zero_sum for variant in self.variants)

    def may_search(self, opponent: str) -> bool:
        """Returns whether an opponent would search in this process, in a game that may be drawn."""
        return self.is_local and opponent_may_search(opponent, self._tasks)

    def estimate_search(self, opponent: str) -> float:
        """Returns ``search_seconds`` for an opponent: a mean over the games that may be drawn."""
        return estimate_mean(opponent, self.variants) if self.may_search(opponent) else 0.0

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the mask: bool, shape (n,), True = legal.

        It is all False before the first reset and after the end. A cut by ``max_turns`` keeps the mask of the
        position that it cut.
        """
        mask = np.zeros(self._actions, dtype=np.bool_)
        if self._turn is not None:
            mask[self._turn.legal] = True
        return mask

    def close(self) -> None:
        """Abandons the episode, also on a server."""
        self._backend.close()

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Makes a move; ``action`` is a whole number."""
        return self._step(read_action(action))

    def _read_options(self, options: dict[str, Any]) -> tuple[str, int | None, bool]:
        opponent = read_opponent(options, self._tasks, self._opponent)
        seat = read_seat(options, opponent, self.is_local)
        return opponent, seat, read_list_actions(options, self._lists)

    def _begin(
        self,
        task_id: int | None,
        seed: int,
        opponent: str,
        seat: int | None = None,
        list_actions: bool | None = None,
    ) -> None:
        self._turn = None  # stays so if the opponent refuses the game
        task = self._tasks.task(task_id)
        if self._own_seeds and task_id is not None:
            seed = own_seed(task_id)
        if seat is not None and seat >= task.variant.players:
            raise OptionError(
                f"reset option 'seat': {seat} was given for {task.variant.spec.name!r}, allowed: 0 … "
                f"{task.variant.players - 1}"
            )
        turn = self._backend.start(task, seed, opponent, seat)
        self._task, self._playing = task, self._backend.playing
        self.list_actions = self._lists if list_actions is None else list_actions
        self._facts = task.task_id, seed, task.variant.spec.name, self._playing
        self._moves = self._strikes.count = 0
        self._turn = self._lay_out(turn)

    def _lay_out(self, turn: GameTurn) -> GameTurn:
        """Returns a turn of the backend as this episode shows it."""
        if self.list_actions or not turn.legal:
            return turn
        return replace(turn, text=hide_choices(turn.text, self.variant, turn.legal, turn.names))

    def _opening(self) -> tuple[str, dict[str, Any]]:
        turn = self._turn
        assert turn is not None
        info = self._info(turn)
        info["upstream_reward"] = 0.0
        if turn.ending is not None:  # before the caller's first turn
            info["upstream_reward"] = turn.reward
            info.update(turn.ending.info())
        return turn.text, info

    def _shown(self) -> str:
        return "" if self._turn is None else self._turn.text

    def _repeat(self, action: int | NoAction) -> None:
        self._step(action)

    def _step(self, action: int | NoAction) -> tuple[str, float, bool, bool, dict[str, Any]]:
        turn = self._turn
        if turn is None or self._over:
            raise EpisodeError(OUTSIDE)
        if turn.ending is not None:  # the game was over at its reset
            self._history.append(action)
        elif isinstance(action, NoAction) or action not in turn.legal:
            return self._move_illegally(turn, action)
        else:
            self._history.append(action)
            self._strikes.count = 0
            self._moves += 1
            try:
                self._turn = turn = self._lay_out(self._backend.play(action))
            except BaseException:  # an opponent's
                self._turn = None
                self._leave()
                raise
        info = self._info(turn)
        info["upstream_reward"] = turn.reward
        ending, truncated, reward = turn.ending, False, 0.0
        if ending is None and self._moves == self._max_turns:
            ending = self._backend.cut()
        if ending is not None:
            self._over = True
            reward, truncated = ending.score or 0.0, ending.result in CUT_SHORT
            info.update(ending.info())
        if self._reward == "upstream":
            reward = turn.reward
        if self.render_mode == "human":
            self.render()
        return turn.text, reward, ending is not None and not truncated, truncated, info

    def _move_illegally(
        self, turn: GameTurn, action: int | NoAction
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if isinstance(action, NoAction):
            mistake = f"reply: {action.beginning!r} names no legal action"
        else:
            mistake = f"action: {quote(action)} was given"
        # Conversations show the message to the player.
        message = illegal_action(mistake, turn.legal) if self.list_actions else f"{mistake}: it is not legal"
        gives_up = self._strikes.add(message)
        self._history.append(action)
        if gives_up:
            self._turn = turn = self._backend.forfeit()
            self._over = True
        if self.render_mode == "human":
            say(message)
            self.render()
        info = self._info(turn) | illegal_info(message)
        if turn.ending is not None:
            info.update(turn.ending.info())
        return turn.text, ILLEGAL_REWARD, turn.ending is not None, False, info

    def _info(self, turn: GameTurn) -> dict[str, Any]:
        task_id, seed, name, opponent = self._facts
        # Bytes are several times faster to set one by one than an array is to index.
        mask = bytearray(self._actions)
        for action in turn.legal:
            mask[action] = 1
        info = {
            "action_mask": np.frombuffer(mask, _INT8),
            "legal_actions": turn.legal.copy(),
            "admissible_commands": turn.names.copy(),
            "task_id": task_id,
            "seed": seed,
            "game": name,
            "seat": turn.seat,
            "opponent": opponent,
            "turn": self._moves,
        }
        if turn.opponent_illegal is not None:
            info["opponent_illegal"] = turn.opponent_illegal
        return info

    def __getstate__(self) -> dict[str, Any]:
        """Returns the parts from which a copy plays again, and the moves that were made.

        Raises:
            PickleError: in mid-game against an opponent that would not play the same moves again.
        """
        carried = super().__getstate__()
        if self._address is None:
            return carried
        opponent = self._address[2]
        reason = "" if opponent == OPEN else find_opponent(opponent).why_not_replayable
        if reason and not self._over:
            raise PickleError(f"opponent {opponent!r} cannot be carried in mid-game: {reason}")
        return carried | ({"address": None} if reason else {"history": self._backend.history()})

    def __setstate__(self, carried: dict[str, Any]) -> None:
        super().__setstate__(carried)
        if carried["address"] is None:
            return
        history = self._backend.history()
        if history != carried["history"]:
            raise PickleError(
                f"opponent {carried['address'][-1]!r} played other moves when the episode was replayed: "
                f"{history} instead of {carried['history']}"
            )
