"""ESA's rover Interact (document 000, AMEDS): what its encoders, joints and cameras say, as functions.

- `geometry`: the numbers of the machine, from `interact.yaml` or a copy of it
- `wheels`: ticks to angles to wheel poses, and back (eqs. 4 and 5, Table 5); wheel speeds from the platform's
  twist (Kelly and Seegmiller); `slip`: what differs from them
- `odometry`: the platform's motion from its wheels
- `manoeuvres`: straight, turn, crab turn, spot turn (Figure 7)
- `arms`: the two LWR IV+ and the cameras at their ends (Tables 2 and 3)
- `picking`: the phases of picking a rock (section 5.2)
- `moving`: the frames of Figure 4 over time
- `recomputed`, `driven`: the same for a recording, as streams; known things in the images (Figure 5)
"""
