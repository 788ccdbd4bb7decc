"""``python -m gamespiel``: the same as the command ``gamespiel``."""

import sys

from gamespiel.cli import main

if __name__ == "__main__":
    sys.exit(main())
