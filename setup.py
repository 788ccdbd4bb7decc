"""What setup.cfg cannot say: the presets of `configs/` are installed as `gamespiel/configs`."""

from setuptools import find_namespace_packages, setup

ROOMS = ("task_gym", "game_gym", "trace_gym", "agents", "gamespiel")

setup(
    packages=[
        *find_namespace_packages(
            include=[pattern for room in ROOMS for pattern in (room, f"{room}.*")],
            exclude=["*.__pycache__", "agents.tiny*"],
        ),
        "gamespiel.configs",
    ],
    package_dir={"gamespiel.configs": "configs"},
    package_data={
        "gamespiel.configs": ["*.yaml"],
        "agents": ["tiny/**"],
        **{room: ["py.typed"] for room in ROOMS if room != "agents"},
    },
)
