"""Files from elsewhere that are read as JSON: each is read, or is a named error, and never a traceback."""

from __future__ import annotations

import json
import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("torch")

from gamespiel import agents
from gamespiel.agents.hyperparameters import ModelSettings
from gamespiel.agents.models.architectures import architecture_of
from gamespiel.agents.models.loading import load_tokenizer
from gamespiel.agents.models.weights import ModelError, weight_files
from gamespiel.agents.runs.catalog import FOLDER, CheckpointError, read_best
from gamespiel.agents.runs.loggers import MetricsFileError, find_gaps, truncate_after
from gamespiel.agents.runs.manifest import POLICY_FILES, ManifestError, check_files, write_manifest
from gamespiel.agents.tokens.templates import TemplateFailure, render
from gamespiel.config import ConfigError, saved_config
from gamespiel.config.files import read_layer
from gamespiel.config.yaml_text import read_yaml
from gamespiel.deployment.publishing import read_evaluations
from gamespiel.endpoints.endpoint import Endpoint
from gamespiel.measure.agents import digest_checkpoint
from gamespiel.measure.board.file import BoardError, read_bytes
from gamespiel.measure.journal import Journal
from gamespiel.measure.records import read_records
from gamespiel.overview.reading import read_run
from gamespiel.training.warm_start import RowError, read_rows
from task_gym.errors import ArgumentError, TaskGymError
from task_gym.files import MOST, read_json
from task_gym.remote.settings import read_settings
from trace_gym.programs import sources
from trace_gym.programs.sources import open_source

STRANGE = {
    "deep": b"[" * 100_000,
    "no UTF-8": b'{"a": "\xff\xfe"}',
    "many digits": b'{"step": ' + b"9" * 5_000 + b"}",
    "a list": b"[1, 2]",
    "null": b"null",
    "torn": b'{"step": 1',
    "nothing": b"",
}
"""Contents that are no object of any of these files."""


@pytest.fixture(params=STRANGE)
def content(request: pytest.FixtureRequest) -> bytes:
    return STRANGE[request.param]


def test_read_json_names_the_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match=r"a\.json' (cannot be read: |has .*, needed: an object)"):
        read_json(path, ArgumentError)
    with pytest.raises(ArgumentError, match=r"missing\.json' cannot be read: No such file"):
        read_json(tmp_path / "missing.json", ArgumentError)


def test_configurations(content: bytes, tmp_path: Path) -> None:
    for name in ("a.json", "a.yaml", "config.yaml"):
        path = tmp_path / name
        path.write_bytes(content if name == "a.json" else content[:1_000])  # YAML is read slowly
        if name == "a.json" or content not in (b"", b"null"):  # which are an empty layer in YAML
            with pytest.raises(ConfigError):
                read_layer(path)
    if content != b"null":
        with pytest.raises(ConfigError):
            saved_config(tmp_path)


def test_metrics(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(content + b"\n")
    for read in (find_gaps, truncate_after):
        with pytest.raises(MetricsFileError, match=r"metrics\.jsonl(, line 1)?: not "):
            read(path, 1)


def test_a_runs_other_files(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("env:\n  game: kuhn_poker\n")
    (tmp_path / "summary.json").write_bytes(content)
    with pytest.raises(TaskGymError, match=r"summary\.json"):
        read_run(tmp_path)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "best.json").write_bytes(content)
    assert read_best(tmp_path) is None
    (tmp_path / "eval-1.json").write_bytes(content)
    with pytest.raises(TaskGymError, match=r"eval-1\.json"):
        list(read_evaluations(tmp_path))


def test_lines_of_episodes_and_rows(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content + b"\n")
    with pytest.raises(RowError, match=r"line 1 is no row of `gamespiel export`"):
        read_rows(path)
    with pytest.raises(ConfigError, match=r"line 1 is no recorded game: "):
        read_records(path)
    if content:
        with pytest.raises(TaskGymError, match=r"line 1: .*--resume"):
            Journal(path, lambda row: row["seed"])
        with pytest.raises(TaskGymError, match=r"source: line 1 of .* (is no JSON|has no column)"):
            open_source(str(path))


def test_models(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ModelError, match=r"config\.json'"):
        architecture_of(str(tmp_path))
    shards = [json.dumps({"weight_map": {"a": shard}}).encode() for shard in ("/etc/passwd", "../b", "a/b")]
    for index in (content, *shards):
        (tmp_path / "model.safetensors.index.json").write_bytes(index)
        with pytest.raises(ModelError, match=r"model\.safetensors\.index\.json is no list of shards"):
            weight_files(str(tmp_path), tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"hidden_size": None}, {"vocab_size": [1]}, {"num_hidden_layers": float("inf")}, {"text_config": 3},
    ],
)  # fmt: skip
def test_values_of_a_models_configuration(wrong: dict[str, Any], tmp_path: Path) -> None:
    good = {
        "model_type": "qwen3", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "vocab_size": 100,
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(good))
    assert architecture_of(str(tmp_path)).hidden_size == 64
    path.write_text(json.dumps(good | wrong))
    with pytest.raises(ModelError, match=r"has a (configuration with wrong values|text_config)"):
        architecture_of(str(tmp_path))


def test_only_ordinary_files_of_a_bounded_size_are_read(tmp_path: Path) -> None:
    """Nobody writes to the pipe, and the last file is a hole."""
    pipe, large = tmp_path / "pipe.json", tmp_path / "large.json"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(MOST + 1)
    for path, reason in (
        (pipe, "no ordinary file"), (Path("/dev/zero"), "no ordinary file"),
        (large, "has more than 1,024 MiB"), (tmp_path, "Is a directory"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=f"{path.name}' cannot be read: .*{reason}"):
            read_json(path, ArgumentError)
    with pytest.raises(BoardError, match=r"pipe\.json' cannot be read: it is no ordinary file"):
        read_bytes(pipe)
    with pytest.raises(OSError, match="it is no ordinary file"):
        Journal(pipe, lambda row: row["seed"])


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../a", "a/../../b", "b" * 5_000, "a/" * 3_000 + "x", "é" * 190, "C:\\x", "..\\x"]
)
def test_a_manifest_names_its_own_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 1, "files": {name: ["0"]}}))
    with pytest.raises(ManifestError, match="which is no file of a checkpoint"):
        check_files(tmp_path)


def test_the_digest_of_a_checkpoint_binds_the_files_of_its_policy(tmp_path: Path) -> None:
    """Who leaves one out of the manifest, or names two contents of it, could put in another one later."""
    for name in POLICY_FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    write_manifest(tmp_path)
    digests = {name: [sha256(name.encode()).hexdigest()] for name in POLICY_FILES}
    check_files(tmp_path, POLICY_FILES)
    text = json.dumps({"files": digests, "format": 1}, sort_keys=True)
    assert digest_checkpoint(tmp_path) == sha256(text.encode()).hexdigest()
    for name in POLICY_FILES:
        for found, wrong in ((0, {}), (2, {name: [*digests[name], "0"]})):
            rest = {key: value for key, value in digests.items() if key != name}
            (tmp_path / "manifest.json").write_text(json.dumps({"format": 1, "files": rest | wrong}))
            with pytest.raises(CheckpointError, match=f"has {found} digests of {name}, needed: one"):
                digest_checkpoint(tmp_path)
            if not found:
                with pytest.raises(ManifestError, match=f"does not list {name}"):
                    check_files(tmp_path, POLICY_FILES)


def test_aliases_are_counted_each_time() -> None:
    """Nine lists of nine of the list before them are 9 ** 9 texts."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    assert read_yaml("\n".join(lines[:3]))["a2"][8][8][8] == "x"
    pairs = [f"a{n}: &a{n} !!pairs [{', '.join([f'b: *a{n - 1}'] * 9)}]" for n in range(1, 9)]
    for text in ("\n".join(lines), "\n".join([lines[0], *pairs]), "a: &a [*a]", "- 1\n" * 100_000):
        with pytest.raises(yaml.YAMLError, match=r"more than 262,144 (values|characters)"):
            read_yaml(text)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_record_has_finite_numbers(number: str, tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    path.write_text(f'{{"score": {number}}}\n')
    with pytest.raises(ConfigError, match=f"line 1 is no recorded game: {number} was given"):
        read_records(path)


@pytest.mark.memory
@pytest.mark.sample
def test_rows_of_parquet_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that all rows have is in the file once: 1,000 times 10 kB are a file of a few."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    columns = {"program": ["x" * 10_000] * 1_000, "inputs": [""] * 1_000, "other": [1] * 1_000}
    parquet.write_table(pyarrow.table(columns), path)
    assert path.stat().st_size < 100_000
    rows = open_source(str(path))
    assert isinstance(rows, sources.RowSource) and len(rows) == 1_000
    texts = [next(rows.candidates(row)).code for row in range(sources._AT_ONCE)]
    assert set(texts) == {"x" * 10_000} and len({id(text) for text in texts}) == 1, "a text is kept once"
    os.utime(path, (0, 0))  # or the one that is known is returned
    monkeypatch.setattr(sources, "MOST", 100_000)
    with pytest.raises(TaskGymError, match=r"rows\.parquet has more than 0 MiB"):
        open_source(str(path))
    # A text that is packed well is not unpacked first.
    parquet.write_table(pyarrow.table(columns), path, use_dictionary=False, compression="zstd")
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", None)
    with pytest.raises(TaskGymError, match=r"rows\.parquet has more than 0 MiB"):
        open_source(str(path))


@pytest.mark.parametrize("length", ["x", float("inf"), None])
def test_lengths_of_a_tokenizer(length: Any, tmp_path: Path) -> None:
    for file in (Path(agents.__file__).parent / "tiny").iterdir():
        shutil.copy(file, tmp_path / file.name)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": length}))
    if length is None:  # transformers has its own
        load_tokenizer(ModelSettings(model_name=str(tmp_path)))
        return
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_tokenizer(ModelSettings(model_name=str(tmp_path)))


def test_names_of_servers_that_none_can_have() -> None:
    with pytest.raises(ArgumentError, match="xn--="):
        Endpoint("m", "http://xn--=/v1")
    for address in ("http://xn--=/v1", "http://1.2.3.999", "http://\u2603.com"):
        with pytest.raises(ArgumentError, match=f"base_url: {address!r} was given, allowed: the address"):
            read_settings({"base_url": address}, "game")


def test_half_a_surrogate_of_a_template() -> None:
    with pytest.raises(TemplateFailure, match="half a surrogate pair"):
        render("{{ '\ud800' }}", [{"role": "user", "content": "a"}], {})
