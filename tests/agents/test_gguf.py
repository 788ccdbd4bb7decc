"""GGUF files: what is taken from them, and why one cannot be read."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gamespiel.agents.models.loading import ModelError, ModelSettings, load_base, load_tokenizer
from gamespiel.agents.tokens.codec import ChatCodec
from tests.agents.ggufs import LAYERS, vocabulary, weights, write


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("gguf") / "small.gguf")


def load(path: Path | str, seed: int = 0, *, random_weights: bool = False) -> Any:
    return load_base(ModelSettings(str(path), random_weights=random_weights), "cpu", seed)


def test_the_weights_are_the_files(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Q8_0 rounds to multiples of the largest of 32 weights / 127: by at most half of that."""
    model, given = load(file), weights()
    assert capfd.readouterr() == ("", "")
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    for layer in range(LAYERS):
        expected = torch.from_numpy(given[f"blk.{layer}.ffn_up.weight"])
        half = expected.reshape(-1, 32).abs().amax(-1, keepdim=True) / 127 / 2
        rounded = model.model.layers[layer].mlp.up_proj.weight
        assert not torch.equal(rounded, expected)
        # The scale of a block is a float16, with 11 bits: 127 steps of it are off by up to 127 / 2**11.
        assert ((rounded - expected).reshape(-1, 32).abs() <= half * (1 + 2 * 127 / 2**11)).all()
        norm = model.model.layers[layer].input_layernorm.weight
        assert torch.equal(norm, torch.from_numpy(given[f"blk.{layer}.attn_norm.weight"]))


def test_the_model_can_be_saved_and_loaded_as_a_folder(file: Path, tmp_path: Path) -> None:
    model = load(file)
    model.save_pretrained(str(tmp_path))
    assert "quantization_config" not in json.loads((tmp_path / "config.json").read_text())
    ids = torch.arange(20)[None]
    with torch.no_grad():
        assert torch.equal(load(tmp_path)(input_ids=ids).logits, model(input_ids=ids).logits)


def test_other_weights(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random ones have the file's architecture. A file of its name in the working folder is another file."""
    expected = load(file).model.embed_tokens.weight
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


# -- errors ------------------------------------------------------------------------------------------------


def refused(path: Path) -> str:
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
    assert re.fullmatch(rf"cannot be loaded: .+{hint}", refused(path))


def test_files_that_are_not_read(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "GGUF model with architecture mind99 is not" in refused(
        write(tmp_path / "new.gguf", architecture="mind99")
    )
    foreign = tmp_path / "archive.gguf"
    foreign.write_bytes(b"PK\x03\x04 a zip archive")
    assert "does not start with the GGUF magic bytes" in refused(foreign)
    part = write(tmp_path / "model-00001-of-00002.gguf", without="blk.1.ffn_up.weight")
    with pytest.raises(ModelError, match=r"lacks the weights model\.layers\.1\.mlp\.up_proj\.weight, which"):
        load(part)
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert refused(file).endswith("pip install gguf")
