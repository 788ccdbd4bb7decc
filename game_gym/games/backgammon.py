"""Backgammon, without the doubling cube."""

from __future__ import annotations

import re

from game_gym.spec import Budget, GameSpec, Params, State

POINTS = 24

# The lines below the board; the dice are two digits, or nothing before the roll.
_FIELDS = re.compile(
    r"Extra turn: (?P<second>[01])\nDice: (?P<dice>\d*)\nBar: ?(?P<bar>[xo]*)\n"
    r"Scores, X: (?P<x>\d+), O: (?P<o>\d+)"
)
_ROLL = re.compile(r"chance outcome \d+ (?:([XO] starts), )?\(roll: (\d+)\)")
_SIDES = "xo"

_RETURNS = {
    "winloss_scoring": "Your return is 1 for a win, -1 for a loss.",
    "enable_gammons": (
        "Your return is 1 for a win, 2 if the loser has not borne off a single checker (a gammon); for a "
        "loss the same with a minus."
    ),
    "full_scoring": (
        "Your return is 1 for a win, 2 if the loser has not borne off a single checker (a gammon), 3 if the "
        "loser besides has one on the bar or in the winner's home (a backgammon); for a loss the same with a "
        "minus."
    ),
}


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's backgammon plays."""
    return (
        "Backgammon for 2 players with 15 checkers each. Points are numbered as you see them: your checkers "
        "run from 24 down to 1 and then off the board; your home is 1 to 6. The opponent runs the other "
        "way, from your 1 up to your 24. You start with 2 checkers on 24, 5 on 13, 3 on 8 and 5 on 6, the "
        "opponent with the mirror image: 2 on 1, 5 on 12, 3 on 17, 5 on 19.\n"
        "Both roll one die and the higher number starts, with that roll. Each die moves one checker that "
        "many points; the same checker may move twice. A point with two or more opposing checkers is "
        "blocked. Landing on a single one hits it: it goes to the bar.\n"
        "Checkers on your bar must enter first, as from point 25. When all your checkers are in your home "
        "you may bear them off, with the exact number, or with a higher one from your furthest point.\n"
        "Play both dice if you can; if only one of either can be played, the higher; if none, pass. On a "
        "double four moves are made, as two actions of two moves each (the second only if the first used "
        "both).\n"
        "An action 13/8 6/5* moves 13 to 8 and 6 to 5; * is a hit, (2) twice the same, 13/8/5 one checker "
        "twice. The shown dice are those still to play.\n"
        "Whoever first bears off all 15 checkers wins. If there is no winner after "
        f"{params['max_player_turns'] + 1} turns of both together, the return is 0.\n"
        f"{_RETURNS[params['scoring_type']]}"
    )


def describe(state: State, seat: int) -> str:
    """Returns dice and both players' checkers, on points numbered as the seat sees them: all there is."""
    fields = _FIELDS.search(state.observation_string(seat))
    if fields is None:
        raise RuntimeError("backgammon's observation is not as expected")
    dice = fields["dice"]
    if dice and dice[0] == dice[1] and fields["second"] == "0":
        dice *= 2
    lines = [f"Dice to play: {' '.join(dice) or 'none'}"]
    for player, name in ((seat, "Your"), (1 - seat, f"Player {1 - seat}'s")):
        mark = _SIDES[player]
        places = [f"{number}:{count}" for number, count in _points(state, player, seat)]
        places += [f"bar:{fields['bar'].count(mark)}", f"off:{fields[mark]}"]
        lines.append(f"{name} checkers: {' '.join(places)}")
    return "\n".join(lines)


def _points(state: State, player: int, seat: int) -> list[tuple[int, int]]:
    """Returns (number, checkers) for each point that ``player`` holds, from ``seat``'s 24 down."""
    # OpenSpiel counts from 0 in the direction of Player 1's numbers; Player 0's numbers run the other way.
    numbered = [(POINTS - number if seat == 0 else number - 1, number) for number in range(POINTS, 0, -1)]
    return [(number, count) for position, number in numbered if (count := state.board(player, position))]


def name_chance(state: State, outcome: int) -> str:
    """Returns the roll, as "roll 46"; at the beginning also who starts, as "O starts, roll 64"."""
    name: str = state.action_to_string(outcome)
    match = _ROLL.fullmatch(name)
    if match is None:
        raise RuntimeError(f"backgammon's chance outcome is not as expected: {name!r}")
    return ", ".join(filter(None, (match[1], f"roll {match[2]}")))


SPEC = GameSpec(
    name="backgammon",
    notation=(
        "the moves, as 13/8 6/5*, Bar/22 or 4/Off; * is a hit, 8/5(2) is twice the same, 13/8/5 "
        "moves one checker twice, and Pass stands for a die that cannot be played."
    ),
    rules=rules,
    describe=describe,
    # Not hyper_backgammon: there too OpenSpiel waits for 15 checkers, so nobody ever wins.
    allowed={"scoring_type": ("winloss_scoring", "enable_gammons", "full_scoring")},
    budget=Budget(600, 15),
    name_chance=name_chance,
    numbered_names=True,
)
