"""The configuration of the answers: a preset to start from, and settings with the reason of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, NamedTuple

from game_gym.games import DECLARED, TABLE
from game_gym.task import CONFIGS
from gamespiel.agents.models.memory_plan import GIB, SPARE, MemoryPlan, plan
from gamespiel.agents.models.weights import ModelError
from gamespiel.config import (
    Config,
    CurriculumConfig,
    InvalidValueError,
    from_dict,
    preset_path,
    resolve,
    to_dict,
)
from gamespiel.config.layers import CHOOSING
from gamespiel.configure.answers import TINY, Answers, ModelAnswer, TaskAnswer, short_names
from gamespiel.environments.making import evaluation_config, make_one_env, plays_itself
from gamespiel.environments.tree_values import find_trees
from gamespiel.kinds import declaration_of, kind_of
from gamespiel.training.planning import load_of
from task_gym.opponents import SELF
from task_gym.samplers.failures import REPLAYS
from task_gym.samplers.stages import THRESHOLD


class Setting(NamedTuple):
    """A key with its section, its value, and why it has this value."""

    key: str
    value: Any
    reason: str


@dataclass(frozen=True)
class Draft:
    """A configuration in the making.

    Attributes:
        preset: The preset that it starts from; None for the defaults.
        reason: Why it starts from there.
        settings: The keys that are set on top.
    """

    preset: str | None
    reason: str
    settings: tuple[Setting, ...] = ()

    def data(self) -> dict[str, Any]:
        """Returns the content of the file."""
        data: dict[str, Any] = {} if self.preset is None else {"preset": self.preset}
        for setting in self.settings:
            section, _, name = setting.key.partition(".")
            data.setdefault(section, {})[name] = setting.value
        return data

    def config(self) -> Config:
        """Returns the configuration that the file describes."""
        return from_dict(self.data(), "the answers")

    def add(self, settings: Iterable[Setting]) -> Draft:
        """Returns the draft with further settings; a later one of the same key replaces the earlier one."""
        settings = tuple(settings)
        keys = {setting.key for setting in settings}
        return replace(self, settings=(*(own for own in self.settings if own.key not in keys), *settings))

    def drop_repeats(self) -> Draft:
        """Returns the draft without settings that repeat the values of the preset or of the defaults."""
        base = to_dict(Config() if self.preset is None else resolve(self.preset))
        full = to_dict(self.config())
        always = ["ppo.num_train_steps", *(f"env.{name}" for name in CHOOSING)]
        kept = []
        for setting in self.settings:
            section, _, name = setting.key.partition(".")
            if setting.key in always or full[section][name] != base[section][name]:
                kept.append(setting)
        return replace(self, settings=tuple(kept))


CHECKPOINTING = Setting(
    "model.gradient_checkpointing", True, "only each layer's input is kept: less memory, a third more time"
)
FOUR_BITS = (
    Setting("model.use_4bit", True, "the base model's linear layers are kept in 4 bits (NF4)"),
    Setting("model.use_nested_quant", True, "the constants of these 4 bits are quantised too"),
)


def _budgets(backward: int, forward: int) -> tuple[Setting, ...]:
    return (
        Setting(
            "ppo.tokens_per_backward",
            backward,
            "tokens per forward with gradients, for which there is room",
        ),
        Setting("ppo.tokens_per_forward", forward, "tokens per forward without gradients"),
    )


WAYS: tuple[tuple[Setting, ...], ...] = (
    (),
    (CHECKPOINTING,),
    (CHECKPOINTING, *_budgets(4096, 8192)),
    (CHECKPOINTING, *_budgets(2048, 4096)),
    (CHECKPOINTING, *FOUR_BITS),
    (CHECKPOINTING, *FOUR_BITS, *_budgets(4096, 8192)),
    (CHECKPOINTING, *FOUR_BITS, *_budgets(2048, 4096)),
    (CHECKPOINTING, *FOUR_BITS, *_budgets(1024, 2048)),
)
"""Ways to take less memory, each less than the one before and slower or less exact."""


def draft_of(answers: Answers) -> Draft:
    """Returns the draft of all answers but the hours.

    Raises:
        InvalidValueError: The model does not fit the card, or opponents do not fit the tasks.
    """
    opponents = list(opponent_settings(answers.opponents))
    tasks = list(task_settings(answers.tasks))
    if answers.tasks.traces:
        tasks += _trace_answers(answers.model)
    starts = start_drafts(answers.model, answers.tasks, answers.opponents)
    draft = fit([one.add([*tasks, *opponents]) for one in starts], answers.card)
    config = draft.config()
    player, env = kind_of(config.env).player, evaluation_config(config).env
    if config.run.exact_every and (why := player.explain_unsolved(env)):
        draft = draft.add([Setting("run.exact_every", None, f"without the preset's exact values: {why}")])
    return draft.drop_repeats()


def start_drafts(
    model: ModelAnswer, tasks: TaskAnswer | None = None, opponents: Sequence[str] = ()
) -> list[Draft]:
    """Returns a draft per preset from which a model may start; one without a preset if it has none."""
    names = _choose_presets(model, tasks or TaskAnswer(), opponents)
    if not names:
        return [
            Draft(None, "", (Setting("model.model_name", model.name, "no preset is made for this model"),))
        ]
    drafts = []
    for name in names:
        lines = preset_path(name).read_text(encoding="utf-8").splitlines()[1:]
        comment = " ".join(line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines))
        drafts.append(Draft(name, re.split(r"\.(?: |$)", comment, maxsplit=1)[0]))  # its first sentence
    return drafts


def _choose_presets(model: ModelAnswer, tasks: TaskAnswer, opponents: Sequence[str]) -> list[str]:
    """Returns the presets of a model that are for such tasks and opponents; if there are none, its others."""
    if len(model.presets) < 2:
        return list(model.presets)
    configs = {name: resolve(name) for name in model.presets}
    plain = {name: config for name, config in configs.items() if not config.curriculum.stages}
    kind, alone = "trace" if tasks.traces else "openspiel", SELF in opponents
    fitting = [name for name, one in plain.items() if one.env.env_type == kind and plays_itself(one) == alone]
    fitting = fitting or [name for name, one in plain.items() if not plays_itself(one)]
    if len({configs[name].ppo.advantages for name in fitting}) > 1:
        config = Draft(fitting[0], "", (*task_settings(tasks), *opponent_settings(opponents))).config()
        has_tree = not isinstance(find_trees(config), str)
        fitting = [name for name in fitting if (configs[name].ppo.advantages != "gae") == has_tree]
    return fitting


def fit(drafts: Sequence[Draft], card: float | None) -> Draft:
    """Returns the draft that fills the card best, or the first with less memory that fits it.

    Args:
        drafts: Drafts of one model, one per preset.
        card: The card's memory in GiB; None for the CPU.

    Raises:
        InvalidValueError: None of them fits.
    """
    first = min(drafts, key=lambda draft: len(draft.preset or ""))
    if card is None:
        return first.add([Setting("run.device", "cpu", "the answer for the card: the CPU")])
    try:
        plans = [(draft, plan_of(draft)) for draft in drafts]
    except ModelError:  # its size is known only after a download
        why = "its size is not known here, so that no memory was planned: only each layer's input is kept"
        return first.add([CHECKPOINTING._replace(reason=why)])
    fits = [
        (made.peak, -len(draft.preset or ""), i)
        for i, (draft, made) in enumerate(plans)
        if made.fits(card * GIB)
    ]
    if fits:
        return drafts[max(fits)[-1]]
    start, least = min(plans, key=lambda one: one[1].peak)
    for way in WAYS:
        smaller = start.add(way)
        made = plan_of(smaller)
        if made.fits(card * GIB):
            return smaller
        least = min(least, made, key=lambda one: one.peak)
    raise InvalidValueError(_explain_misfit(start.config().model.model_name, card, least))


def plan_of(draft: Draft) -> MemoryPlan:
    """Returns the memory that a draft takes.

    Raises:
        ModelError: The model's size is not known on this machine.
    """
    return plan(load_of(draft.config()))


def _explain_misfit(name: str, card: float, least: MemoryPlan) -> str:
    needed = least.peak / GIB
    smaller = []
    for short, hub_name in short_names().items():
        draft = Draft(None, "", (Setting("model.model_name", hub_name, ""), *WAYS[-1]))
        if short == TINY or plan_of(draft).fits(card * GIB):
            smaller.append(short)
    return (
        f"--card: {card:g} GiB was given, and {name} takes {needed:.2f} GiB at least, beside the {SPARE:.0%} "
        f"of a card that stay free; allowed: {needed / (1 - SPARE):.1f} GiB, or one of {', '.join(smaller)}"
    )


def task_settings(tasks: TaskAnswer) -> Iterable[Setting]:
    """Yields the keys that choose the tasks."""
    if tasks.traces:
        yield Setting("env.env_type", "trace", "programs whose output is predicted")
        return
    indices = [TABLE.index(game) for game in tasks.games if game in TABLE]
    if tasks.ranges:
        own = [(i * CONFIGS, (i + 1) * CONFIGS - 1) for i in indices]
        listed = [low if low == high else [low, high] for low, high in (*own, *tasks.ranges)]
        if len(listed) == 1 and isinstance(listed[0], int):
            yield Setting("env.task_id", listed[0], "the task that was answered")
        else:
            yield Setting("env.task_ids", listed, "task ids, and first and last ones of ranges")
    elif len(tasks.games) == 1 and DECLARED[tasks.games[0]].variants == 1:
        yield Setting("env.game", tasks.games[0], "a game of one variant, so that its name says all")
    else:
        counts = [f"{game} has {DECLARED[game].variants}" for game in tasks.games]
        why = f"{', '.join(tasks.games)}, with all variants as affinetes draws them ({', '.join(counts)})"
        yield Setting("env.allowed_game_indices", indices, why)


def _trace_answers(model: ModelAnswer) -> Iterable[Setting]:
    yield Setting("env.answer", "name", "outputs are scored by their own text, without a numbered list")
    yield Setting("env.rules", True, "the preset's value is for games")
    if "smollm2-135m" in model.presets:
        where = "the preset's is for games; docs/training.md has this value for traces"
        yield Setting("ppo.batch_size", 32, where)
        yield Setting("ppo.num_minibatches", 2, where)
        yield Setting("ppo.learning_rate", 5e-4, where)
        yield Setting("ppo.ent_coef", 0.1, where)
        yield Setting("ppo.legal_coef", 0.5, where)


def opponent_settings(opponents: Sequence[str]) -> Iterable[Setting]:
    """Yields the keys of one opponent, or of a curriculum with a stage per opponent."""
    if len(opponents) == 1:
        yield Setting("env.opponent", opponents[0], "who plays the other seats")
    elif opponents:
        yield Setting("env.opponent", opponents[0], "the opponent of evaluations before and after training")
        stages = [{"name": name, "opponent": name} for name in opponents]
        window = CurriculumConfig().progression_window
        why = (
            f"a stage per opponent; the next one begins when the success rate over {window} "
            f"episodes reaches {THRESHOLD:.2f}, and {REPLAYS:.0%} of the episodes replay failures"
        )
        yield Setting("curriculum.stages", stages, why)


def check_opponents(tasks: TaskAnswer, opponents: Sequence[str]) -> None:
    """Raises unless the opponents can play all of the tasks.

    Raises:
        TaskGymError: One cannot, or a task id names no game.
    """
    config = Draft(None, "", (*task_settings(tasks), *opponent_settings(opponents))).config()
    if plays_itself(config):
        kind_of(config.env).player.check_self_play(make_one_env(config.env), config.self_play.learn)
    else:
        declaration_of(config.env).check_opponents(config.env, opponents)
