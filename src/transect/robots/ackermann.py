"""Odometry of Ackermann steering with two driven rear wheels.

Equations of the paper of the Rosario data set, section 4.6. The form of the paper clips the steering angle to
its limit; the published scripts multiply it by `steering_scale` instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from transect.base.arrays import Floats
from transect.errors import GeometryError, StreamError, TransectError
from transect.geometry import planar, rotations
from transect.recording import Parsed, Recording, Robot, Stream, arrow
from transect.types import Odometry, WheelState

BASE = "base_link"
Form = Literal["paper", "scripts"]
_COLUMNS = {"wheel_velocity", "steering"}


@dataclass(frozen=True)
class AckermannGeometry:
    """Geometry of wheels and steering."""

    # wheelbase, wheel_diameter: m (Rosario, 4.6)
    wheelbase: float
    wheel_diameter: float
    steering_limit: float  # rad to either side
    steering_unit: float  # rad to the left per unit of the stepper
    steering_zero_raw: float  # units of the raw log at straight driving
    steering_scale: float  # factor of the steering angle in the published scripts

    @classmethod
    def of(cls, robot: Robot) -> AckermannGeometry:
        """Return the geometry that a robot's constants describe."""
        names = list(AckermannGeometry.__dataclass_fields__)
        if missing := [name for name in names if name not in robot.constants]:
            raise TransectError(
                f"{robot.name} has no {', no '.join(missing)}",
                where=f"constants of the robot {robot.name}",
                hint="copy weeder.yaml and change its numbers to yours",
            )
        return cls(**{name: float(robot.constants[name]) for name in names})

    @property
    def rim_speed(self) -> float:
        """Rim speed in m/s at one turn per minute."""
        return np.pi * self.wheel_diameter / 60.0

    def steering(self, units: ArrayLike, zero_raw: float = 0.0) -> Floats:
        """Steering angles (...) in rad to the left of units (...) of the stepper.

        Parameters
        ----------
        zero_raw : float
            Units that mean straight ahead: 0 in the cleaned log, `steering_zero_raw` in the raw one.
        """
        return self.steering_unit * (np.asarray(units, dtype=np.float64) - zero_raw)


def motion(
    wheels: ArrayLike, steering: ArrayLike, geometry: AckermannGeometry, form: Form
) -> tuple[Floats, Floats]:
    """Forward speed (...) in m/s and turn rate (...) in rad/s to the left, of base_link.

    Parameters
    ----------
    wheels : (..., 2) array
        Rim speeds of the left and the right wheel in m/s, negative backwards: direction * vel in the paper.
    steering : (...) array
        Rad to the left.
    form : {"paper", "scripts"}
        `tan(delta)` of a delta within the limit, or `tan(0.95 steer)`.
    """
    if form not in get_args(Form):
        raise GeometryError(
            f"unknown form of the odometry {form!r}", hint=f"one of {', '.join(get_args(Form))}"
        )
    speed = np.mean(np.asarray(wheels, dtype=np.float64), axis=-1)
    angle = np.asarray(steering, dtype=np.float64)
    limit = geometry.steering_limit
    delta = np.clip(angle, -limit, limit) if form == "paper" else geometry.steering_scale * angle
    return speed, speed * np.tan(delta) / geometry.wheelbase


def wheel_odometry(recording: Recording, form: Form = "scripts") -> Stream:
    """Integrate the wheels and steering of a recording to an odometry stream of role estimate.

    The cleaned log is preferred to the raw one, from which the zero of the steering is subtracted. Samples
    without a speed or an angle are omitted, and counted in a note.
    """
    found = [s for s in recording if s.type is WheelState and set(s.columns) >= _COLUMNS]
    if not found:
        raise StreamError(
            f"{recording.name} has no wheels to integrate", why="no WheelState with speeds and steering"
        )
    wheels = min(found, key=lambda s: "telegram" in s.columns)
    if wheels.seams:
        raise StreamError(
            f"{wheels.name} was joined from several recordings", hint="integrate each of them by itself"
        )
    path = _integrate(wheels, AckermannGeometry.of(known_robot(recording)), form)
    name = f"Odometry/{form.capitalize()}"
    return Stream(name, Odometry, path, clock=wheels.clock, role="estimate", frame="odom", child=BASE)


def _integrate(wheels: Stream, geometry: AckermannGeometry, form: Form) -> Parsed:
    order = np.argsort(wheels.t_ns, kind="stable")
    speeds, steering = np.asarray(wheels["wheel_velocity"])[order], np.asarray(wheels["steering"])[order]
    if "telegram" in wheels.columns:
        steering = steering - geometry.steering(geometry.steering_zero_raw)
    valid = np.isfinite(speeds).all(axis=1) & np.isfinite(steering)
    t_ns = wheels.t_ns[order][valid]
    v, w = motion(speeds[valid], steering[valid], geometry, form)
    nothing = np.zeros(len(t_ns))
    motions = planar.motions_from_rates(t_ns, np.column_stack([v, nothing, w]))
    x, y, heading = planar.integrate(motions)[: len(t_ns)].T
    turn = rotations.quaternion_from_euler("z", heading[:, None])
    columns = {"x": x, "y": y, "z": nothing, **dict(zip(("qx", "qy", "qz", "qw"), turn.T, strict=True))}
    columns |= {"vx": v, "vy": nothing, "vz": nothing, "wx": nothing, "wy": nothing, "wz": w}
    lost = int(np.count_nonzero(~valid))
    notes = (f"{wheels.name}: {lost} samples without speed or steering are not integrated",) if lost else ()
    return Parsed(arrow.table(t_ns, columns, units=Odometry.units()), (), notes)


def known_robot(recording: Recording) -> Robot:
    """Return the robot of a recording; raise StreamError if it is unknown."""
    if recording.robot is None:
        raise StreamError(
            f"it is not known which robot recorded {recording.name}",
            hint="a recording.yaml beside the data can say so: `robot: weeder`, or one of your own",
        )
    return recording.robot
