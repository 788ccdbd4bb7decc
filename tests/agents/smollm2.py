"""SmolLM2-135M-Instruct for tests, and how far it moves from its 16 bits in other types.

``python -m tests.agents.smollm2`` prints the rows of the table in ``docs/models.md``, within two minutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from gamespiel.agents.models.loading import ModelSettings
from gamespiel.agents.policy import LLMPolicy

NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"


def policy(**settings: Any) -> LLMPolicy:
    """Returns a policy on it, in bfloat16 unless ``dtype`` is given."""
    env = gym.make("game_gym:GameSpiel-v0", game="tic_tac_toe")
    model = ModelSettings(NAME, **{"dtype": "bfloat16", **settings})
    return LLMPolicy(env.observation_space, env.action_space, lambda _: 1e-4, model=model)


GAMES: Mapping[str, int] = {"kuhn_poker": 12, "leduc_poker": 24, "tic_tac_toe": 24}
"""Games, and the states that the table is of; Kuhn poker has no more than 12."""

OTHERS: Mapping[str, dict[str, Any]] = {
    "float32 in place of bfloat16": {"dtype": "float32"},
    "`use_4bit`": {"use_4bit": True},
    "`use_4bit`, `use_nested_quant`": {"use_4bit": True, "use_nested_quant": True},
    "`use_8bit`": {"use_8bit": True},
}


class State(NamedTuple):
    game: str
    prompt: str
    legal: tuple[int, ...]


def states(game: str, count: int) -> list[State]:
    """Returns the first distinct states of games between random players."""
    env = gym.make("game_gym:GameSpiel-v0", game=game, opponent="random", rules=False)
    generator, states_by_prompt = np.random.default_rng(0), {}
    for seed in range(100 * count):
        prompt, info = env.reset(seed=seed)
        over = False
        while not over:
            states_by_prompt[prompt] = State(game, str(prompt), tuple(info["legal_actions"]))
            prompt, _, terminated, truncated, info = env.step(int(generator.choice(info["legal_actions"])))
            over = terminated or truncated
        if len(states_by_prompt) >= count:
            break
    return list(states_by_prompt.values())[:count]


class Read(NamedTuple):
    """A policy in some states: probabilities of legal actions, and logarithms of those of next tokens."""

    legal: list[np.ndarray[Any, Any]]
    vocabulary: Tensor


def read(model: LLMPolicy, asked: Sequence[State]) -> Read:
    prompts = [state.prompt for state in asked]
    legal = model.distribution(prompts, [state.legal for state in asked])
    with torch.no_grad():
        hidden, _ = model.engine.prefill(model.prompts(prompts), cache=False)
        return Read(legal, model.engine.logits(hidden).double().log_softmax(-1))


def divergences(a: Read, b: Read) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns KL(a || b) in each state, in nats: over legal actions, and over the vocabulary."""
    legal = [float((p * (np.log(p) - np.log(q))).sum()) for p, q in zip(a.legal, b.legal, strict=True)]
    vocabulary = (a.vocabulary.exp() * (a.vocabulary - b.vocabulary)).sum(-1)
    return np.array(legal), vocabulary.numpy()


def main() -> None:
    asked = [states(game, count) for game, count in GAMES.items()]
    reference = policy()
    sixteen = [read(reference, some) for some in asked]
    for name, settings in OTHERS.items():
        other, cells = policy(**settings), []
        for some, expected in zip(asked, sixteen, strict=True):
            legal, vocabulary = divergences(expected, read(other, some))
            cells.append(f"{legal.mean():.4f} / {vocabulary.mean():.3f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
