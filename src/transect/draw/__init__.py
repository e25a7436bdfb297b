"""Figures from plain arrays; every picture of the project comes from here."""
