"""The Instrument Deployment Arm of InSight: what the archive SIS says of the machine, as functions.

What is known
- `parameters`: all 32 sets; the numbers of a parameter file over those that the SIS prints
- `arm`, `links`: joints and tools; masses and compliances

What follows from it
- `conversions`: raw counts to angles, currents, temperatures and volts, and back
- `kinematics`, `frames`: tool poses, their inverse and Jacobian; the frames of Table 7
- `deflection`, `thermal`, `motor`, `forces`: sag, heat, torque, end-effector force
- `trajectory`, `collision`: via points, profiles, guarded moves; keep-out boxes
- `faults`: every fault of the flight software as a function of the parameters

What it says of a recording
- `science`, `consistency`: the derived columns of SciHi tables, recomputed and compared
- `phases`, `soil`: deployment phases and indentations
"""
