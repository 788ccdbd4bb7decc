"""A checkout of the repository, where the package ``gamespiel.agents`` is the folder ``agents/`` at the top.

A wheel has it inside ``gamespiel``. Importing this module places it there in a checkout or in an unpacked
source distribution. Nothing has to be installed or linked: some file systems and archives have no links.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]


def place_agents() -> None:
    """Makes the folder at the top the package ``gamespiel.agents``, if this is a checkout.

    In a folder of installed packages, ``agents`` belongs to the distribution openai-agents.
    """
    folder = TOP / "agents"
    if not (TOP / "setup.cfg").is_file() or not (folder / "installed.py").is_file():
        return
    spec = spec_from_file_location(
        "gamespiel.agents", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None  # for a file of this name there always is one
    module = sys.modules["gamespiel.agents"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["gamespiel"].agents = module  # type: ignore[attr-defined]  # what an import would do


place_agents()
