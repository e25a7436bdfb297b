"""Nodes that estimate the pose of a robot."""
