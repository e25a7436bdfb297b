"""The weed-removing robot of the Rosario data set: IMU, wheels, antenna, camera calibration."""
