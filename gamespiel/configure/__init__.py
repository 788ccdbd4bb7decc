"""``gamespiel configure``: a few answers become a configuration file that says why each value is in it.

``answers`` reads the answers, ``wizard`` asks for them and writes the file, ``settings`` finds the
configuration, and ``pace`` its number of steps.
"""
