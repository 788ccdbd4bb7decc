"""The games' own opponents; importing this registers them."""

from game_gym.opponents import first, ismcts, mcts, mcts_fast, mcts_python, uniform

__all__ = ["first", "ismcts", "mcts", "mcts_fast", "mcts_python", "uniform"]
