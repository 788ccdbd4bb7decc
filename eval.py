"""Evaluate a policy: `python eval.py --help`. The same as `gamespiel eval`."""

import sys

try:
    from gamespiel.cli import main
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] in ("gamespiel", "game_gym", "task_gym", "trace_gym"):
        raise
    sys.exit(f"{error.name} is not installed here; run: make setup && . .venv/bin/activate")

if __name__ == "__main__":
    sys.exit(main(["eval", *sys.argv[1:]]))
