"""The parts that all task environments share: spaces, errors, seeds, opponents, replies, wrappers."""
