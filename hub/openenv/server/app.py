"""The server of every environment: ``python -m server.app``, or ``server`` once it is installed."""

import argparse

import uvicorn

from task_gym.openenv import app as make_app

app = make_app(
    "game_gym:GameSpiel-v0",
    "game_gym:GameSpielText-v0",
    "trace_gym:CodeTrace-v0",
    "trace_gym:CodeTraceChoice-v0",
    "trace_gym:CodeTraceLines-v0",
)


def main() -> None:
    """Serves until it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    uvicorn.run(app, host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
