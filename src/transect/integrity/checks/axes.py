"""X07: do the axes of an inertial sensor make a right-handed frame, and is up where its mount says."""

from __future__ import annotations

import numpy as np

from transect.base.arrays import Floats
from transect.integrity.model import Check, Finding, Limit, Unknown
from transect.integrity.motion import body_of
from transect.integrity.windows import Window
from transect.types import Imu

SPAN_S = 30.0
"""Over which tilting is looked at."""
STEPS_S = (0.5, 2.0)
"""Over which accelerations are averaged, for vibration and jolts not to count: quick tilting, then slow."""
LEAST_TILT = 0.05
"""rad: root mean square of the tilt from one average to the next, times the root of their number."""
STEADY = 0.15
"""Part of gravity by which the size of an average may differ: the robot does not accelerate much."""
LEAST_CORRELATION = 0.5
"""Without its sign, for the two to show the same tilting."""
UP = "an axis is flipped, or the mount is described upside down; turn the axis or the mount"
HAND = "one axis is flipped, so that the frame is left-handed; change the sign of that axis"


class Axes(Check, id="X07", group="cross", least=20, version=2):
    """Gravity that turns the wrong way: ``-corr(da, -(w x a) dt)`` over averages of half a second or two.

    In a frame that turns with w, gravity turns by ``-w x a``. If one axis of accelerometers and gyroscopes
    points the other way, the frame is left-handed and gravity turns by ``+w x a``. It needs tilting, and is
    UNKNOWN without. Where the description has the sensor on a body with z up, the mean acceleration must not
    point down: `down` is minus the cosine between it and z.

    Motive: Mistakes of descriptions: an axis that is flipped, a sensor that is mounted upside down.
    """

    mirrored = Limit(0.5, 0.7, "EXTRINSIC", "", "correlation of the tilting with the mirrored one")
    down = Limit(0.5, 0.7, "EXTRINSIC", "", "minus the cosine between the acceleration and up")

    def look(self, imu: Window[Imu]) -> Finding | Unknown:
        """Hold the tilting of accelerometers against that of gyroscopes, and up against the mount."""
        names = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
        if not imu.has(*names):
            return Unknown("NO_NUMBERS", n=len(imu))
        past = imu.history(SPAN_S)
        values, t = past.array(*names), (past.t_ns - past.t0_ns) / 1e9
        known = np.isfinite(values).all(axis=1)
        values, t = values[known], t[known]
        if len(values) < 40:
            return Unknown("TOO_FEW", n=len(imu))
        size = float(np.median(np.linalg.norm(values[:, :3], axis=1)))
        if size < 1.0:
            return Unknown("NO_GRAVITY", "gravity was taken out of the accelerations", len(imu))
        statistics, evidence = dict[str, float](), {"gravity": size}
        down = self._point_down(imu, values[:, :3].mean(axis=0))
        if down is not None:
            statistics["down"] = down
        for step_s in STEPS_S:
            found = _tilting(t, values, step_s)
            if found is not None and "mirrored" not in statistics:
                evidence["correlation"], evidence["tilt"] = found
                if abs(found[0]) >= LEAST_CORRELATION:
                    statistics["mirrored"] = -found[0]
        if statistics.get("down", 0.0) <= self.down.warn and "mirrored" not in statistics:
            return Unknown("NO_MOTION", "no tilting that shows the hand of its axes", len(imu), evidence)
        note = HAND if statistics.get("mirrored", 0) > 0.5 else UP if statistics.get("down", 0) > 0.5 else ""
        return Finding(statistics, len(imu), evidence, note=note)

    def _point_down(self, imu: Window[Imu], mean: Floats) -> float | None:
        """Return minus the cosine between the mean acceleration and z of the body; None without a mount."""
        frames, own = self.about.frames, imu.stream.frame
        body = body_of(frames, own)
        if body is None:
            return None
        up = frames.lookup(body, own, imu.t1_ns)[2, :3]
        return -float(up @ mean) / max(float(np.linalg.norm(mean)), 1e-9)


def _tilting(t: Floats, values: Floats, step_s: float) -> tuple[float, float] | None:
    """Return how the change of gravity correlates with what gyroscopes foretell, and how large that is."""
    place = np.floor(t / step_s).astype(np.int64)
    cells, place = np.unique(place, return_inverse=True)
    count = np.bincount(place).astype(np.float64)
    means = np.stack([np.bincount(place, values[:, k]) / count for k in range(6)], axis=1)
    force, rate = means[:, :3], means[:, 3:]
    size = float(np.median(np.linalg.norm(force, axis=1)))
    steady = np.abs(np.linalg.norm(force, axis=1) / size - 1) < STEADY
    good = (np.diff(cells) == 1) & steady[1:] & steady[:-1]
    if good.sum() < 8:
        return None
    change = np.diff(force, axis=0)[good] / size
    turn = ((rate[1:] + rate[:-1]) / 2)[good] * step_s
    foretold = -np.cross(turn, ((force[1:] + force[:-1]) / 2)[good] / size)
    tilt = float(np.sqrt(np.sum(foretold**2)))
    if tilt < LEAST_TILT * np.sqrt(len(turn)) / 2:
        return None
    return float(np.sum(change * foretold) / (np.linalg.norm(change) * tilt + 1e-12)), tilt
