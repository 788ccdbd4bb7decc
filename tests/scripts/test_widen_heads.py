"""The embedded model with wider heads computes the same."""

from __future__ import annotations

from pathlib import Path

import torch

from gamespiel.agents.models.loading import ModelSettings, load_base, load_tokenizer
from scripts.widen_heads import main, places_of


def test_places_turn_at_the_same_speed() -> None:
    # A head of 4: 0 and 2 turn at speed 0/4, 1 and 3 at 1/4. In a head of 8 those are 0 and 4, and 2 and 6.
    assert places_of(4).tolist() == [0, 2, 4, 6]
    # A head of 16: 3 and 11 turn at 3/16. In a head of 32 at 6/32: 6 and 22.
    assert places_of(16)[[3, 11]].tolist() == [6, 22]


def test_logits_and_tokens_are_the_embedded_models(tmp_path: Path) -> None:
    main([str(tmp_path)])
    tiny, wide = ModelSettings("tiny", dtype="float32"), ModelSettings(str(tmp_path), dtype="float32")
    tokens = load_tokenizer(tiny)("You are player 0. Your card is 2. Legal: 0, 1").input_ids
    assert load_tokenizer(wide)("You are player 0. Your card is 2. Legal: 0, 1").input_ids == tokens
    with torch.no_grad():
        own, other = (load_base(one, "cpu", 0)(torch.tensor([tokens * 3])).logits for one in (tiny, wide))
    assert load_base(wide, "cpu", 0).config.head_dim == 32
    assert (own - other).abs().max() < 1e-4 < own.std()
