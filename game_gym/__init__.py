"""Games as text environments: importing this registers GameSpiel-v0 and GameSpielText-v0 with Gymnasium."""

from gymnasium.envs.registration import register

# Entry points are strings, so that the import costs nothing until an environment is made.
register(id="GameSpiel-v0", entry_point="game_gym.env:GameSpielEnv")
register(id="GameSpielText-v0", entry_point="game_gym.text_env:GameSpielTextEnv")
