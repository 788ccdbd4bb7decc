"""The time of a step: as it was measured, or estimated from a few games that are played at random."""

from __future__ import annotations

import random
from itertools import pairwise
from math import inf
from os.path import commonprefix
from typing import NamedTuple

from gamespiel.agents.models.memory_plan import count_trained_parameters
from gamespiel.agents.models.weights import ModelError
from gamespiel.config import Config
from gamespiel.configure.answers import TINY, TRACES, Answers
from gamespiel.configure.settings import Draft, Setting
from gamespiel.environments.making import plays_itself
from gamespiel.kinds import declaration_of, kind_of
from gamespiel.training.planning import load_of

MEASURED = {
    ("tiny", "leduc_poker"): (54 / 32, "32 steps took 54 s on two cores"),
    ("tiny-selfplay", "leduc_poker"): (464 / 200, "200 steps took eight minutes on one core"),
    ("tiny-trace", TRACES): (600 / 120, "120 steps took ten minutes on two cores"),
    ("smollm2-135m", "kuhn_poker"): (240 / 18, "18 steps took 4 minutes on two cores"),
    ("smollm2-135m", "leduc_poker"): (3600 / 18, "18 steps took 60 minutes on two cores"),
}
"""Seconds per step on a CPU by preset and tasks, from README.md and docs/."""

TINY_DECISIONS = 50.0
"""Decisions per second of the embedded model: 27 to 422 in five games on one core (docs/lab-notes.md)."""

CPU_FLOPS = 0.3e12
"""Operations per second of SmolLM2 in bfloat16 on two cores (``benchmarks/results/train_speed.json``)."""

GPU_FLOPS = ((20.0, 8e12), (40.0, 15e12), (inf, 50e12))
"""Operations per second that are assumed of a card below so many GiB. None was measured."""

CHARACTERS_PER_TOKEN = 2.5
"""SmolLM2 has 2.0 to 3.3 in Leduc poker, without and with the rules."""

SAMPLED = 8
"""Episodes played at random to learn their length."""

RESERVED = 0.1
"""Share of the hours for the evaluations before and after training."""

CHECKPOINT_MINUTES = 30.0

FEWEST_EVALUATED = 10
"""Episodes per seat of an evaluation: fewer say nothing."""


class Pace(NamedTuple):
    """The time of a step.

    Attributes:
        seconds: Seconds per step; None if nothing can be said.
        source: Where this is from, in words.
        is_measured: Whether such a run was measured, so that the time may be relied on.
        episode_seconds: Seconds per episode of an evaluation; 0 if they are not known to matter.
    """

    seconds: float | None
    source: str
    is_measured: bool = False
    episode_seconds: float = 0.0


def hour_settings(draft: Draft, answers: Answers) -> tuple[list[Setting], Pace | None]:
    """Returns the keys that fill the hours, and the pace they follow from; nothing without hours."""
    if answers.hours is None:
        return [], None
    pace, config, hours = find_pace(draft, answers), draft.config(), answers.hours
    settings = []
    if pace.seconds is None:
        steps = config.ppo.num_train_steps
        why = f"not planned for {hours:g} h: {pace.source}. Stop the run when they are over"
    else:
        steps = max(1, int((1 - RESERVED) * hours * 3600 / pace.seconds))
        seconds = f"{pace.seconds:.3g}" if pace.seconds < 1000 else f"{pace.seconds:.0f}"
        why = f"{hours:g} h, {RESERVED:.0%} of it for evaluations, at {seconds} s per step: {pace.source}"
        warm = config.ppo.critic_warmup_steps + config.ppo.lr_warmup_steps
        if steps <= warm:
            why += f". These are few: the first {warm} steps warm up"
    settings.append(Setting("ppo.num_train_steps", steps, why))
    if hours * 60 > CHECKPOINT_MINUTES:
        why = "minutes after which there is a checkpoint, also between those by steps"
        settings.append(Setting("run.checkpoint_minutes", CHECKPOINT_MINUTES, why))
    # There are two evaluations, each of so many episodes per seat, of which most games have two.
    most = RESERVED * hours * 3600 / (4 * pace.episode_seconds) if pace.episode_seconds else inf
    if (games := config.run.eval_games) > most:
        why = f"per seat, before and after; {games} would take over {RESERVED:.0%} of {hours:g} h"
        settings.append(Setting("run.eval_games", max(FEWEST_EVALUATED, int(most)), why))
    return settings, pace


def find_pace(draft: Draft, answers: Answers) -> Pace:
    """Returns the pace of a draft: as it was measured, or by the operations of a step.

    That of the embedded model is estimated by its decisions per second.
    """
    games = (TRACES,) if answers.tasks.traces else answers.tasks.games
    others = [setting.key for setting in draft.settings if setting.key not in ("env.game", "run.device")]
    is_plain = answers.card is None and len(games) == 1 and not others and not answers.tasks.ranges
    if is_plain and (row := MEASURED.get((draft.preset or "", games[0]))):
        return Pace(row[0], f"measured, {row[1]}", True)
    config, card = draft.config(), answers.card
    try:
        load = load_of(config)
    except ModelError:
        return Pace(None, "the model's size is not known here, and so neither is the time of a step")
    sample, declaration = play_sample(config), declaration_of(config.env)
    episodes = config.ppo.batch_size * (2 if plays_itself(config) else 1)
    notes = f"{sample.turns:.1f} turns per {declaration.unit.removesuffix('s')}, as {SAMPLED} at random had"
    if declaration.has_opponents:
        names = [getattr(config.env, "opponent", None), *(one.opponent for one in config.curriculum.stages)]
        searches = dict.fromkeys(name for name in names if name not in (None, "random", "first", "self"))
        notes += f". The time of {' and '.join(map(str, searches))} is not in it" if searches else ""
    if config.model.model_name == TINY:
        assumed, seconds = f"{TINY_DECISIONS:g} decisions per second", sample.turns / TINY_DECISIONS
        step_seconds = episodes * seconds
    else:
        rate = CPU_FLOPS if card is None else next(flops for size, flops in GPU_FLOPS if card < size)
        known = "as SmolLM2 has on two cores" if card is None else "since no GPU was measured"
        assumed = f"{rate / 1e12:g} TFLOP/s, {known}"
        layers, adapters = load.architecture.linear_parameters, count_trained_parameters(load)
        tokens = sample.turns * sample.characters / CHARACTERS_PER_TOKEN
        seconds = tokens * 2 * (layers + adapters) / rate
        step_seconds = step_flops(config, layers, adapters, episodes * tokens) / rate
    source = f"not measured; assumed are {assumed}, and {notes}"
    return Pace(step_seconds, source, episode_seconds=seconds)


class Sample(NamedTuple):
    """The length of episodes at random.

    Attributes:
        turns: Turns per episode.
        characters: Characters of a prompt, without beginnings that other prompts of the sample share.
    """

    turns: float
    characters: float


def play_sample(config: Config, episodes: int = SAMPLED) -> Sample:
    """Plays episodes at random against a random opponent, seeds 0, 1, …"""
    declaration, keys = declaration_of(config.env), config.env
    if declaration.has_opponents:
        keys = declaration.choose_opponent(keys, "random")
    env = kind_of(keys).player.make_env(keys)
    prompts, draw = [], random.Random(0)
    for seed in range(episodes):
        observation, info = env.reset(seed=seed)
        ended = False
        while not ended:
            prompts.append(str(observation))
            legal = [action for action, is_legal in enumerate(info["action_mask"]) if is_legal]
            observation, _, terminated, truncated, info = env.step(draw.choice(legal))
            ended = terminated or truncated
    env.close()
    return Sample(len(prompts) / episodes, count_distinct(prompts) / len(prompts))


def count_distinct(prompts: list[str]) -> int:
    """Returns the characters of prompts, with beginnings that they share counted once."""
    ordered = sorted(prompts)
    shared = sum(len(commonprefix(pair)) for pair in pairwise(ordered))  # noqa: RUF071 (texts, not paths)
    return sum(map(len, ordered)) - shared


def step_flops(config: Config, layers: int, adapters: int, tokens: float) -> float:
    """Returns the operations of a step, without attention and head.

    Args:
        config: The configuration.
        layers: Parameters of the layers' linear modules.
        adapters: Those of the adapters.
        tokens: Tokens of all prompts of the step, those that are shared counted once. They are read once in
            play, twice before the update (by the old policy and the reference) and in each epoch.
    """
    epochs = config.ppo.ppo_epochs
    forwards = 2 * (layers + adapters) * (3 + epochs)
    return tokens * (forwards + (2 * layers + 4 * adapters) * epochs)
