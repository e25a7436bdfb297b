"""The Instrument Deployment Arm of InSight: what the archive SIS says of the machine, as functions.

- `parameters`: the numbers of a parameter file over those that the SIS prints
- `parameter_sets`: the names, sizes and units of all 32 sets
"""
