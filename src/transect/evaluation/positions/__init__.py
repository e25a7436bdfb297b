"""Which streams hold the position of a robot, its path, and several paths in one frame."""
