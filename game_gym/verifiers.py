"""Games for verifiers: seeds as tasks, an environment in which the game answers, and a chat in this process.

verifiers finds these by the name of a module at the top, ``gamespiel_games``, which is in ``hub/prime/``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from game_gym.text_env import GameSpielTextEnv
from task_gym.errors import ImportNameError

try:
    import openai
    import verifiers.v1 as vf
    from verifiers.v1.dialects.chat import message_to_wire
except ModuleNotFoundError as error:
    raise ImportNameError(
        "game_gym.verifiers: verifiers is not installed; pip install 'gamespiel[verifiers]'"
    ) from error


class GameSpielConfig(vf.TasksetConfig):
    """The taskset's keys.

    Attributes:
        arguments: Those of ``GameSpielText-v0``.
        seed: The first seed.
        size: Number of tasks.
    """

    arguments: dict[str, Any]
    seed: int = 0
    size: int = 100


class GameSpielData(vf.TaskData):
    """One game.

    Attributes:
        arguments: Those of ``GameSpielText-v0``.
        seed: The seed of the game.
    """

    arguments: dict[str, Any]
    seed: int


class GameSpielTask(vf.Task[GameSpielData, vf.State, vf.TaskConfig]):
    """One game, opened by its first observation."""


class GameSpielTaskset(vf.Taskset[GameSpielTask, GameSpielConfig]):
    """Games with the seeds ``seed``, ``seed + 1``, …; those that are over at their beginning are left out."""

    def load(self) -> Iterator[GameSpielTask]:
        """Yields the tasks."""
        arguments, first = self.config.arguments, self.config.seed
        env = GameSpielTextEnv(**arguments)
        for seed in range(first, first + self.config.size):
            text, info = env.reset(seed=seed)
            if "result" not in info:
                data = GameSpielData(
                    name=f"{info['game']}#{seed}", prompt=text, arguments=arguments, seed=seed
                )
                yield GameSpielTask(data, self.config.task)


class GameSpielEnvConfig(vf.EnvConfig):
    """The environment's keys.

    Attributes:
        player: The agent that plays. Its chat runs in this process, so that it needs no sandbox.
    """

    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class GameSpielVerifiers(vf.Env[GameSpielEnvConfig]):
    """A game as the user of a conversation: it answers every reply with the next observation.

    The reward ``game`` is the score, less 0.01 per illegal action; a game that is not played to its end is
    worth 0. The metric ``illegal`` counts illegal actions, and ``trace.info["result"]`` says how it ended.
    """

    async def run(self, task: Any, agents: Any) -> None:
        """Plays one game."""
        game = GameSpielTextEnv(**task.data.arguments)
        game.reset(seed=task.data.seed)
        reward, illegal = 0.0, 0
        info: dict[str, Any] = {}
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                # In a thread, because an opponent may think for long.
                text, paid, _, _, info = await asyncio.to_thread(game.step, segment.last_reply)
                reward += paid
                if "error" in info:
                    illegal += 1
                    text = f"{info['error']['message']}\n\n{text}"
                if "result" in info:
                    break
                segment = await interaction.turn(text)
        interaction.trace.record_reward("game", reward)
        interaction.trace.record_metric("illegal", illegal)
        interaction.trace.info["result"] = info.get("result", "unfinished")


class GameSpielChat(vf.Harness[vf.HarnessConfig]):
    """Asks the model from this process; verifiers' own chat installs and starts a program per turn."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, mcp_urls: Any, data: Any
    ) -> vf.ProgramResult:
        """Sends the conversation so far; verifiers records the reply."""
        system, prompt = self.resolve_prompt(data)
        opening = isinstance(prompt, str)
        messages = [{"role": "user", "content": prompt}] if opening else list(map(message_to_wire, prompt))
        if system:
            messages.insert(0, {"role": "system", "content": system})
        try:
            async with openai.AsyncOpenAI(base_url=endpoint, api_key=secret) as client:
                await client.chat.completions.create(model=ctx.model, messages=messages)
        except openai.OpenAIError as error:
            return vf.ProgramResult(1, "", f"{type(error).__name__}: {error}")
        return vf.ProgramResult(0, "", "")
