"""The agents of a board: what each name means, on which track it plays, and which tasks it enters."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gamespiel.config import Config, from_dict, presets, resolve, saved_config
from gamespiel.endpoints import PREFIX, USAGE
from gamespiel.endpoints.endpoint import parse_address, parse_endpoint
from gamespiel.errors import InvalidValueError
from gamespiel.kinds import KINDS, kind_of
from gamespiel.measure.agents import UNTRAINED, Agent, find_checkpoint
from gamespiel.measure.board.benchmark import TASK_NAMES, TRACE, explain_refusal, is_search
from gamespiel.tracks import ASKING, MASKED, UNLISTED, UNMASKED
from task_gym.errors import ArgumentError, TaskGymError, nearest, quote

BOARD_TRACKS: Mapping[str, str] = {
    MASKED: "an agent chooses among the legal actions, and can do nothing else",
    UNMASKED: "an agent writes a reply; its prompt lists the legal actions, and nothing keeps it to them",
    UNLISTED: "an agent writes a reply; its prompt only says how an action is written",
}
"""The tracks: what an agent may do. Agents of different tracks are never on one board."""

BASELINES = ("random", "first")
"""The agents that choose without search, in games and among a trace's outputs."""

_NO_WRITERS = (
    f"--track {MASKED} is for agents that choose behind a mask: a board of its own, with --track {UNMASKED} "
    f"or {UNLISTED}"
)
_WORD = r"[A-Za-z0-9_.+-]{1,40}"
_LABEL = re.compile(rf"({_WORD})=(.+)", re.DOTALL)
_UNCLEAR = re.compile(r"^ | $|  | = ")
"""Parts that no name may have: tables show a name as "NAME = AGENT", and fold it at spaces."""

LONGEST_NAME = 200
"""The most characters of an agent's name."""


def describe(agent: Agent, track: str) -> dict[str, Any]:
    """Returns what a board says of an agent: of a checkpoint, the digest of its files too."""
    if agent.kind == "baseline":  # its actions are always legal, so it goes with every track
        return {"name": agent.name, "agent": agent.spec, "kind": agent.kind, "track": None}
    entry: dict[str, Any] = {"name": agent.name, "agent": agent.spec, "kind": agent.kind, "track": track}
    if agent.config is not None:
        env = agent.config.env
        entry["env_type"], entry["model"] = env.env_type, str(agent.config.model.model_name)
        entry["asking"] = {key: getattr(env, key) for key in kind_of(env).asking}
    return entry | agent.identify()


def read_agents(names: Sequence[str], track: str, option: str = "--agents") -> list[Agent]:
    """Returns the agents that names mean, as NAME or LABEL=NAME.

    Raises:
        InvalidValueError: there is no such agent or track, one is of another track, two have one name, or no
            board could have one.
    """
    if track not in BOARD_TRACKS:
        raise InvalidValueError(
            f"--track {quote(track)}: allowed: {', '.join(BOARD_TRACKS)}{nearest(track, BOARD_TRACKS)}"
        )
    agents = [_read_agent(name, track, option) for name in names]
    if wrong := find_wrong_name([agent.name for agent in agents]):
        raise InvalidValueError(f"{option} has {wrong}; LABEL=AGENT gives an agent another name")
    for agent in agents:
        if wrong := explain_entry(describe(agent, track), track):
            raise InvalidValueError(f"{option} {quote(agent.name)}: {wrong}")
    return agents


def find_wrong_name(names: Sequence[str]) -> str:
    """Returns what is wrong with the names of a board's agents, or "".

    A name could otherwise look like another one: by invisible characters, letters of another alphabet, spaces
    or its case. So names are of printable ASCII, and differ by more than their case.
    """
    seen: dict[str, str] = {}
    for name in names:
        if not (name.isascii() and name.isprintable()) or _UNCLEAR.search(name):
            return (
                f"the name {name!a:.80}, allowed: printable ASCII, no ' = ', no two spaces in a row, none at "
                "an end"
            )
        if (twin := seen.get(name.lower())) is not None:
            return f"{quote(name)} twice" if twin == name else f"the names {quote(twin)} and {quote(name)}"
        seen[name.lower()] = name
    return ""


def _read_agent(text: str, track: str, option: str) -> Agent:
    labelled = _LABEL.fullmatch(text)
    name, spec = (labelled[1], labelled[2]) if labelled else (text, text)
    if not 0 < len(name) <= LONGEST_NAME:
        raise InvalidValueError(f"{option}: a name has 1 to {LONGEST_NAME} characters, not {len(name):,}")
    if spec in BASELINES or is_search(spec):
        return Agent(name, spec)
    if spec.startswith(PREFIX):
        parse_endpoint(spec)  # raises if it is none
        if track == MASKED:
            raise InvalidValueError(f"{option} {quote(spec)} writes replies, and {_NO_WRITERS}")
        return Agent(name, spec)
    if spec.startswith(UNTRAINED):
        return Agent(name, spec, _settle(_read_preset(spec, option), spec, track, option))
    others = (
        f"{UNTRAINED}PRESET, {', '.join(BASELINES)}, mcts or ismcts (whole, /N or :SIMS[xROLLOUTS]), {USAGE}"
    )
    checkpoint = find_checkpoint(option, spec, others, (*BASELINES, "mcts/100", "ismcts/100"))
    return Agent(name, spec, _settle(saved_config(checkpoint), spec, track, option), checkpoint)


def _read_preset(spec: str, option: str) -> Config:
    preset = spec.removeprefix(UNTRAINED)
    if preset not in presets():
        raise InvalidValueError(
            f"{option} {quote(spec)}: allowed: {UNTRAINED} with a preset: {', '.join(presets())}"
            f"{nearest(preset, presets())}"
        )
    return resolve(preset)


def _settle(config: Config, spec: str, track: str, option: str) -> Config:
    """Returns the configuration with which a model plays the benchmark: as in training, but for the track."""
    if track == MASKED and config.env.decode == "text":
        raise InvalidValueError(
            f"{option} {quote(spec)} was trained to write (env.decode: text), and {_NO_WRITERS}"
        )
    asking = {key: getattr(config.env, key) for key in kind_of(config.env).asking}
    asking |= asking_of(config.env.env_type, track)
    return dataclasses.replace(config, env=make_env_section(config.env.env_type, asking))


def asking_of(env_type: str, track: str) -> dict[str, Any]:
    """Returns the keys of how a model is asked that a track sets: programs have no list in any prompt."""
    return {} if env_type == "trace" else dict(ASKING[track])


def make_env_section(env_type: str, asking: Mapping[str, Any]) -> Any:
    """Returns the ``env`` section of the benchmark's episodes.

    Args:
        env_type: The kind of task.
        asking: The keys that say how a model is asked.

    Raises:
        ConfigError: there is no such kind, key or value.
    """
    allowed = KINDS[env_type].asking
    if set(asking) != set(allowed):  # others would choose what is played, or where
        raise InvalidValueError(f"asking has {quote(sorted(asking))}, allowed: {', '.join(allowed)}")
    section: dict[str, Any] = {"env_type": env_type, **asking}
    if env_type == "openspiel":
        section |= {"allowed_game_indices": list(range(22)), "seeding": "evaluate", "opponent": "random"}
    return from_dict({"env": section}, "the agent's asking keys").env


def explain_entry(about: Mapping[str, Any], track: str) -> str:
    """Returns what is wrong with an agent's entries; "" if nothing is.

    Args:
        about: The entries, but its episodes and their digest.
        track: The board's track.
    """
    kind, spec = about["kind"], about["agent"]
    if kind == "meeting":  # checked as the file was read
        return ""
    if kind == "endpoint" and track == MASKED:
        return f"an agent behind an endpoint writes replies, and the board is of the track {track!r}"
    if wrong := _explain_texts(about) or _explain_kind(kind, spec):
        return wrong
    agent_track = None if kind == "baseline" else track
    if about["track"] != agent_track:
        return (
            f"it is of track {about['track']!r}, and the board of {track!r}: agents of different tracks are "
            "not rated together"
        )
    needed = {"env_type", "model", "asking"} if kind in ("checkpoint", "model") else set()
    needed |= {"checkpoint", "sha256"} if kind == "checkpoint" else set()
    there = set(about) - {"name", "agent", "kind", "track"}
    if there != needed:
        return f"an agent of kind {kind!r} has {sorted(needed)} beside its name, not {sorted(there)}"
    if needed:
        try:
            make_env_section(about["env_type"], about["asking"])
        except TaskGymError as error:
            return f"asking: {error}"
        for key, value in asking_of(about["env_type"], track).items():
            if about["asking"][key] != value:
                return f"asking: {key} is {quote(about['asking'][key])}, and {value!r} on the track {track!r}"
    return ""


def _explain_texts(about: Mapping[str, Any]) -> str:
    """Returns which text of an agent's entries could be taken for another one; "" if none could."""
    for key in ("agent", "model", "checkpoint"):
        if not (text := about.get(key, "")).isprintable():
            return f"{key} {text!a:.80}, allowed: printable characters"
    name, spec = about["name"], about["agent"]
    if _UNCLEAR.search(spec) or " vs " in spec:
        return f"agent {quote(spec)}, allowed: no ' = ', no ' vs ', no two spaces in a row, none at an end"
    if name != spec and not re.fullmatch(_WORD, name):
        return f"the name {quote(name)}, allowed: {quote(spec)}, or 1 to 40 of A-Z, a-z, 0-9 and _.+-"
    return ""


def _explain_kind(kind: str, spec: str) -> str:
    """Returns why an agent would pass for one of another kind; "" if it would not."""
    baseline = spec in BASELINES or is_search(spec)
    fits, allowed = {
        "baseline": (baseline, f"{', '.join(BASELINES)} and searches"),
        "endpoint": (_is_endpoint(spec), USAGE),
        "model": (re.fullmatch(UNTRAINED + _WORD, spec), f"{UNTRAINED}PRESET"),
        "checkpoint": (not (baseline or spec.startswith((PREFIX, UNTRAINED))), "the place of a run"),
    }[kind]
    return "" if fits else f"agent {quote(spec)} is no {kind}, allowed: {allowed}"


def _is_endpoint(spec: str) -> bool:
    try:
        parse_address(spec)  # a key that is wrong here makes no file wrong
    except ArgumentError:
        return False
    return spec.startswith(PREFIX)


def list_tasks(entry: Mapping[str, Any], track: str) -> list[str]:
    """Returns the tasks that an agent enters, in the order of a round."""
    return [task for task in TASK_NAMES if not explain_absence(entry, task, track)]


def explain_absence(entry: Mapping[str, Any], task: str, track: str) -> str:
    """Returns why an agent does not enter a task; "" if it does.

    Args:
        entry: The board's entry of the agent.
        task: The task.
        track: The board's track.
    """
    trace = task.startswith(TRACE)
    if entry["kind"] == "baseline":
        if trace and track != MASKED:
            return "a baseline chooses among outputs, which this track does not show"
        return explain_refusal(entry["agent"], task)
    if entry["kind"] == "endpoint" or trace == (entry["env_type"] == "trace"):
        return ""
    return "it was trained on games" if trace else "it was trained on traces"
