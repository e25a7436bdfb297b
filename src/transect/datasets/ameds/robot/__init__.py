"""ESA's rover Interact (AMEDS): models of its arms and wheels, applied to recordings.

The wheel model is `robots.four_wheel_steering`.

- `arms`: the two LWR IV+ arms and their cameras (Tables 2 and 3), the phases of a rock picking (section 5.2),
  and the moving frames of Figure 4
- `derived_poses`: camera poses by joint angles, and the phases of a recorded rock picking
- `locomotion`: wheel odometry, wheel slip, and the manoeuvres of Figure 7
"""
