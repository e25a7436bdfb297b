"""Odometry by lidar, planar laser, stereo pair, one camera, or wheels."""
