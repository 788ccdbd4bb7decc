"""The files of the presets, by name."""

from pathlib import Path

from gamespiel.errors import unknown_name_error


def presets() -> tuple[str, ...]:
    """Returns the names of the presets."""
    return tuple(sorted(path.stem for path in _preset_dir().glob("*.yaml")))


def preset_path(name: str) -> Path:
    """Returns the file of a preset.

    Raises:
        UnknownKeyError: There is no such preset; the message names the nearest one, and all.
    """
    if name not in presets():
        raise unknown_name_error("preset", name, presets(), listed=True)
    return _preset_dir() / f"{name}.yaml"


def _preset_dir() -> Path:
    """Returns ``configs/``: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"
