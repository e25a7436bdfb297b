"""Nodes that find how two point clouds stand to each other."""
