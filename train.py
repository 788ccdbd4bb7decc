"""Train a policy: `python train.py --help`. The same as `gamespiel train`."""

import sys

from gamespiel.cli import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
