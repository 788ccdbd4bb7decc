"""``gamespiel leaderboard`` and ``gamespiel verify``: a benchmark whose every game is kept, and checked."""
