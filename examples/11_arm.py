"""Data of InSight's arm other than images: phases, soil, clearance, and the current without load.

The recording is simulated: 15 seconds of pressing a blade into the ground. With files of the archive it is
``recording = transect.open("A0087_0209_..._eu.csv")``, and the rest stays as it is.
"""

import numpy as np

from transect.datasets.insight.robot.arm import DeploymentArm
from transect.datasets.insight.robot.collision import Thickness, clearance, payload_boxes
from transect.datasets.insight.robot.motor import fit_no_load
from transect.datasets.insight.robot.parameters import Parameters
from transect.datasets.insight.robot.science import ScienceRows, phases_of
from transect.datasets.insight.robot.soil import indentations_of
from transect.simulation.day import WorldOptions, simulate

day = simulate("insight", WorldOptions(15.0, seed=1, streams=("Arm/*",), conditions={"story": "soil"}))
recording = day.recording
rows = ScienceRows.of(recording, "Arm/SciHi")
parameters = Parameters.of(recording)

# What the arm was doing (SIS 2.6.2.2): launch-locked, stowed, the four parts of a deployment, soil mechanics.
for phase in phases_of(recording):
    print(f"{phase.name} {phase.payload}: rows {phase.start} to {phase.stop}, since {phase.why}")

# How stiff the soil is: force against depth of each press, loading and unloading.
presses = [press for press in indentations_of(recording, contact_force=1.0) if press.depth > 0.005]
for press in presses:
    stiffness = press.loading.stiffness
    print(f"pressed {1000 * press.depth:.0f} mm deep with {press.force:.0f} N: {stiffness:.0f} N/m")
assert presses

# How near the links come to the payloads on the deck. The SIS does not give sizes: these are guesses.
sizes = {"seis": (0.4, 0.4, 0.35), "wts": (0.7, 0.7, 0.3), "hp3": (0.3, 0.2, 0.45)}
boxes = payload_boxes(parameters, sizes)
near = clearance(DeploymentArm.of(parameters), rows.enc, boxes, Thickness(links=(0.06, 0.05, 0.04, 0.04)))
for k, box in enumerate(boxes):
    print(f"{box.name}: {np.nanmin(near.distance[..., k]):.2f} m away at the nearest")

# The motor current without load, from the torques in the file (appendix D gives the formula, not its form).
fit = fit_no_load(rows.current, rows.torque, rows.rotor, rows.volt, parameters)
print("current without load is fitted to", ", ".join(map(str, fit.rows)), "rows of joints 1 to 4")
