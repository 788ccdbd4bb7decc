"""The comparison of learners: what is left out is named, and a contender's game is what is trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import learning_peers, peer_learners
from benchmarks.peer_learners import Budget, play


def row(name: str, decisions: int, seconds: float) -> dict[str, Any]:
    return {"contender": name, "decisions": decisions, "cpu_seconds": seconds}


def test_ratios_are_of_all_seeds() -> None:
    rows = [
        row("gamespiel", 100, 1.0),
        row("gamespiel", 300, 1.0),
        row("trl", 100, 2.0),
        row("trl", 100, 2.0),
    ]
    assert learning_peers.find_ratios(rows) == {"trl": 4.0}  # 400 / 2 s over 200 / 4 s
    assert learning_peers.find_ratios(rows[2:]) == {}
    assert learning_peers.find_ratios([rows[0], row("trl", 0, 1.0)]) == {}


def test_a_contender_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(learning_peers.LIBRARIES, "agilerl", "no_such_module")
    monkeypatch.setitem(learning_peers.OWN, "agilerl", ".venv-nowhere")
    results = learning_peers.main(["--contenders", "agilerl", "--out", str(tmp_path)])
    reason = "ModuleNotFoundError: No module named 'no_such_module'; "
    reason += "install it with: make .venv-nowhere/.installed"
    assert results["skipped"] == {"agilerl": reason} and results["rows"] == []
    assert f"agilerl is left out: {reason}\n" in capsys.readouterr().out


class Caller:
    """A model that always answers 1 and ends its turn."""

    def __init__(self, tokenizer: Any) -> None:
        self.reply = [*tokenizer("1")["input_ids"], tokenizer.eos_token_id]
        self.prompts: list[list[int]] = []

    def generate(self, input_ids: Any, attention_mask: Any, **settings: Any) -> Any:
        rows = zip(input_ids.tolist(), attention_mask.tolist(), strict=True)
        self.prompts += [[i for i, there in zip(ids, mask, strict=True) if there] for ids, mask in rows]
        return torch.cat([input_ids, torch.tensor([self.reply] * len(input_ids))], dim=1)


@pytest.mark.parametrize("conversation", [True, False])
def test_a_game_is_one_sequence_whose_replies_are_the_models(conversation: bool) -> None:
    _, tokenizer = peer_learners.load()
    model = Caller(tokenizer)
    (episode,) = play(model, tokenizer, [5], conversation)
    written = [token for token, own in zip(episode.completion, episode.own, strict=True) if own]
    assert written == model.reply * episode.decisions and 2 <= episode.decisions == len(model.prompts)
    assert 0 <= episode.score <= 1 and episode.reward == pytest.approx(
        episode.score
    )  # calls are always legal
    first, *others = map(tokenizer.decode, model.prompts)
    assert first.startswith("<|im_start|>user\nGame: leduc_poker") and first.endswith("assistant\n")
    for prompt in others:
        assert prompt.startswith(first + "1<|im_end|>\n<|im_start|>user\n") == conversation
        assert prompt.count("Game: leduc_poker") == (
            1 if not conversation else prompt.count("1<|im_end|>") + 1
        )


@pytest.mark.trains
@pytest.mark.parametrize(
    ("name", "library"), [("gamespiel", "stable_baselines3"), ("trl", "trl"), ("agilerl", "liger_kernel")]
)
def test_a_contender_learns_until_its_seconds_are_over(
    name: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(library)
    monkeypatch.setattr(peer_learners, "GAMES", 16)
    learn = peer_learners.CONTENDERS[name]
    budget = Budget(0.1)
    learned = learn(budget, 0, None)
    assert budget.is_over and budget.decisions >= 16
    _, tokenizer = peer_learners.load()
    measured = peer_learners.measure_score(learned.model, tokenizer, 4, learned.conversation)
    assert 0 <= measured["score"] <= 1
