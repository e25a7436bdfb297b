"""SLAM nodes for planar lasers, lidars and stereo pairs."""
