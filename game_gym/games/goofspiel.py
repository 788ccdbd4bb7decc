"""Goofspiel: everyone bids a card at the same time for the prize that is up."""

from __future__ import annotations

from typing import Any

from game_gym.spec import GameSpec, Params, State

_ORDERS = {
    "random": "in random order",
    "ascending": "in ascending order",
    "descending": "in descending order",
}
_RETURNS = {
    "point_difference": "Your return is your points less the average of all players' points.",
    "total_points": "Your return is your points.",
}


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's goofspiel plays."""
    cards, players = params["num_cards"], params["players"]
    order = _ORDERS[params["points_order"]]
    if params["imp_info"]:
        seen = (
            "Bids stay secret: everyone is told only who won the prize, so you know your own bids and hand "
            "but not the others'."
        )
    else:
        seen = "After each round the bids are shown, so all hands are known to everyone."
    return (
        f"Goofspiel for {players} players. Everyone holds bid cards 1 to {cards}; the prizes are also cards "
        f"1 to {cards}, each worth its number in points, and are turned up one a round, {order}.\n"
        "In a round everyone chooses a card of their hand at the same time, without knowing the others' "
        "choice. The highest bid takes the prize; if the highest bid was made by more than one player, "
        "nobody does and the prize is lost. All bids are used up, whether they won or not. "
        f"{seen}\n"
        f"There are {cards} rounds; the last is played for you, as only one card is left.\n"
        "Bid: N spends the card N.\n"
        f"{_returns(params)}"
    )


def _returns(params: Params) -> str:
    if params["returns_type"] == "win_loss":
        if params["players"] == 2:
            return (
                "Your return is 1 if you end with more points than the opponent, 0 if with as many, else -1."
            )
        return (
            "Those with the most points win: the winners share a return of 1 evenly, the others share -1; "
            "it is 0 for all if all have as many."
        )
    return _RETURNS[params["returns_type"]]


def describe(state: State, seat: int) -> str:
    """Returns prizes, hands and points: the seat's information state, and nothing else."""
    fields = dict(line.split(": ", 1) for line in state.information_state_string(seat).splitlines() if line)
    prizes, winners, points = (
        [int(number) for number in fields[key].split()]
        for key in ("Point card sequence", "Win sequence", "Points")
    )
    names = ["you" if player == seat else f"Player {player}" for player in range(len(points))]
    # There is one more prize than winners; a winner below 0 is nobody.
    past = [
        f"{prize} {names[winner] if winner >= 0 else 'nobody'}"
        for prize, winner in zip(prizes, winners, strict=False)
    ]
    left = [card for card in range(1, state.num_distinct_actions() + 1) if card not in prizes]
    lines = [
        f"Prize: {prizes[-1]}",
        f"Prizes left: {_join(left)}",
        f"Prizes won: {_join(past, ', ')}",
        f"Points: {', '.join(f'{name} {count}' for name, count in zip(names, points, strict=True))}",
        f"Your hand: {fields[f'P{seat} hand'].strip()}",
    ]
    own_bids = fields.get(f"P{seat} action sequence")
    if own_bids is not None:
        lines.append(f"Your bids: {_join([int(action) + 1 for action in own_bids.split()])}")
    else:
        lines += [
            f"{name}'s hand: {fields[f'P{player} hand'].strip()}"
            for player, name in enumerate(names)
            if player != seat
        ]
    return "\n".join(lines)


def _join(words: list[Any], by: str = " ") -> str:
    return by.join(str(word) for word in words) or "none"


SPEC = GameSpec(
    name="goofspiel",
    notation="your number and the card, as [P0]Bid: 7 for Player 0.",
    rules=rules,
    describe=describe,
    params=lambda config: {"players": 2, "num_cards": 8 + 2 * (config % 5), "points_order": "random"},
    variants=5,
    allowed={
        "players": (2, 3, 4),
        "num_cards": (4, 6, 8, 10, 12, 13, 14, 16),
        "points_order": ("random", "ascending", "descending"),
        "imp_info": (False, True),
        "returns_type": ("win_loss", "point_difference", "total_points"),
    },
    # Moves are simultaneous: tree search over turns cannot play them.
    budget=None,
    fixed_names=True,
)
