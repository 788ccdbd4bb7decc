"""Ways to sample from a language model and to learn from the same turns: ours, and two that others use.

Every way has phases that take turns. An update is a forward and a backward pass; the optimizer's own step is
the same for all ways and left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gamespiel.agents.engines.base import base_of
from gamespiel.agents.engines.token_tree import TokenTree
from gamespiel.agents.learning.coefficients import Coefficients
from gamespiel.agents.learning.terms import Played, Scored, critic_error, policy_gradient
from gamespiel.agents.models.names import BASE
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.decisions import Decision, Request
from gamespiel.agents.sampling.noise import Address, Purpose
from gamespiel.agents.tokens.answers import LegalAnswers
from gamespiel.config.sections import EnvConfig
from gamespiel.environments import make_one_env

Tokens = tuple[int, ...]

TOKENS_PER_BACKWARD = 1024
"""Most tokens per forward with gradients of ours: a quarter of the trainer's default, to bound memory."""

MICRO_BATCH = 4
"""Sequences per forward of the other ways, so that memory does not slow them down."""


EPISODES_AT_MOST = 1000
"""Episodes that are played to find turns."""


class Turn(NamedTuple):
    """One decision: the prompt's tokens, the legal actions, and the one that was taken."""

    prompt: Tokens
    legal: tuple[int, ...]
    action: int


Phase = Callable[[Sequence[Turn]], None]


def collect(
    config: EnvConfig, turns: int, encode: Callable[[str], Tokens], legal: range = range(1, 10**6)
) -> list[Turn]:
    """Returns turns of random play, from at least half as many episodes, first turns first.

    Args:
        config: The environment.
        turns: Number of turns.
        encode: Text to tokens.
        legal: Numbers of legal actions of the turns that are taken.

    Raises:
        ValueError: random play does not come to that many such turns.
    """
    env, stream = make_one_env(config), np.random.default_rng(0)
    played: list[list[tuple[str, Turn]]] = []
    for seed in range(EPISODES_AT_MOST):
        text, info = env.reset(seed=seed)
        over, episode = "result" in info, []
        while not over:
            allowed = tuple(map(int, info["legal_actions"]))
            turn = Turn((), allowed, int(stream.choice(allowed)))
            if len(allowed) in legal:
                episode.append((text, turn))
            text, _, terminated, truncated, info = env.step(turn.action)
            over = terminated or truncated
        played.append(episode)
        if len(played) >= turns / 2 and sum(map(len, played)) >= turns:
            break
    else:
        raise ValueError(
            f"{EPISODES_AT_MOST} episodes have fewer than {turns} turns with {legal} legal actions"
        )
    rounds = [episode[i] for i in range(max(map(len, played))) for episode in played if i < len(episode)]
    return [turn._replace(prompt=encode(text)) for text, turn in rounds[:turns]]


def shape_of(turns: Sequence[Turn]) -> dict[str, Any]:
    """Returns the sizes of turns and of what they share. A perfect trie reads the distinct tokens."""
    prompts = [turn.prompt for turn in turns]
    return {
        "turns": len(turns),
        "distinct_prompts": len(set(prompts)),
        "legal_actions": round(sum(len(turn.legal) for turn in turns) / len(turns), 2),
        "tokens_per_prompt": round(sum(map(len, prompts)) / len(turns), 1),
        "distinct_tokens_per_turn": round(len(TokenTree.build(prompts).tokens) / len(turns), 1),
    }


class Ours:
    """The trainer's way, with the reading of its policy: exact over the legal actions' tokens."""

    def __init__(self, policy: LLMPolicy) -> None:
        self.policy = policy
        self.phases: Mapping[str, Phase] = {
            "sample": self.sample,
            "reference": self.reference,
            "update": self.update,
        }

    def sample(self, turns: Sequence[Turn]) -> None:
        requests = [
            Request(decision.prompt, decision.constraint, Address(0, Purpose.ACTIONS, 0, 0, row))
            for row, decision in enumerate(self._decisions(turns))
        ]
        self.policy.sampler.sample(requests)

    @torch.no_grad()
    def reference(self, turns: Sequence[Turn]) -> None:
        with self.policy.adapters.use(BASE):
            for part in self._parts(turns):
                self.policy.scorer.score(part)

    def update(self, turns: Sequence[Turn]) -> None:
        self.policy.optimizer.zero_grad(set_to_none=True)
        for part in self._parts(turns):
            scores = self.policy.scorer.score(part)
            critic = critic_error(
                Scored(scores.log_probs, scores.entropy, scores.values),
                Played(*[torch.zeros_like(scores.values)] * 4),
                Coefficients(vf_coef=0.1),
            )
            loss = _policy_loss(scores.sum(scores.log_probs)) + critic.loss
            (loss * (len(part) / len(turns))).backward()

    def _parts(self, turns: Sequence[Turn]) -> Iterator[list[Decision]]:
        decisions = self._decisions(turns)
        for rows in self.policy.scorer.split(decisions, budget=TOKENS_PER_BACKWARD):
            yield [decisions[row] for row in rows]

    def _decisions(self, turns: Sequence[Turn]) -> list[Decision]:
        answers = self.policy.answers
        assert isinstance(answers, LegalAnswers)
        tries = [answers.trie_of_numbers(turn.legal) for turn in turns]
        return [
            Decision.from_answer(turn.prompt, trie, trie.answer_tokens(turn.action))
            for turn, trie in zip(turns, tries, strict=True)
        ]


class EachAction:
    """A forward for each legal action of each turn: the prompt is copied, and scores are normalised.

    TWOSOME does so. It is helped twice here. Logits are computed at the actions' tokens only. And the update
    takes the probabilities from ``sample``, which is exact before the first optimizer step: so a graph holds
    one micro-batch, and nothing is read a second time.

    Args:
        policy: A policy with the reading ``padded``, whose model is used.
    """

    def __init__(self, policy: LLMPolicy) -> None:
        self.policy = policy
        self.phases: Mapping[str, Phase] = {"sample": self.sample, "update": self.update}
        self.probabilities: dict[Turn, Tensor] = {}

    @torch.no_grad()
    def sample(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            scores = torch.cat([self.scores(turn.prompt, actions) for actions in _cut(turn.legal)])
            self.probabilities[turn] = scores.softmax(-1)
            torch.multinomial(self.probabilities[turn], 1)

    def update(self, turns: Sequence[Turn]) -> None:
        """Adds the gradient of the turns' mean −log π(action); ``sample`` comes before."""
        self.policy.optimizer.zero_grad(set_to_none=True)
        for turn in turns:
            # The gradient of −log softmax(scores)[action] by the scores.
            weights = self.probabilities[turn].clone()
            weights[turn.legal.index(turn.action)] -= 1
            parts = _cut(turn.legal)
            for actions, weight in zip(parts, weights.split(MICRO_BATCH), strict=True):
                ((self.scores(turn.prompt, actions) * weight).sum() / len(turns)).backward()

    def scores(self, prompt: Tokens, actions: Sequence[int]) -> Tensor:
        """Returns the log-probabilities of the actions' texts after the prompt, float32 (actions,)."""
        engine = self.policy.engine
        answers = [self.policy.codec.encode_action(action) for action in actions]
        rows = [row for row, answer in enumerate(answers) for _ in answer]
        states = engine.read(
            [(*prompt, *answer[:-1]) for answer in answers],
            rows,
            [len(prompt) - 1 + i for answer in answers for i in range(len(answer))],
        )
        following = torch.tensor([token for answer in answers for token in answer], device=states.device)
        picked = engine.logits(states).log_softmax(-1).gather(1, following[:, None])[:, 0]
        return torch.zeros(len(answers), device=states.device).index_add(
            0, torch.tensor(rows, device=states.device), picked
        )


class Everywhere:
    """Padded prompts with their answers, and log-probabilities of the whole vocabulary at all positions.

    TRL's PPO trainer did so, in float32. Its value head is left out here, and padding is not masked, which
    causal attention does not need.

    Args:
        policy: A policy with the reading ``padded``, whose model is used.
    """

    def __init__(self, policy: LLMPolicy) -> None:
        self.policy = policy
        self.phases: Mapping[str, Phase] = {"reference": self.reference, "update": self.update}

    @torch.no_grad()
    def reference(self, turns: Sequence[Turn]) -> None:
        with self.policy.adapters.use(BASE):
            for part in _cut(turns):
                self.log_probs(part)

    def update(self, turns: Sequence[Turn]) -> None:
        self.policy.optimizer.zero_grad(set_to_none=True)
        for part in _cut(turns):
            (_policy_loss(self.log_probs(part)) * (len(part) / len(turns))).backward()

    def log_probs(self, turns: Sequence[Turn]) -> Tensor:
        """Returns the log-probabilities of the turns' answers in the whole vocabulary, float32 (turns,)."""
        answers = [self.policy.codec.encode_action(turn.action) for turn in turns]
        rows = [(*turn.prompt, *answer) for turn, answer in zip(turns, answers, strict=True)]
        width = max(map(len, rows))
        device = self.policy.engine.device
        ids = torch.tensor([[*row, *(0,) * (width - len(row))] for row in rows], device=device)
        self.policy.engine.tokens_read += sum(map(len, rows))
        logits = base_of(self.policy.model)(input_ids=ids, use_cache=False).logits.float()
        every = logits[:, :-1].log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
        answered = torch.zeros_like(every)
        for i, (turn, row) in enumerate(zip(turns, rows, strict=True)):
            answered[i, len(turn.prompt) - 1 : len(row) - 1] = 1
        return (every * answered).sum(-1)


Way = Ours | EachAction | Everywhere


class Timed(NamedTuple):
    """One phase of one way: the seconds of each repetition, and the tokens read in one of them."""

    seconds: list[float]
    tokens: int


def race(
    ways: Mapping[str, Way], phases: Sequence[str], turns: Sequence[Turn], repetitions: int
) -> dict[str, dict[str, Timed]]:
    """Times the phases that each way has, on the same turns; the ways alternate."""
    found: dict[str, dict[str, Timed]] = {name: {} for name in ways}
    for _ in range(repetitions):
        for phase in phases:
            for name, way in ways.items():
                if phase not in way.phases:
                    continue
                engine = way.policy.engine
                read = engine.tokens_read
                seconds = clocked(lambda run=way.phases[phase]: run(turns))  # type: ignore[misc]
                timed = found[name].setdefault(phase, Timed([], engine.tokens_read - read))
                timed.seconds.append(seconds)
                way.policy.optimizer.zero_grad(set_to_none=True)
    return found


def clocked(work: Callable[[], Any]) -> float:
    """Returns the seconds that work takes, on a GPU too."""
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    wait()
    begun = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - begun


def _cut(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[start : start + MICRO_BATCH] for start in range(0, len(items), MICRO_BATCH)]


def _policy_loss(log_probs: Tensor) -> Tensor:
    """Returns PPO's loss of a first pass, with advantages of both signs."""
    signs = torch.tensor([(-1.0) ** i for i in range(len(log_probs))], device=log_probs.device)
    old, none = log_probs.detach(), log_probs[:0]
    return policy_gradient(
        Scored(log_probs, none, none), Played(old, old, signs, none), Coefficients(cliprange=0.2)
    ).loss
