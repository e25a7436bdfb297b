"""Metrics as nodes; `transect.manifest` lists them."""
