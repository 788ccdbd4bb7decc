"""Ranks: the processes that learn one policy together. One process alone is the usual case."""

from gamespiel.agents.ranks.alone import ALONE as ALONE
from gamespiel.agents.ranks.alone import RankFailedError as RankFailedError
from gamespiel.agents.ranks.alone import RankLostError as RankLostError
from gamespiel.agents.ranks.alone import Ranks as Ranks
from gamespiel.agents.ranks.alone import RanksDifferError as RanksDifferError
from gamespiel.agents.ranks.alone import RanksError as RanksError
