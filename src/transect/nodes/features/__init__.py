"""Nodes on points of interest in images, and the geometry of several views."""
