"""An agent of smolagents plays Kuhn poker by a tool. A model of fixed replies stands in for a real one."""

from smolagents import ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    Model,
)

from game_gym.trl import GameSpielTRL

game = GameSpielTRL(game="kuhn_poker", rules=False)


@tool
def play(action: int) -> str:
    """Plays an action and shows the next position with its legal actions, or the result.

    Args:
        action: The number of a legal action.
    """
    return game.play(action)


class Passive(Model):
    """Passes until the game is over; in place of it: ``TransformersModel`` or ``OpenAIServerModel``."""

    def generate(self, messages, **kwargs):
        over = "Game over" in str(messages[-1].content)
        name, arguments = ("final_answer", {"answer": "done"}) if over else ("play", {"action": 0})
        call = ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), "call", "function")
        return ChatMessage(MessageRole.ASSISTANT, tool_calls=[call])


agent = ToolCallingAgent(tools=[play], model=Passive(), max_steps=8, verbosity_level=0)
rewards = []
for seed in range(20):
    agent.run(f"Play this game to its end.\n\n{game.reset(seed=seed)}")
    rewards.append(game.get_reward())
print(f"{len(rewards)} games, mean reward {sum(rewards) / len(rewards):.3f}")
