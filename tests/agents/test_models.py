"""Base models: how they are loaded from folders, and which of them are refused by name."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import gymnasium as gym
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, GPT2Config, MambaConfig, Phi3Config, PretrainedConfig, Qwen2Config

from gamespiel.agents.engines import ContextLengthError, positions_of
from gamespiel.agents.models.loading import TINY, ModelSettings, load_base, load_tokenizer
from gamespiel.agents.models.memory import MemoryLimitError
from gamespiel.agents.models.weights import ModelError
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.tokens.codec import PromptLengthError
from task_gym.wrappers import NamedText
from tests.agents.cards import card
from tests.agents.families import chatml, gemma, gemma3
from tests.agents.toys import TEXT, make_policy, masks_of, same_noise


def test_the_base_is_frozen_and_in_evaluation_mode(capfd: pytest.CaptureFixture[str]) -> None:
    base = load_base(ModelSettings(), "cpu", seed=0)
    load_tokenizer(ModelSettings())
    assert capfd.readouterr() == ("", "")
    assert not any(p.requires_grad for p in base.parameters()) and not base.training
    assert {p.dtype for p in base.parameters()} == {torch.float32}
    with pytest.raises(ValueError, match=r"dtype: .*'bfloat16' or 'float16', got 'int4'"):
        make_policy(model={"dtype": "int4"})
    with pytest.raises(TypeError, match=r"model got an unexpected keyword argument 'dtyp'.*'dtype'"):
        make_policy(model={"dtyp": "float32"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a copy of the embedded model, to be damaged."""
    shutil.copytree(TINY, tmp_path / "model")
    return tmp_path / "model"


# -- folders that cannot be loaded -------------------------------------------------------------------------


def truncate(size: int) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(path.read_bytes()[:size])


def change(**entries: Any) -> Callable[[Path], Any]:
    return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def remove_feed_forward_part(path: Path) -> None:
    weights = {name: weight for name, weight in load_file(path).items() if "layers.1.mlp" not in name}
    save_file(weights, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("model.safetensors", Path.unlink, "is a folder without weights; .* or model.random_weights$"),
        ("model.safetensors", truncate(0), r"has a damaged safetensors file \(.*\); copy or"),
        ("model.safetensors", truncate(1000), r"has a damaged safetensors file \("),
        ("model.safetensors", truncate(-1), r"has a damaged safetensors file \("),
        (
            "model.safetensors",
            remove_feed_forward_part,
            "lacks the weights model.layers.1.mlp.down_proj.weight, model.layers.1.mlp.gate_proj.weight, "
            "model.layers.1.mlp.up_proj.weight, which",
        ),
        ("config.json", change(intermediate_size=96), "has weights of other shapes than"),
        ("config.json", change(hidden_size="wide"), "cannot be loaded: .*'hidden_size'"),
        ("config.json", change(model_type="qwen99"), "cannot be loaded: .*qwen99"),
        ("config.json", truncate(40), ".*is not a valid JSON file"),
        # transformers would load the base and the rank that the file names, whoever wrote it.
        ("adapter_config.json", lambda path: path.write_text('{"peft_type": "LORA"}'), "has an adapter_co"),
    ],
)
def test_a_damaged_folder(name: str, damage: Callable[[Path], None], message: str, folder: Path) -> None:
    damage(folder / name)
    for use_4bit in (False, True) if name == "model.safetensors" else (False,):
        with pytest.raises(ModelError) as caught:
            load_base(ModelSettings(str(folder), use_4bit=use_4bit), "cpu", 0)
        said = str(caught.value)
        assert "\n" not in said and re.match(f"model_name {str(folder)!r} {message}", said)


def test_a_damaged_tokenizer(folder: Path) -> None:
    truncate(40)(folder / "tokenizer.json")
    with pytest.raises(ModelError, match=r"has a damaged JSON file \("):
        load_tokenizer(ModelSettings(str(folder)))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer; allowed: .* tokenizer\.json beside"):
        load_tokenizer(ModelSettings(str(folder)))


def test_code_of_a_models_own_is_refused_without_a_question(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(model_type="custom", auto_map={"AutoConfig": "configuration.Own"})(folder / "config.json")
    own_tokenizer = {"AutoTokenizer": ["tokenization.Own", None]}
    change(tokenizer_class="Own", auto_map=own_tokenizer)(folder / "tokenizer_config.json")
    for name in ("configuration.py", "tokenization.py"):
        (folder / name).write_text("raise SystemExit('code of the model was run')")

    monkeypatch.setattr("builtins.input", Mock(side_effect=AssertionError("the terminal was asked")))
    settings = ModelSettings(str(folder))
    fresh = ModelSettings(str(folder), random_weights=True)
    for load in (
        lambda: load_tokenizer(settings),
        lambda: load_base(settings, "cpu", 0),
        lambda: load_base(fresh, "cpu", 0),
    ):
        with pytest.raises(ModelError, match="names code of its own"):
            load()


def test_a_model_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are moved to a GPU whole, within the loading by transformers or after it."""
    error, loader = torch.OutOfMemoryError("CUDA out of memory"), "transformers.AutoModelForCausalLM"
    for place, random in (("torch.nn.Module.to", False), ("torch.nn.Module.to", True), (loader, False)):
        with monkeypatch.context() as patch:
            patch.setattr(place + ".from_pretrained" * (place == loader), Mock(side_effect=error))
            with pytest.raises(MemoryLimitError, match=r"'tiny' does not fit into the memory of the cpu"):
                load_base(ModelSettings(random_weights=random), "cpu", 0)


@pytest.mark.parametrize("native", [False, True])
def test_a_gpu_without_bfloat16_is_told(
    native: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with card(), monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native)
        patch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
        for device, dtype in (("cpu", "bfloat16"), ("cuda", "float16"), ("cuda:0", "bfloat16")):
            load_base(ModelSettings(dtype=dtype), device, 0)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == (not native)
    assert native or said[0].startswith("cuda:0 (Tesla T4) emulates bfloat16")


# -- models that cannot work ---------------------------------------------------------------------------------


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.1}
GATED = SMALL | {"intermediate_size": 64, "num_key_value_heads": 1}
PROMPT = 19
"""Tokens of a prompt of no text: <|im_start|>user\\n 6, <|im_end|>\\n 2, <|im_start|>assistant\\n 11."""


def saved(folder: Path, config: PretrainedConfig, tokenizer: Any = None) -> dict[str, Any]:
    """Writes a configuration with a tokenizer; returns the settings of a model drawn for it."""
    own = chatml() if tokenizer is None else tokenizer
    own.save_pretrained(folder)
    config.save_pretrained(folder)
    return {"model_name": str(folder), "random_weights": True}


def gpt2(positions: int, vocabulary: int = 300) -> GPT2Config:
    return GPT2Config(
        vocab_size=vocabulary, n_positions=positions, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip


def policy(model: dict[str, Any], *targets: str, actions: int = 130, **settings: Any) -> LLMPolicy:
    lora = {"r": 2, **({"target_modules": targets} if targets else {})}
    space = gym.spaces.Discrete(actions) if settings.get("decode") != "text" else gym.spaces.Text(10_000)
    return LLMPolicy(TEXT, space, lambda left: 1e-3, model=model, lora=lora, **settings)


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768, "rope_theta": 1e6}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}


@pytest.mark.parametrize(
    ("config", "positions"),
    [
        (Qwen2Config(max_position_embeddings=32_768), 32_768),
        # Qwen's cards tell to add these lines for 131,072 tokens, and leave the other number as it is.
        (Qwen2Config(max_position_embeddings=32_768, rope_parameters=YARN), 131_072),
        (Qwen2Config(max_position_embeddings=2_048, rope_parameters=LINEAR), 4_096),
        (Phi3Config(max_position_embeddings=131_072, original_max_position_embeddings=4_096), 131_072),
        (gemma3(vocab_size=300, max_position_embeddings=512), 512),
        (MambaConfig(), None),
    ],
    ids=lambda value: value.model_type if isinstance(value, PretrainedConfig) else str(value),
)
def test_positions_are_those_of_the_configuration(config: PretrainedConfig, positions: int | None) -> None:
    assert positions_of(config) == positions


def test_a_prompt_and_its_answer_fit_the_positions(tmp_path: Path) -> None:
    """64 positions: actions of up to three digits leave 61 for a prompt, and 61 are read.

    Replies of 40 tokens leave 24. Names are as long as the state says.
    """
    settings = saved(tmp_path, gpt2(64))
    model = policy(settings, "c_attn")
    masks = masks_of([(7, 129)], 130)
    longest = "x" * (61 - PROMPT)
    drawn = model.decide([longest], masks, same_noise(0.9, 1))
    assert model.answer_of(drawn[0]).action in (7, 129)
    _, log_probs, _ = model.evaluate_actions([longest], torch.tensor([129]), masks)
    assert torch.isfinite(log_probs).all()
    with pytest.raises(PromptLengthError, match=r"of 43 characters has 62 tokens .* at most 61: "):
        model.decide([longest + "x"], masks, same_noise(0.9, 1))
    with pytest.raises(PromptLengthError, match=r"^a prompt has 62 tokens"):
        model.prompts(torch.ones(1, 62, dtype=torch.int32))
    model = policy(settings, "c_attn", decode="text", max_new_tokens=40)
    assert len(model.prompts(["x" * (24 - PROMPT)])[0]) == 24
    with pytest.raises(PromptLengthError, match=r"at most 24: .* 40 are for the answer"):
        model.prompts(["x" * (25 - PROMPT)])
    with pytest.raises(PromptLengthError, match=r"19 tokens .* at most 14"):
        policy(settings, "c_attn", decode="text", max_new_tokens=50)
    model = policy(settings, "c_attn", answer="name", actions=3)
    text = NamedText("x", ["a" * 50 + "b", "a" * 50 + "c"])
    with pytest.raises(ContextLengthError, match=r"of 70 tokens .* at most 64, the model's positions"):
        model.decide([text], masks_of([(0, 1)], 3), same_noise(0.9, 1))


def test_a_tokenizer_larger_than_the_embedding(tmp_path: Path) -> None:
    more = len(chatml()) - 250 - 1  # <|endoftext|> is in no prompt and ends no answer
    message = rf"an embedding of 250 tokens and a tokenizer with {more} more, the first of them .* id 250;"
    with pytest.raises(ModelError, match=message):
        policy(saved(tmp_path, gpt2(64, vocabulary=250)), "c_attn")
    # A control token that no text gives needs none: Gemma 3's tokenizer ends with one for images.
    own = gemma()
    known = len(own)
    own.add_special_tokens({"additional_special_tokens": ["<image_soft_token>"]})
    model = saved(tmp_path / "gemma", Qwen2Config(vocab_size=known, **GATED), own)
    assert policy(model, "q_proj").prompts(["<image_soft_token>"])[0] < (known,) * 1000


def test_a_bidirectional_model_is_refused(tmp_path: Path) -> None:
    """BERT reads both ways, unless its configuration makes a decoder of it."""
    config = BertConfig(vocab_size=300, intermediate_size=64, is_decoder=False, **SMALL)
    with pytest.raises(ModelError, match=r"is bidirectional \(bert\)"):
        policy(saved(tmp_path / "both", config), "query")
    config.is_decoder = True
    assert policy(saved(tmp_path / "left", config), "query").decode == "choice"
