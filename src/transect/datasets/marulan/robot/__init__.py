"""The Argo of the ACFR (document 004): calibration, odometry, radar ranges, laser sweeps and clouds."""
