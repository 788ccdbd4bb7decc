"""The opponent ``mcts-python``, upstream's own search, move for move.

It is slow: use it to replay upstream's games exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from game_gym.opponents.mcts import UCT_C, random_where_simultaneous, read_budget
from game_gym.opponents.search_processes import choose
from game_gym.spec import State
from task_gym.opponents import Seating, SeatView, register_opponent
from task_gym.seeding import Stream


class UpstreamRollouts:
    """Upstream's evaluator: rollouts that draw uniformly among legal actions at every node.

    Chance nodes too are drawn uniformly, without their probabilities. A rollout ends at a terminal state, or
    when nothing is legal. It follows the evaluator protocol of ``open_spiel.python.algorithms.mcts``.
    """

    def __init__(self, rollouts: int, stream: Stream) -> None:
        self._rollouts, self._stream = rollouts, stream

    def evaluate(self, state: State) -> Any:
        """Returns the mean returns over the rollouts, float64 of shape (players,)."""
        below = self._stream.below
        total: Any = None
        for _ in range(self._rollouts):
            working = state.clone()
            while not working.is_terminal():
                legal = working.legal_actions()
                if not legal:
                    break
                working.apply_action(legal[below(len(legal))])
            returns = np.array(working.returns())
            total = returns if total is None else total + returns
        return total / self._rollouts

    def prior(self, state: State) -> list[tuple[int, float]]:
        """Returns the uniform distribution over the legal actions, at chance nodes too."""
        legal = state.legal_actions()
        return [(action, 1.0 / len(legal)) for action in legal]


class PythonMctsOpponent:
    """OpenSpiel's Python MCTSBot with upstream's evaluator and seeds. As ``mcts``, it reads hidden cards."""

    def __init__(self, seating: Seating) -> None:
        # Imported here: only this opponent needs OpenSpiel's Python algorithms.
        from open_spiel.python.algorithms import mcts

        budget = read_budget(seating, "mcts-python")
        self.argument = f"{budget.simulations}x{budget.rollouts}"
        self._rollouts, self._search = Stream(), Stream()
        self._bot = mcts.MCTSBot(
            seating.game,
            UCT_C,
            budget.simulations,
            UpstreamRollouts(budget.rollouts, self._rollouts),
            random_state=self._search.random_state,
        )

    def restart(self, seed: int) -> None:
        """Begins an episode from a bot's root. The bot keeps no tree between moves."""
        self._rollouts.seed(seed + 3)
        self._search.seed(seed + 4)

    def act(self, view: SeatView) -> int:
        """Returns the move that the search visited most, or proved best."""
        return choose(self, view.state, view.seat)

    def choose(self, state: State, seat: int) -> int:
        """Searches in this process; see ``PythonSearch``."""
        return int(self._bot.step(state))

    def generators(self) -> Any:
        """Returns where both generators stand."""
        return [stream.random_state.get_state() for stream in (self._rollouts, self._search)]

    def set_generators(self, states: Any) -> None:
        """Puts both generators there."""
        for stream, state in zip((self._rollouts, self._search), states, strict=True):
            stream.random_state.set_state(state)


register_opponent(
    "mcts-python",
    PythonMctsOpponent,
    usage="mcts-python[:SIMS[xROLLOUTS]]",
    takes_argument=True,
    stand_in=random_where_simultaneous("mcts-python"),
    searches=True,  # in a process if threads share the cores
)
