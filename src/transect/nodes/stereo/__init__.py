"""Nodes that see with two eyes."""
