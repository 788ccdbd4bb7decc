"""Recorded episodes to look at and to train on: a page that replays them, and rows in chat format."""
