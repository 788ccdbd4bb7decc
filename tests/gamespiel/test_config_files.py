"""Existing configuration files load unchanged; presets, layers, saved files and their errors."""

import json
from pathlib import Path

import pytest
import yaml

from gamespiel.config import (
    SAVED_NAME,
    Config,
    ConfigError,
    CurriculumConfig,
    EnvConfig,
    Hyperparameters,
    InvalidValueError,
    LoraConfig,
    MistakesError,
    ModelConfig,
    Stage,
    UnknownKeyError,
    from_dict,
    load,
    notices,
    preset_files,
    presets,
    resolve,
    resolve_layers,
    save,
    saved_config,
    to_dict,
)

FILES = Path(__file__).parents[1] / "data" / "configs"
ALL_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def test_model_file() -> None:
    assert load(FILES / "model.json") == Config(
        model=ModelConfig(model_name="Qwen/Qwen2.5-3B-Instruct", use_4bit=True, use_nested_quant=True),
        lora=LoraConfig(r=16, lora_alpha=32.0, lora_dropout=0.05, target_modules=ALL_LINEAR),
        ppo=Hyperparameters(
            learning_rate=1e-5,
            batch_size=8,
            mini_batch_size=1,
            gradient_accumulation_steps=16,
            ppo_epochs=4,
            cliprange=0.2,
            init_kl_coef=0.2,
            target_kl=0.1,
            gamma=0.99,
            lam=0.95,
            num_train_steps=10000,
        ),
    )


def test_flat_games_file_splits_into_env_and_ppo() -> None:
    assert load(FILES / "games.json") == Config(
        env=EnvConfig(allowed_game_indices=(0, 1, 2, 6, 7), opponent="mcts"), ppo=Hyperparameters(gamma=0.99)
    )


@pytest.mark.parametrize(("name", "kind"), [("games_served", "openspiel"), ("trace_served", "trace")])
def test_flat_served_files(name: str, kind: str) -> None:
    config = load(FILES / f"{name}.json")
    assert (config.env.env_type, config.env.env_mode) == (kind, "docker")
    assert (config.run.use_vllm, config.run.vllm_base_url) == (True, "http://localhost:8000/v1")


def test_curriculum_file() -> None:
    assert load(FILES / "curriculum.json") == Config(
        curriculum=CurriculumConfig(
            failure_replay_prob=0.3,
            failure_buffer_size=1000,
            progression_window=100,
            stages=(
                Stage("easy", (0, 999_999_999), "random", 0.6),
                Stage("medium", (1_000_000_000, 1_999_999_999), "random", 0.5),
                Stage("hard", (2_000_000_000, 2_999_999_999), "mcts"),
            ),
        )
    )


def test_all_five_together() -> None:
    """A file keeps the keys that others do not set; two files set env_type, and the later one wins."""
    names = ("model", "games", "games_served", "trace_served", "curriculum")
    config = resolve(files=[FILES / f"{name}.json" for name in names])
    assert config.model.use_4bit and config.env.opponent == "mcts" and len(config.curriculum.stages) == 3
    assert config.env.env_type == "trace"


def test_general_defaults() -> None:
    """The defaults that the same people know: value-loss weight, checkpoints, window, buffer, temperature."""
    config = Config()
    assert (config.ppo.vf_coef, config.ppo.temperature, config.run.checkpoint_every) == (0.1, 0.7, 500)
    assert (config.curriculum.progression_window, config.curriculum.failure_buffer_size) == (100, 1000)
    assert config.lora.target_modules == ALL_LINEAR


def test_dropout_is_noticed_once() -> None:
    (notice,) = notices(load(FILES / "model.json"))
    assert notice.startswith("lora.lora_dropout = 0.05 is applied nowhere")
    assert notices(Config()) == []


def test_keys_without_effect_are_noticed() -> None:
    config = from_dict({"use_nested_quant": True, "vllm_base_url": "http://h/v1"})
    assert [notice.split(" = ")[0] for notice in notices(config)] == [
        "model.use_nested_quant",
        "run.vllm_base_url",
    ]


def test_resolution_order(tmp_path: Path) -> None:
    """defaults < preset < files, later ones winning < overrides: four values, each from its own layer."""
    first, second = tmp_path / "a.json", tmp_path / "b.yaml"
    first.write_text(json.dumps({"ppo": {"gamma": 0.5, "lam": 0.5, "cliprange": 0.5}}))
    second.write_text("lam: 0.6\ncliprange: 0.6\n")
    config = resolve("qwen3-4b", [first, second], [("ppo.cliprange", "0.7")])
    assert (config.ppo.gamma, config.ppo.lam, config.ppo.cliprange) == (0.5, 0.6, 0.7)
    assert (config.ppo.learning_rate, config.ppo.vf_coef) == (2e-5, 0.1)


def test_a_later_choice_of_game_replaces_the_earlier_one() -> None:
    """``tiny`` names a game; a later task id, or indices, must replace it."""
    config = resolve("tiny", overrides=[("env.task_id", "5")])
    assert (config.env.task_id, config.env.game, config.env.rules) == (5, None, False)
    config = resolve("tiny", [FILES / "games.json"])
    assert (config.env.allowed_game_indices, config.env.game) == ((0, 1, 2, 6, 7), None)
    config = resolve(overrides=[("env.game", "hex"), ("env.params", "{board_size: 5}")])
    assert resolve(base=config, overrides=[("env.game", "chess")]).env.params == {}
    assert resolve(base=config, overrides=[("env.params", "{board_size: 7}")]).env.game == "hex"


def test_two_widths_of_weights() -> None:
    with pytest.raises(ConfigError, match=r"model\.use_4bit and model\.use_8bit contradict each other"):
        resolve(overrides=[("model.use_4bit", "true"), ("model.use_8bit", "true")])


def test_two_choices_of_game_in_one_layer() -> None:
    with pytest.raises(ConfigError, match=r"not env.task_id and env.game"):
        from_dict({"task_id": 5, "game": "hex"})


@pytest.mark.parametrize("name", presets())
def test_presets_load_and_survive_saving(name: str, tmp_path: Path) -> None:
    config = resolve(name)
    for suffix in (".yaml", ".json"):
        assert load(save(config, tmp_path / f"config{suffix}")) == config


def test_a_file_names_the_preset_from_which_it_starts(tmp_path: Path) -> None:
    """The file's own keys win over the preset's, and the rest is the preset's; options win over both."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("preset: tiny\nppo:\n  gamma: 0.5\nseed: 3\n")
    expected = resolve("tiny", overrides=[("ppo.gamma", "0.5"), ("run.seed", "3")])
    assert load(mine) == expected and expected.ppo.learning_rate == 4e-3
    assert resolve("tiny", [mine]) == expected
    assert from_dict({"preset": "tiny", "gamma": 0.5, "seed": 3}) == expected
    assert resolve(files=[mine], overrides=[("ppo.gamma", "0.7")]).ppo.gamma == 0.7
    assert resolve_layers(files=[mine]).layers == f"preset tiny, {mine}"


def test_the_preset_of_a_file_is_below_all_files(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.yaml"
    first.write_text('{"gamma": 0.5}')
    second.write_text("preset: qwen3-4b\nlam: 0.6\n")
    config = resolve(files=[first, second])
    assert (config.ppo.gamma, config.ppo.lam, config.ppo.learning_rate) == (0.5, 0.6, 2e-5)
    assert resolve_layers(files=[first, second]).layers == f"preset qwen3-4b, {first}, {second}"


def test_a_choice_of_tasks_in_a_file_replaces_that_of_its_preset(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("preset: tiny\ngame: kuhn_poker\n")
    assert (load(mine).env.game, load(mine).env.task_id) == ("kuhn_poker", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("preset: tinny", r"mine.yaml: unknown preset 'tinny'; did you mean 'tiny'\? allowed: "),
        ("preset: 3", r"mine.yaml: preset must be the name of a preset, not 3$"),
        ("preset: null", r"mine.yaml: preset must be the name of a preset, not None$"),
        (
            "preset: other.yaml",
            r"not the file 'other.yaml'; files are given .*--config other.yaml .*mine.yaml$",
        ),
        ("preset: configs/tiny", r"not the file 'configs/tiny'; "),
        ("run: {preset: tiny}", r"unknown key in .*mine.yaml: 'run.preset'"),
        ("prest: tiny", r"'prest'; did you mean 'preset'\?"),
    ],
)
def test_presets_that_a_file_cannot_name(text: str, message: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(mine)


def test_two_presets_contradict_each_other(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.yaml", tmp_path / "other.json"
    mine.write_text("preset: tiny")
    other.write_text('{"preset": "qwen3-4b"}')
    with pytest.raises(ConfigError, match=r"from one preset: .*mine.yaml names 'tiny', and .*'qwen3-4b'"):
        resolve(files=[mine, other])
    with pytest.raises(ConfigError, match=r"from one preset: --preset names 'qwen3-4b', and .*'tiny'"):
        resolve("qwen3-4b", [mine])


def test_a_preset_starts_from_no_other_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first.yaml").write_text("preset: second")
    (tmp_path / "second.yaml").write_text("gamma: 0.5")
    monkeypatch.setattr(preset_files, "_preset_dir", lambda: tmp_path)
    with pytest.raises(ConfigError, match=r"first.yaml: a preset starts from no other one, .*second"):
        from_dict({"preset": "first"})


def test_the_mistakes_of_preset_and_file_are_named_together(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("preset: [tiny]\ngama: 1\n")
    with pytest.raises(MistakesError) as raised:
        load(mine)
    assert [str(error).partition(":")[0] for error in raised.value.mistakes] == [
        str(mine),
        f"unknown section or key in {mine}",
    ]


def test_preset_names() -> None:
    assert {"qwen2.5-3b", "qwen3-4b", "smollm2-135m", "tiny", "tiny-trace"} <= set(presets())
    assert list(presets()) == sorted(presets())
    with pytest.raises(
        UnknownKeyError, match=r"unknown preset 'qwen2.5-3'; did you mean 'qwen2.5-3b'\? allowed: "
    ):
        resolve("qwen2.5-3")
    with pytest.raises(UnknownKeyError) as raised:
        resolve("zzz")
    assert str(raised.value) == f"unknown preset 'zzz'; allowed: {', '.join(presets())}"


def test_saved_config_is_found_from_a_checkpoint(tmp_path: Path) -> None:
    config = from_dict({"seed": 7})
    save(config, tmp_path / "config.yaml")
    checkpoint = tmp_path / "checkpoints" / "step-5"
    checkpoint.mkdir(parents=True)
    assert saved_config(checkpoint) == saved_config(tmp_path) == config
    with pytest.raises(ConfigError, match="no such run or checkpoint folder"):
        saved_config(tmp_path / "absent")
    (tmp_path / "config.yaml").unlink()
    with pytest.raises(ConfigError, match=r"it holds no config\.yaml"):
        saved_config(checkpoint)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "a.json: not valid JSON: Expecting property name"),
        ("a.json", '{"gamma": 0.9, "gamma": 0.8}', "key 'gamma' is given twice"),
        ("a.yaml", "gamma: 0.9\ngamma: 0.8", "key 'gamma' is given twice"),
        ("a.yaml", "gamma: [", "a.yaml: not valid YAML"),
        ("a.json", "[1]", r"a.json: must be a mapping of sections or keys, not \[1\]"),
        ("a.toml", "", "must end in .json, .yaml or .yml"),
        ("a.json", '{"ppo": 3}', "a.json: section ppo must be a mapping of its keys, not 3"),
        ("a.json", '{"ppo": {"gama": 1}}', "unknown key in .*a.json: 'ppo.gama'; did you mean 'ppo.gamma'"),
        ("a.json", '{"pppo": {}}', "unknown section or key in .*a.json: 'pppo'; did you mean 'ppo'"),
        ("a.json", '{"opponnent": "x"}', "did you mean 'opponent'"),
        ("a.json", '{"gamma": "high"}', "a.json: ppo.gamma must be a number, not 'high'"),
        ("a.json", '{"ppo": {"gamma": 0.5}, "gamma": 0.5}', "ppo.gamma is given twice"),
        ("a.json", '{"gamma": NaN}', "ppo.gamma must be a number, not nan"),
    ],
)
def test_bad_files(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(path)


def test_missing_file() -> None:
    with pytest.raises(ConfigError, match=r"config file 'absent.json' cannot be read: No such file"):
        load("absent.json")


def test_an_empty_yaml_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing yet\n")
    assert load(tmp_path / "a.yaml") == Config()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"mini_batch_size": 0}, "ppo.mini_batch_size must be at least 1, not 0"),
        ({"gamma": 0}, "ppo.gamma must be above 0 and at most 1, not 0.0"),
        ({"gamma": 1.01}, "ppo.gamma must be above 0 and at most 1, not 1.01"),
        ({"task_ids": [3, [5, -1]]}, r"env.task_ids\[1\]\[1\] must be at least 0, not -1"),
        (
            {"task_ids": [[5, 4]]},
            r"env.task_ids\[0\] must be \[first, last\] with first <= last, not \[5, 4\]",
        ),
        ({"params": {"players": 3}}, "env.params needs env.game"),
        ({"use_vllm": True}, "run.use_vllm needs run.vllm_base_url"),
        ({"stages": [{"task_id_range": [0, 1]}]}, r"stages\[0\].name is missing: text"),
        (
            {"stages": [{"name": "a", "task_id_range": [0, 1], "task_ids": [5]}]},
            r"curriculum.stages\[0\] must have task_id_range or task_ids, and not both",
        ),
        (
            {"stages": [{"name": "a"}, {"name": "a"}]},
            r"curriculum.stages\[1\].name must differ from the other stages', not be 'a' again",
        ),
        (
            {"stages": [{"name": "a", "opponent": {"first": 0}}]},
            r"stages\[0\].opponent.first must be above 0",
        ),
        ({"opponent": {}}, r"env.opponent must be text or a mapping of names to a number"),
        ({"success_scores": {"2048": 1}}, r"curriculum.success_scores.2048 must be at least 0 and below 1"),
        (
            {"stages": [{"name": "a", "task_id_range": [0, 1], "threshold": 60}]},
            r"curriculum.stages\[0\].threshold must be at least 0 and at most 1, not 60.0",
        ),
        (
            {"stages": [{"name": "a", "task_id_range": [0, 1], "treshold": 0.6}]},
            "'treshold'; did you mean 'threshold'",
        ),
        ({"illegal": "forfit"}, "'raise', not 'forfit'; did you mean 'forfeit'"),
        ({"rules": 1}, "env.rules must be true or false, not 1"),
        ({"batch_size": 2.5}, "ppo.batch_size must be an integer, not 2.5"),
        ({"batch_size": True}, "ppo.batch_size must be an integer, not True"),
    ],
)
def test_bad_values(data: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_dict(data)


def test_whole_floats_are_integers() -> None:
    assert from_dict({"num_train_steps": 1e4}).ppo.num_train_steps == 10_000
    with pytest.raises(InvalidValueError, match="an integer, not inf"):
        from_dict({"num_train_steps": float("inf")})


def test_an_older_run_goes_on_as_it_began(tmp_path: Path) -> None:
    """Runs that were saved before there was a loss of illegal answers were trained without it."""
    saved = to_dict(Config())
    assert saved["ppo"].pop("legal_coef") == 0.1
    (tmp_path / SAVED_NAME).write_text(yaml.safe_dump(saved))
    assert saved_config(tmp_path).ppo.legal_coef == 0.0
    save(Config(), tmp_path / SAVED_NAME)
    assert saved_config(tmp_path) == Config()


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text('{"seed": 3}', encoding="utf-8-sig")
    assert load(file).run.seed == 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "[" * 100_000, r"a\.json: its lists and mappings are nested too deeply"),
        ("a.yaml", "a: " + "[" * 3_000, r"a\.yaml: its lists and mappings are nested too deeply"),
        (
            "a.json",
            '{"seed": "' + "x" * 10_000 + '"}',
            r"run\.seed must be .*, not 'x+… \(10,002 characters\)$",
        ),
    ],
)
def test_errors_of_odd_files_are_short(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=message) as raised:
        load(tmp_path / name)
    assert len(str(raised.value)) < len(str(tmp_path)) + 400


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("ppo.batch_size", "9" * 5_000, r"must be an integer, not '9+… \(5,002 characters\)"),
        ("ppo.max_step_kl", " ", r"must be a number or null, not ' '"),
        ("run.seed", str(2**32), r"must be at least 0 and below 4294967296, not 4294967296"),
        ("env.opponent", "{}", r"must be text or a mapping of names to a number, not \{\}"),
    ],
)
def test_values_that_no_key_has(key: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve("tiny", overrides=[(key, text)])
