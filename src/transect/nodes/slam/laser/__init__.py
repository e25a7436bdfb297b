"""Planar scans: where one fits among others.

- `scans`: returns of a scan as points, walls between them
- `field`: how well points fit the walls that others saw, and where they fit best
- `odometer`: where the body is by matching each scan with those before
- `recogniser`: known places by matching scans with submaps
- `occupancy`: what is free and what is not, as a grid
"""
