"""Lasers and lidars: dust, smoke and rain in their returns, and where they are mounted."""
