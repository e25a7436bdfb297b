"""Modules shared by several formats."""
