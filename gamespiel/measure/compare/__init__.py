"""``gamespiel eval --compare``: agents on the same deals, exactly where that is possible."""
