"""The hauler, a robot that transect does not know."""
