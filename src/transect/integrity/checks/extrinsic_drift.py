"""X04: is a sensor still mounted where it was at first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from transect.base.arrays import Floats
from transect.integrity.lasers.mount_shift import Shift, Wheels, forget, shift_of
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import Moving, is_moving
from transect.integrity.windows import Window
from transect.types import Imu, LaserScan, PointCloud

FORCES = ("acc_x", "acc_y", "acc_z")
GRAVITY = (3.0, 30.0)
"""m/s2: accelerations whose mean shows where up is."""
SLOW = 0.5
"""Part of the speed that is motion elsewhere, from which on a robot does not stand for this check."""
FIRST = 3
"""Windows that tell where up was at first."""
ALONE = 0.2
"""Smallest score where no range sensor shows that the robot itself was not pushed or tilted."""
WHY = {
    "OBSCURED": "dust, smoke or leaves in the wind hide the surfaces that would show it",
    "CHANGED": "it sees other surroundings than at first",
    "TOO_FEW": "it sees too little",
    "NO_GRAVITY": "gravity was taken out of the accelerations",
}


class ExtrinsicDrift(Check, id="X04", group="cross"):
    """By how many degrees and metres a sensor has turned and moved on a robot that stands.

    What lasers and lidars see is laid on what they saw at first, by point-to-plane ICP; of an inertial sensor
    it is the angle between gravity then and now. The robot stands if its odometry, navigation or fixes say
    so, or if another range sensor sees no change. Where that one sees a change too, the robot has moved, and
    all is learned anew. Without another range sensor the robot may have been pushed: then the check is
    SUSPECT at most. A turn about gravity is not felt by an inertial sensor, nor one about the axis of a round
    room seen by a laser. Nothing can be told in motion.

    Motive: Document 000: mounts known to "5 mm ... 2 deg", and vibrations of the mast.
    """

    turned = Limit(0.5, 2.0, "EXTRINSIC", "deg", "turn of the sensor since it was first seen")
    moved = Limit(0.02, 0.1, "EXTRINSIC", "m", "way of the sensor since it was first seen")

    def reset(self) -> None:
        """Nothing was seen or felt yet."""
        self._forces: list[Floats] = []
        self._wheels = Wheels()

    def look(
        self,
        sensor: Window[LaserScan | PointCloud | Imu],
        peers: Sequence[Window[LaserScan | PointCloud]] = (),
        moving: Sequence[Window[Moving]] = (),
    ) -> Finding | Unknown:
        """Compare with what was seen or felt at first, since the robot stands."""
        moves = is_moving(moving, SLOW)
        feels = issubclass(sensor.stream.type, Imu)
        if moves or self._wheels.have_turned(moving):
            self._forget([*peers] if feels else [sensor, *peers])
            return Unknown("MOVING", n=len(sensor))
        shift = self._feel(sensor) if feels else shift_of(sensor, self.about)
        seen = [
            found for each in peers if (found := shift_of(each, self.about)) is not None and not found.why
        ]
        if shift is None:
            return Unknown("LEARNING", n=len(sensor))
        if shift.why:
            return Unknown(shift.why, WHY.get(shift.why, ""), len(sensor))
        if moves is None and not seen:
            return Unknown("NO_PEER", "nothing tells whether the robot stands", len(sensor))
        if self._has_moved(shift) and any(self._has_moved(each) for each in seen):
            self._forget([*peers] if feels else [sensor, *peers])
            return Unknown("MOVING", "others see that the robot moved", len(sensor))
        statistics = {"turned": float(np.degrees(shift.angle)), "moved": shift.metres}
        names = tuple(each.stream.name for each in peers if len(each))
        return Finding(statistics, len(sensor), peers=names, floor=0.0 if seen else ALONE)

    def _has_moved(self, shift: Shift) -> bool:
        return bool(np.degrees(shift.angle) > self.turned.warn or shift.metres > self.moved.warn)

    def _forget(self, windows: Sequence[Window[Any]]) -> None:
        """Learn anew from the next window on."""
        self._forces = []
        self._wheels.forget()
        for each in windows:
            forget(each, self.about)

    def _feel(self, imu: Window[Any]) -> Shift | None:
        """Return by which angle gravity has turned since the first windows; None while these are learned."""
        if not imu.has(*FORCES):
            return Shift(why="NO_GRAVITY")
        force = imu.array(*FORCES)
        force = force[np.isfinite(force).all(axis=1)]
        mean = force.mean(axis=0) if len(force) else np.zeros(3)
        if not GRAVITY[0] < float(np.linalg.norm(mean)) < GRAVITY[1]:
            return Shift(why="NO_GRAVITY")
        if len(self._forces) < FIRST:
            self._forces.append(mean)
            return None
        first = np.median(self._forces, axis=0)
        cosine = float(first @ mean) / float(np.linalg.norm(first) * np.linalg.norm(mean))
        return Shift(float(np.arccos(np.clip(cosine, -1.0, 1.0))), 0.0)
