"""Base models by name: where their weights are, what identifies them, and what is taken from GGUF files."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gamespiel.agents.models.loading import (
    TINY,
    ModelError,
    ModelSettings,
    load_base,
    load_tokenizer,
    resolve,
)
from gamespiel.agents.models.weights import (
    WHEELS,
    Wheel,
    describe_model,
    from_wheel,
    identity,
    origin,
    weight_files,
)
from gamespiel.agents.tokens.codec import ChatCodec
from tests.agents.ggufs import LAYERS, vocabulary, weights, write


def test_names_and_folders(tmp_path: Path) -> None:
    assert resolve("tiny") == resolve(str(TINY)) == str(TINY)
    assert resolve("Qwen/Qwen3-4B") == "Qwen/Qwen3-4B"  # a name on the hub
    with pytest.raises(ModelError, match=r"is a folder without a config\.json$"):
        resolve(str(tmp_path))
    (tmp_path / "model-Q8_0.gguf").touch()
    with pytest.raises(ModelError, match=r"config\.json; it has model-Q8_0\.gguf"):
        resolve(str(tmp_path))
    assert resolve(str(tmp_path / "model-Q8_0.gguf")) == str(tmp_path / "model-Q8_0.gguf")
    for name, message in (
        ("Tinny", "is unknown; did you mean 'tiny'"),
        ("", "'' is empty; allowed: 'tiny', a hub name .*, a folder or a .gguf file"),
        ("./nowhere", "is not a folder; allowed: 'tiny', a hub name .*, a folder or a .gguf file"),
        ("a/b/c", "is not a folder"),
        ("owner/model.gguf", "is not a file"),
        (str(TINY / "model.safetensors"), r"is a file that does not end in \.gguf"),
    ):
        with pytest.raises(ModelError, match=message):
            resolve(name)


# -- wheels ------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Installs a distribution with weights for the hub name "owner/small"; returns their file."""
    info = tmp_path / "small_weights-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: small-weights\nVersion: 1.2\n")
    (tmp_path / "small_weights").mkdir()
    path = tmp_path / "small_weights" / "small.gguf"
    path.write_bytes(b"GGUF")
    (tmp_path / "small_weights" / "__init__.py").write_text("raise SystemExit('the package was imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    wheel = Wheel("small-weights", "small_weights/small.gguf", "make small")
    monkeypatch.setitem(WHEELS, "owner/small", wheel)
    return path


def test_an_installed_wheel_is_read_in_place_of_the_hub_and_named(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder by the name of a wheel comes first."""
    assert resolve("owner/small") == str(from_wheel("owner/small")) == str(installed)
    where = "small.gguf of the installed wheel small-weights 1.2"
    assert origin("owner/small") == where and describe_model("owner/small") == f"owner/small: {where}"
    assert identity("owner/small") == {"weights": where, "sha256": hashlib.sha256(b"GGUF").hexdigest()[:16]}
    installed.unlink()
    with pytest.raises(ModelError, match=r"small-weights 1\.2 is installed, and has no .*make small"):
        resolve("owner/small")
    # Without the wheel the name is the hub's.
    monkeypatch.setitem(WHEELS, "owner/other", Wheel("not-installed", "small.gguf", "make small"))
    assert from_wheel("owner/other") is None
    assert resolve("owner/other") == describe_model("owner/other") == "owner/other"
    shutil.copytree(TINY, tmp_path / "owner" / "small")
    monkeypatch.chdir(tmp_path)
    assert resolve("owner/small") == "owner/small"
    assert origin("owner/small") is None
    assert identity("owner/small") == identity("tiny")


# -- content -----------------------------------------------------------------------------------------------


def test_shards_are_one_model(tmp_path: Path) -> None:
    """Several files have the digest of their digests, in order of their names.

    A copy has the same identity, and changed weights another. Weights are looked for in transformers' order.
    """
    content, copy = (TINY / "model.safetensors").read_bytes(), tmp_path / "copy"
    shutil.copytree(TINY, copy)
    changed = bytearray(content)
    changed[-1] ^= 1  # one bit of one weight; name, size and header are the same
    assert identity("tiny") == identity(str(copy)) == {"sha256": hashlib.sha256(content).hexdigest()[:16]}
    (copy / "model.safetensors").write_bytes(changed)
    assert identity(str(copy)) == {"sha256": hashlib.sha256(changed).hexdigest()[:16]} != identity("tiny")
    with pytest.raises(ModelError, match=r"without weights; allowed: .* model\.safetensors or pytorch"):
        weight_files("it", tmp_path)
    for name in ("pytorch_model.bin", "model.safetensors"):
        (tmp_path / name).touch()
        assert weight_files("it", tmp_path) == [tmp_path / name]
    (tmp_path / "model.safetensors").unlink()
    for name, content in (("b.safetensors", b"second"), ("a.safetensors", b"first")):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "config.json").touch()
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(
        json.dumps({"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "a.safetensors"}})
    )
    joined = "".join(hashlib.sha256(content).hexdigest() for content in (b"first", b"second"))
    assert identity(str(tmp_path)) == {"sha256": hashlib.sha256(joined.encode()).hexdigest()[:16]}
    (tmp_path / "a.safetensors").unlink()
    with pytest.raises(ModelError, match=r"lacks a\.safetensors, which .*index\.json lists"):
        identity(str(tmp_path))


# -- GGUF files ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("gguf") / "small.gguf")


def load(path: Path | str, seed: int = 0, *, random_weights: bool = False) -> Any:
    return load_base(ModelSettings(str(path), random_weights=random_weights), "cpu", seed)


def test_the_weights_are_the_files(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q8_0 rounds to multiples of the largest of 32 weights / 127: by at most half of that.

    The model can be saved and loaded as a folder. Random weights have the file's architecture. A file of its
    name in the working folder is another file.
    """
    model, tensors = load(file), weights()
    assert capfd.readouterr() == ("", "")
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    for layer in range(LAYERS):
        expected = torch.from_numpy(tensors[f"blk.{layer}.ffn_up.weight"])
        half = expected.reshape(-1, 32).abs().amax(-1, keepdim=True) / 127 / 2
        rounded = model.model.layers[layer].mlp.up_proj.weight
        assert not torch.equal(rounded, expected)
        # The scale of a block is a float16, with 11 bits: 127 steps of it are off by up to 127 / 2**11.
        assert ((rounded - expected).reshape(-1, 32).abs() <= half * (1 + 2 * 127 / 2**11)).all()
        norm = model.model.layers[layer].input_layernorm.weight
        assert torch.equal(norm, torch.from_numpy(tensors[f"blk.{layer}.attn_norm.weight"]))
    model.save_pretrained(str(tmp_path))
    assert "quantization_config" not in json.loads((tmp_path / "config.json").read_text())
    ids = torch.arange(20)[None]
    with torch.no_grad():
        assert torch.equal(load(tmp_path)(input_ids=ids).logits, model(input_ids=ids).logits)
    expected = model.model.embed_tokens.weight
    a, b, c = (load(file, seed, random_weights=True).model.embed_tokens.weight for seed in (0, 0, 1))
    assert a.shape == expected.shape and torch.equal(a, b) and not torch.equal(a, c)
    write(tmp_path / "small.gguf", seed=1)
    monkeypatch.chdir(tmp_path)
    assert torch.equal(load(file).model.embed_tokens.weight, expected)
    assert not torch.equal(load("small.gguf").model.embed_tokens.weight, expected)


def test_the_tokenizer_and_its_chat_template_come_along(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A digit is a word: the line end and both spaces before it are one word, and so one token.

    GPT-2's split would leave the last space to the digit's word: "ĊĠ", "Ġ", "1".
    """
    tokenizer = load_tokenizer(ModelSettings(str(file)))
    assert capfd.readouterr() == ("", "")
    ids = tokenizer("\n  12", add_special_tokens=False)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["ĊĠĠ", "1", "2"]
    codec = ChatCodec(tokenizer)
    assert codec.prompt_text("x") == "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"
    assert codec.end_of_turn == codec.pad == vocabulary().index("<|im_end|>")
    assert codec.encode_action(12) == (vocabulary().index("1"), vocabulary().index("2"), codec.end_of_turn)


def read_refusal(path: Path) -> str:
    """Returns the message with which both the tokenizer and the model of a file are refused."""
    messages = []
    for read in (load_tokenizer, lambda settings: load_base(settings, "cpu", seed=0)):
        with pytest.raises(ModelError) as caught:
            read(ModelSettings(str(path)))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    return messages[0].removeprefix(f"model_name {str(path)!r} ")


ENDLESS = b"".join(
    (
        b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + (1).to_bytes(8, "little"),
        (1).to_bytes(8, "little") + b"a" + (9).to_bytes(4, "little"),
        (5).to_bytes(4, "little") + (2**60).to_bytes(8, "little") + bytes(64),
    )
)
"""A file that announces an array of 2**60 integers. A reader that goes on after the end has no end itself."""


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: b"GGUF\x09" + content[5:],  # another version
        lambda content: content[:1_000],
        lambda content: content[:4_000],
        lambda content: content[:-1],
        lambda content: ENDLESS,
    ],
)
def test_a_file_that_is_damaged(change: Callable[[bytes], bytes], file: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(change(file.read_bytes()))
    hint = "; copy or download it again if it is damaged or cut off"
    assert re.fullmatch(rf"cannot be loaded: .+{hint}", read_refusal(path))


def test_files_that_are_not_read(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "GGUF model with architecture mind99 is not" in read_refusal(
        write(tmp_path / "new.gguf", architecture="mind99")
    )
    foreign = tmp_path / "archive.gguf"
    foreign.write_bytes(b"PK\x03\x04 a zip archive")
    assert "does not start with the GGUF magic bytes" in read_refusal(foreign)
    part = write(tmp_path / "model-00001-of-00002.gguf", without="blk.1.ffn_up.weight")
    with pytest.raises(ModelError, match=r"lacks the weights model\.layers\.1\.mlp\.up_proj\.weight, which"):
        load(part)
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert read_refusal(file).endswith("pip install gguf")
