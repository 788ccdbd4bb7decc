"""Games in TorchRL: its checks, and a mask that arrives."""

from __future__ import annotations

import pytest

pytest.importorskip("torchrl", reason="TorchRL is not installed")

import torch
from torchrl.envs.utils import check_env_specs

from game_gym.torchrl import torchrl_env

LEDUC = {"game": "leduc_poker", "rules": False}


def test_torchrls_own_check() -> None:
    check_env_specs(torchrl_env(**LEDUC))


def test_random_actions_are_legal() -> None:
    torch.manual_seed(0)
    # An illegal action would be an error.
    played = torchrl_env(illegal="raise", **LEDUC).rollout(80, break_when_any_done=False)
    assert played["observation"].shape == (80, 30)
    masks, actions = played["action_mask"].bool(), played["action"]
    assert masks[torch.arange(80), actions].all() and not masks.all()
    ended = played["next", "done"][:, 0]
    assert ended.sum() > 10 and (played["next", "reward"][~ended] == 0).all()
