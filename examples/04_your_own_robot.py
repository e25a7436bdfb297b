"""Files of a robot that nobody knows: described once, they are a recording like any other.

``python 04_your_own_robot.py [FOLDER]`` writes to FOLDER, by default `crate`. The robot drives a circle of
8 m. Its odometry is in millimetres and degrees, its clock counts milliseconds, its antenna sits to the left.
"""

import sys
from pathlib import Path

import numpy as np

import transect
from transect.evaluation import absolute_error, associate
from transect.formats.described.guess import guess
from transect.geometry import geodesy
from transect.recording import source_of
from transect.types import Trajectory

LANDER_POSITION = (0.6584, 0.2619, 2639.8)  # latitude and longitude in rad, height in m
RADIUS_M, SPEED_M_S, DURATION_S = 8.0, 0.9, 40
FIX_SIGMA_M = 0.1  # m, of each coordinate of a fix
ANTENNA_POSITION_M = (0.0, 0.4, 1.1)  # m in base: forward, left, up
ROBOT = """\
name: crate
frames:
  - {frame: base, child: antenna, xyz: [0.0, 0.4, 1.1]}
"""
DESCRIPTION = """\
name: crate
robot: crate.yaml
streams:
  - name: Odometry
    type: Odometry
    file: drive.csv
    time: {column: millis, unit: ms}
    columns: {vx: {source: speed, unit: mm/s}, wz: {source: turn, unit: deg/s}}
    child: base
  - name: Fix
    type: NavFix
    file: gps.csv
    time: {column: millis, unit: ms}
    columns: {lat: {source: lat, unit: deg}, lon: {source: lon, unit: deg}, alt: height}
    frame: antenna
"""


def positions(t: np.ndarray, arm: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> np.ndarray:
    """East, north, up (n, 3) in m of a point of the robot, which drives its circle from south to east."""
    turned = t * SPEED_M_S / RADIUS_M
    middle = RADIUS_M * np.column_stack([np.sin(turned), 1 - np.cos(turned), np.zeros_like(t)])
    forward = np.column_stack([np.cos(turned), np.sin(turned), np.zeros_like(t)])
    left = np.column_stack([-np.sin(turned), np.cos(turned), np.zeros_like(t)])
    return middle + arm[0] * forward + arm[1] * left + [0, 0, arm[2]]


def write_files(folder: Path) -> None:
    """What the robot writes: its wheels turn 4 % too far, its receiver is good to 10 cm."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(4)
    t = np.arange(0, DURATION_S, 0.05)
    drive = np.broadcast_arrays(1000 * t, 1040 * SPEED_M_S, np.degrees(SPEED_M_S / RADIUS_M))
    write_csv(folder / "drive.csv", "millis,speed,turn", np.column_stack(drive))
    t = np.arange(0, DURATION_S, 1.0)
    seen = positions(t, ANTENNA_POSITION_M) + rng.normal(0, FIX_SIGMA_M, (len(t), 3))
    places = geodesy.geodetic_from_local(seen, LANDER_POSITION, "ENU") * [180 / np.pi, 180 / np.pi, 1]
    write_csv(folder / "gps.csv", "millis,lat,lon,height", np.column_stack([1000 * t, places]))


def write_csv(path: Path, header: str, rows: np.ndarray) -> None:
    np.savetxt(path, rows, "%.9f", ",", header=header, comments="")


def main(folder: Path) -> None:
    write_files(folder)

    # `transect new recording FOLDER` guesses a first description, and says what it guessed.
    _, guessed = guess(source_of(folder))
    print(*guessed, sep="\n")

    # A person knows better: units, and where the antenna is.
    (folder / "crate.yaml").write_text(ROBOT, "utf-8")
    (folder / "recording.yaml").write_text(DESCRIPTION, "utf-8")
    rec = transect.open(folder)
    print(rec)
    assert np.allclose(rec["Odometry"]["vx"], 1.04 * SPEED_M_S), "mm/s became m/s"

    # What transect can do with any recording it can do with this one. The files say nothing of the receiver's
    # deviation, so 2.5 m would be assumed.
    run = transect.run("PoseFusion", rec, set={"fusion.fix_std": FIX_SIGMA_M})
    poses = run["pose"].values
    estimate = Trajectory(
        run["pose"].t_ns,
        np.array([pose.position for pose in poses]),
        np.array([pose.orientation for pose in poses]),
        child="base",
    )
    t_ns = rec["Odometry"].t_ns
    truth = Trajectory(t_ns, positions((t_ns - t_ns[0]) / 1e9), child="base")
    error = absolute_error(associate(truth, estimate), "yaw").statistics
    print(f"fused: {error.rmse:.2f} m off the circle, {error.max:.2f} m at the most")
    assert error.rmse < FIX_SIGMA_M * 3**0.5, "better than the fixes"


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "crate"))
