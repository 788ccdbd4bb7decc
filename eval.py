"""Evaluate a policy: `python eval.py --help`. The same as `gamespiel eval`."""

import sys

from gamespiel.cli import main

if __name__ == "__main__":
    sys.exit(main(["eval", *sys.argv[1:]]))
