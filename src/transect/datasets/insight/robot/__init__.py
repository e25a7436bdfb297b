"""Models of InSight's Instrument Deployment Arm as the archive SIS describes it.

The arm
- `parameters`: all 32 sets; the numbers of a parameter file over those that the SIS prints
- `codes`, `arm`: codes of tools and grapple phases; joints, tools and frames
- `conversions`: angles, currents, temperatures and voltages to raw counts
- `kinematics`: tool poses and inverse kinematics
- `statics`: masses and compliances of the links, sag, gravity moments, end-effector forces
- `motor`: torques, current limits and rotor temperatures
- `trajectory`, `collision`: via points, velocity profiles, guarded moves; keep-out boxes

Analysis of recordings
- `faults`: every fault of the flight software as a function of the parameters
- `science`, `consistency`: SciHi and SciLo rows; their derived columns, recomputed and compared; deployment
  phases
- `soil`: indentations
"""
