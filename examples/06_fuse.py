"""Wheels, IMU and GNSS of a weeding robot, fused: a filter, a smoother, and what each is worth.

The drive is simulated, so the truth is known. With your own it is ``transect.open(path)``; the command is
``transect run 'PoseFusion/*' PATH -o results``.
"""

from pathlib import Path

import numpy as np

import transect
from transect.evaluation import absolute_error, associate, load_trajectory
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.types import Trajectory

write_day(
    simulate("rosario", WorldOptions(11.0, seed=3, streams=("Odometry", "Imu", "Gps/*"))), Path("field")
)
rec = transect.open("field")
truth = load_trajectory(rec, truth=True)


def trajectory_of(run: transect.Run) -> Trajectory:
    poses = run["pose"].values
    turns = np.array([pose.orientation for pose in poses])
    return Trajectory(run["pose"].t_ns, np.array([pose.position for pose in poses]), turns, child="base_link")


def sigmas(run: transect.Run) -> np.ndarray:
    """What the fusion says of its positions: one sigma (m) of each pose."""
    return np.array([np.sqrt(np.trace(covariance[:3, :3])) for covariance in run["covariance"].values])


# The same inputs, found by their types; a smoother also knows what came later.
errors = {}
for way in ("ErrorStateFilter", "BatchSmoother"):
    run = transect.run(f"PoseFusion/{way}", rec)
    error = absolute_error(associate(truth, trajectory_of(run)), "yaw").statistics
    errors[way] = error.rmse
    print(f"{way:16}  {error.rmse:.3f} m off; by its own account {sigmas(run)[-1]:.3f} m at the end")
assert errors["BatchSmoother"] < errors["ErrorStateFilter"], "it knows more"

# Without satellites for four seconds: wheels and IMU carry on, and the covariance says what that costs.
fixes = rec["Gps/Fix"]
t0 = fixes.t_ns[0]
blind = fixes.take((fixes.t_ns < t0 + 6_000_000_000) | (fixes.t_ns > t0 + 10_000_000_000))
run = transect.run("PoseFusion", rec.replace(streams=tuple(blind if s is fixes else s for s in rec.streams)))
seconds = (run["covariance"].t_ns - t0) / 1e9
before, after = np.interp([5.9, 9.9], seconds, sigmas(run))
print(f"four seconds without fixes: sigma grows from {before:.3f} to {after:.3f} m")
assert after > before
