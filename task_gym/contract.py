"""What every task environment keeps to."""

#: A score above this is a success.
SUCCESS = 0.5

#: What an illegal action costs.
ILLEGAL_REWARD = -0.01

#: Illegal actions in a row that give an episode up.
STRIKES = 3

#: What an observation that asks for an action's number ends with.
CLOSING = "Your choice (action ID only):"
