"""Modules that several formats share; no format itself."""
