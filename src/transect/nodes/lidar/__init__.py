"""Nodes for scans of moving lasers: when each point was measured, where it belongs, how the sensor moved."""
