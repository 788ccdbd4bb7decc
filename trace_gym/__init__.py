"""Code tracing as text environments: importing this registers CodeTrace-v0 and its two companions."""

from gymnasium.envs.registration import register

# Entry points are strings, so that the import costs nothing until an environment is made.
register(id="CodeTrace-v0", entry_point="trace_gym.env:CodeTraceEnv")
register(id="CodeTraceChoice-v0", entry_point="trace_gym.choice_env:CodeTraceChoiceEnv")
register(id="CodeTraceLines-v0", entry_point="trace_gym.lines_env:CodeTraceLinesEnv")
