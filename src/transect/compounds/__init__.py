"""Compound descriptions, one YAML each: `transect run NAME` finds them by the name of the file."""
