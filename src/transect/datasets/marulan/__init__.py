"""ACFR Sensor Data Integrity, recorded at Marulan: lasers, radar and cameras in dust, smoke and rain.

- `logs`: the format of its data sets (`sdi`)
- `argo.yaml`, `robot/`, `limits.yaml`: the Argo, its calibration and odometry, and limits of its checks
- `world/`: simulated sites with the Argo's sensors, and the weather
- `catalogue`: the 42 data sets of the report, and errors in the times that it prints
- `excerpts`, `figures`, `statements`, `sdi_drawing`: Figures 24 to 38 redrawn, and their findings measured
"""
