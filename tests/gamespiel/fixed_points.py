"""Runs of two steps whose numbers a rebuild of the learner must not change.

``python -m tests.gamespiel.fixed_points --write FILE`` records them, before a change, and ``--compare FILE``
compares them to the last bit, after it. Both need the same machine: processors round floats differently.
``test_fixed_points.py`` compares with ``tests/data/fixed_points.json``, within these differences.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.nn.modules.module import register_module_forward_pre_hook
from transformers import PreTrainedModel

from gamespiel.agents.runs import checkpoint
from gamespiel.config import resolve, saved_config
from tests.gamespiel.runs import PADDED, rows_of, train_quietly

RECORDED = Path(__file__).parents[1] / "data" / "fixed_points.json"

COMMON = {
    "ppo.num_train_steps": "2",
    "run.checkpoint_every": "1",
    "run.keep_checkpoints": "3",
    "run.eval_games": "0",
    "run.exact_every": "0",
    "run.seed": "3",
    "run.device": "cpu",
    "run.num_threads": "1",
}
SMALL = {
    "ppo.batch_size": "24",
    "ppo.mini_batch_size": "40",
    "ppo.ppo_epochs": "2",
    "env.task_id": "null",
}
LEDUC = SMALL | {"env.task_ids": "[[200000000, 200000000]]"}
"""Given as a set, which is not solved: exact values take longer than the two steps."""
GAME = SMALL | {"ppo.batch_size": "3"}

CASES: dict[str, tuple[str, dict[str, str]]] = {
    # The default run as it is, but for its length.
    "default": ("tiny", {}),
    "whole prompts": ("tiny", LEDUC),
    # The preset before that, and changes of it.
    "padded": ("tiny", PADDED),
    "numbers of two digits": ("tiny", PADDED | GAME | {"env.game": "hex", "env.params": '{"board_size": 5}'}),
    "forced passes": ("tiny", PADDED | GAME | {"env.game": "othello"}),
    "names": ("tiny", PADDED | LEDUC | {"env.answer": "name"}),
    "shared readings": ("tiny", PADDED | LEDUC | {"model.reading": "shared", "ppo.num_minibatches": "3"}),
    "text": ("tiny", PADDED | LEDUC | {"env.decode": "text", "ppo.max_new_tokens": "4"}),
    "text, estimated divergence": (
        "tiny", PADDED | LEDUC | {"env.decode": "text", "ppo.max_new_tokens": "4", "ppo.kl_estimator": "k3"},
    ),
    "self-play with magnet and average": ("tiny-selfplay", LEDUC | {"ppo.magnet_every": "1"}),
    "self-play against a pool": (
        "tiny-selfplay",
        LEDUC | {"self_play.learn": "one", "self_play.pool_every": "1", "ppo.init_kl_coef": "0.1"},
    ),
    "bfloat16": ("tiny", PADDED | LEDUC | {"model.dtype": "bfloat16", "ppo.batch_size": "6"}),
    "bfloat16 text": (
        "tiny", PADDED | LEDUC | {"model.dtype": "bfloat16", "env.decode": "text", "ppo.max_new_tokens": "4"},
    ),
}  # fmt: skip
"""By name: the preset, and what is changed in it."""


def play(name: str, folder: Path) -> Path:
    """Trains the two steps of a case in a new folder; returns the run."""
    preset, changes = CASES[name]
    overrides = COMMON | changes | {"run.output_dir": str(folder)}
    return train_quietly(resolve(preset, overrides=overrides.items()))


@contextmanager
def counted_forwards() -> Iterator[list[int]]:
    """Counts, in a list of one number, how often a transformers model without its head reads tokens."""
    count = [0]

    def note(module: Any, inputs: Any) -> None:
        count[0] += isinstance(module, PreTrainedModel) and module.get_output_embeddings() is None

    hook = register_module_forward_pre_hook(note)
    try:
        yield count
    finally:
        hook.remove()


def play_again(run: Path) -> None:
    """Forgets the second step of a run and resumes it from the first."""
    shutil.rmtree(checkpoint.checkpoints(run)[-1])
    train_quietly(saved_config(run), resume=run)


def fingerprint(run: Path) -> dict[str, Any]:
    """Returns what a run came to: its metrics but for times, and the hash of each file of weights."""
    newest = checkpoint.find(run)
    weights = sorted(newest.rglob("*.safetensors"))
    hashes = {
        str(path.relative_to(newest)): hashlib.sha256(path.read_bytes()).hexdigest() for path in weights
    }
    return {"rows": rows_of(run), "weights": hashes}


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Returns what differs between two fingerprints, in words; metrics that are new count too."""
    out = [
        f"weights {name}: {'differ' if name in found['weights'] else 'are missing'}"
        for name, digest in expected["weights"].items()
        if found["weights"].get(name) != digest
    ]
    for step, (own, other) in enumerate(zip(found["rows"], expected["rows"], strict=True), start=1):
        for key in sorted(own.keys() | other.keys()):
            if own.get(key) != other.get(key):
                out.append(f"step {step}, {key}: {own.get(key)} instead of {other.get(key)}")
    return out


def main(argv: Sequence[str] | None = None) -> int:
    """Plays the cases, each with a resume; returns 1 if a number is another."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="record the numbers")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare them with a recording")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=CASES, metavar="NAME")
    given = parser.parse_args(argv)
    expected = json.loads(given.compare.read_text()) if given.compare else {}
    found, wrong = {}, 0
    for name in given.cases:
        with tempfile.TemporaryDirectory() as folder:
            with counted_forwards() as forwards:
                run = play(name, Path(folder) / "run")
            found[name] = json.loads(json.dumps(fingerprint(run)))
            play_again(run)
            problems = [f"resumed: {each}" for each in differences(fingerprint(run), found[name])]
        found[name]["forwards"] = forwards[0]
        if name in expected:
            problems += differences(found[name], expected[name])
            if forwards[0] != expected[name]["forwards"]:
                problems.append(f"{forwards[0]} forwards instead of {expected[name]['forwards']}")
        print(f"{name}: {len(problems) or 'no'} differences", *problems[:10], sep="\n    ", flush=True)
        wrong += bool(problems)
    if given.write:
        given.write.write_text(json.dumps(found, indent=1) + "\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
