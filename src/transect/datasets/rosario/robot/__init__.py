"""The weed-removing robot of the Rosario dataset (document 001): imu, wheels, antenna, camera calibration."""
