"""What the models of the rovers make of recordings: poses from raw numbers, phases, drive, calibration.

The recordings are simulated. With real ones it is ``transect.open(path)``, and the rest stays as it is.
"""

import numpy as np

from transect import robots
from transect.datasets.ameds.robot import derived_poses, locomotion
from transect.datasets.marulan.robot import derived_streams as argo
from transect.datasets.rosario.robot.geometry import odometry_from_camera
from transect.geometry import rotations
from transect.robots.four_wheel_steering import FourWheelGeometry
from transect.simulation.day import WorldOptions, simulate

# Interact (AMEDS): camera poses from joint angles, and how the order of roll, pitch and yaw was meant.
STREAMS = ("*Arm/*", "*Cam/PoseEstimate", "Platform/*")
etna = simulate("etna", WorldOptions(4.0, seed=1, streams=STREAMS)).recording
again = derived_poses.attitude_orders(etna, "Main")
print(f"MainCam: recomputed poses are {1000 * again.position_m:.1f} mm off, angles in {again.order}")
for phase in derived_poses.picking_phases(etna):
    print(f"AuxArm: {phase.name} from sample {phase.first} to {phase.stop}")
for interval in locomotion.steered_manoeuvres(etna):
    print(f"steered: {interval.name} from sample {interval.first} to {interval.stop}")
radius = locomotion.tick_length(etna).wheel_radius(FourWheelGeometry.of(robots.load("interact")))
print(f"radius of its wheels, which the document lacks: {radius:.3f} m")

# The Argo (document 004): radius and track, which the report lacks, from wheels and localisation.
options = WorldOptions(40.0, seed=1, streams=("Nav", "Payload/*"), conditions={"scene": "open"})
fit = argo.fit_drive(simulate("marulan", options).recording)
print(f"Argo: wheels of {fit.drive.wheel_radius:.3f} m, {fit.drive.track_width:.2f} m apart as it skids")

# The weeding robot (Rosario, eq. 1): how a camera sits, from what it saw of a straight drive.
way = rotations.matrix_from_euler("x", [np.radians(10.0)]) @ [0.0, 0.0, 1.0]  # it looks 10 degrees down
R = odometry_from_camera(np.linspace(0.1, 8.0, 20)[:, None] * way)
below = np.degrees(np.arcsin(-R[2, 2]))
print(f"weeder: its camera looks {below:.1f} degrees down")
assert round(below, 6) == 10.0
