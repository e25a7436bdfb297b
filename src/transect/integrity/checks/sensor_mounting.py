"""Checks of the mount of a sensor: motion on the robot, and axes (X04, X07)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.integrity.lasers.mount_shift import DeadReckoningRest, MountShift, find_mount_shift, forget
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import GRAVITY_RANGE_M_S2, Moving, body_of, is_moving
from transect.integrity.windows import Window
from transect.types import Imu, LaserScan, PointCloud

ACC_COLUMNS = ("acc_x", "acc_y", "acc_z")
UNKNOWN_NOTES = {
    "OBSCURED": "dust, smoke or leaves in the wind hide the surfaces that would show a motion",
    "CHANGED": "it sees another scene than at first",
    "TOO_FEW": "it sees too few surfaces",
    "NO_GRAVITY": "gravity was subtracted from the accelerations",
}


@dataclass(frozen=True)
class ExtrinsicDriftSettings:
    """Numbers of the test for rest and of the baseline."""

    rest_speed_ratio: float = 0.5  # Ratio of the usual speed threshold below which the robot stands.
    gravity_windows: int = 3  # Windows that determine the initial direction of gravity.
    # Minimum score if no range sensor shows that the robot itself was not pushed or tilted.
    single_sensor_score: float = 0.2


class ExtrinsicDrift(Check, id="X04", group="cross"):
    """Rotation and translation of a sensor on a standing robot since it was first seen.

    Scans and clouds are registered to the first ones by point-to-plane ICP; for an inertial sensor it is
    the angle between gravity now and at first. The robot stands if its odometry, navigation or fixes show
    it, or if another range sensor sees no change. If that one sees a change, too, the robot has moved,
    and the baselines are reset. Without another range sensor the robot may have been pushed: the check is
    then SUSPECT at most. An inertial sensor does not measure a rotation about gravity, nor a laser one
    about the axis of a round room. In motion the check is UNKNOWN.

    Motive: AMEDS: mounts known to "5 mm ... 2 deg", and vibrations of the mast.
    """

    settings = ExtrinsicDriftSettings()

    turned = Limit(0.5, 2.0, "EXTRINSIC", "deg", "rotation of the sensor on the robot")
    moved = Limit(0.02, 0.1, "EXTRINSIC", "m", "translation of the sensor on the robot")

    def reset(self) -> None:
        """Start without baselines."""
        self._forces: list[Floats] = []
        self._rest = DeadReckoningRest()

    def evaluate(
        self,
        sensor: Window[LaserScan | PointCloud | Imu],
        peers: Sequence[Window[LaserScan | PointCloud]] = (),
        moving: Sequence[Window[Moving]] = (),
    ) -> Finding | Unknown:
        """Compare with the first windows since the robot stands."""
        is_robot_moving = is_moving(moving, self.settings.rest_speed_ratio)
        is_imu = issubclass(sensor.stream.type, Imu)
        if is_robot_moving or self._rest.has_moved(moving):
            self._forget([*peers] if is_imu else [sensor, *peers])
            return Unknown("MOVING", n=len(sensor))
        shift = self._compare_gravity(sensor) if is_imu else find_mount_shift(sensor, self.context)
        peer_shifts = [
            found
            for each in peers
            if (found := find_mount_shift(each, self.context)) is not None and not found.reason
        ]
        if shift is None:
            return Unknown("LEARNING", n=len(sensor))
        if shift.reason:
            return Unknown(shift.reason, UNKNOWN_NOTES.get(shift.reason, ""), len(sensor))
        if is_robot_moving is None and not peer_shifts:
            return Unknown("NO_PEER", "no stream shows whether the robot stands", len(sensor))
        if self._has_moved(shift) and any(self._has_moved(each) for each in peer_shifts):
            self._forget([*peers] if is_imu else [sensor, *peers])
            return Unknown("MOVING", "other sensors show that the robot moved", len(sensor))
        statistics = {"turned": float(np.degrees(shift.angle)), "moved": shift.metres}
        names = tuple(each.stream.name for each in peers if len(each))
        return Finding(
            statistics,
            len(sensor),
            peers=names,
            min_score=0.0 if peer_shifts else self.settings.single_sensor_score,
        )

    def _has_moved(self, shift: MountShift) -> bool:
        return bool(np.degrees(shift.angle) > self.turned.warn or shift.metres > self.moved.warn)

    def _forget(self, windows: Sequence[Window[Any]]) -> None:
        """Restart the baselines from the next window on."""
        self._forces = []
        self._rest.forget()
        for each in windows:
            forget(each, self.context)

    def _compare_gravity(self, imu: Window[Any]) -> MountShift | None:
        """Return the angle of gravity against the first windows; None while learning."""
        if not imu.has(*ACC_COLUMNS):
            return MountShift(reason="NO_GRAVITY")
        force = imu.array(*ACC_COLUMNS)
        force = force[np.isfinite(force).all(axis=1)]
        mean = force.mean(axis=0) if len(force) else np.zeros(3)
        if not GRAVITY_RANGE_M_S2[0] < float(np.linalg.norm(mean)) < GRAVITY_RANGE_M_S2[1]:
            return MountShift(reason="NO_GRAVITY")
        if len(self._forces) < self.settings.gravity_windows:
            self._forces.append(mean)
            return None
        first = np.median(self._forces, axis=0)
        cosine = float(first @ mean) / float(np.linalg.norm(first) * np.linalg.norm(mean))
        return MountShift(float(np.arccos(np.clip(cosine, -1.0, 1.0))), 0.0)


UPSIDE_DOWN = "an axis is flipped, or the mount is described upside down; turn the axis or the mount"
LEFT_HANDED = "one axis is flipped, so that the frame is left-handed; change the sign of that axis"


@dataclass(frozen=True)
class AxesSettings:
    """Numbers of the comparison of tilting by accelerometers and by gyroscopes."""

    span_s: float = 30.0  # Past that is judged.
    # Accelerations are averaged over these times, against vibration: fast tilting, then slow.
    averaging_s: tuple[float, ...] = (0.5, 2.0)
    min_tilt_rad: float = 0.05  # RMS tilt from one average to the next, times the root of their number.
    # Deviation of an average's norm, as a ratio of gravity: the robot does not accelerate.
    max_gravity_deviation: float = 0.15
    min_correlation: float = 0.5  # Absolute correlation of the same tilting.


class Axes(Check, id="X07", group="cross", min_samples=20, version=2):
    """Gravity that rotates the wrong way: ``-corr(da, -(w x a) dt)`` over averages of 0.5 or 2 s.

    In a frame that rotates with w, gravity rotates by ``-w x a``. If one axis of accelerometers and
    gyroscopes is flipped, the frame is left-handed and gravity rotates by ``+w x a``. The check needs
    tilting, and is UNKNOWN without. If the description mounts the sensor on a body with z up, the mean
    acceleration must not point down: `down` is minus the cosine between it and z.

    Motive: Mistakes of descriptions: an axis that is flipped, a sensor that is mounted upside down.
    """

    settings = AxesSettings()

    mirrored = Limit(0.5, 0.7, "EXTRINSIC", "", "correlation with the tilting of a left-handed frame")
    down = Limit(0.5, 0.7, "EXTRINSIC", "", "cosine between the mean acceleration and down")

    def evaluate(self, imu: Window[Imu]) -> Finding | Unknown:
        """Compare the tilting of accelerometers and gyroscopes, and up with the mount."""
        names = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
        if not imu.has(*names):
            return Unknown("NO_NUMBERS", n=len(imu))
        past = imu.history(self.settings.span_s)
        values, t = past.array(*names), (past.t_ns - past.t0_ns) / 1e9
        known = np.isfinite(values).all(axis=1)
        values, t = values[known], t[known]
        if len(values) < 40:
            return Unknown("TOO_FEW", n=len(imu))
        size = float(np.median(np.linalg.norm(values[:, :3], axis=1)))
        if size < 1.0:
            return Unknown("NO_GRAVITY", "gravity was subtracted from the accelerations", len(imu))
        statistics, evidence = dict[str, float](), {"gravity": size}
        down = self._point_down(imu, values[:, :3].mean(axis=0))
        if down is not None:
            statistics["down"] = down
        for step_s in self.settings.averaging_s:
            found = _tilting(t, values, step_s, self.settings)
            if found is not None and "mirrored" not in statistics:
                evidence["correlation"], evidence["tilt"] = found
                if abs(found[0]) >= self.settings.min_correlation:
                    statistics["mirrored"] = -found[0]
        if statistics.get("down", 0.0) <= self.down.warn and "mirrored" not in statistics:
            return Unknown("NO_MOTION", "it did not tilt enough to test its axes", len(imu), evidence)
        note = (
            LEFT_HANDED
            if statistics.get("mirrored", 0) > 0.5
            else UPSIDE_DOWN
            if statistics.get("down", 0) > 0.5
            else ""
        )
        return Finding(statistics, len(imu), evidence, note=note)

    def _point_down(self, imu: Window[Imu], mean: Floats) -> float | None:
        """Return minus the cosine between the mean acceleration and z of the body; None without mount."""
        frames, own = self.context.frames, imu.stream.frame
        body = body_of(frames, own)
        if body is None:
            return None
        up = frames.lookup(body, own, imu.t1_ns)[2, :3]
        return -float(up @ mean) / max(float(np.linalg.norm(mean)), 1e-9)


def _tilting(t: Floats, values: Floats, step_s: float, settings: AxesSettings) -> tuple[float, float] | None:
    """Return the correlation of the change of gravity with that predicted by gyroscopes, and its size."""
    cell_of = np.floor(t / step_s).astype(np.int64)
    cells, cell_of = np.unique(cell_of, return_inverse=True)
    count = np.bincount(cell_of).astype(np.float64)
    means = np.stack([np.bincount(cell_of, values[:, k]) / count for k in range(6)], axis=1)
    force, rate = means[:, :3], means[:, 3:]
    size = float(np.median(np.linalg.norm(force, axis=1)))
    steady = np.abs(np.linalg.norm(force, axis=1) / size - 1) < settings.max_gravity_deviation
    good = (np.diff(cells) == 1) & steady[1:] & steady[:-1]
    if good.sum() < 8:
        return None
    change = np.diff(force, axis=0)[good] / size
    turn = ((rate[1:] + rate[:-1]) / 2)[good] * step_s
    predicted = -np.cross(turn, ((force[1:] + force[:-1]) / 2)[good] / size)
    tilt = float(np.sqrt(np.sum(predicted**2)))
    if tilt < settings.min_tilt_rad * np.sqrt(len(turn)) / 2:
        return None
    return float(np.sum(change * predicted) / (np.linalg.norm(change) * tilt + 1e-12)), tilt
