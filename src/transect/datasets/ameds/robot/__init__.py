"""ESA's rover Interact (document 000, AMEDS): what its encoders, joints and cameras say, as functions.

Its wheels are those of `robots.four_wheel_steering`.

- `known`: the robot of a recording, and the lander at the origin of its world
- `manoeuvres`: straight, turn, crab turn, spot turn (Figure 7)
- `arms`: the two LWR IV+ and the cameras at their ends (Tables 2 and 3)
- `picking`: the phases of picking a rock (section 5.2)
- `moving`: the frames of Figure 4 over time
- `recomputed`, `driven`: the same for a recording, as streams; known things in the images (Figure 5)
"""
