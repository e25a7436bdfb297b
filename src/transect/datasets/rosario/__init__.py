"""The Rosario agricultural data set: a weeding robot between rows of soybeans.

- `bags`, `tracks`: the formats of its recordings and of its published odometry and RTK tracks
- `weeder.yaml`, `robot/`: the robot, its antenna and IMU, its calibration, odometry compared with RTK
- `world/`: a simulated field
- `catalogue`: the six sequences
- `odometry_table`: `transect table odometry`
"""
