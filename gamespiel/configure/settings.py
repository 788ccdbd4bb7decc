"""The configuration of the answers: a preset to start from, and settings with the reason of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from game_gym.games import DECLARED, TABLE
from game_gym.task import CONFIGS
from gamespiel.agents.models.memory_plan import GIB, SPARE, MemoryPlan, plan
from gamespiel.agents.models.weights import ModelError
from gamespiel.config import Config, CurriculumConfig, InvalidValueError, from_dict, resolve, to_dict
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


class Draft(NamedTuple):
    """A configuration in the making: the preset that it starts from, or None, and the keys set on top."""

    preset: str | None
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
        later = {setting.key: setting for setting in settings}
        earlier = (setting for setting in self.settings if setting.key not in later)
        return self._replace(settings=(*earlier, *later.values()))

    def drop_repeats(self) -> Draft:
        """Returns the draft without settings that repeat the values of the preset or of the defaults."""
        base = to_dict(Config() if self.preset is None else resolve(self.preset))
        full = to_dict(self.config())
        always = ["ppo.num_train_steps", *(f"env.{name}" for name in CHOOSING)]

        def says_something(key: str) -> bool:
            section, _, name = key.partition(".")
            return key in always or full[section][name] != base[section][name]

        return self._replace(settings=tuple(one for one in self.settings if says_something(one.key)))

    def plan(self) -> MemoryPlan:
        """Returns the memory that the draft takes.

        Raises:
            ModelError: The model's size is not known on this machine.
        """
        return plan(load_of(self.config()))


CHECKPOINTING = Setting(
    "model.gradient_checkpointing", True, "only each layer's input is kept: less memory, a third more time"
)
FOUR_BITS = (
    Setting("model.use_4bit", True, "the base model's linear layers are kept in 4 bits (NF4)"),
    Setting("model.use_nested_quant", True, "the constants of these 4 bits are quantised too"),
)


def _budgets(tokens: int) -> tuple[Setting, Setting]:
    why = "tokens per forward with gradients, for which there is room"
    return (
        Setting("ppo.tokens_per_backward", tokens, why),
        Setting("ppo.tokens_per_forward", 2 * tokens, "tokens per forward without gradients"),
    )


WAYS: tuple[tuple[Setting, ...], ...] = (
    (),
    (CHECKPOINTING,),
    (CHECKPOINTING, *_budgets(4096)),
    (CHECKPOINTING, *_budgets(2048)),
    (CHECKPOINTING, *FOUR_BITS),
    (CHECKPOINTING, *FOUR_BITS, *_budgets(4096)),
    (CHECKPOINTING, *FOUR_BITS, *_budgets(2048)),
    (CHECKPOINTING, *FOUR_BITS, *_budgets(1024)),
)
"""Ways to take less memory, each less than the one before and slower or less exact."""


def draft_of(answers: Answers) -> Draft:
    """Returns the draft of all answers but the hours.

    Raises:
        InvalidValueError: The model does not fit the card, or opponents do not fit the tasks.
    """
    settings = [*task_settings(answers.tasks, answers.model), *opponent_settings(answers.opponents)]
    starts = start_drafts(answers.model, answers.tasks, answers.opponents)
    draft = fit([start.add(settings) for start in starts], answers.card)
    config = draft.config()
    player, env = kind_of(config.env).player, evaluation_config(config).env
    if config.run.exact_every and (why := player.explain_unsolved(env)):
        draft = draft.add([Setting("run.exact_every", None, f"without the preset's exact values: {why}")])
    return draft.drop_repeats()


def start_drafts(
    model: ModelAnswer, tasks: TaskAnswer | None = None, opponents: Sequence[str] = ()
) -> list[Draft]:
    """Returns a draft per preset from which a model may start; one without a preset if it has none.

    The presets are those for such tasks and opponents; if there are none, the model's others.
    """
    tasks = tasks or TaskAnswer()
    if not model.presets:
        why = "no preset is made for this model"
        return [Draft(None, (Setting("model.model_name", model.name, why),))]
    configs = {name: resolve(name) for name in model.presets}
    kind, alone = "trace" if tasks.traces else "openspiel", SELF in opponents
    names = [
        name
        for name, config in configs.items()
        if len(configs) == 1 or (config.env.env_type == kind and plays_itself(config) == alone)
    ] or [name for name, config in configs.items() if not plays_itself(config)]
    if len({configs[name].ppo.advantages for name in names}) > 1:
        config = Draft(names[0], (*task_settings(tasks), *opponent_settings(opponents))).config()
        has_tree = not isinstance(find_trees(config), str)
        names = [name for name in names if (configs[name].ppo.advantages != "gae") == has_tree]
    return [Draft(name) for name in names]


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
        plans = [(draft, draft.plan()) for draft in drafts]
    except ModelError:  # its size is known only after a download
        why = "its size is not known here, so that no memory was planned: only each layer's input is kept"
        return first.add([CHECKPOINTING._replace(reason=why)])
    fits = [
        (memory.peak, -len(draft.preset or ""), i)
        for i, (draft, memory) in enumerate(plans)
        if memory.fits(card * GIB)
    ]
    if fits:
        return drafts[max(fits)[-1]]
    start, least = min(plans, key=lambda pair: pair[1].peak)
    for way in WAYS:
        smaller = start.add(way)
        memory = smaller.plan()
        if memory.fits(card * GIB):
            return smaller
        least = min(least, memory, key=lambda one: one.peak)
    needed, models = least.peak / GIB, []
    for short, hub_name in short_names().items():
        draft = Draft(None, (Setting("model.model_name", hub_name, ""), *WAYS[-1]))
        if short == TINY or draft.plan().fits(card * GIB):
            models.append(short)
    raise InvalidValueError(
        f"--card: {card:g} GiB was given, and {start.config().model.model_name} takes {needed:.2f} GiB at "
        f"least, beside the {SPARE:.0%} of a card that stay free; allowed: {needed / (1 - SPARE):.1f} GiB, "
        f"or one of {', '.join(models)}"
    )


def task_settings(tasks: TaskAnswer, model: ModelAnswer | None = None) -> Iterable[Setting]:
    """Yields the keys that choose the tasks, and for a model those of traces that its presets lack."""
    indices = [TABLE.index(game) for game in tasks.games if game in TABLE]
    if tasks.traces:
        yield Setting("env.env_type", "trace", "programs whose output is predicted")
        if model is not None:
            yield from _trace_settings(model)
    elif tasks.ranges:
        whole = [(i * CONFIGS, (i + 1) * CONFIGS - 1) for i in indices]
        listed = [low if low == high else [low, high] for low, high in (*whole, *tasks.ranges)]
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


def _trace_settings(model: ModelAnswer) -> Iterable[Setting]:
    yield Setting("env.answer", "name", "outputs are scored by their own text, without a numbered list")
    yield Setting("env.rules", True, "the preset's value is for games")
    if "smollm2-135m" in model.presets:
        why = "the preset's is for games; docs/training.md has this value for traces"
        values = {"batch_size": 32, "num_minibatches": 2, "learning_rate": 5e-4}
        for name, value in (values | {"ent_coef": 0.1, "legal_coef": 0.5}).items():
            yield Setting(f"ppo.{name}", value, why)


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
    config = Draft(None, (*task_settings(tasks), *opponent_settings(opponents))).config()
    if plays_itself(config):
        kind_of(config.env).player.check_self_play(make_one_env(config.env), config.self_play.learn)
    else:
        declaration_of(config.env).check_opponents(config.env, opponents)
