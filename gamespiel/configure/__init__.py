"""``gamespiel configure``: a few answers become a configuration file that says why each value is in it.

``answers`` reads the answers, ``wizard`` asks for them, ``settings`` finds the configuration, ``pace`` its
number of steps, and ``document`` writes the file.
"""
