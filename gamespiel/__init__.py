"""GameSpiel: games as Gymnasium environments, and PPO for language models that play them.

Importing it registers every environment; it loads no learning library.
"""

import game_gym  # noqa: F401 (registers its environments)

__version__ = "0.1.0"
