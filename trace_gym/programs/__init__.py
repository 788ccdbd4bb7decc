"""Where programs to trace come from. `python -m trace_gym.programs` shows what the builtin source holds."""
