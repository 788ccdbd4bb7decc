"""GGUF files: what is taken from them, and why one cannot be read."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gamespiel.agents.models.gguf import read_header
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: b"", "is no GGUF file: it begins with b''"),
        (lambda content: b"PK\x03\x04 a zip archive", r"is no GGUF file: it begins with b'PK\x03\x04'"),
        (lambda content: b"GGUF\x09" + content[5:], "is a GGUF file of version 9; allowed: 2, 3"),
        (lambda content: content[:1_000], "is cut off or damaged in its header ("),
        (
            lambda content: content[:4_000],
            "is cut off or damaged in its header (an entry ends at byte 4,203 of 4,000)",
        ),
        (
            lambda content: content[:-1],
            "is cut off: its header announces 111,840 bytes, the file has 111,839",
        ),
    ],
)
def test_a_file_that_is_damaged(
    change: Callable[[bytes], bytes], message: str, file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(change(file.read_bytes()))
    assert refused(path).startswith(message)


def test_damage_in_the_header_is_found_or_harmless(file: Path, tmp_path: Path) -> None:
    content, path, found = file.read_bytes(), tmp_path / "damaged.gguf", 0
    chooser = random.Random(0)
    for _ in range(200):
        damaged = bytearray(content)
        damaged[chooser.randrange(4, 3_000)] = chooser.randrange(256)
        path.write_bytes(damaged)
        try:
            read_header("damaged", path)
        except ModelError:
            found += 1
    assert found > 20  # the others changed a letter of the vocabulary, or a number


def entry(key: str, kind: int, value: bytes) -> bytes:
    """Returns an entry of a GGUF header."""
    return len(key).to_bytes(8, "little") + key.encode() + kind.to_bytes(4, "little") + value


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (entry("general.alignment", 8, (4).to_bytes(8, "little") + b"many"), "general.alignment is 'many'"),
        (entry("general.alignment", 4, bytes(4)), "general.alignment is 0, allowed: whole numbers from 1"),
        (entry("general.alignment", 6, b"\0\0\xc0\x7f"), "general.alignment is nan"),
        (entry("split.count", 8, (1).to_bytes(8, "little") + b"x"), "is one of x parts of a GGUF file"),
        (entry("a", 8, (1).to_bytes(8, "little") + b"\xff"), "cut off or damaged in its header"),
        (entry("a", 9, (9).to_bytes(4, "little") + bytes(8)), "an entry has the unknown type 9"),
        (entry("a", 9, (8).to_bytes(4, "little") + b"\xff" * 8), "cut off or damaged in its header"),
    ],
)
def test_entries_of_other_types_are_named(made: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "strange.gguf"
    path.write_bytes(
        b"GGUF" + (3).to_bytes(4, "little") + bytes(8) + (1).to_bytes(8, "little") + made + bytes(64)
    )
    with pytest.raises(ModelError, match=re.escape(message)):
        read_header("strange", path)


def test_files_that_are_not_read(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "GGUF model with architecture mind99 is not" in refused(
        write(tmp_path / "new.gguf", architecture="mind99")
    )
    part = write(tmp_path / "model-00001-of-00003.gguf", parts=3)
    assert refused(part).startswith("is one of 3 parts of a GGUF file")
    monkeypatch.setitem(sys.modules, "gguf", None)
    assert refused(file).endswith("pip install gguf")
