"""Pose fusion of a real car by the IMU of a telephone and a u-blox receiver, no frame told (comma2k19)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from transect import run
from transect.geometry import geodesy, rotations
from transect.recording import Recording, Stream, arrow
from transect.types import Imu, NavFix

DURATION_S = 25.0


def test_a_car_is_followed_by_an_imu_and_a_receiver(real_data: Path):
    folder = real_data / "comma2k19_ex1"
    log = {
        name: [np.load(folder / "processed_log" / name / part) for part in ("t", "value")]
        for name in ("IMU/accelerometer", "IMU/gyro", "GNSS/live_gnss_ublox")
    }
    (t, acc), (t_gyro, gyro), (t_fix, fix) = log.values()
    assert (t == t_gyro).all()
    first, started, fixed = t[0], t < t[0] + DURATION_S, t_fix < t[0] + DURATION_S
    names = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
    imu = dict(zip(names, np.column_stack([acc, gyro])[started].T, strict=True))
    lat, lon, alt = np.radians(fix[:, 0]), np.radians(fix[:, 1]), fix[:, 4]
    places = {"lat": lat[fixed], "lon": lon[fixed], "alt": alt[fixed]}
    done = run(
        "PoseFusion/ErrorStateFilter",
        Recording(
            "car",
            (
                Stream("imu", Imu, arrow.table(_ns(t[started] - first), imu, units=Imu.units())),
                Stream("fix", NavFix, arrow.table(_ns(t_fix[fixed] - first), places, units=NavFix.units())),
            ),
        ),
    )
    (found,) = done["trajectory"].values
    true_t, ecef, velocity = (
        np.load(folder / "global_pose" / f"frame_{name}") for name in ("times", "positions", "velocities")
    )
    origin = np.array([lat[0], lon[0], alt[0]])
    path = geodesy.local_from_ecef(ecef, origin)
    going = geodesy.local_from_ecef(ecef + velocity, origin) - path
    at = found.t_ns * 1e-9 + first
    off = [np.interp(at, true_t, path[:, i]) - found.positions[:, i] for i in range(2)]
    assert np.hypot(*off).max() < 3.0  # the receiver is off by 1.4 m all the time
    x, y = rotations.matrix_from_quaternion(found.orientations)[:, :2, 0].T
    course = np.arctan2(*(np.interp(at, true_t, going[:, i]) for i in (1, 0)))
    heading = np.abs(np.angle(np.exp(1j * (np.arctan2(y, x) - course))))
    assert (heading < 3 * np.sqrt(found.covariances[:, 5, 5])).all()
    assert not any(each.bad for each in done.conclusions)


def _ns(seconds: np.ndarray) -> np.ndarray:
    return (seconds * 1e9).round().astype(np.int64)
