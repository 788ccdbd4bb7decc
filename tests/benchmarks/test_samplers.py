"""The benchmark of samplers, with the embedded model and a stand-in of a server."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.samplers import draw_states, main
from gamespiel.agents.sampling.vllm import connect as connecting
from tests.agents.fake_vllm import FakeVllm
from tests.agents.toys import make_policy


def test_states_can_be_decided() -> None:
    texts, masks = draw_states(6)
    assert len(texts) == 6 and masks.any(axis=1).all()
    assert (masks == draw_states(6)[1]).all() and masks.dtype == np.bool_


def test_both_samplers_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connecting, "default_folder", lambda: tmp_path / "adapters")
    server = FakeVllm(make_policy(lora={"r": 16}))
    arguments = ["--url", server.url, "--model_name", "tiny", "--environments", "2", "--tokens", "0", "3"]
    found = main([*arguments, "--repetitions", "1", "--out", str(tmp_path / "found.json")])
    server.stop()
    rates = found["decisions_per_second"]
    assert rates.keys() == {"local", "vllm"} and found["servers"] == 1
    assert all(rates[name][answer]["2"] > 0 for name in rates for answer in ("choices", "texts_3"))
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == found
