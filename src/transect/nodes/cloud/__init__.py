"""Nodes that filter, move, join and describe point clouds."""
