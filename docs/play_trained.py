"""The trained models of docs/play.md: `python -m docs.play_trained RUN RUN RUN`.

The runs are those of ``COMMANDS``, one per game, because the key ``env.game`` takes one name. Before, each is
evaluated by `python eval.py --checkpoint RUN --exact`, whose figures the page shows:

    python train.py --preset tiny-selfplay --env.task_id null --env.game kuhn_poker --ppo.num_train_steps 60 \
        --run.exact_every 0 --run.eval_games 0
    python train.py --preset tiny-selfplay --ppo.num_train_steps 100 \
        --run.exact_every 0 --run.eval_games 0
    python train.py --preset tiny --env.task_id null --env.game tic_tac_toe --ppo.advantages exact \
        --ppo.num_train_steps 36 --run.exact_every 0 --run.eval_games 0

The page keeps the adapters of each. `python -m docs.play_trained --probabilities FILE` writes what the policy
of these adapters gives in all information states, for the tests in a browser.
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from gymnasium import spaces

import gamespiel
from docs.generate_play import GAMES, script, tree_of
from docs.generate_play_model import pack, shorten
from gamespiel.agents.models import BASE, NEWEST
from gamespiel.agents.policy import LLMPolicy

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "assets" / "play" / "trained.js"

LINES = [" ".join(line.split()) for line in __doc__.splitlines() if "train.py" in line]
COMMANDS = dict(zip(GAMES, LINES, strict=True))
"""By game, the command that trained the model."""

FIGURES = ("share", "exploitability")


def read_run(run: Path) -> tuple[str, dict[str, Any]]:
    """Returns a run's game, and what the page has of it.

    Raises:
        FileNotFoundError: it was not trained to its end, or not evaluated.
    """
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    evaluation = next(run.glob("eval-exact-*-random.json"), None)
    if evaluation is None:
        raise FileNotFoundError(f"{run} has no exact evaluation; python eval.py --checkpoint {run} --exact")
    exact = json.loads(evaluation.read_text(encoding="utf-8"))["exact"]
    game, summary = exact["policy"]["game"], run / "summary.json"
    policy = gamespiel.load_policy(run, device="cpu")
    weights = {
        shorten(name): tensor.numpy() for name, tensor in policy.state_dict().items() if "lora" in name
    }
    return game, {
        "command": COMMANDS[game],
        "seed": config["run"]["seed"],
        "decisions": json.loads(summary.read_text(encoding="utf-8"))["decisions"],
        "date": datetime.fromtimestamp(summary.stat().st_mtime, UTC).date().isoformat(),
        **{of: {key: exact[of][key] for key in FIGURES} for of in ("untrained", "policy")},
        "scale": policy.lora_settings.lora_alpha / policy.lora_settings.r,
        "weights": {name: pack(array) for name, array in sorted(weights.items())},
    }


def read_script() -> dict[str, Any]:
    """Returns what the page has of the runs, by game."""
    text = FILE.read_text(encoding="utf-8").partition("const TRAINED = ")[2]
    rows = (line.strip().removesuffix(",") for line in text.splitlines()[1:-1])
    games: dict[str, Any] = json.loads("{" + ",".join(rows) + "}")
    return games


def make_policy(game: str, weights: Mapping[str, Mapping[str, Any]]) -> LLMPolicy:
    """Returns the policy with the page's adapters of a game."""
    count = tree_of(game).variant.game.num_distinct_actions()
    policy = LLMPolicy(
        spaces.Text(4096),
        spaces.Discrete(count),
        lambda _: 0.0,
        model={"model_name": "tiny", "reading": "shared"},
    )
    state = policy.state_dict()
    for name in filter(lambda name: "lora" in name, state):
        packed = weights[shorten(name)]
        array = np.frombuffer(base64.b64decode(packed["data"]), "<f4").reshape(packed["shape"])
        state[name] = state[name].new_tensor(array)
    policy.load_state_dict(state)
    return policy


def list_probabilities(game: str, run: Mapping[str, Any]) -> dict[str, list[list[float]]]:
    """Returns both models' probabilities of legal actions, by information state of ``tree_of(game)``."""
    policy, states = make_policy(game, run["weights"]), list(tree_of(game).states)
    asked = [state.text for state in states], [state.legal for state in states]
    return {
        name: [row.tolist() for row in policy.distribution(*asked, adapters=adapters)]
        for name, adapters in (("untrained", BASE), ("trained", NEWEST))
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Writes the script of the trained models, or the probabilities."""
    parser = argparse.ArgumentParser(
        prog="python -m docs.play_trained", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    parser.add_argument("--probabilities", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    if options.probabilities:
        probabilities = {game: list_probabilities(game, run) for game, run in read_script().items()}
        options.probabilities.parent.mkdir(parents=True, exist_ok=True)
        options.probabilities.write_text(json.dumps(probabilities), encoding="utf-8")
        return
    runs = dict(map(read_run, options.runs))
    if set(runs) != set(GAMES):
        parser.error(
            f"runs of {', '.join(runs) or 'no game'} were given; needed: one of each of {', '.join(GAMES)}"
        )
    FILE.write_text(
        script("TRAINED", {game: runs[game] for game in GAMES}, "docs.play_trained"), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
