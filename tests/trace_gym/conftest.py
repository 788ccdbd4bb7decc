"""Settings of property tests: the same examples each time, and no deadline because machines are shared."""

from hypothesis import settings

settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
