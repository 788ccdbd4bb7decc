"""Property tests draw the same examples each time, and are not timed: machines are shared."""

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
