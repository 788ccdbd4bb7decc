"""Files from elsewhere that are read as JSON: each is read, or is a named error, and never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from gamespiel.agents.models.architectures import architecture_of
from gamespiel.agents.models.weights import ModelError, weight_files
from gamespiel.agents.runs.kept import FOLDER, read_best
from gamespiel.agents.runs.loggers import MetricsFileError, find_gaps, truncate_after
from gamespiel.config import ConfigError, saved_config
from gamespiel.config.files import read_layer
from gamespiel.deployment.publishing import read_evaluations
from gamespiel.measure.journal import Journal
from gamespiel.measure.records import read_records
from gamespiel.overview.reading import read_run
from gamespiel.training.warm_start import RowError, read_rows
from task_gym.errors import ArgumentError, TaskGymError
from task_gym.files import read_json
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
