"""Nodes that tell where a robot is."""
