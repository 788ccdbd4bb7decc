"""Schema and program agree on what configurations may hold, and all mistakes are in one message."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gamespiel.cli import main
from gamespiel.config import (
    Config,
    ConfigError,
    InvalidValueError,
    MistakesError,
    UnknownKeyError,
    evaluation_notices,
    from_dict,
    load,
    notices,
    presets,
    resolve,
    to_dict,
)
from gamespiel.config.schema import DOTTED, KEYS, PRESET, SECTION_OF, file_schema, node_of, preset_path
from gamespiel.config.synonyms import SYNONYMS
from gamespiel.config.yaml_text import read_yaml
from gamespiel.errors import MOST_SHOWN

ROOT = Path(__file__).parents[2]
PACKAGED = ROOT / "configs" / "schema.json"
DATA = ROOT / "tests" / "data" / "configs"
FILES = [*map(preset_path, presets()), *sorted(DATA.iterdir())]
VALIDATOR = Draft202012Validator(file_schema())


def test_the_packaged_schema_is_current_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """If this fails: ``python -m docs.generate``."""
    assert json.loads(PACKAGED.read_text(encoding="utf-8")) == file_schema()
    Draft202012Validator.check_schema(file_schema())
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == PACKAGED.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_validates(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [error.message for error in VALIDATOR.iter_errors(read_yaml(text))] == []
    assert [error.message for error in VALIDATOR.iter_errors(to_dict(load(path)))] == []
    if path.parent == PACKAGED.parent:  # presets name their schema for editors
        assert text.startswith("# yaml-language-server: $schema=schema.json\n")
        assert PRESET not in read_yaml(text)  # a preset starts from no other one


def test_every_key_has_help_and_its_default() -> None:
    for section, values in to_dict(Config()).items():
        for name, default in values.items():
            node = node_of(section, [name])
            assert node["description"] and node["default"] == default, f"{section}.{name}"
    assert set(file_schema()["properties"]) == {PRESET, *KEYS, *SECTION_OF}
    assert len(DOTTED) == len(SECTION_OF)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"gamma": 0}, "ppo.gamma must be above 0 and at most 1, not 0.0"),
        ({"gamma": "1"}, "ppo.gamma must be a number, not '1'"),
        ({"batch_size": 2.5}, "ppo.batch_size must be an integer, not 2.5"),
        ({"batch_size": True}, "ppo.batch_size must be an integer, not True"),
        ({"rules": 1}, "env.rules must be true or false, not 1"),
        ({"illegal": "forfit"}, "'raise', not 'forfit'; did you mean 'forfeit'"),
        ({"task_ids": [3, [5, -1]]}, r"env.task_ids\[1\]\[1\] must be at least 0, not -1"),
        ({"task_ids": [[1]]}, r"env.task_ids\[0\]"),
        ({"game": "hex", "params": {"a": [1]}}, "env.params.a"),
        (
            {"game": "hex", "params": {"board_size:99": None}},  # YAML's {board_size:99}
            r"env.params.board_size has no value; YAML wants a space .*: board_size: 99$",
        ),
        ({"stages": [{"task_id_range": [0, 1]}]}, r"stages\[0\].name is missing: text"),
        ({"stages": [{"name": "a", "treshold": 0.6}]}, "'treshold'; did you mean 'threshold'"),
        ({"ppo": 3}, "section ppo must be a mapping of its keys, not 3"),
        ({"run": {"preset": "tiny"}}, "'run.preset'"),
        ([1], r"must be a mapping of sections or keys, not \[1\]"),
    ],
)
def test_what_the_program_refuses_the_schema_refuses(data: Any, message: str) -> None:
    assert not VALIDATOR.is_valid(data)
    with pytest.raises(ConfigError, match=message):
        from_dict(data)


@pytest.mark.parametrize(
    ("data", "dotted", "value"),
    [
        ({"num_train_steps": 1e4}, "ppo.num_train_steps", 10_000),
        ({"task_ids": [1e9, [0, 1e9]]}, "env.task_ids", (10**9, (0, 10**9))),
        ({"gamma": 1}, "ppo.gamma", 1.0),
        ({"game": None}, "env.game", None),
        ({"ray_address": "10.0.0.1:6379", "env_workers": 2}, "run.env_workers", 2),
        ({"preset": "tiny"}, "model.model_name", "tiny"),
    ],
)
def test_what_the_schema_accepts_the_program_accepts(data: Any, dotted: str, value: Any) -> None:
    assert VALIDATOR.is_valid(data)
    section, key = dotted.split(".")
    setting = getattr(getattr(from_dict(data), section), key)
    assert repr(setting) == repr(value)  # 1e4 becomes an integer


WRITTEN = {"game": "kuhn_poker", "decode": "text"}
TALK = {"conversation": True, "seeding": "evaluate"}
UNLISTED = {"list_actions": False, "answer": "name"}
ITSELF = {"opponent": "self"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"task_ids": [[5, 4]]}, r"env.task_ids\[0\] must be .* first <= last, not \[5, 4\]"),
        ({"params": {"players": 3}}, "env.params needs env.game"),
        (
            {"stages": [{"name": "a", "task_id_range": [0, 1], "task_ids": [5]}]},
            r"curriculum.stages\[0\] must have task_id_range or task_ids",
        ),
        ({"stages": [{"name": "a"}, {"name": "a"}]}, r"curriculum.stages\[1\].name must differ .* 'a'"),
        ({"opponent": {}}, r"env.opponent must be text or a mapping of names to a number"),
        ({"success_scores": {"2048": 1}}, r"curriculum.success_scores.2048 must be at least 0 and below 1"),
        ({"batch_size": 10**20}, r"ppo\.batch_size must be at most 2,147,483,647, not 10{20}$"),
        ({"task_id": 5, "game": "hex"}, "not env.task_id and env.game"),
        # Games and traces.
        ({"env_type": "trace", "game": "hex"}, "env.game = 'hex' chooses games, and env.env_type is 'trace'"),
        ({"source": "hub"}, "env.source = 'hub' chooses traces, .* or set env.env_type to 'trace'"),
        ({"env_type": "trace", "level": 0}, "env.level must be at least 1 and at most 10, not 0"),
        ({"env_type": "trace", "task_id": 1, "task_ids": [2]}, "only one key may choose the traces"),
        # Replies as text.
        ({"env": {"env_type": "trace", "by_line": True}}, r"env\.by_line = true needs env\.decode: text"),
        ({"env": WRITTEN | {"illegal": "raise"}}, r"env\.illegal must be penalize or forfeit"),
        # Prompts without the list of actions.
        ({"list_actions": False}, r"env\.answer must be 'name', not 'id'"),
        ({"unlist_steps": [0, 2]}, r"unlist_steps .* env\.list_actions: false"),
        (UNLISTED | {"unlist_steps": [2, 2]}, "first < last"),
        (
            UNLISTED | {"unlist_steps": [0, 2], "opponent": "self"},
            r"unlist_steps is for games against an opponent",
        ),
        # Conversations.
        ({"context_tokens": 900}, "it needs env.conversation: true"),
        (TALK | {"answer": "name"}, "env.answer must be 'id', not 'name'"),
        (TALK | {"env_mode": "url", "base_url": "http://x"}, "env.env_mode must be 'local', not 'url'"),
        # Self-play.
        (ITSELF | {"max_turns": 8}, "env.max_turns must be null, not 8"),
        (ITSELF | {"env_mode": "docker"}, "env.env_mode must be 'local', not 'docker'"),
        (ITSELF | {"reward": "upstream"}, "env.reward must be 'score', not 'upstream'"),
        (ITSELF | {"failure_replay_prob": 0.3}, "every seat: leave one of them out"),
        # Servers and workers.
        ({"ray_address": "auto"}, r"run.ray_address needs run.env_workers"),
        ({"env_workers": 2, "ray_address": "http://host:1"}, r"run\.ray_address must be auto or host:port"),
        ({"env_workers": 2, "ray_address": ":6379"}, r"run\.ray_address must be auto or host:port"),
    ],
)
def test_values_that_are_refused(data: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict(data)


def test_keys_without_effect_are_noticed() -> None:
    (notice,) = notices(load(DATA / "model.json"))
    assert notice.startswith("lora.lora_dropout = 0.05 is applied nowhere")
    assert notices(Config()) == notices(resolve("tiny-selfplay")) == []
    mixed = {
        "use_nested_quant": True, "vllm_base_url": "http://h/v1", "env_seconds": 5, "scoring": "lines",
        "demote": 0.2, "max_replays": 3, "action_floor": 0.1, "num_minibatches": 4, "mini_batch_size": 8,
        "learn": "one", "conversation": True, "minibatch_unit": "prompt", "magnet_every": 3,
    }  # fmt: skip
    assert notices(from_dict(mixed)) == [
        "model.use_nested_quant = true has no effect without model.use_4bit.",
        "ppo.minibatch_unit = prompt has no effect with env.conversation: optimizer steps draw episodes.",
        "ppo.action_floor = 0.1 has no effect without ppo.all_actions.",
        "run.vllm_base_url = http://h/v1 is not used: run.use_vllm is false.",
        "env.scoring = 'lines' has no effect on games.",
        "ppo.mini_batch_size = 8 has no effect: ppo.num_minibatches divides the turns.",
        "curriculum.demote = 0.2 has no effect without curriculum.stages.",
        "curriculum.max_replays = 3 has no effect without curriculum.failure_replay_prob.",
        "self_play.learn = one has no effect: it is for env.opponent: self.",
        "ppo.magnet_every = 3 has no effect: ppo.magnet_coef is 0.",
        "run.env_seconds = 5.0 has no effect without run.env_workers.",
    ]
    pool = ITSELF | {"pool_size": 3}
    (notice,) = notices(from_dict(pool))
    assert notice.startswith("self_play.pool_size = 3 has no effect: with self_play.learn: both, no seat ")
    assert notices(from_dict(pool | {"learn": "one", "minibatch_unit": "prompt"})) == []
    for decode, idle in (("choice", "ppo.cut_penalty = 0.1"), ("text", "ppo.legal_coef = 0.5")):
        (notice,) = notices(from_dict(WRITTEN | {"decode": decode, "cut_penalty": 0.1, "legal_coef": 0.5}))
        assert notice.startswith(f"{idle} has no effect: it is for ")
    traces = from_dict({"env_type": "trace", "opponent": "mcts", "rules": False, "illegal": "raise"})
    assert notices(traces) == evaluation_notices(traces)
    assert notices(traces) == [
        "env.opponent = 'mcts' has no effect on traces.",
        "env.rules = False has no effect on traces.",
    ]


def test_keys_values_and_contradictions_are_named_together() -> None:
    with pytest.raises(MistakesError) as raised:
        from_dict({"opponnent": "x", "ppo": {"gama": 1, "lam": 2, "batch_size": 0}, "model": 3}, "a.json")
    assert str(raised.value).splitlines() == [
        "5 mistakes:",
        "  unknown section or key in a.json: 'opponnent'; did you mean 'opponent'?",
        "  unknown key in a.json: 'ppo.gama'; did you mean 'ppo.gamma'?",
        "  a.json: section model must be a mapping of its keys, not 3",
        "  a.json: ppo.lam must be at least 0 and at most 1, not 2.0",
        "  a.json: ppo.batch_size must be at least 1, not 0",
    ]
    kinds = [UnknownKeyError] * 2 + [InvalidValueError] * 3
    assert [type(mistake) for mistake in raised.value.mistakes] == kinds
    # Keys that contradict each other.
    with pytest.raises(MistakesError) as raised:
        from_dict({"use_4bit": True, "use_8bit": True, "env_mode": "url", "use_vllm": True, "think": True})
    assert [str(mistake).partition(" needs ")[0].partition(":")[0] for mistake in raised.value.mistakes] == [
        "model.use_4bit and model.use_8bit contradict each other", "env.think = true",
        "env.env_mode = 'url'", "run.use_vllm",
    ]  # fmt: skip


def test_a_union_is_one_mistake_and_each_part_of_a_list_is_its_own() -> None:
    """An opponent is a text or a mixture: of a mixture only the weight is wrong, not that it is no text."""
    stages = [
        {"threshold": 2, "opponent": {"first": 0}},
        {"name": "b", "treshold": 0.5, "task_ids": [1, [5, 4]]},
    ]
    with pytest.raises(MistakesError) as raised:
        from_dict({"stages": stages})
    mistakes = raised.value.mistakes
    assert [str(each).partition("stages")[2].partition(", not")[0] for each in mistakes] == [
        "[0].name is missing: text",
        "[0].opponent.first must be above 0",
        "[0].threshold must be at least 0 and at most 1",
        "[1].task_ids[1] must be [first, last] with first <= last",
        "[1]: 'treshold'; did you mean 'threshold'?",
    ]


def test_files_options_and_flags_are_read_together(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message of docs/configuration.md, then also the other places where mistakes are made."""
    Path("mine.json").write_text('{"ppo": {"gama": 1}, "n_epochs": 4}')
    assert main(["train", "--config", "mine.json", "--ppo.batch_size", "many"]) == 2
    message = capsys.readouterr().err
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert f"```text\n{message}```" in page
    assert main(["train", "--preset", "tinny", "--config", "mine.json", "no.json", "--seed", "x"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "gamespiel: 5 mistakes:"
    assert lines[1].startswith("  unknown preset 'tinny'; did you mean 'tiny'?")
    assert lines[4] == "  config file 'no.json' cannot be read: No such file or directory"
    assert lines[5] == "  --run.seed must be an integer, not 'x'"
    # The values of unknown flags are no mistakes of their own.
    line = ["train", "--lr", "3", "stray", "--pressets=tiny", "--ppo.lam", "x", "--config", "mine.json"]
    assert main(line) == 2
    lines = [entry.partition(";")[0] for entry in capsys.readouterr().err.splitlines()]
    assert lines[:3] == ["gamespiel: 6 mistakes:", "  unknown option '--lr'", "  unknown argument 'stray'"]
    assert lines[3] == "  unknown option '--pressets'"
    assert lines[6] == "  --ppo.lam must be a number, not 'x'"


def test_long_lists_and_numbers_are_cut() -> None:
    with pytest.raises(ConfigError, match=r"must be an integer, not '9+… \(5,002 characters\)"):
        resolve("tiny", overrides=[("ppo.batch_size", "9" * 5_000)])
    with pytest.raises(ConfigError) as raised:
        from_dict({"task_ids": [-1] * 2_000})
    lines = str(raised.value).splitlines()
    assert lines[0] == "2,000 mistakes:" and lines[-1] == f"  and {2_000 - MOST_SHOWN:,} more"
    assert len(lines) == MOST_SHOWN + 2


def test_words_of_other_libraries_name_the_nearest_key() -> None:
    """No word hides a key, and each names a key that exists."""
    assert not SYNONYMS.keys() & SECTION_OF.keys() and set(SYNONYMS.values()) <= set(DOTTED)
    data = {"gae_lambda": 0.9, "ppo": {"top_p": 0.9, "lora_r": 8}, "fsdp": True}
    with pytest.raises(MistakesError) as raised:
        from_dict(data)
    gae, sampling, lora, sharded = map(str, raised.value.mistakes)
    assert gae == "unknown key in config: 'gae_lambda'; did you mean 'ppo.lam'?"
    assert sampling.startswith("unknown key in config: 'ppo.top_p': ") and sampling.endswith("; leave it out")
    assert lora == "unknown key in config: 'ppo.lora_r'; did you mean 'lora.r'?"
    assert "data-parallel" in sharded and sharded.endswith("did you mean 'model.use_4bit'?")
    with pytest.raises(
        UnknownKeyError, match=r"^unknown option '--ppo.lr'; did you mean '--ppo.learning_rate'"
    ):
        resolve(overrides=[("ppo.lr", "4")])
    with pytest.raises(UnknownKeyError, match=r"'init_lora_weights': .*; leave it out$"):
        from_dict({"init_lora_weights": True})
