"""What every SLAM shares: maps of places, loops in them, and where a robot is in a map that was kept.

- `recognition`: what a front end offers: places that look alike, and the verified motion between two
- `graph`: keyframes and edges, and the poses that fit them best (GTSAM)
- `consistency`: which verified loops are believed
- `mapper`: makes a map of a front end's places
- `localiser`: finds a robot in a map that was kept
- `session`: either of them, as a node runs it: ports, anchors, conclusions
- `merging`: two maps become one by places that both know
- `showing`: what a picture of a map shows
"""
