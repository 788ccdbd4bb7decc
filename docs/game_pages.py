"""The site's page of each game: from its declaration, OpenSpiel, random play and the table of scores."""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
from functools import lru_cache
from typing import Any

from benchmarks.scores import AGENTS
from docs import game_facts as facts
from docs.generate_games import (
    RULES,
    TEMPLATE,
    fenced,
    offered,
    returns_of,
    search_of,
    shorten,
    summary,
    table,
    variant_table,
)
from docs.generate_scores import cells, measured
from game_gym.backends.base import OBSERVATION_LENGTH
from game_gym.games import DECLARED, TABLE
from game_gym.spec import GameSpec
from game_gym.task import encode
from game_gym.transcript import positions
from game_gym.wrappers.tensor import one_tensor
from gamespiel.replay.boards import read_board
from task_gym.errors import TaskGymError

#: The most moves of a transcript.
SHOWN = 20

#: A bridge deal is solved when it is dealt: this one quickly.
QUICK_SEED = {"bridge": 2}

PLAY = """\
import gymnasium as gym
import numpy as np
import game_gym
from game_gym.transcript import CHANCE, moves

env = gym.make("GameSpiel-v0", {address}, rules=False)
observation, info = env.reset(seed={seed})
draw = np.random.RandomState({seed})
while "result" not in info:
    observation, reward, terminated, truncated, info = env.step(draw.choice(info["legal_actions"]))

played = moves(env.unwrapped.variant, info["history"])
start = next(number for number, move in enumerate(played) if move.player != CHANCE)
print(f"{{len(played)}} moves, from move {{start + 1}}:")
for move in played[start : start + {shown}]:
    who = {{CHANCE: "chance", info["seat"]: "you"}}.get(move.player, f"Player {{move.player}}")
    print(f"{{who}}: {{move.name}}")
print()
print(observation)
"""


def game_page(name: str) -> str:
    """Returns the text of one game's page."""
    spec = DECLARED[name]
    first = facts.variants(spec)[0]
    code, printed, variant, history = played(name)
    parts = [
        f"# {name}",
        re.sub(r"\[(`[^`]+`)\]\([^)]*\)", r"\1", summary(name)),  # the declaration is not in the site
        "## Rules",
        f'<div class="rules">{html.escape(first.rules)}</div>',
        "## Parameters",
        parameters(spec),
        "## Spaces",
        spaces(spec),
        "## An observation",
        "The first of seed 0, without the rules:",
        fenced(shorten(facts.opening(name, 0)[0])),
        *picture(name, variant, history),
        "## A game",
        "You and the opponent play at random. Moves of chance before the first decision are left out.",
        f"```python\n{code}```",
        "prints",
        fenced(printed.rstrip("\n")),
        "## Score",
        score(name),
        "## Search",
        budget(name),
        "## Baselines",
        baselines(name),
        *limits(name),
    ]
    return "\n\n".join(parts) + "\n"


@lru_cache(maxsize=64)
def played(name: str) -> tuple[str, str, Any, list[int]]:
    """Returns the page's example, what it prints, and the variant and history of the game that it plays."""
    address = f"task_id={encode(name, 0)}" if name in TABLE else f'game="{name}"'
    code = PLAY.format(address=address, seed=QUICK_SEED.get(name, 0), shown=SHOWN)
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), names)
    return code, printed.getvalue(), names["env"].unwrapped.variant, names["info"]["history"]


def parameters(spec: GameSpec) -> str:
    """Returns the table of variants, with what a config id is."""
    if spec.name in TABLE:
        index = TABLE.index(spec.name)
        told = f"Task id {index} × 100,000,000 + c plays the row c mod {spec.variants}. "
        told = told if spec.variants > 1 else f"Task id {index} × 100,000,000 + c; every c is the same game. "
    else:
        told = "The game has no task ids. "
    told += "The columns are those of [Sizes](../games.md#sizes)."
    return "\n\n".join([told, variant_table(spec.name), offered(spec)])


def spaces(spec: GameSpec) -> str:
    """Returns the table of observation, action and mask."""
    counts = [variant.actions for variant in facts.variants(spec)]
    shown = f"{counts[0]}" if len(set(counts)) == 1 else f"{min(counts)} … {max(counts)}, by variant"
    return table(
        ["space", "elements", "where it is"],
        [
            ["observation", f"text of at most {OBSERVATION_LENGTH:,} characters", "`env.observation_space`"],
            ["action", f"`Discrete(n)`, n = {shown}", "`env.action_space`"],
            ["mask", "int8 of shape (n,), 1 = legal", '`info["action_mask"]`'],
            ["tensor", tensor(spec), "`game_gym.wrappers.TensorObservation`"],
        ],
    )


def tensor(spec: GameSpec) -> str:
    """Returns kind and shape of the tensor that `TensorObservation` shows, of the first variant."""
    first, *others = facts.variants(spec)
    try:
        kind, shape = one_tensor([first])
    except TaskGymError:
        return "none"
    same = all(one_tensor([other]) == (kind, shape) for other in others)
    return f"{kind.replace('_', ' ')} of shape {shape}{'' if same else ', in variant 0'}"


def picture(name: str, variant: Any, history: list[int]) -> list[str]:
    """Returns the drawing of the position in the middle of the game below, or nothing if none is drawn."""
    boards = [read_board(name, str(state)) for state, _ in positions(variant, history)]
    middle = len(boards) // 2
    drawn = boards[middle]
    if drawn is None:
        return []
    data = html.escape(json.dumps(drawn, ensure_ascii=False))
    return [
        f"The game below after {middle} of {len(boards) - 1} moves:",
        f'<div class="board" data-board="{data}"></div>',
    ]


def score(name: str) -> str:
    """Returns how a return becomes a score, with the bounds of the first variant."""
    first = facts.variants(DECLARED[name])[0]
    moved = f"(return + {-first.low:g})" if first.low < 0 else "return"  # no game's least return is positive
    formulas = {
        "scaled": f"score = {moved} / {first.high - first.low:g}",
        "rank": f"score = 1 − (seats with a higher return) / {first.players - 1}",
        "comparison": "score = 1, 0.5 or 0: a higher return than the other seat, the same, or a lower one",
    }
    rule = facts.score_rule(first)
    varies = " in variant 0" if len({(v.low, v.high) for v in facts.variants(DECLARED[name])}) > 1 else ""
    return (
        f"Returns are {returns_of(name)}. The score is by {RULES[rule]}{varies}:\n\n    {formulas[rule]}\n\n"
        "The reward is 0 until the end, then the score. More: [Scores](../games.md#scores), "
        "[Rewards](../games.md#rewards)."
    )


def budget(name: str) -> str:
    """Returns which searches can play the game, and their budget."""
    search = search_of(name)
    if not search:
        alone = facts.variants(DECLARED[name])[0].players == 1
        return "None: the game has one seat." if alone else "None: no search can play the game."
    return f"Searches and their default budget per move, simulations × rollouts: {search}."


def baselines(name: str) -> str:
    """Returns the rows of the table of scores for this game."""
    rows = measured()
    told = [[f"`{agent}`", *cells(rows.get((name, agent)))] for agent in AGENTS]
    if name not in TABLE or all(row[1] == "-" for row in told):
        return "Not measured yet: [Scores of simple players](../scores.md)."
    return (
        "Against a random opponent, over all variants, with 95% intervals "
        f"([Scores of simple players](../scores.md)):\n\n{table(['player', 'score', 'success'], told)}"
    )


def limits(name: str) -> list[str]:
    """Returns what the page of all games says about this one under "Limits" and "Upstream's errors"."""
    text = TEMPLATE.read_text(encoding="utf-8")
    said = re.search(rf"^- \*\*{name}\*\*:? (.*(?:\n  .*)*)", text, re.MULTILINE)
    parts = [f"**{name}** {' '.join(said[1].split())}"] if said else []
    if re.search(rf"^\| .*\*\*{name}\*\*", text, re.MULTILINE):
        parts.append("It differs from upstream's game: [Upstream's errors](../games.md#upstreams-errors).")
    return ["## Limits", *parts] if parts else []
