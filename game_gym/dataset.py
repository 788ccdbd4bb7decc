"""Single positions of games as a data set of questions with a scorer, in reasoning-gym's shape."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from game_gym.env import GameSpielEnv
from game_gym.judges import Judge, make_judge
from game_gym.spec import State, Variant
from task_gym.dataset import Entry, QuestionDataset
from task_gym.errors import ArgumentError
from task_gym.replies import last_named
from task_gym.seeding import DRAWN_LIMIT

_DIGITS = 6
"""Decimals of scores: what is beyond them may differ between machines."""

Position = tuple[str, dict[str, Any], State]


class PositionDataset(QuestionDataset):
    """Positions of games: ``{"question", "answer", "metadata"}``, and a score for any answer.

    Entry i is a position of the episode of ``GameSpiel-v0`` with seed ``seed + i``: the seat plays random
    legal moves, and each of its turns is as likely to be taken. The question is the observation, the answer
    the best legal action's id. If a game is over before the seat's first turn, the episode ``size`` seeds
    later takes its place.

    The score of a move is 1 less what it gives away: the difference between the scores that the seat may
    expect after the best move and after this one. So the best move scores 1. A reply that names no legal
    action scores 0. ``metadata["scores"]`` has the scores of all legal actions.

    The judge decides what the seat may expect. "exact" assumes best play from then on against the
    opponent, "random" or "first", in games small enough to enumerate (``game_gym.exact``). "mcts:SIMS" and
    "mcts:SIMSxROLLOUTS" estimate it by a search that plays both seats, in games of two seats that hide
    nothing.

    Args:
        size: Number of entries.
        seed: The first seed.
        judge: "exact", "mcts:SIMS" or "mcts:SIMSxROLLOUTS".
        **arguments: Those of ``GameSpiel-v0`` that choose games, opponent, rules and seeding.

    Raises:
        TaskGymError: an argument is outside what is allowed, or the judge cannot judge a game.
    """

    def __init__(self, size: int = 100, seed: int = 0, judge: str = "exact", **arguments: Any) -> None:
        super().__init__(size, seed)
        self._env = GameSpielEnv(**arguments)
        if not self._env.is_local:
            raise ArgumentError("backend: 'affinetes' was given, allowed: 'local', which has states")
        self._name, self._opponent = judge, arguments.get("opponent", "random")
        self._judges: dict[int, Judge] = {}  # by the variant's id: the environment keeps the variants
        for variant in self._env.variants:
            self._judge(variant)

    def entry(self, seed: int) -> Entry:
        """Returns the entry of a seed."""
        text, info, state = self._position(seed)
        variant = self._env.variant
        values = self._judge(variant)(state, info["seat"], info["seed"])
        width = (variant.high - variant.low) or 1.0
        scores = [round(1 - (max(values) - value) / width, _DIGITS) for value in values]
        keys = ("task_id", "seed", "game", "seat", "turn", "opponent", "legal_actions", "admissible_commands")
        return {
            "question": text,
            "answer": str(info["legal_actions"][scores.index(max(scores))]),
            "metadata": {**{key: info[key] for key in keys}, "scores": scores},
        }

    def score_answer(self, answer: str | None, entry: Mapping[str, Any]) -> float:
        """Returns the score of a reply to an entry, in [0, 1].

        The last legal id that the reply names counts, else the legal action's name that ends last. Reasoning
        is not read. A reply that names no legal action scores 0, and so does no reply.
        """
        known = entry["metadata"]
        legal = known["legal_actions"]
        chosen = None if answer is None else last_named(answer, legal, known["admissible_commands"])
        return 0.0 if chosen is None else float(known["scores"][legal.index(chosen)])

    def __getstate__(self) -> dict[str, Any]:
        """Returns everything but the judges, which a copy makes anew."""
        return {**vars(self), "_judges": {}}

    def _judge(self, variant: Variant) -> Judge:
        if id(variant) not in self._judges:
            self._judges[id(variant)] = make_judge(self._name, variant, self._opponent)
        return self._judges[id(variant)]

    def _position(self, seed: int) -> Position:
        """Returns observation, info and state of one turn of the seed's episode."""
        rng = random.Random(seed)
        text, info = self._env.reset(seed=seed)
        chosen, turns = None, 0
        while "result" not in info:
            turns += 1
            if rng.random() * turns < 1:  # keeps each of the turns so far with the same probability
                chosen = text, info, self._env.state.clone()
            legal = info["legal_actions"]
            text, _, _, _, info = self._env.step(legal[int(rng.random() * len(legal))])
        return chosen or self._position((seed + len(self)) % DRAWN_LIMIT)
