"""Nodes: adapters between ports and algorithms; `transect.manifest` lists them."""
