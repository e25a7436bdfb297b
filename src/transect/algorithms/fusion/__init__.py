"""Pose fusion: measurements, their noise, and the error-state Kalman filter."""
