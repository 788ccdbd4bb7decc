"""The packages, which setup.cfg cannot list: two of them lie elsewhere in the repository than in the wheel.

`agents/` is installed as `gamespiel/agents` and the presets of `configs/` as `gamespiel/configs`, so that a
wheel puts no files under the common names "agents" and "configs".
"""

import atexit
import shutil
import tempfile

from setuptools import find_namespace_packages, setup

ROOMS = ("task_gym", "game_gym", "trace_gym", "gamespiel")


def packages_in(folder: str, name: str) -> list[str]:
    """Returns the package `name`, whose files are in `folder`, and all below it."""
    inside = find_namespace_packages(folder, exclude=["*__pycache__", "tiny*"])
    return [name, *(f"{name}.{package}" for package in inside)]


# setuptools packs whatever lies in build/, and so modules of an earlier build that have been deleted since.
build = tempfile.mkdtemp()
atexit.register(shutil.rmtree, build, ignore_errors=True)

setup(
    options={"build": {"build_base": build}},
    packages=[
        *(package for room in ROOMS for package in packages_in(room, room) if ".agents" not in package),
        *packages_in("agents", "gamespiel.agents"),
        "gamespiel.configs",
    ],
    package_dir={"gamespiel.agents": "agents", "gamespiel.configs": "configs"},
    package_data={
        "gamespiel.configs": ["*.yaml", "*.json"],
        "gamespiel.agents": ["tiny/**"],
        "gamespiel.measure.board": ["anchors.json"],
        "gamespiel.replay": ["viewer.*"],
        "trace_gym.programs.builtin": ["vocabulary.txt"],
        **{room: ["py.typed"] for room in ROOMS},
    },
)
