"""Figures drawn from plain arrays; every figure of the project is drawn in this package."""
