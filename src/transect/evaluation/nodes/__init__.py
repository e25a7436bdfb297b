"""Metrics as nodes, found like those of `transect.nodes`: one file per interface, named as it is."""
