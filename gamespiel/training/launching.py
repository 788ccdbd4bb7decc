"""The ranks of a run under ``torchrun``: each one's part of the machine, and what the first sends."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from gamespiel.agents.launch import Launch
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.ranks import ALONE, Ranks
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.state import read_state
from gamespiel.assembly import device_of
from gamespiel.config import Config, InvalidValueError
from task_gym.processes import count_cores


def divide_threads(config: Config, launch: Launch) -> None:
    """Gives this rank its share of the machine's cores, unless ``run.num_threads`` says each rank's."""
    threads = config.run.num_threads
    if threads is None and launch.local_size > 1:
        threads = max(1, count_cores() // launch.local_size)
    if threads is not None:
        torch.set_num_threads(threads)


def keep_threads(config: Config, ranks: Ranks, start: Path) -> str:
    """Gives a resumed run as many threads as its checkpoint had, unless ``run.num_threads`` says.

    Sums of floats on a CPU follow from their number. Ranks share their machine's cores in any case. Returns
    a sentence about numbers that differ, else "".
    """
    threads = read_state(start).get("threads")
    if threads is not None and config.run.num_threads is None and ranks.size == 1:
        torch.set_num_threads(threads)
    if threads in (None, here := torch.get_num_threads()):
        return ""
    return f"the checkpoint had threads={threads} and this run has {here}: it goes on, but not bit for bit"


@contextmanager
def joining(config: Config, launch: Launch) -> Iterator[Ranks]:
    """Yields the ranks that train together; what ends one of them within the context ends all.

    Raises:
        InvalidValueError: a step has fewer episodes than there are ranks, or this rank has no device.
        RankLostError: not all of them came.
    """
    if launch.size == 1:
        yield ALONE
        return
    if config.ppo.batch_size < launch.size:
        raise InvalidValueError(
            f"ppo.batch_size is {config.ppo.batch_size}, and torchrun started {launch.size} ranks; allowed: "
            f"at least one episode per rank, so {launch.size} or more, or fewer ranks (--nproc-per-node)"
        )
    from gamespiel.agents.ranks.world import World

    world = World(launch, device_of(config, launch))
    try:
        yield world
    except BaseException as error:
        world.fail(error)
        raise
    world.close()


@contextmanager
def fetching(folder: Path, ranks: Ranks) -> Iterator[Path]:
    """Yields a folder with the files of the first rank's folder, which only that rank need see."""
    if ranks.size == 1:
        yield folder
        return
    files = ranks.lead(
        lambda: {
            str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }
    )
    if ranks.leads:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="gamespiel-rank-") as parent:
        place = Path(parent) / folder.name
        for name, content in files.items():
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield place


def load_checkpoint(model: LLMPPO, folder: Path) -> None:
    """Loads a checkpoint of the first rank to continue from, on all ranks.

    Raises:
        CheckpointError: as ``checkpoint.load`` does.
    """
    with fetching(folder, model.ranks) as place:
        checkpoint.load(model, place)


def load_origin(model: LLMPPO, run: Path) -> Path:
    """Loads the newest weights of another run on all ranks; returns their checkpoint.

    Raises:
        CheckpointError: as ``checkpoint.load_newest`` does.
    """
    start = model.ranks.lead(lambda: checkpoint.load_newest(model.policy, run))
    if model.ranks.size > 1:
        with fetching(start, model.ranks) as place:
            checkpoint.load_policy(model.policy, place)
    return start
