"""Words of other libraries: taken, or refused with what differs."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from gamespiel.config import ConfigError, MistakesError, UnknownKeyError, from_dict, load, resolve
from gamespiel.config.files import resolve_layers
from gamespiel.config.foreign import SAME_NAME, SHORT, WORDS, render_words
from gamespiel.config.schema import DOTTED, KEYS, SECTION_OF

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"

TRL_SAME = """
model_name_or_path: Qwen/Qwen3-4B
torch_dtype: bfloat16
load_in_4bit: true
use_peft: true
lora_r: 8
lora_target_modules: [q_proj, v_proj]
learning_rate: 3.0e-6
lr_scheduler_type: linear
num_ppo_epochs: 2
num_mini_batches: 4
response_length: 53
missing_eos_penalty: 1.0
save_total_limit: 2
report_to: none
weight_decay: 0.0
batch_size: 64
"""

TRL_OTHER = {
    "total_episodes": "ppo.num_train_steps",
    "kl_coef": "ppo.init_kl_coef",
    "save_steps": "run.checkpoint_every",
    "bf16": "model.dtype",
    "top_p": None,
    "weight_decay": None,
}
"""Words that are refused, each with the nearest key."""


def test_a_file_in_trls_words_is_accepted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "trl.yaml").write_text(TRL_SAME)
    with caplog.at_level(logging.WARNING, "gamespiel.config"):
        config = load(tmp_path / "trl.yaml")
    model, ppo, run = config.model, config.ppo, config.run
    assert (model.model_name, model.dtype, model.use_4bit) == ("Qwen/Qwen3-4B", "bfloat16", True)
    assert (config.lora.r, config.lora.target_modules) == (8, ("q_proj", "v_proj"))
    assert (ppo.learning_rate, ppo.lr_schedule, ppo.ppo_epochs, ppo.num_minibatches) == (3e-6, "linear", 2, 4)
    assert (ppo.max_new_tokens, ppo.cut_penalty, ppo.batch_size) == (53, 1.0, 64)
    assert (run.keep_checkpoints, run.report_to) == (2, ("none",))
    notices = [record.getMessage().removeprefix(f"{tmp_path / 'trl.yaml'}: ") for record in caplog.records]
    assert notices[0] == "model_name_or_path (Hugging Face, TRL) is taken as model.model_name."
    left_out = [notice.split(" ")[0] for notice in notices if "left out" in notice]
    assert left_out == ["use_peft", "weight_decay"]
    assert len(notices) == 13  # eleven words that are taken, and two that are left out


def test_a_file_in_trls_words_is_refused_in_one_message() -> None:
    data: dict[str, Any] = dict.fromkeys(TRL_OTHER, 0.125) | {"lora_r": 0, "lerning_rate": 1}
    with pytest.raises(MistakesError) as raised:
        from_dict(data, "trl.yaml")
    messages = {str(mistake).split("'")[1]: str(mistake) for mistake in raised.value.mistakes[:-1]}
    for word, key in TRL_OTHER.items():
        end = f"; the nearest key is '{key}'" if key else "; leave it out"
        assert messages[word].endswith(end) and WORDS[word].differs in messages[word]
    assert len(raised.value.mistakes) == len(TRL_OTHER) + 2
    assert str(raised.value.mistakes[-1]) == "trl.yaml: lora.r must be at least 1, not 0"


def test_our_keys_of_another_meaning_are_noticed_beside_words_of_that_library(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Stable-Baselines3's ``target_kl`` ends epochs, which is ``max_step_kl`` here."""
    with caplog.at_level(logging.WARNING, "gamespiel.config"):
        from_dict({"target_kl": 0.03, "batch_size": 64})
        assert caplog.records == []
        from_dict({"target_kl": 0.03, "n_epochs": 10})
    assert [record.getMessage() for record in caplog.records] == [
        "config: n_epochs (Stable-Baselines3) is taken as ppo.ppo_epochs.",
        "config: target_kl means another thing in Stable-Baselines3: there the KL at which epochs end early "
        "(here ppo.max_step_kl). It is taken as ppo.target_kl.",
    ]


def test_words_that_are_refused() -> None:
    data: dict[str, object]
    for data, message in (
        ({"lr": 1e-5, "learning_rate": 1e-5}, "ppo.learning_rate is given twice, as lr and as learning_rate"),
        ({"n_epochs": 1, "num_ppo_epochs": 1}, "ppo.ppo_epochs is given twice, as n_epochs and as num_ppo"),
        ({"ppo": {"lora_r": 8}}, "unknown key in config: 'ppo.lora_r'; did you mean 'lora.r'"),
        ({"env": {"use_vllm": True}}, "unknown key in config: 'env.use_vllm'; did you mean 'run.use_vllm'"),
        ({"ppo": {"top_p": 0.9}}, r"unknown key in config: 'ppo.top_p' \(Hugging Face\)"),
        ({"weight_decay": False}, "'weight_decay'"),  # no number
        ({"lr_scheduler_type": "polynomial"}, "ppo.lr_schedule must be one of 'constant', 'linear'"),
    ):
        with pytest.raises(ConfigError, match=message):
            from_dict(data)


def test_words_in_their_section_and_in_options() -> None:
    assert from_dict({"lora": {"lora_r": 4, "bias": "none"}}).lora.r == 4
    config, layers, notices = resolve_layers(None, [], [("lora.lora_r", "4"), ("lora.lora_r", "8")])
    assert (config.lora.r, layers) == (8, "defaults, --lora.lora_r")
    assert notices == ("--lora.lora_r (TRL) is taken as lora.r.",)
    with pytest.raises(UnknownKeyError, match=r"^unknown option '--ppo.lora_r'; did you mean '--lora.r'\?$"):
        resolve(overrides=[("ppo.lora_r", "4")])
    with pytest.raises(UnknownKeyError, match=r"^unknown option '--ppo.top_k' \(Hugging Face\): "):
        resolve(overrides=[("ppo.top_k", "4")])
    with pytest.raises(UnknownKeyError, match=r"^unknown option '--fsdp' .*'model.use_4bit'$"):
        resolve(overrides=[("fsdp", "true")])


def test_the_table_is_sound() -> None:
    """No word hides a key or a section, and each names a key that exists."""
    assert [word for word in WORDS if word in SECTION_OF or word in KEYS] == []
    assert [word for word in WORDS.values() if word.key not in ("", *DOTTED)] == []
    assert [word for word in WORDS.values() if not (word.differs or word.key)] == []
    assert [word for word in SAME_NAME if word.key not in DOTTED or not word.key.endswith(word.word)] == []
    assert [key for key in SHORT.values() if key not in DOTTED] == []
    named = {
        key
        for word in WORDS.values()
        for key in re.findall(r"\b(?:ppo|env|run|model|lora)\.\w+", word.differs)
    }
    assert named <= set(DOTTED)


def test_the_table_of_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8").endswith(render_words()), render_words()
