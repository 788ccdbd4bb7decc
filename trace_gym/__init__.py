"""Code tracing as text environments.

Importing this package registers CodeTrace-v0, CodeTraceChoice-v0 and CodeTraceLines-v0.
"""

from gymnasium.envs.registration import register

# Entry points are strings, so the modules are imported only when an environment is made.
register(id="CodeTrace-v0", entry_point="trace_gym.envs.text:CodeTraceEnv")
register(id="CodeTraceChoice-v0", entry_point="trace_gym.envs.choice:CodeTraceChoiceEnv")
register(id="CodeTraceLines-v0", entry_point="trace_gym.envs.lines:CodeTraceLinesEnv")
