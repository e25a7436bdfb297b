"""What the pictures of Interact show: wheels, manoeuvres, encoders, slip."""

from __future__ import annotations

from functools import partial

import numpy as np

from transect.base.arrays import Floats
from transect.draw._robots_interact import (
    Encoders,
    Manoeuvre,
    Slipping,
    Wheels,
    draw_encoders,
    draw_manoeuvres,
    draw_slip,
    draw_wheels,
)
from transect.draw.robots import Picture
from transect.recording import Robot

from .interact import manoeuvres, wheels
from .interact.geometry import Geometry
from .interact.slip import slip
from .interact.velocities import contact_velocities, wheel_velocities

RADIUS, SLIDE = 0.9, np.radians(25.0)
"""Radius of the drawn turns (m), and the angle of the crab turns."""
DOWNHILL, SPIN = np.array([0.3, -0.09, 0.12]), 1.35
"""A twist (m/s, m/s, rad/s) with a slide to the right, and how much faster than they roll wheels spin."""


def pictures(robot: Robot) -> list[Picture]:
    """Return the pictures of Interact, or of a user's copy of it."""
    g = Geometry.of(robot)
    return [
        Picture("wheels", 4.2, partial(draw_wheels, wheels=_wheels(robot, g))),
        Picture("manoeuvres", 4.7, partial(draw_manoeuvres, manoeuvres=_manoeuvres(g), swivels=g.swivels)),
        Picture("encoders", 3.6, partial(draw_encoders, encoders=_encoders(g))),
        Picture("slip", 4.2, partial(draw_slip, slipping=_slipping(g))),
    ]


def _wheels(robot: Robot, g: Geometry) -> Wheels:
    angle = np.radians(20.0)
    return Wheels(
        swivels=g.swivels,
        poses=wheels.poses(np.zeros(4), np.zeros(4), g),
        steered=wheels.poses(np.full(4, angle), np.zeros(4), g)[0],
        angle=float(angle),
        origin=robot.frames.lookup("Platform", "Origin"),
        names=list(robot.constants["platform"]["wheels"]),
    )


def _manoeuvres(g: Geometry) -> list[Manoeuvre]:
    c, s = np.cos(SLIDE), np.sin(SLIDE)
    turns = [(1, 0, 1 / RADIUS), (1, 0, -1 / RADIUS), (c, s, 0), (c, -s, 0), (0, 0, 1), (0, 0, -1)]
    return [_manoeuvre(np.array(twist, dtype=np.float64), g) for twist in [(1, 0, 0), *turns]]


def _manoeuvre(twist: Floats, g: Geometry) -> Manoeuvre:
    """The setting in which no wheel slides: each rolls along the velocity of its steering axis."""
    vx, vy, wz = twist
    at_swivel = np.array([vx, vy]) + wz * np.stack([-g.swivels[:, 1], g.swivels[:, 0]], axis=-1)
    steering = np.arctan2(at_swivel[:, 1], at_swivel[:, 0])
    steering -= np.pi * np.round(steering / np.pi)  # backwards rather than by more than 90 degrees
    rolling = wheel_velocities(twist, steering, g).rolling
    centre = np.array([-vy, vx]) / wz if wz else np.full(2, np.nan)
    return Manoeuvre(
        name=str(manoeuvres.steered(steering, g, rolling)),
        steering=steering,
        poses=wheels.poses(steering, np.zeros(4), g),
        velocities=contact_velocities(twist, steering, g),
        centre=centre,
    )


def _encoders(g: Geometry) -> Encoders:
    turn = g.drive_ticks_per_turn
    drive, steer = np.linspace(-0.2 * turn, 1.3 * turn, 50), np.linspace(-40_000, 40_000, 50)
    return Encoders(
        drive_ticks=drive,
        drive_angles=wheels.drive_angles(np.tile(drive[:, None], 4), g)[:, 0],
        steer_ticks=steer,
        steer_angles=wheels.steer_angles(np.tile(steer[:, None], 4), g),
        polarity=g.polarity,
        ticks_per_turn=turn,
        ticks_per_degree=float(np.radians(g.steer_ticks_per_metre * g.rack_per_radian)),
        ticks_per_mm=g.steer_ticks_per_metre / 1000,
    )


def _slipping(g: Geometry) -> Slipping:
    steering = _manoeuvre(DOWNHILL * (1, 0, 1), g).steering
    ground = wheel_velocities(DOWNHILL, steering, g)
    rim = SPIN * ground.rolling * np.array([1.0, 0.9, 1.0, 0.65])
    along, _ = wheels.directions(steering)
    found = slip(rim, ground)
    return Slipping(
        swivels=g.swivels,
        poses=wheels.poses(steering, np.zeros(4), g),
        ground=contact_velocities(DOWNHILL, steering, g),
        rim=rim[:, None] * along,
        ratio=found.ratio,
        angle=found.angle,
    )
