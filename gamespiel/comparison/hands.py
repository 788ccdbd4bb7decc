"""The episodes of a comparison, and how each kind of contender plays them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gamespiel.agents.envs import TextEnvs
from gamespiel.agents.rollout import Decide, Episode, Masks, OnStep, play
from gamespiel.agents.sampling.noise import Purpose, episode_seeds
from gamespiel.comparison.contenders import Contender
from gamespiel.comparison.options import CompareOptions
from gamespiel.endpoints.at_once import play_at_once
from gamespiel.endpoints.chat import LOST, Chat, EndpointError, Sampling
from gamespiel.endpoints.endpoint import parse_endpoint
from gamespiel.endpoints.opponent import close_opponents
from gamespiel.endpoints.patience import patience_of_agents
from gamespiel.environments.making import make_envs, make_reply_env
from gamespiel.kinds import kind_of
from gamespiel.kinds.base import Deal
from gamespiel.measure.journal import Row

if TYPE_CHECKING:  # baselines are compared without a learning library
    from gamespiel.agents.policy import LLMPolicy
    from gamespiel.agents.sampling.decisions import Answer


class Hand(NamedTuple):
    """One episode of a comparison: a deal, from one of its seats.

    Attributes:
        place: Its place among all, which addresses the contenders' noise.
        deal: The deal.
        seat: The seat.
    """

    place: int
    deal: Deal
    seat: int | None


Record = Row
"""An episode as it was played: score (None for a fault), result, returns and history, and what went wrong."""

Keep = Callable[[Hand, Record], None]
"""Called with each episode as soon as its record is there."""


class HandPlayer(Protocol):
    """A contender that is ready to play."""

    def play(self, hands: Sequence[Hand], keep: Keep, on_step: OnStep) -> None:
        """Plays episodes, and keeps each."""

    def close(self) -> None:
        """Frees what it has."""


def list_hands(deals: Iterable[Deal]) -> list[Hand]:
    """Returns the episodes of deals, in the deals' order."""
    pairs = [(deal, seat) for deal in deals for seat in deal.seats]
    return [Hand(place, deal, seat) for place, (deal, seat) in enumerate(pairs)]


class EnvironmentPlayer:
    """Plays in local environments: a baseline or a policy.

    Args:
        make_envs: Number of environments to so many.
        begin: The environments and the episodes to the agent that plays them.
        end: Called after the episodes of a call, and if they are given up.
    """

    def __init__(
        self,
        make_envs: Callable[[int], TextEnvs],
        begin: Callable[[TextEnvs, Sequence[Hand]], Decide],
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._make_envs, self._begin, self._end = make_envs, begin, end
        self._envs: TextEnvs | None = None

    def play(self, hands: Sequence[Hand], keep: Keep, on_step: OnStep) -> None:
        """Plays the episodes together."""
        if self._envs is None or self._envs.num_envs < len(hands):
            self.close()
            self._envs = self._make_envs(len(hands))
        envs = self._envs
        options = [None if hand.seat is None else {"seat": hand.seat} for hand in hands]
        try:
            episodes = play(
                envs,
                [hand.deal.drawn for hand in hands],
                self._begin(envs, hands),
                lambda turns: True,
                on_step,
                options,
                envs.parts,
            )
        finally:
            self._end()
        assert episodes is not None
        for hand, episode in zip(hands, episodes, strict=True):
            keep(hand, _record_episode(episode))

    def close(self) -> None:
        """Closes the environments."""
        if self._envs is not None:
            self._envs.close()
            self._envs = None


def _record_episode(episode: Episode) -> Record:
    info = episode.info
    found = {name: info.get(name) for name in ("score", "result", "returns", "history")}
    found |= {"turns": len(episode.turns), "illegal": episode.illegal}
    return found | ({"error": str(info.get("fault", "a fault"))} if episode.fault else {})


def make_baseline_player(contender: Contender) -> EnvironmentPlayer:
    """Returns a baseline that is ready to play."""
    config, player = contender.config, kind_of(contender.config.env).player

    def begin(envs: TextEnvs, hands: Sequence[Hand]) -> Decide:
        noise = episode_seeds(config.run.seed, 0, hands[-1].place + 1, Purpose.BASELINE)
        return player.make_baseline(contender.name, envs, [noise[hand.place] for hand in hands])

    return EnvironmentPlayer(
        lambda count: make_envs(config.env, count, threads=config.run.env_threads), begin
    )


def make_policy_player(contender: Contender, options: CompareOptions, policy: LLMPolicy) -> EnvironmentPlayer:
    """Returns a policy that is ready to play, behind its mask or by replies."""
    from gamespiel.agents.runs.evaluation import policy_agent
    from gamespiel.measure.episodes import reply_constraint

    config = contender.config
    writes = contender.config.env.decode == "text"
    free = None
    if options.decode == "text" or writes:
        # As it was trained to write, unless it was not or the option says otherwise.
        own = writes and options.max_new_tokens is None
        free = None if own else reply_constraint(policy, options.reply_tokens)

    def make(count: int) -> TextEnvs:
        if options.decode != "text" and not writes:
            return make_envs(config.env, count, threads=config.run.env_threads)
        return TextEnvs([partial(make_reply_env, config.env)] * count, config.run.env_threads)

    def begin(envs: TextEnvs, hands: Sequence[Hand]) -> Decide:
        decide = policy_agent(
            policy, config.run.seed, hands[-1].place + 1, greedy=options.greedy, constraint=free
        )
        return partial(_decide_hands, decide, [hand.place for hand in hands])

    return EnvironmentPlayer(make, begin, policy.sampler.end_episodes)


def _decide_hands(
    decide: Decide, places: Sequence[int], texts: list[str], masks: Masks, indices: list[int], turn: int
) -> Sequence[Answer]:
    """Decides with noise that is addressed by the episodes' places among all."""
    return decide(texts, masks, [places[index] for index in indices], turn)


class EndpointPlayer:
    """Plays with a model behind an endpoint, several episodes at once, by upstream's ``evaluate``.

    Args:
        contender: The contender.
        options: The options of the endpoint.
    """

    def __init__(self, contender: Contender, options: CompareOptions) -> None:
        sampling = Sampling(options.temperature, options.max_new_tokens)
        self._chat = Chat(parse_endpoint(contender.name), sampling, patience_of_agents(options.request_s))
        self._config, self._options = contender.config, options

    def play(self, hands: Sequence[Hand], keep: Keep, on_step: OnStep) -> None:
        """Plays the episodes; each is kept as soon as it is over.

        Raises:
            EndpointError: the endpoint failed an episode; those under way were played to their end first.
            KeyboardInterrupt: Ctrl-C; those under way were given up.
        """
        play_at_once(
            hands,
            partial(self._play_one, keep=keep),
            self._stop,
            self._options.concurrency,
            lambda: on_step(True, 1),
        )

    def _stop(self) -> None:
        self._chat.close()
        close_opponents()

    def _play_one(self, hand: Hand, keep: Keep) -> None:
        player = kind_of(self._config.env).player
        address = hand.deal.address._replace(seat=hand.seat)
        found = player.play_endpoint(self._chat, self._config.env, address, self._options.episode_s)
        if found.get("error_type") == LOST:
            raise EndpointError(str(found.get("error")))
        extra = found["extra"]
        failed = found.get("error") is not None
        record: Record = {
            "score": None if failed else found["score"],
            "result": "fault" if failed else _name_result(extra, found["score"]),
            "returns": extra["all_returns"],
            "history": _read_history(hand, extra),
            "conversation": extra["conversation"],
            "illegal": extra["refused_replies"],
            "usage": extra["usage"],
        }
        keep(hand, record | ({"error": found["error"]} if failed else {}))

    def close(self) -> None:
        """Closes the connections."""
        self._chat.close()


def _read_history(hand: Hand, extra: dict[str, Any]) -> list[int] | None:
    """Returns every action of a game; None if its moves are simultaneous, of which a seat is told its own."""
    import pyspiel

    kind = hand.deal.address.task.variant.game.get_type()
    if kind.dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        return None
    return [int(told["action"]) for told in extra["action_history"]]


def _name_result(extra: dict[str, Any], score: float) -> str:
    if extra["given_up"]:
        return "loss"
    return "win" if score > 0.5 else "draw" if score == 0.5 else "loss"
