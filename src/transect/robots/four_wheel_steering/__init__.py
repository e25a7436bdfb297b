"""Four wheels that are driven and steered each by itself: encoder ticks to wheels, motion and slip.

- `geometry`: the numbers of the machine, from the constants of a robot
- `wheels`: ticks to angles to wheel poses, and back; wheel speeds from the platform's twist
- `odometry`: the platform's motion from its wheels
- `slip`: what its encoders say against how each wheel moves over the ground
- `recorded`: the same from recorded streams
"""
