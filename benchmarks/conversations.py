"""Measures what it costs to learn from whole conversations: `python -m benchmarks.conversations`.

A step of training, collection and update, in three forms that take turns:

- ``turns``: each turn is a prompt of its own.
- ``conversations``: each turn continues its episode's conversation, of which every token is read once.
- ``anew``: likewise, but every turn reads its whole conversation, as trainers do that keep nothing between
  turns (TRL, verifiers).

All three play the same episodes with the same model. Tokens are counted by the engine: in collection, and in
the update's passes, that for the reference included. Seconds are those of the processor. Adapters learn
in the first step, although a preset may train only the critic then: such a step has no way back.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from benchmarks.ending import end, parse
from benchmarks.machine import machine
from gamespiel.agents.ppo import LLMPPO
from gamespiel.assembly import make_algorithm
from gamespiel.config import resolve

FORMS: dict[str, dict[str, str]] = {
    "turns": {"model.reading": "shared"},
    "conversations": {"model.reading": "shared", "env.conversation": "true"},
    "anew": {"model.reading": "padded", "env.conversation": "true"},
}

LONG = {"othello": 8}
"""How many times fewer episodes are played of games with many turns."""


class Figures(NamedTuple):
    """One step of training, per decision.

    Attributes:
        collected: Tokens read in collection.
        updated: Tokens read in the update, all passes.
        collect_s: Processor seconds of the collection.
        update_s: Those of the update.
        cut: Share of conversations with turns left out.
        tokens: Tokens of a prompt.
        turns: Turns of an episode.
    """

    collected: float
    updated: float
    collect_s: float
    update_s: float
    cut: float
    tokens: float
    turns: float


def make_learner(model: str, dtype: str | None, game: str, form: str, episodes: int, context: int) -> LLMPPO:
    """Returns a learner before its first step; ``dtype`` None: in the preset's type."""
    overrides = {
        "env.task_id": "null",
        "env.game": game,
        "env.opponent": "random",
        "env.rules": "true",
        "ppo.batch_size": str(episodes),
        "ppo.critic_warmup_steps": "0",
        "run.device": "cpu",
        **FORMS[form],
    }
    if dtype is not None:
        overrides["model.dtype"] = dtype
    if form != "turns":
        overrides["env.context_tokens"] = str(context)
    learner = make_algorithm(resolve(model, overrides=overrides.items()))
    learner.set_logger(Logger(None, []))
    return learner


class _Watch(BaseCallback):
    """Notes processor seconds and tokens at the phases' ends."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[tuple[float, int]] = []

    def _mark(self) -> None:
        self.marks.append((time.process_time(), self.model.policy.engine.tokens_read))  # type: ignore[union-attr]

    def _on_rollout_start(self) -> None:
        self._mark()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        self._mark()

    def _on_training_end(self) -> None:
        self._mark()


def measure(learner: LLMPPO) -> Figures:
    """Makes one step of training; returns its figures."""
    watch = _Watch()
    learner.learn(1, callback=watch, reset_num_timesteps=False)
    (began, before), (played, read), (ended, learned) = watch.marks[-3:]
    decisions = learner.rollout_buffer.decisions
    count = len(decisions)
    return Figures(
        collected=(read - before) / count,
        updated=(learned - read) / count,
        collect_s=(played - began) / count,
        update_s=(ended - played) / count,
        cut=sum(bool(decision.left_out) for decision in decisions) / count,
        tokens=sum(len(decision.prompt) for decision in decisions) / count,
        turns=count / len(learner.rollout_buffer.list_episodes()),
    )


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2-135m", help="a preset")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="in place of the preset's")
    parser.add_argument("--games", nargs="+", default=["leduc_poker", "tic_tac_toe", "othello"])
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=FORMS)
    parser.add_argument("--episodes", type=int, default=64, help="of a step; an eighth of them in othello")
    parser.add_argument("--context", type=int, default=4096, help="the most tokens of a conversation")
    parser.add_argument("--rounds", type=int, default=1, help="steps of each form, in turn")
    given = parse(parser, argv)
    found: dict[str, dict[str, Any]] = {}
    for game in given.games:
        episodes = max(1, given.episodes // LONG.get(game, 1))
        rows: dict[str, list[Figures]] = {form: [] for form in given.forms}
        for _ in range(given.rounds):
            for form in given.forms:
                # A new learner each time: what was learned changes how long games are.
                row = measure(make_learner(given.model, given.dtype, game, form, episodes, given.context))
                rows[form].append(row)
                print(f"{game}, {form}: {format_figures(row)}", flush=True)
        found[game] = {form: summarise(own) for form, own in rows.items()}
        if "turns" in found[game]:
            add_ratios(found[game])
    results = {
        "benchmark": "conversations", "model": given.model, "dtype": given.dtype, "episodes": given.episodes,
        "context_tokens": given.context, "rounds": given.rounds, "games": found, "machine": machine(),
    }  # fmt: skip
    return end(results, given.out)


def format_figures(row: Figures) -> str:
    """Returns a row for people."""
    return (
        f"{row.turns:.1f} turns of {row.tokens:.0f} tokens; per decision {row.collected:.0f} tokens and "
        f"{row.collect_s:.3f} s in play, {row.updated:.0f} tokens and {row.update_s:.3f} s in the update"
    )


def summarise(rows: Sequence[Figures]) -> dict[str, float]:
    """Returns the medians."""
    return {name: round(statistics.median(getattr(row, name) for row in rows), 4) for name in Figures._fields}


def add_ratios(forms: dict[str, dict[str, Any]]) -> None:
    """Adds each form's tokens and seconds per decision over those of prompts on their own."""
    base = dict(forms["turns"])
    for own in forms.values():
        own["ratios"] = {
            "collected": round(own["collected"] / base["collected"], 3),
            "updated": round(own["updated"] / base["updated"], 3),
            "seconds": round(
                (own["collect_s"] + own["update_s"]) / (base["collect_s"] + base["update_s"]), 3
            ),
        }


if __name__ == "__main__":
    main()
