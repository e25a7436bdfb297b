"""Nodes for moving lasers: deskewing, odometry, placement of scans, calibration of channels."""
