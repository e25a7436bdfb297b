"""Recordings of Interact made in closed form, without the functions under test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.datasets.ameds.robot.circle import circle_wheels

from transect import robots
from transect.recording import Recording, Stream, stream_of_values
from transect.types import JointState, Odometry, Twist, WheelState

NS = 10**9
START_NS = 1_657_013_071 * NS
METRES_PER_TICK = 2 * np.pi * 0.2 / 30000
"""Invented, for a wheel of 20 cm radius."""
TICKS_PER_RADIAN = 806.3 * 1.125 * 180 / np.pi
"""Eq. 5 turned round; -1 for the front wheels."""
POLARITY = np.array([-1, 1, 1, -1])


def times(seconds: float, rate: float, start_ns: int = START_NS) -> np.ndarray:
    return start_ns + np.arange(int(seconds * rate) + 1, dtype=np.int64) * NS // round(rate)


def encoders(t_ns: np.ndarray, steering: np.ndarray, speeds: np.ndarray) -> Stream:
    """The platform's motors at constant steering angles (4,) and rim speeds (4,)."""
    elapsed = ((t_ns - t_ns[0]) / NS)[:, None]
    columns = {
        "wheel_velocity": np.tile(speeds, (len(t_ns), 1)),
        "drive_ticks": np.floor(elapsed * speeds / METRES_PER_TICK),
        "steer_ticks": np.tile(POLARITY * TICKS_PER_RADIAN * steering, (len(t_ns), 1)),
    }
    return stream_of_values("Platform/MotorEncoders", t_ns, columns, type=WheelState, frame="Platform")


def planar(name: str, t_ns: np.ndarray, twist: Sequence[float], kind: type = Twist) -> Stream:
    columns = {key: np.full(len(t_ns), value) for key, value in zip(("vx", "vy", "wz"), twist, strict=True)}
    return stream_of_values(name, t_ns, columns, type=kind)


def circle(
    seconds: float = 10.0, radius: float = 5.0, omega: float = 0.1, start_ns: int = START_NS
) -> Recording:
    """A left turn about a point `radius` m to the left."""
    steering, speeds = circle_wheels(radius, omega)
    medium, fast = times(seconds, 50, start_ns), times(seconds, 100, start_ns)
    twist = (radius * omega, 0.0, omega)
    streams = (
        encoders(medium, steering, speeds),
        planar("Platform/2DVelocity", medium, twist, Odometry),
        planar("Platform/2DTwistEstimate", fast, twist),
    )
    return Recording("circle", streams, robot=robots.load("interact"))


def joints(side: str, t_ns: np.ndarray, angles: np.ndarray) -> Stream:
    return stream_of_values(
        f"{side}Arm/JointAngles", t_ns, {"position": angles}, type=JointState, frame=f"{side}Arm (base)"
    )


def arms(main: np.ndarray, aux: np.ndarray) -> Recording:
    """Both arms at 1 Hz, angles (n, 7)."""
    robot = robots.load("interact")
    streams = (joints("Main", times(len(main) - 1, 1), main), joints("Aux", times(len(aux) - 1, 1), aux))
    return Recording("arms", streams, robot=robot, cameras=robot.cameras)
