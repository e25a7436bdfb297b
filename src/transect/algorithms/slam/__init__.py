"""SLAM: place recognition for each kind of sensor, and the pose graph they share."""
