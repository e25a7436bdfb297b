"""What the pictures of the weeding robot show: its steering, and turns by two forms and at two points."""

from __future__ import annotations

from functools import partial
from typing import get_args

import numpy as np

from transect.base.arrays import Floats
from transect.draw._robots_weeder import Steering, Turns, draw_steering, draw_turns
from transect.draw.robots import Picture
from transect.geometry import planar
from transect.recording import Robot

from .weeder.antenna import antenna_from_base
from .weeder.geometry import Geometry
from .weeder.odometry import Form, motion

FORMS: tuple[Form, ...] = get_args(Form)
UNITS = -90.0
"""Of the stepper on the drawn turn; to the left."""
STRAIGHT = 3.0
"""Metres before and after the turn."""


def pictures(robot: Robot) -> list[Picture]:
    """Return the pictures of the weeding robot, or of a user's copy of it."""
    g = Geometry.of(robot)
    return [
        Picture("steering", 3.9, partial(draw_steering, steering=_steering(g))),
        Picture("turns", 3.9, partial(draw_turns, turns=_turns(g))),
    ]


def _steering(g: Geometry) -> Steering:
    units = np.linspace(-110.0, 110.0, 221)
    return Steering(
        wheelbase=g.wheelbase,
        wheel=g.wheel_diameter,
        antenna=g.antenna[:2],
        angle=g.steering_limit,
        radius=1.0 / float(_curvature(np.array(g.steering_limit), g, "paper")),
        units=units,
        angles={form: np.arctan(_curvature(g.steering(units), g, form) * g.wheelbase) for form in FORMS},
        zero_raw=g.steering_zero_raw,
    )


def _curvature(steering: Floats, g: Geometry, form: Form) -> Floats:
    """Turn rate (...) in rad for a metre of way."""
    speed, rate = motion(np.ones((*np.shape(steering), 2)), steering, g, form)
    return rate / speed


def _turns(g: Geometry) -> Turns:
    half = np.pi / float(_curvature(g.steering(UNITS), g, "paper"))
    ways = ((STRAIGHT, 0.0), (half, UNITS), (STRAIGHT, 0.0))
    steps = np.concatenate([np.full(60, metres / 60) for metres, _ in ways])
    units = np.repeat([setting for _, setting in ways], 60)
    paths: dict[str, Floats] = {}
    for form in FORMS:
        bend = _curvature(g.steering(units), g, form)
        paths[form] = planar.integrate(np.stack([steps, 0 * steps, steps * bend], axis=-1))
    return Turns(paths, {form: _antenna(path, g) for form, path in paths.items()}, abs(UNITS))


def _antenna(path: Floats, g: Geometry) -> Floats:
    level = np.column_stack([path[:, :2], np.zeros(len(path))])
    return antenna_from_base(level, path[:, 2], g.antenna)[:, :2]
