"""The messages of a game as a conversation, in the layouts of upstream's two protocols.

Protocol "openenv": one user message per turn, the text of the turn; the rules are in the first.

Protocol "evaluate": one system message with the game, its rules and what to answer; per turn one user message
with the state, the seat and the legal actions; the replies without their reasoning. The words of the
instructions are GameSpiel's own. A class of upstream's (``OPENSPIEL_AGENTS_PATH``) that writes messages
writes these two, and upstream's file ``llm_bot.py`` the one after a wrong reply; see
``game_gym.upstream_texts``.
"""

from __future__ import annotations

from collections.abc import Sequence

from game_gym.prompts import describe_notation, render
from game_gym.spec import State, Variant
from task_gym.errors import LayoutError
from task_gym.wrappers import ConversationText
from task_gym.wrappers.chat import Message, make_chat

TRIES = 3
"""Replies per move. After as many that name no legal action, the game is given up with score 0."""

_INSTRUCTION = "Answer with the ID of one legal action, a number, and nothing else."
_UNLISTED_INSTRUCTION = "Answer with one legal action, written in this way, and nothing else."


def system_message(variant: Variant, *, list_actions: bool = True) -> Message:
    """Returns the first message: the game, its rules and what to answer.

    Args:
        variant: The game.
        list_actions: Whether the messages of the turns list the legal actions.

    Raises:
        LayoutError: they do not, and the messages are upstream's own, which list them.
    """
    agent = variant.spec.agent
    if agent is not None and not list_actions:
        raise LayoutError(
            f"list_actions: False was given, and the messages of {variant.spec.name} are upstream's, which "
            "list the legal actions; allowed: without the environment variable of upstream's texts"
        )
    if agent is not None and (text := agent.system()) is not None:
        return {"role": "system", "content": text}
    if list_actions:
        form = f'{_INSTRUCTION}\n\nExample: for the action "12 -> b3", answer "12".'
    else:
        form = f"{describe_notation(variant)}\n{_UNLISTED_INSTRUCTION}"
    content = (
        f"You are playing {variant.spec.name}.\n\n# Game Rules\n{variant.rules}\n\n# Output Format\n{form}"
    )
    return {"role": "system", "content": content}


def turn_message(
    variant: Variant,
    state: State,
    seat: int,
    legal: Sequence[int],
    names: Sequence[str],
    *,
    list_actions: bool = True,
) -> Message:
    """Returns the message of a turn: the state, the seat and, if they are listed, the legal actions."""
    agent = variant.spec.agent
    if list_actions and agent is not None and (text := agent.user(state, seat, legal)) is not None:
        return {"role": "user", "content": text}
    content = f"Current State:\n{variant.spec.describe(state, seat)}\n\nYou are Player {seat}.\n"
    if list_actions:
        listed = "\n".join(f"{action} -> {name}" for action, name in zip(legal, names, strict=True))
        content += f"Legal Actions:\n{listed}\n\nYour choice (ID only):"
    else:
        content += "\nYour choice:"
    return {"role": "user", "content": content}


def refusal_message(variant: Variant, tried: int, *, list_actions: bool = True) -> Message:
    """Returns the message after a reply that names no legal action.

    Args:
        variant: The game.
        tried: The number of the try that failed, from 1.
        list_actions: As in ``system_message``.
    """
    agent = variant.spec.agent
    if list_actions and agent is not None and (text := agent.refusal(tried, TRIES)) is not None:
        return {"role": "user", "content": text}
    how = _INSTRUCTION if list_actions else f"{describe_notation(variant)} {_UNLISTED_INSTRUCTION}"
    content = f"That reply names no legal action. {how} This was try {tried} of {TRIES}."
    return {"role": "user", "content": content}


def show_conversation(
    variant: Variant,
    state: State,
    seat: int,
    earlier: Sequence[tuple[str, str]],
    *,
    protocol: str,
    rules: bool,
) -> ConversationText:
    """Returns a turn with its conversation, as the wrappers show it.

    Args:
        variant: The game.
        state: The state, at which ``seat`` is to move.
        seat: The seat.
        earlier: The seat's earlier questions and answers, none of them refused.
        protocol: "openenv" or "evaluate".
        rules: Whether an openenv conversation has the rules in its first message.
    """
    if protocol == "openenv":
        question = render(variant, state, seat, rules and not earlier)
        return ConversationText(question, make_chat(None, earlier, question))
    legal = state.legal_actions(seat)
    names, _ = variant.choices(state, seat, legal)
    question = turn_message(variant, state, seat, legal, names)["content"]
    return ConversationText(question, make_chat(system_message(variant)["content"], earlier, question))
