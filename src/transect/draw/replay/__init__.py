"""Animations from plain arrays: a rover on its map, an arm on its deck."""
