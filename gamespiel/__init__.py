"""GameSpiel: games and code tracing as Gymnasium environments, and PPO for language models on them.

Importing it registers every environment and loads no learning library. ``gamespiel.make_env`` and
``gamespiel.load_policy`` return a run's environment and its trained policy; using them loads PyTorch.
"""

from typing import TYPE_CHECKING, Any

from gamespiel import checkout  # noqa: F401 (places gamespiel.agents)

# isort: split
import game_gym  # noqa: F401 (registers its environments)
import gamespiel.endpoints.opponent
import gamespiel.policy_opponent  # noqa: F401 (registers an opponent)
import trace_gym  # noqa: F401 (as game_gym)

if TYPE_CHECKING:
    from gamespiel.assembly import load_policy, make_env

__version__ = "0.1.0"
__all__ = ["load_policy", "make_env"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from gamespiel.agents.installed import check_trainer

        check_trainer(f"gamespiel.{name}")
        from gamespiel import assembly

        return getattr(assembly, name)
    raise AttributeError(f"module 'gamespiel' has no attribute {name!r}")
