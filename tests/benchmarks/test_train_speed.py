"""The benchmark's parts, and a run of it on the embedded model that is far too short to measure anything."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks import train_speed
from benchmarks.train_speed import compare
from benchmarks.train_step import apart, flops, settings_of
from gamespiel.agents.models.loading import TINY, load_tokenizer


def test_readings_are_compared_by_decision() -> None:
    """Shared takes 2 + 4 s for 20 decisions, padded 2 + 6 s for 10."""

    def steps(collecting: float, updating: float, decisions: int) -> dict[str, object]:
        step = {"collect_seconds": collecting, "update_seconds": updating, "seconds": collecting + updating}
        return {"steps": {"ppo_epochs_1": {**step, "decisions": decisions}}}

    found = compare({"shared": steps(2, 4, 20), "padded": steps(2, 6, 10)})
    assert found == {"ppo_epochs_1": {"collect_seconds": 2.0, "update_seconds": 3.0, "seconds": 2.67}}


def test_the_operations_of_a_step() -> None:
    """100 parameters and 10 of adapters; 5 tokens sampled; 4 passes of 3 tokens, 2 of them with gradients.

    Forwards: 2 * 110 * (5 + 12) = 3740. Backwards: (2 * 100 + 4 * 10) * 6 = 1440.
    """
    assert flops(100, 10, sampled=5, updated=12, epochs=2, twice=True) == 3740 + 1440


def test_models_without_weights_need_no_other_models_files(tmp_path: Path) -> None:
    """The embedded model's tokenizer has 1,536 tokens; another folder's is read if it is named."""
    for path in TINY.iterdir():
        if path.name.startswith("tokenizer"):
            (tmp_path / path.name).write_text(
                path.read_text("utf-8").replace("<|im_end|>", "<|im_over|>"), "utf-8"
            )
    for folder, end in ((None, "<|im_end|>"), (str(tmp_path), "<|im_over|>")):
        with settings_of("qwen3-4b", folder) as settings:
            tokenizer = load_tokenizer(settings)
            assert len(tokenizer) == 1536 and end in tokenizer.get_vocab()


def test_what_is_measured_apart_has_a_process_of_its_own() -> None:
    assert apart(os.getpid) != os.getpid()


@pytest.mark.trains
def test_a_short_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_speed, "apart", lambda work, *given: work(*given))
    results = train_speed.main(["--model", "tiny", "--repetitions", "1", "--out", str(tmp_path)])
    printed = capsys.readouterr().out.splitlines()
    assert json.loads(printed[-1]) == results == json.loads((tmp_path / "train_speed.json").read_text())
    assert list(results["steps"]["tiny"]) == ["shared", "padded"]
    for reading, found in results["steps"]["tiny"].items():
        assert found["reading"] == reading
        assert list(found["steps"]) == ["ppo_epochs_1", "ppo_epochs_4"]
        assert all(step["seconds"] > 0 for step in found["steps"].values())
    assert results["padded_over_shared"]["tiny"].keys() == {"ppo_epochs_1", "ppo_epochs_4"}
