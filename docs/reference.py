"""The site's reference: which modules of each room it shows."""

from __future__ import annotations

ROOMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "game_gym": (
        "Games as Gymnasium environments.",
        (
            "game_gym.env",
            "game_gym.text_env",
            "game_gym.spec",
            "game_gym.games",
            "game_gym.task",
            "game_gym.protocols",
            "game_gym.score",
            "game_gym.transcript",
            "game_gym.exact",
            "game_gym.wrappers",
            "game_gym.pettingzoo",
            "game_gym.tianshou",
            "game_gym.torchrl",
            "game_gym.trl",
        ),
    ),
    "trace_gym": (
        "Code tracing as Gymnasium environments.",
        (
            "trace_gym.envs.text",
            "trace_gym.envs.choice",
            "trace_gym.envs.lines",
            "trace_gym.dataset",
            "trace_gym.score",
            "trace_gym.task",
            "trace_gym.programs",
            "trace_gym.sandbox",
        ),
    ),
    "task_gym": (
        "What all environments share.",
        (
            "task_gym.env",
            "task_gym.contract",
            "task_gym.spaces",
            "task_gym.opponents",
            "task_gym.replies",
            "task_gym.errors",
            "task_gym.samplers",
            "task_gym.wrappers",
        ),
    ),
    "gamespiel": (
        "Runs: configuration, training and evaluation.",
        (
            "gamespiel.assembly",
            "gamespiel.config",
            "gamespiel.training.run",
            "gamespiel.measure.options",
            "gamespiel.measure.evaluation",
            "gamespiel.measure.records",
            "gamespiel.training.planning",
        ),
    ),
    "agents": (
        "What learns, imported as `gamespiel.agents`.",
        (
            "gamespiel.agents.ppo",
            "gamespiel.agents.sb3",
            "gamespiel.agents.hyperparameters",
            "gamespiel.agents.policy",
            "gamespiel.agents.vec_env",
            "gamespiel.agents.self_play",
            "gamespiel.agents.sampling.decisions",
            "gamespiel.agents.sampling.sampler",
            "gamespiel.agents.scoring",
            "gamespiel.agents.scoring.scorer",
            "gamespiel.agents.models.loading",
            "gamespiel.agents.buffer",
            "gamespiel.agents.learning.advantages",
            "gamespiel.agents.learning.terms",
            "gamespiel.agents.runs.evaluation",
            "gamespiel.agents.runs.checkpoint",
            "gamespiel.agents.engines.base",
            "gamespiel.agents.models.memory_plan",
        ),
    ),
}
"""The pages: room to what it is and its modules in order of use."""


def reference_page(room: str) -> str:
    """Returns the page of a room, which mkdocstrings fills from the docstrings."""
    told, modules = ROOMS[room]
    return "\n\n".join([f"# {room}", told, *(f"::: {module}" for module in modules)]) + "\n"
