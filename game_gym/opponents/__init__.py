"""The opponents that games bring along. Importing this registers them."""

from game_gym.opponents import first, ismcts, mcts, mcts_python, uniform

__all__ = ["first", "ismcts", "mcts", "mcts_python", "uniform"]
