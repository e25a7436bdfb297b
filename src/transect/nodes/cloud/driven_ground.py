"""The ground that a robot drove on, by its own wheels."""

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
    WHEELS,
    FourWheelGeometry,
    positions,
    steer_angles,
    tick_length,
)
from transect.types import PointCloud, Pose, WheelState

JUMP = 0.5
"""m between two poses, over which the ground in between is not known: a gap, or a pose that was corrected."""
REACH = 1.0
"""m from a body's origin to its wheels, about: how far they move as it turns by a radian."""
HEIGHT = [2, 3, 4]
"""Of a pose's errors those that move its wheels up: z, and the turns about x and y."""


class DrivenGround(Node):
    """Where the wheels of a body touched the ground, by its poses: a cloud in their frame, given at the end.

    One point for each wheel and `spacing` metres of its way, with the field `wheel` (from 0) and, where the
    poses have a covariance, `sigma`: one deviation of its height, m. Known are the wheels of

    - interact: four, placed by their steering where `wheels` are fed; in the order of its document,
    - weeder: its document does not say how far left and right wheels are apart. Without `track` there is one
      point for each axle, in its middle: first rear, then front.

    Inputs
    ------
    pose
        Of the body.
    covariance
        Of the pose, (6, 6): translation (m), then rotation vector (rad), both in the pose's frame.
    wheels
        As encoders saw them.
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
        doc="distance between left and right wheels of the weeder; 0: ground along the middle of the axles",
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
        if self.poses and _way(self.poses[-1], pose) < self.spacing / 2:
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
            _along(np.column_stack([points[:, i], sigmas[:, i]]), self.spacing)
            for i in range(points.shape[1])
        ]
        ground = np.concatenate(rows)
        which = np.repeat(np.arange(len(rows), dtype=np.uint8), [len(each) for each in rows])
        fields = {"wheel": which, "sigma": ground[:, 3].astype(np.float32)}
        return PointCloud(ground[:, :3].astype(np.float32), fields, self.poses[-1].t_ns, self.poses[-1].frame)

    def _contacts(self, body: str) -> Floats | None:
        """Return where the wheels touch the ground in the body, (n or 1, k, 3); None if that is not known."""
        robot = robots.load(self.robot) if self.robot else _robot_with(frozenset(self.ctx.frames.frames))
        if robot is not None and body == "Platform" and "platform" in robot.constants:
            return self._under_steered_wheels(FourWheelGeometry.of(robot))
        if robot is not None and body == "base_link" and "wheelbase" in robot.constants:
            return self._under_axles(float(robot.constants["wheelbase"]))
        return self.ctx.skip("the wheels of this robot are not known")

    def _under_steered_wheels(self, geometry: FourWheelGeometry) -> Floats | None:
        steered = len(self.wheels) == len(self.poses) and all(w.steer_ticks is not None for w in self.wheels)
        ticks = np.array([w.steer_ticks for w in self.wheels]) if steered else None
        steering = np.zeros((1, WHEELS)) if ticks is None else steer_angles(ticks, geometry)
        radius = self.radius or _rolling_radius(self.wheels, geometry)
        if not radius > 0:
            return self.ctx.skip(
                f"the radius of the wheels is not known: --set {self.ctx.node}.radius=METRES"
            )
        return positions(steering, geometry) - (0.0, 0.0, radius)

    def _under_axles(self, wheelbase: float) -> Floats:
        """Its base_link is on the ground below the rear axle.

        Table 1 does not say so. It has the camera 0.98 m over it; pictures, about a metre over the rows.
        """
        if not self.track:
            self.ctx.log(
                "the track of the wheels is not known, so the ground is told in the middle of the axles; "
                f"--set {self.ctx.node}.track=METRES"
            )
        sides = (self.track / 2, -self.track / 2) if self.track else (0.0,)
        return np.array([[(x, y, 0.0) for x in (0.0, wheelbase) for y in sides]])


def _robot_with(frames: frozenset[str]) -> Robot | None:
    """Return the robot that comes with transect and all of whose frames are there."""
    known = (robots.load(name) for name in robots.names())
    return next((robot for robot in known if frames.issuperset(robot.frames.frames)), None)


def _way(a: Pose, b: Pose) -> float:
    """How far (m) wheels moved from one pose to another, about."""
    turned = 2 * np.arccos(min(1.0, abs(float(a.orientation @ b.orientation))))
    return float(np.linalg.norm(b.position - a.position) + REACH * turned)


def _rolling_radius(wheels: list[WheelState], geometry: FourWheelGeometry) -> float:
    """Return the radius (m) with which the rover's software made speeds of ticks; NaN if that is not told."""
    told = [each for each in wheels if each.drive_ticks is not None and each.velocity is not None]
    if len(told) < 2:
        return np.nan
    ticks, speeds = np.array([w.drive_ticks for w in told]), np.array([w.velocity for w in told])
    return tick_length([w.t_ns for w in told], ticks, speeds).wheel_radius(geometry)


def _height_sigmas(covariances: Floats, levers: Floats) -> Floats:
    """Return the deviation (n, k) of heights at levers (n, k, 3) in the axes of covariances (n, 6, 6)."""
    by = np.stack([np.ones(levers.shape[:2]), levers[..., 1], -levers[..., 0]], axis=-1)
    inner = covariances[:, HEIGHT][:, :, HEIGHT]
    return np.sqrt(np.einsum("nki,nij,nkj->nk", by, inner, by))


def _along(rows: Floats, spacing: float) -> Floats:
    """Return rows (m, 4), x, y, z first, every so many metres along a way (n, 4); jumps are not bridged."""
    rows = rows[np.isfinite(rows[:, :3]).all(axis=1)]
    steps = np.linalg.norm(np.diff(rows[:, :3], axis=0), axis=1)
    way = np.concatenate([[0.0], np.cumsum(np.where(steps > JUMP, 0.0, steps))])
    at = np.arange(0.0, way[-1] + spacing / 2, spacing) if len(rows) else np.zeros(0)
    return np.column_stack([np.interp(at, way, column) for column in rows.T])
