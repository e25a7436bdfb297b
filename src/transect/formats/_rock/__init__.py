"""Shared by several formats."""
