"""Opponents as agents: the baselines of games."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gamespiel.kinds.episodes import answers_of

if TYPE_CHECKING:
    from game_gym.prompts import SeatView
    from gamespiel.agents.envs import TextEnvs
    from gamespiel.agents.rollout import Decide, Masks
    from gamespiel.agents.sampling.decisions import Answer
    from task_gym.opponents import Opponent


def baseline_agent(name: str, env: TextEnvs, seeds: Sequence[int]) -> Decide:
    """Returns an opponent by name (``random``, ``mcts:100``, ...) as an agent in local environments.

    It is built anew for each episode's game and seat, and restarted with the episode's seed. ``mcts`` reads
    the true state, as the opponent of that name does. No other opponent replaces it: a search is refused in
    games with simultaneous moves.

    Raises:
        OpponentError: no opponent has that name, or it cannot play a game that may be drawn.
    """
    from game_gym.prompts import SeatView
    from task_gym.opponents import make_opponent

    first: Any = env.envs[0].unwrapped
    for variant in first.variants:
        make_opponent(name, variant.game, variant.spec, seat=0)
    playing: dict[int, tuple[Opponent, SeatView]] = {}

    def begin(episode: int, local: Any) -> tuple[Opponent, SeatView]:
        view = SeatView(local.variant, local.seat, rules=True)
        opponent = make_opponent(name, local.variant.game, local.variant.spec, view.seat)
        opponent.restart(seeds[episode])
        return opponent, view

    def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> list[Answer]:
        actions = []
        for episode in indices:
            local: Any = env.envs[episode % env.num_envs].unwrapped
            if turn == 0:
                playing[episode] = begin(episode, local)
            opponent, view = playing[episode]
            view.state = local.state
            actions.append(opponent.act(view))
        return answers_of(actions)

    return decide
