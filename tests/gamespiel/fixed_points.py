"""Runs of two steps whose numbers a rebuild of the learner must not change.

``python -m tests.gamespiel.fixed_points --write FILE`` records them to the last bit. Files of one machine,
written before a change and after it, can be compared; processors round floats differently.
``test_fixed_points.py`` compares with ``tests/data/fixed_points.json``, within these differences.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
SMALL = {"ppo.batch_size": "24", "ppo.mini_batch_size": "40", "ppo.ppo_epochs": "2", "env.task_id": "null"}
LEDUC = SMALL | {"env.task_ids": "[[200000000, 200000000]]"}
"""Given as a set, which is not solved: exact values take longer than the two steps."""
GAME = SMALL | {"ppo.batch_size": "3"}

TREE = SMALL | {"env.task_id": "200000000", "ppo.advantages": "exact", "ppo.all_actions": "true"}
GAE = "tiny-gae"
SELF_PLAY = {
    "ppo.advantages": "gae", "ppo.num_minibatches": "0", "ppo.minibatch_unit": "turn",
    "ppo.gradient_accumulation_steps": "1", "ppo.magnet_coef": "0.3", "ppo.magnet_end": "0.18",
    "ppo.magnet_every": "1", "ppo.average_decay": "0.985",
}  # fmt: skip
POOL = {
    "self_play.learn": "one", "self_play.pool_every": "1",
    "ppo.init_kl_coef": "0.1", "ppo.magnet_every": "10",
}  # fmt: skip

CASES: dict[str, tuple[str, dict[str, str]]] = {
    # The preset as it is, but for its length.
    "default": (GAE, {}),
    "advantages from the tree": ("tiny", TREE | {"ppo.tree_share": "1"}),
    "advantages from a part of the tree": ("tiny", TREE),
    "whole prompts": (GAE, LEDUC),
    # The preset before that, and changes of it.
    "padded": (GAE, PADDED),
    "numbers of two digits": (GAE, PADDED | GAME | {"env.game": "hex", "env.params": '{"board_size": 5}'}),
    "forced passes": (GAE, PADDED | GAME | {"env.game": "othello"}),
    "names": (GAE, PADDED | LEDUC | {"env.answer": "name"}),
    "shared readings": (GAE, PADDED | LEDUC | {"model.reading": "shared", "ppo.num_minibatches": "3"}),
    "text": (GAE, PADDED | LEDUC | {"env.decode": "text", "ppo.max_new_tokens": "4"}),
    "text, estimated divergence": (
        GAE, PADDED | LEDUC | {"env.decode": "text", "ppo.max_new_tokens": "4", "ppo.kl_estimator": "k3"},
    ),
    "self-play with magnet and average": ("tiny-selfplay", LEDUC | SELF_PLAY),
    "self-play against a pool": (
        "tiny-selfplay",
        LEDUC | SELF_PLAY | POOL,
    ),
    "bfloat16": (GAE, PADDED | LEDUC | {"model.dtype": "bfloat16", "ppo.batch_size": "6"}),
    "bfloat16 text": (
        GAE, PADDED | LEDUC | {"model.dtype": "bfloat16", "env.decode": "text", "ppo.max_new_tokens": "4"},
    ),
}  # fmt: skip
"""By name: the preset, and what is changed in it."""


def play(name: str, folder: Path, more: Mapping[str, str] | None = None) -> Path:
    """Trains the two steps of a case, with more changes, in a new folder; returns the run."""
    preset, changes = CASES[name]
    overrides = COMMON | changes | {"run.output_dir": str(folder)} | dict(more or {})
    return train_quietly(resolve(preset, overrides=overrides.items()))


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


def main(argv: Sequence[str] | None = None) -> None:
    """Plays the cases and writes their fingerprints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args(argv)
    fingerprints = {}
    for name in CASES:
        with tempfile.TemporaryDirectory() as folder:
            fingerprints[name] = fingerprint(play(name, Path(folder) / "run"))
        print(name, flush=True)
    arguments.write.write_text(json.dumps(fingerprints, indent=1) + "\n")


if __name__ == "__main__":
    main()
