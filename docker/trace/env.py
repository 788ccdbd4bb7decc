"""Code tracing as affinetes' own server template loads it: a class ``Actor`` without arguments."""

import os

from gamespiel.serving.options import ServeOptions
from gamespiel.serving.traces import TraceActor


class Actor(TraceActor):
    """Asks for the output of programs, from the source that ``GAMESPIEL_SOURCE`` names."""

    def __init__(self) -> None:
        super().__init__(ServeOptions(env="trace", source=os.environ.get("GAMESPIEL_SOURCE", "builtin")))
