"""Gin rummy: one hand, from the deal to the knock."""

from __future__ import annotations

from collections.abc import Sequence

from game_gym.spec import Budget, GameSpec, Params, State

RANKS, SUITS = "A23456789TJQK", "scdh"

# Actions beside the cards, which are numbered suit by suit.
_UPCARD, _STOCK, _PASS, _KNOCK, _MELDS = 52, 53, 54, 55, 56
_PHASES = {"FIRST_UPCARD": "first upcard", "WALL": "last upcard"}


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's gin_rummy plays."""
    if params["oklahoma"]:
        limit = "the limit, the value of the first upcard (with an ace it is 0)"
    else:
        limit = f"{params['knock_card']}"
    gin, undercut = params["gin_bonus"], params["undercut_bonus"]
    return (
        f"Gin rummy, one hand. Ranks A23456789TJQK in the suits scdh. Both players get {params['hand_size']} "
        "cards, one is turned up (the upcard), the rest is the stock.\n"
        "Melds: 3 or 4 of a rank, or 3 or more consecutive ranks of a suit (A low). Cards in no meld are "
        "deadwood: A is 1, TJQK 10, others their number.\n"
        "Player 0, then Player 1, may take the first upcard or pass; if both pass, Player 0 draws from the "
        "stock. A turn: take the upcard or draw from the stock (an upcard not taken is out of play), then "
        "discard: the new upcard.\n"
        f"If the deadwood shown is at most {limit} when you are to discard, you may knock first. The knocker "
        "discards, lays melds one by one (5 cards at most; longer runs in parts), and passes once the rest "
        "is within the limit. The opponent lays off cards that extend these melds (a run by two cards an end "
        "at most), passes, lays melds and passes; if the knocker has deadwood 0 (gin), nothing can be laid "
        "off. What is not laid counts.\n"
        f"The knocker gains the opponent's deadwood less their own, {gin} more for gin; if that is below 0, "
        f"{undercut} less. The opponent's return is the negative.\n"
        "The return is 0 if nobody knocks: with 2 cards left in the stock one may only knock with the "
        "upcard or pass, which ends the hand. So does taking and discarding the same upcard right after "
        "the opponent did so with it, or the 50th upcard taken (not counting the first).\n"
        "Deadwood shown: what the melds of highest value leave, without its dearest card if you hold one to "
        "discard; from the knock on, all that is not laid. In Turns, +X is a card drawn from the stock (+? "
        "unseen), ^X the upcard taken, -X a discard."
    )


def describe(state: State, seat: int) -> str:
    """Returns the seat's hand, open cards, and who took and discarded what: all that it has seen."""
    # The opponent's hand is never read, nor are the opponent's draws in the history.
    other = 1 - seat
    hand = sorted(state.hands()[seat])
    upcard = state.upcard()
    lines = [
        f"Phase: {_phase(state)}",
        f"Knock limit: {state.knock_card()}",
        f"Your hand: {_cards(hand)}",
        f"Your deadwood: {state.deadwood()[seat]}",
        f"Player {other}'s known cards: {_cards(state.known_cards()[other])}",
        f"Upcard: {'none' if upcard is None else card(upcard)}",
        f"Stock: {state.stock_size()} cards",
        f"Out of play: {_cards(state.discard_pile())}",
        f"Turns: {_turns(state, seat)}",
    ]
    knocked = state.knocked()
    if any(knocked):
        knocker = knocked.index(True)
        for player in (knocker, 1 - knocker):
            name = "Your" if player == seat else f"Player {player}'s"
            lines.append(f"{name} melds: {_melds(state, player)}")
        lines.append(f"Laid off: {_cards(state.layoffs())}")
    return "\n".join(lines)


def card(number: int) -> str:
    """Returns rank and suit, as in "Td"."""
    return RANKS[number % 13] + SUITS[number // 13]


def _cards(numbers: Sequence[int]) -> str:
    return " ".join(card(number) for number in numbers) or "none"


def _phase(state: State) -> str:
    name: str = state.current_phase().name
    if name == "KNOCK":
        return "discard" if state.history()[-1] == _KNOCK else "lay melds"
    if name == "LAYOFF":
        return "lay melds" if state.finished_layoffs() else "lay off"
    return _PHASES.get(name, name.lower())


def _melds(state: State, player: int) -> str:
    names = [state.action_to_string(player, _MELDS + meld) for meld in state.layed_melds()[player]]
    return " ".join(name.rsplit(" ", 1)[1] for name in names) or "none"


def _turns(state: State, seat: int) -> str:
    """Returns each turn's draw and discard, up to the knocker's."""
    moves = [(move.player, move.action) for move in state.full_history()]
    dealt = next((i for i, (player, _) in enumerate(moves) if player >= 0), len(moves))
    upcard = moves[dealt - 1][1]
    turns: list[str] = []
    drawer = -1  # who has drawn and not discarded yet
    knocked = False
    for player, action in moves[dealt:]:
        if player < 0:
            turns[-1] += card(action) if drawer == seat else "?"
            continue
        name = "you" if player == seat else f"Player {player}"
        if action == _PASS:
            turns.append(f"{name} pass")
        elif action == _STOCK:
            turns.append(f"{name} +")
            drawer = player
        elif action == _UPCARD:
            turns.append(f"{name} ^{card(upcard)}")
            drawer = player
        elif action == _KNOCK:
            if drawer != player:  # at the end of the stock the knock takes the upcard
                turns.append(f"{name} ^{card(upcard)}")
            turns[-1] += " knock"
            knocked = True
        else:
            turns[-1] += f" -{card(action)}"
            upcard, drawer = action, -1
            if knocked:
                break
    return ", ".join(turns) or "none"


def name_chance(state: State, outcome: int) -> str:
    """Returns the card that is dealt or turned up."""
    name: str = state.action_to_string(outcome)
    return name.removeprefix("Chance outcome: ")


SPEC = GameSpec(
    name="gin_rummy",
    notation=(
        "your number and what you do, as Player: 0 Action: Pass; Draw upcard, Draw stock, Knock, a "
        "card as Ts, or the cards of a meld may take the place of Pass."
    ),
    rules=rules,
    describe=describe,
    params=lambda config: {"hand_size": 7 + (config // 3) % 3, "knock_card": 10 - config % 3},
    variants=9,
    # Smaller decks are left out: OpenSpiel numbers their melds wrongly.
    allowed={
        "hand_size": (7, 8, 9, 10),
        "knock_card": (8, 9, 10),
        "oklahoma": (False, True),
        "gin_bonus": (20, 25),
        "undercut_bonus": (20, 25),
    },
    budget=Budget(500, 10),
    fixed_names=True,
    # After a knock with three melds of three cards, no discard keeps the deadwood at 0.
    may_strand=lambda params: bool(params["hand_size"] == 8),
    name_chance=name_chance,
)
