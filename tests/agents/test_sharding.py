"""A base model before it is sharded: its skeleton, its layers, and the settings that are refused."""

from __future__ import annotations

import json
import pickle
import shutil
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from gamespiel import launching
from gamespiel.agents.engines import UnsupportedModelError
from gamespiel.agents.engines.base import layers_of
from gamespiel.agents.hyperparameters import ModelSettings
from gamespiel.agents.launch import Launch
from gamespiel.agents.models.loading import TINY, ModelError, load_base
from gamespiel.agents.models.skeleton import dump_skeleton
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.ranks import ALONE, RanksError
from gamespiel.assembly import policy_settings
from gamespiel.config import ConfigError, InvalidValueError, resolve
from gamespiel.config.resume import check_resumed
from tests.agents.families import FAMILIES, parametrize_families
from tests.agents.toys import make_policy, make_ppo


@parametrize_families(FAMILIES, ("llama", "gemma3"))
def test_a_skeleton_has_all_but_the_weights(family: str, tmp_path: Path) -> None:
    """Its parameters have one number each in memory, and those that are one in the model are one in it."""
    place = FAMILIES[family].save(tmp_path / family)
    model = load_base(ModelSettings(model_name=place, random_weights=True), "cpu", seed=0)
    assert layers_of(model.get_decoder()) == list(model.model.layers)
    sent = dump_skeleton(model)
    copy = pickle.loads(sent)
    weights = sum(parameter.numel() * 4 for parameter in model.parameters())
    assert len(sent) < min(weights, 50_000)
    shapes = {name: (p.shape, p.dtype) for name, p in model.named_parameters(remove_duplicate=False)}
    assert shapes == {n: (p.shape, p.dtype) for n, p in copy.named_parameters(remove_duplicate=False)}
    assert len(list(copy.parameters())) == len(list(model.parameters()))  # tied ones are counted once
    for parameter in copy.parameters():
        assert parameter.untyped_storage().nbytes() == 4 and not parameter.requires_grad
    assert all(torch.equal(own, other) for own, other in zip(copy.buffers(), model.buffers(), strict=True))
    assert copy.config.to_dict() == model.config.to_dict()
    assert copy.generation_config.to_dict() == model.generation_config.to_dict() and not copy.training


def test_layers_that_are_not_known_are_refused() -> None:
    def transformer(kind: str, children: list[nn.Module]) -> SimpleNamespace:
        config = SimpleNamespace(model_type=kind, num_hidden_layers=2)
        config.get_text_config = lambda: config
        return SimpleNamespace(config=config, children=lambda: children)

    with pytest.raises(UnsupportedModelError, match=r"model\.shard: the family 'mamba' is none of "):
        layers_of(transformer("mamba", []))
    with pytest.raises(UnsupportedModelError, match="no list of 2 layers"):
        layers_of(transformer("llama", [nn.ModuleList([nn.Linear(1, 1)]), nn.Linear(1, 1)]))


def test_one_process_has_nobody_to_share_with() -> None:
    said = r"this process is alone; allowed: several ranks .* model\.shard"
    with pytest.raises(RanksError, match=said):
        ALONE.shard(nn.Linear(1, 1), [], torch.device("cpu"))
    with pytest.raises(RanksError, match=said):
        make_policy(model={"shard": True})
    config = resolve("tiny", overrides=[("model.shard", "true")])
    with pytest.raises(InvalidValueError, match=said), launching.joining(config, Launch()):
        raise AssertionError("it was joined")


def test_a_resumed_run_may_be_sharded_or_not() -> None:
    config = resolve("tiny")
    check_resumed(resolve("tiny", overrides=[("model.shard", "true")]), config)


@pytest.mark.parametrize(
    "overrides",
    [
        [("model.use_4bit", "true")],
        [("model.use_8bit", "true")],
        [("run.use_vllm", "true"), ("run.vllm_base_url", "http://127.0.0.1:8000/v1")],
    ],
)
def test_settings_that_contradict_a_sharded_base(overrides: list[tuple[str, str]]) -> None:
    key = overrides[0][0]
    with pytest.raises(ConfigError, match=f"model.shard and {key} contradict each other"):
        resolve("tiny", overrides=[("model.shard", "true"), *overrides])
    if key.startswith("model"):
        with pytest.raises(ModelError, match=f"model.shard and {key} contradict each other"):
            load_base(ModelSettings(shard=True, **{key.removeprefix("model."): True}), "cpu", 0)


def test_files_of_quantised_models_are_refused(tmp_path: Path) -> None:
    blocks = tmp_path / "model.gguf"
    blocks.write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"model\.shard: .* is a GGUF file"):
        load_base(ModelSettings(str(blocks), shard=True), "cpu", 0)
    shutil.copytree(TINY, tmp_path / "tiny")
    path = tmp_path / "tiny" / "config.json"
    saved = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
    path.write_text(json.dumps(json.loads(path.read_text()) | saved))
    with pytest.raises(ModelError, match=r"model\.shard: .* was saved in 4 bits"):
        load_base(ModelSettings(str(path.parent), shard=True), "cpu", 0)


def test_a_base_to_be_sharded_stays_on_the_cpu_in_the_type_of_its_device() -> None:
    """On a GPU it has the type of its files, and on the CPU float32."""
    assert {p.device.type for p in load_base(ModelSettings(shard=True), "meta", 0).parameters()} == {"cpu"}


def test_a_file_of_a_sharded_learner_is_loaded_whole() -> None:
    """There are no ranks where a file is loaded, and the base is addressed by its name."""
    policy = make_policy()
    policy.model_settings = ModelSettings(shard=True)
    written = BytesIO()
    policy.save(written)
    written.seek(0)
    assert not LLMPolicy.load(written, "cpu").model_settings.shard
    model = make_ppo(policy_kwargs={"lora": {"r": 4}})
    model.policy_kwargs = {"lora": {"r": 4}, "model": ModelSettings(shard=True)}
    written = BytesIO()
    model.save(written)
    written.seek(0)
    assert not LLMPPO.load(written, device="cpu").policy.model_settings.shard


def test_an_evaluation_has_the_whole_base(monkeypatch: pytest.MonkeyPatch) -> None:
    from gamespiel import assembly

    config = resolve("tiny", overrides=[("model.shard", "true"), ("run.device", "cpu")])
    assert policy_settings(config)["model"].shard
    spaces = make_policy()
    env = SimpleNamespace(observation_space=spaces.observation_space, action_space=spaces.action_space)
    assert not assembly.make_policy(config, env).model_settings.shard  # type: ignore[arg-type]
