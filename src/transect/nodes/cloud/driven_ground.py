"""The ground under the wheels of a robot, from its poses."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from transect import robots
from transect.base.arrays import Floats
from transect.engine import Latest, Node, param
from transect.engine.ports import Shape
from transect.geometry import rotations
from transect.recording import Robot
from transect.robots.four_wheel_steering import (
    WHEEL_COUNT,
    FourWheelGeometry,
    positions,
    steer_angles,
    tick_length,
)
from transect.types import PointCloud, Pose, WheelState

VERTICAL = [2, 3, 4]
"""Indices of the pose errors that change the height of wheels: z, and the rotations about x and y."""


class DrivenGround(Node):
    """Contact points of the wheels with the ground, from poses: a cloud in their frame, emitted at the end.

    There is one point per wheel and `spacing` metres of its path, with the field `wheel` (from 0) and, if the
    poses have covariances, `sigma`: the standard deviation of its height, m. Supported are the wheels of

    - interact: four, positioned by their steering angles if `wheels` are given; in the order of its document,
    - weeder: its document does not specify the track. Without `track` there is one point at the centre of
      each
      axle: first rear, then front.

    Inputs
    ------
    pose
        Pose of the body.
    covariance
        Covariance (6, 6) of the pose: translation (m), then rotation vector (rad), both in the pose's frame.
    wheels
        Encoder measurements.
    """

    out_name = "ground"
    robot: str = param(
        "", doc="name of the robot whose wheels are used; empty: the robot whose frames are in the recording"
    )
    spacing: float = param(
        0.05, gt=0, unit="m", doc="distance between ground points along the path of a wheel"
    )
    radius: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="wheel radius of the interact rover; 0: computed from encoder ticks and speeds",
    )
    track: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="distance between left and right wheels of the weeder; 0: ground at the centres of the axles",
    )
    max_gap: float = param(
        0.5,
        gt=0,
        unit="m",
        doc="largest distance between two poses with ground in between; more is a gap or a correction",
    )

    def reset(self) -> None:
        self.poses: list[Pose] = []
        self.covariances: list[Floats] = []
        self.wheels: list[WheelState] = []

    def process(
        self,
        pose: Pose,
        covariance: Annotated[Latest[np.ndarray], Shape(6, 6)] | None = None,
        wheels: Latest[WheelState] | None = None,
    ) -> PointCloud | None:
        if self.poses and _wheel_motion(self.poses[-1], pose) < self.spacing / 2:
            return
        self.poses.append(pose)
        self.covariances.append(np.full((6, 6), np.nan) if covariance is None else covariance)
        self.wheels += [] if wheels is None else [wheels]

    def finish(self) -> PointCloud | None:
        """Return the ground."""
        if not self.poses:
            return None
        contacts = self._contacts(self.poses[0].child)
        if contacts is None:
            return None
        levers = rotations.rotate(np.array([each.orientation for each in self.poses])[:, None], contacts)
        points = np.array([each.position for each in self.poses])[:, None] + levers
        sigmas = _height_sigmas(np.array(self.covariances), levers)
        rows = [
            _resample(np.column_stack([points[:, i], sigmas[:, i]]), self.spacing, self.max_gap)
            for i in range(points.shape[1])
        ]
        ground = np.concatenate(rows)
        wheel = np.repeat(np.arange(len(rows), dtype=np.uint8), [len(each) for each in rows])
        fields = {"wheel": wheel, "sigma": ground[:, 3].astype(np.float32)}
        return PointCloud(ground[:, :3].astype(np.float32), fields, self.poses[-1].t_ns, self.poses[-1].frame)

    def _contacts(self, body: str) -> Floats | None:
        """Return the contact points (n or 1, k, 3) of the wheels in the body; None if they are not known."""
        robot = robots.load(self.robot) if self.robot else _robot_with(frozenset(self.ctx.frames.frames))
        if robot is not None and body == "Platform" and "platform" in robot.constants:
            return self._steered_wheel_contacts(FourWheelGeometry.of(robot))
        if robot is not None and body == "base_link" and "wheelbase" in robot.constants:
            return self._axle_contacts(float(robot.constants["wheelbase"]))
        return self.ctx.skip("the wheels of this robot are not known")

    def _steered_wheel_contacts(self, geometry: FourWheelGeometry) -> Floats | None:
        steered = len(self.wheels) == len(self.poses) and all(w.steer_ticks is not None for w in self.wheels)
        ticks = np.array([w.steer_ticks for w in self.wheels]) if steered else None
        steering = np.zeros((1, WHEEL_COUNT)) if ticks is None else steer_angles(ticks, geometry)
        radius = self.radius or _rolling_radius(self.wheels, geometry)
        if not radius > 0:
            return self.ctx.skip(
                f"the radius of the wheels is not known: --set {self.ctx.node}.radius=METRES"
            )
        return positions(steering, geometry) - (0.0, 0.0, radius)

    def _axle_contacts(self, wheelbase: float) -> Floats:
        """Return the contact points, assuming that base_link is on the ground below the rear axle.

        Table 1 of the document does not state this, but its camera height of 0.98 m agrees with the images,
        where the camera is about a metre above the rows.
        """
        if not self.track:
            self.ctx.log(
                "the track of the wheels is not known, so the ground is that at the centres of the axles; "
                f"--set {self.ctx.node}.track=METRES"
            )
        sides = (self.track / 2, -self.track / 2) if self.track else (0.0,)
        return np.array([[(x, y, 0.0) for x in (0.0, wheelbase) for y in sides]])


def _robot_with(frames: frozenset[str]) -> Robot | None:
    """Return the built-in robot all of whose frames are among `frames`."""
    known = (robots.load(name) for name in robots.names())
    return next((robot for robot in known if frames.issuperset(robot.frames.frames)), None)


def _wheel_motion(a: Pose, b: Pose, lever_m: float = 1.0) -> float:
    """Return the approximate motion (m) of wheels at a lever arm from the body's origin."""
    angle = 2 * np.arccos(min(1.0, abs(float(a.orientation @ b.orientation))))
    return float(np.linalg.norm(b.position - a.position) + lever_m * angle)


def _rolling_radius(wheels: list[WheelState], geometry: FourWheelGeometry) -> float:
    """Return the wheel radius (m) that relates encoder ticks and speeds; NaN if it is not determined."""
    complete = [each for each in wheels if each.drive_ticks is not None and each.velocity is not None]
    if len(complete) < 2:
        return np.nan
    ticks, speeds = np.array([w.drive_ticks for w in complete]), np.array([w.velocity for w in complete])
    return tick_length([w.t_ns for w in complete], ticks, speeds).wheel_radius(geometry)


def _height_sigmas(covariances: Floats, levers: Floats) -> Floats:
    """Return the sigmas (n, k) of heights at lever arms (n, k, 3) in the axes of covariances (n, 6, 6)."""
    jacobian = np.stack([np.ones(levers.shape[:2]), levers[..., 1], -levers[..., 0]], axis=-1)
    block = covariances[:, VERTICAL][:, :, VERTICAL]
    return np.sqrt(np.einsum("nki,nij,nkj->nk", jacobian, block, jacobian))


def _resample(rows: Floats, spacing: float, max_gap: float) -> Floats:
    """Resample rows (n, 4), x, y, z first, at equal distances along their path; gaps are not interpolated."""
    rows = rows[np.isfinite(rows[:, :3]).all(axis=1)]
    steps = np.linalg.norm(np.diff(rows[:, :3], axis=0), axis=1)
    length = np.concatenate([[0.0], np.cumsum(np.where(steps > max_gap, 0.0, steps))])
    at = np.arange(0.0, length[-1] + spacing / 2, spacing) if len(rows) else np.zeros(0)
    return np.column_stack([np.interp(at, length, column) for column in rows.T])
