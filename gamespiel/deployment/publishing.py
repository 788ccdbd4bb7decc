"""A run's model for others: merged, with a card of its settings, curves and evaluations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from gamespiel import __version__
from gamespiel.agents.models.weights import read_cached_card, resolve
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.card import hub_name, link_to, render_cell, render_table
from gamespiel.agents.runs.state import read_state
from gamespiel.config import InvalidValueError, card_facts
from gamespiel.deployment.merging import Type, merge_run
from gamespiel.kinds import kind_of
from gamespiel.overview.plots import save_runs
from gamespiel.overview.reading import Run, read_run
from gamespiel.report.console import make_console
from gamespiel.report.results import VALUES
from task_gym.files import read_file, read_json, write_atomically

CURVES = "curves.png"

LICENCES: Mapping[str, str] = {
    "tiny": "apache-2.0",
    "HuggingFaceTB/SmolLM2-135M-Instruct": "apache-2.0",
    "Qwen/Qwen3-4B": "apache-2.0",
    "Qwen/Qwen2.5-3B-Instruct": "other",
}
"""Licences of the presets' models, for machines that do not have the models' cards."""

_LICENCE = re.compile(r"^license(_name|_link)?: *(.+?) *$", re.MULTILINE)


def publish(
    place: str | Path,
    output: Path,
    *,
    dtype: Type = "bfloat16",
    tolerance: float | None = None,
    licence: str | None = None,
    console: Console | None = None,
) -> None:
    """Writes a run's merged model and its card to a new folder.

    Args:
        place: A run, a checkpoint, RUN@STEP or RUN@best.
        output: The folder; it must not exist, or be empty.
        dtype: The type of the merged weights.
        tolerance: See ``merge_run``.
        licence: The base model's licence, if it is not found.
        console: The console to print on.

    Raises:
        InvalidValueError: the folder is taken, or the tolerance is out of range.
        TaskGymError: there is no such checkpoint, or the merged model differs.
    """
    console = console or make_console()
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InvalidValueError(f"--output: {str(output)!r} is there already: name a new folder")
    source = checkpoint.find(place)
    run = read_run(source.parent.parent)
    name = run.config.model.model_name
    terms = {"license": licence} if licence else find_licence(name)
    merge_run(source, output, dtype, tolerance, console)
    if run.rows:
        save_runs([run], [output / CURVES])
    if not terms:
        console.print(f"the licence of {name} is not known; --licence puts it on the card", markup=False)
    write_atomically(output / "README.md", render_card(run, source, terms, place=output.name))


def find_licence(model_name: str) -> dict[str, str]:
    """Returns what a base model's own card says of its licence; {} if nothing is known of it."""
    place = Path(resolve(model_name))
    card = place / "README.md"
    text = read_file(card).decode(errors="replace") if card.is_file() else ""
    if not text and hub_name(model_name):
        text = read_cached_card(model_name)
    head = text.split("\n---", 1)[0] if text.startswith("---") else ""
    terms = {f"license{part}": value.strip("\"'") for part, value in _LICENCE.findall(head)}
    known = {"license": LICENCES[model_name]} if model_name in LICENCES else {}
    return terms if "license" in terms else known


def render_card(run: Run, source: Path, terms: Mapping[str, str], *, place: str) -> str:
    """Returns the model card of a run's checkpoint.

    Args:
        run: The run.
        source: The checkpoint.
        terms: The licence's keys.
        place: The folder's name.
    """
    base = read_state(source)["base"]
    name = hub_name(str(base["model_name"]))
    title = str(kind_of(run.config.env).run_name(run.config.env) or "GameSpiel")
    lines = [
        "---",
        *([f"base_model: {name}"] if name else []),
        *(f"{key}: {value}" for key, value in terms.items()),
        "library_name: transformers",
        "pipeline_tag: text-generation",
        "tags: [gamespiel, merged, ppo, reinforcement-learning]",
        "---", "",
        f"# {title}, trained with GameSpiel", "",
        f"The model {link_to(name, base)}, after step "
        f"{checkpoint.step_of(source):,} of PPO with GameSpiel {__version__}.", "",
        "## Use", "", 
        "The model answers a turn's prompt, which is one user message; `gym.make(\"GameSpiel-v0\", ...)` of "
        "GameSpiel gives the prompts that it was trained on.", "",
        "```python",
        "from transformers import AutoModelForCausalLM", "",
        f'model = AutoModelForCausalLM.from_pretrained("{place}")  # or the repository that has this folder',
        "```", "",
    ]  # fmt: skip
    if evaluations := list(read_evaluations(run.folder)):
        lines += ["## Evaluations", "", "Means with 95% intervals; exact values have none."]
        lines += [*render_table(("evaluation", "measure", "value"), evaluations), ""]
    if run.rows:
        lines += ["## Curves", "", f"![Curves of the training]({CURVES})", ""]
    settings = [(f"`{key}`", render_cell(value)) for key, value in card_facts(run.config).items()]
    lines += ["## Training", "", "Settings other than GameSpiel's defaults:"]
    return "\n".join([*lines, *render_table(("key", "value"), settings), ""])


def read_evaluations(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yields what the files of a run's evaluations say: the evaluation, the measure and its value."""
    for path in sorted(folder.glob("eval-*.json")):
        data = read_json(path, InvalidValueError)
        env, games = data.get("env"), data.get("games")
        opponent = env.get("opponent") if isinstance(env, Mapping) else None
        where = f"{', '.join(map(str, games if isinstance(games, list) else ()))} against {opponent}"
        how = f"{where}, {'greedy' if data.get('greedy') else 'sampled'}, {data.get('checkpoint')}"
        for kind in VALUES:
            yield from ((how, *row) for row in _find_measures(kind, data.get(kind)))


def _find_measures(kind: str, values: Any) -> Iterator[tuple[str, str]]:
    """Yields the measures of an evaluation's values."""
    if kind == "exact" and isinstance(values, Mapping):
        policy = values.get("policy", {})
        for measure in ("share", "exploitability"):
            if isinstance(value := policy.get(measure), int | float):
                yield f"{measure} (exact)", f"{value:.3f}"
    elif kind in ("sampled", "replies") and isinstance(values, Mapping):
        whole = values.get("all", {})
        for measure in ("score", "success"):
            if isinstance(bounds := whole.get(measure), Sequence) and len(bounds) == 3:
                mean, low, high = bounds
                name = f"{measure}, {whole.get('episodes'):,} episodes"
                yield name, f"{mean:.3f} ({low:.3f} to {high:.3f})"
