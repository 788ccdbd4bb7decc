"""What every task environment shares: spaces, named errors, seeds, opponents, replies, wrappers."""
