"""The modules of users, which register their own opponents, games and rewards when they are imported."""

import os
import sys
import traceback
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from gamespiel.config.sections import Config
from gamespiel.errors import ConfigError
from task_gym.errors import nearest, quote
from task_gym.opponents import opponent_names


def import_own_modules(config: Config) -> Config:
    """Returns ``config``, after the modules of ``run.imports`` were imported.

    Raises:
        ConfigError: a module cannot be imported.
    """
    import_modules(config.run.imports)
    return config


_registered: dict[str, set[str]] = {}
"""By module, the opponents that it registered when it was imported here."""


def import_modules(names: Iterable[str], given_by: str = "--import") -> tuple[str, ...]:
    """Imports modules by name, from the current folder too; returns the opponents that they registered.

    Args:
        names: The modules.
        given_by: The option or key that names them, for errors.

    Raises:
        ConfigError: there is no such module, or its own code fails.
    """
    names = list(names)
    if not names:
        return ()
    import_module("game_gym.opponents")  # or the built-in ones would seem to be the modules' own
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
    for name in names:
        before = set(opponent_names())
        _import_module(name, folder, given_by)
        _registered.setdefault(name, set()).update(set(opponent_names()) - before)
    return tuple(sorted({opponent for name in names for opponent in _registered[name]}))


def _import_module(name: str, folder: str, given_by: str) -> None:
    if not all(part.isidentifier() for part in name.split(".")) or name.endswith(".py"):
        module = ".".join(Path(name).with_suffix("").parts)
        meant = f"; did you mean {module!r}?" if module.replace(".", "").isidentifier() else ""
        raise ConfigError(
            f"{given_by}: {quote(name)} was given, needed: a module's name, as my.opponents{meant}"
        )
    try:
        import_module(name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            near = nearest(name, [path.stem for path in Path(folder).glob("*.py")])
            raise ConfigError(
                f"{given_by}: {name!r} was given, and there is no such module, neither in {folder} nor among "
                f"the installed packages{near}"
            ) from error
        frames = traceback.extract_tb(error.__traceback__)[1:]
        user_frames = [frame for frame in frames if "importlib" not in frame.filename]
        where = f" ({user_frames[-1].filename}, line {user_frames[-1].lineno})" if user_frames else ""
        raise ConfigError(
            f"{given_by}: {name!r} cannot be imported: {type(error).__name__}: {error}{where}"
        ) from error
