"""How a program's process ties its own hands, just before the program runs in it."""

from __future__ import annotations

import os
import resource

from . import filter, kernel, landlock
from .wire import Caps, Setting

DEVICES = ("/dev/null", "/dev/urandom")
"""All that a program needs of these."""


def _limit(what: int, value: int, grace: int = 0) -> None:
    """A limit that cannot be raised, but by `grace`. Where a lower one is there already, that one stays."""
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
        grace = min(grace, hard - value)
    resource.setrlimit(what, (value, value + grace))


def _limits(caps: Caps) -> None:
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_MEMLOCK, 0)
    # At the limit SIGXCPU, which ends a process and says why; a second later SIGKILL, for who ignores it.
    _limit(resource.RLIMIT_CPU, caps.cpu, grace=1)
    _limit(resource.RLIMIT_AS, caps.memory)
    _limit(resource.RLIMIT_FSIZE, caps.file_size)
    _limit(resource.RLIMIT_NOFILE, caps.open_files)
    if caps.processes is not None:
        _limit(resource.RLIMIT_NPROC, caps.processes)


def _become(user: int, setting: Setting) -> None:
    """Turn into another user, with no rights, or with the one to read the standard library."""
    kernel.keep_capabilities()
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    hidden = setting.level != "namespaces" and not all(
        os.access(os.path.join(root, "os.py"), os.R_OK) for root in setting.roots.values()
    )
    kernel.set_capabilities(*([kernel.CAP_DAC_READ_SEARCH] if hidden else []))


class Locks:
    """What a level takes, prepared once for all programs. Raises OSError where something cannot be had."""

    def __init__(self, setting: Setting) -> None:
        self.ruleset: int | None = None
        if setting.level == "landlock":
            roots, files = setting.roots.values(), setting.files.values()
            self.ruleset = landlock.make_ruleset(roots, files, DEVICES, setting.base)
        self.filter = None if setting.level == "rlimits" else filter.Filter()


def lock(setting: Setting, locks: Locks, caps: Caps) -> None:
    """Put on this process all that the level promises. Raises OSError where something cannot be had."""
    instructions = None if locks.filter is None else locks.filter.instructions(os.getpid())
    os.setsid()
    if setting.user is not None:
        _become(setting.user, setting)
    else:
        kernel.set_capabilities()
    kernel.no_new_privileges()
    kernel.not_dumpable()
    if setting.level != "namespaces":
        kernel.die_with_parent()
    if locks.ruleset is not None:
        landlock.restrict(locks.ruleset)
    _limits(caps)  # the last but one, so that no limit is too tight for all this
    if instructions is not None:
        kernel.install_filter(instructions)
