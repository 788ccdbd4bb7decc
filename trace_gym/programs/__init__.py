"""Sources of programs to trace. ``python -m trace_gym.programs`` describes the builtin programs."""
