"""Two driven wheels behind and one steering angle in front: wheels and steering to a planar path.

Equations of the Rosario data set's paper, section 4.6. Two forms: the paper's takes the steering angle as it
is, within its limit; the published scripts multiply it with `steering_scale` first.
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
    """What turns wheels and steering into motion."""

    # wheelbase, wheel_diameter: metres (document 001, 4.6)
    wheelbase: float
    wheel_diameter: float
    steering_limit: float  # rad to either side
    steering_unit: float  # rad to the left per unit of the stepper
    steering_zero_raw: float  # units that the raw log shows when the robot drives straight ahead
    steering_scale: float  # what the published scripts multiply the steering angle with

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
        """m/s at the rim of a wheel that turns once a minute."""
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
        Rim speeds of the left and the right wheel in m/s, negative backwards: what the paper calls
        direction * vel.
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
    """Return the odometry, integrated from a recording's wheels and steering, as a stream of role estimate.

    Of the raw and the cleaned log the cleaned one is taken; in the raw one the steering's zero is taken off.
    Samples without a speed or an angle are left out, and counted in a note.
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
    known = np.isfinite(speeds).all(axis=1) & np.isfinite(steering)
    t_ns = wheels.t_ns[order][known]
    v, w = motion(speeds[known], steering[known], geometry, form)
    nothing = np.zeros(len(t_ns))
    motions = planar.motions_from_rates(t_ns, np.column_stack([v, nothing, w]))
    x, y, heading = planar.integrate(motions)[: len(t_ns)].T
    turn = rotations.quaternion_from_euler("z", heading[:, None])
    columns = {"x": x, "y": y, "z": nothing, **dict(zip(("qx", "qy", "qz", "qw"), turn.T, strict=True))}
    columns |= {"vx": v, "vy": nothing, "vz": nothing, "wx": nothing, "wy": nothing, "wz": w}
    lost = int(np.count_nonzero(~known))
    notes = (f"{wheels.name}: {lost} samples without speed or steering are not integrated",) if lost else ()
    return Parsed(arrow.table(t_ns, columns, units=Odometry.units()), (), notes)


def known_robot(recording: Recording) -> Robot:
    """Return the robot of a recording; raise if it is not known."""
    if recording.robot is None:
        raise StreamError(
            f"it is not known which robot recorded {recording.name}",
            hint="a recording.yaml beside the data can say so: `robot: weeder`, or one of your own",
        )
    return recording.robot
