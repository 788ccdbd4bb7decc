"""GameSpiel: games and code tracing as Gymnasium environments, and PPO for language models on them.

Importing it registers every environment; it loads no learning library.
"""

import game_gym  # noqa: F401 (registers its environments)
import trace_gym  # noqa: F401 (the same)

__version__ = "0.1.0"
