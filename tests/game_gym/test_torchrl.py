"""Games in TorchRL: its checks. ``examples/torchrl_masked.py`` learns behind the mask."""

from __future__ import annotations

import pytest

pytest.importorskip("torchrl", reason="TorchRL is not installed")

from torchrl.envs.utils import check_env_specs

from game_gym.torchrl import torchrl_env


def test_torchrls_own_check() -> None:
    check_env_specs(torchrl_env(game="leduc_poker", rules=False))
