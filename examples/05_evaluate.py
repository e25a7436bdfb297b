"""Judge wheel odometry by the truth: ``python 05_evaluate.py [SECONDS]``.

A drive on Mount Etna is simulated; its wheels are integrated by a node, and the result is held against what
was true. The metrics can also run inside the flow, as nodes.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import transect
from transect.engine import compound
from transect.evaluation import (
    absolute_error,
    associate,
    drift_curve,
    load_trajectory,
    relative_error,
    segment_errors,
)
from transect.evaluation.nodes.trajectories import DriftPercent
from transect.nodes.state.wheel_odometry import FourWheelSteer
from transect.simulation.day import WorldOptions, simulate, write_day
from transect.types import Pose, Trajectory

STREAMS = ("Platform/MotorEncoders", "Gnss/Pose")


def made_up_day(folder: Path, seconds: float) -> Path:
    write_day(simulate("etna", WorldOptions(seconds=seconds, seed=1, streams=STREAMS)), folder / "etna")
    return folder / "etna"


def trajectory_of(t_ns: np.ndarray, poses: list[Pose]) -> Trajectory:
    positions = np.array([pose.position for pose in poses])
    return Trajectory(t_ns, positions, np.array([pose.orientation for pose in poses]), child="Platform")


def main(path: Path) -> None:
    rec = transect.open(path)
    truth = load_trajectory(rec, truth=True)
    print(f"truth: {len(truth)} poses of {truth.child} in {truth.frame}, {truth.length:.1f} m")

    # The wheels, and how far they have drifted at every moment: two nodes in one flow.
    judged = compound(
        "Judged",
        {"odometry": FourWheelSteer(), "drift": DriftPercent(least=2.0)},
        [
            "wheels -> odometry.wheels",
            "odometry.pose -> drift.pose",
            "truth -> drift.truth",
            "odometry.pose -> pose",
            "drift.out -> percent",
        ],
    )
    run = transect.run(judged, rec, wire={"truth": rec.truth.name})
    print(f"drift at the end: {run['percent'].values[-1]:.2f} % of the way, by the node")

    # The same by the library: pairs first, then every metric on the same pairs.
    estimate = trajectory_of(run["pose"].t_ns, run["pose"].values)
    pairs = associate(truth, estimate, by="interpolate", max_diff=0.1)
    print(f"{len(pairs)} of {pairs.candidates} poses are associated")
    # Each alignment hides more than the one before: se3 tilts the plane of the wheels onto the slope.
    for align in ("origin", "yaw", "se3"):
        error = absolute_error(pairs, align)
        print(f"ATE, {align:6} taken out: {error.statistics.rmse:.3f} m, {error.percent:.2f} % of the path")
    step = relative_error(pairs, 1.0, "metres")
    print(f"RPE over 1 m: {step.statistics.rmse:.4f} m")
    for length, (percent, turned, count) in segment_errors(pairs, lengths=(2.0, 5.0)).by_length().items():
        print(f"segments of {length:g} m: {percent:.2f} %, {turned:.3f} deg/m ({count} of them)")
    print(f"the drift curve settles at {drift_curve(pairs).settled:.2f} %")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(made_up_day(Path(temporary), float(sys.argv[1]) if len(sys.argv) > 1 else 20.0))
