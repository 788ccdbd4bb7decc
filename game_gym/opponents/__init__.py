"""The games' own opponents; importing this registers them."""

from game_gym.opponents import ismcts, mcts, mcts_fast, mcts_python, simple

__all__ = ["ismcts", "mcts", "mcts_fast", "mcts_python", "simple"]
