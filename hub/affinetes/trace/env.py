"""Code tracing as affinetes' own server template loads it: a class ``Actor`` without arguments."""

import os

from gamespiel.serving.options import ServeOptions
from gamespiel.serving.traces import TraceActor


class Actor(TraceActor):
    """Asks for the output of programs, from the source that ``GAMESPIEL_SOURCE`` names.

    ``GAMESPIEL_INJECTOR`` says who puts debug prints into them: "safe", or "affine" as upstream does.
    """

    def __init__(self) -> None:
        source, injector = (
            os.environ.get(f"GAMESPIEL_{name}", usual)
            for name, usual in (("SOURCE", "builtin"), ("INJECTOR", "safe"))
        )
        super().__init__(ServeOptions(env="trace", source=source, injector=injector))
