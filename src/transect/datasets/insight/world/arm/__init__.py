"""The simulated arm.

- `model`: elastic links, loads, contacts with soil and ground, and the equilibrium of the bent arm
- `motion`: joint angles over time, currents and temperatures of the motors
- `flight`: sensors, and the columns that the flight software derives from them
"""
