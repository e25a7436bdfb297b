"""Calibration: cameras, stereo pairs, lidar channels, and a planar laser beside a camera."""
