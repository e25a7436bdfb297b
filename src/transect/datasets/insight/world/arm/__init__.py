"""An arm like InSight's, forward: links under load, contacts, motors, moves, sensors and flight software.

- `model`: links, loads, and the shape in which they settle
- `contact`: soil and hard ground, and where a tool meets them
- `motors`: currents and heat of the drives
- `moves`: joint angles over time
- `sensors`: encoders, potentiometers and temperatures as raw numbers
- `flight`: what the flight software derives from them
"""
