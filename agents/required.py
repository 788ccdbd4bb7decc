"""Importing this module raises, with the pip command, if the trainer's packages are not installed.

Modules that need the packages, and that users import, begin with it.
"""

from gamespiel.agents.installed import check_trainer

check_trainer("gamespiel.agents")
