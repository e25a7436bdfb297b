"""Nodes from image to image."""
