"""What lights a scene, and in which band a camera looks at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Colour = tuple[float, float, float]
WHITE: Colour = (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Lamp:
    """A spot light that goes with the camera: a headlight."""

    # (3,) tuple, m, in the camera's frame (x right, y down, z forward)
    position: tuple[float, float, float] = (0.0, -0.3, 0.0)
    # (3,) tuple, In the camera's frame; need not be of unit length
    direction: tuple[float, float, float] = (0.0, 0.12, 1.0)
    # rad; half the brightness at this angle from the axis, none at twice the angle
    half_angle: float = 0.35
    power: float = 3.0  # irradiance at 1 m on the axis, on the scale of `Light.sun`


@dataclass(frozen=True)
class Light:
    """Sun, sky and lamps."""

    sun_elevation: float = 0.96  # rad above the horizon
    sun_azimuth: float = 2.4  # rad, clockwise from north, as almanacs have it
    sun: float = 1.0  # irradiance on a surface that faces the sun; 1 on a clear noon
    sky: float = 0.25  # irradiance from the sky on level ground, same scale
    # sun_colour, zenith, horizon: (3,) tuple, Linear red, green, blue; the sky goes from `horizon` to
    # `zenith`
    sun_colour: Colour = (1.0, 0.96, 0.9)
    zenith: Colour = (0.35, 0.52, 0.85)
    horizon: Colour = (0.75, 0.82, 0.9)
    clouds: float = 0.5  # contrast of the clouds, 0 to 1
    lamps: tuple[Lamp, ...] = ()  # what the robot carries
    thermal: bool = False  # the camera sees heat (infrared, 7 to 14 um) and not light

    @property
    def towards_sun(self) -> NDArray[np.float64]:
        """Unit vector (3,) in the world, from the ground to the sun."""
        up, clockwise = self.sun_elevation, self.sun_azimuth
        return np.array([np.cos(up) * np.sin(clockwise), np.cos(up) * np.cos(clockwise), np.sin(up)])


def day() -> Light:
    """Return the light of a clear day."""
    return Light()


def low_sun() -> Light:
    """Return the light of an hour before sunset: long shadows, warm sun."""
    return Light(
        sun_elevation=0.16,
        sun_azimuth=4.7,
        sun=0.7,
        sky=0.16,
        sun_colour=(1.0, 0.74, 0.48),
        zenith=(0.33, 0.45, 0.72),
        horizon=(0.95, 0.75, 0.55),
    )


def night() -> Light:
    """Return a night without moon: little but the sky's glow."""
    return Light(
        sun_elevation=-0.5,
        sun=0.0,
        sky=0.0015,
        zenith=(0.3, 0.35, 0.5),
        horizon=(0.6, 0.55, 0.5),
        clouds=0.2,
    )


def night_with_lights() -> Light:
    """Return a night in which the robot's two headlights are on."""
    left, right = Lamp((-0.4, -0.3, 0.0)), Lamp((0.4, -0.3, 0.0))
    dark = night()
    return Light(
        dark.sun_elevation, dark.sun_azimuth, dark.sun, dark.sky,
        zenith=dark.zenith, horizon=dark.horizon, clouds=dark.clouds, lamps=(left, right),
    )  # fmt: skip


def infrared() -> Light:
    """Return what a thermal camera sees by day: warm ground, cold sky."""
    return Light(thermal=True)


PRESETS = {
    "day": day,
    "low_sun": low_sun,
    "night": night,
    "night_with_lights": night_with_lights,
    "infrared": infrared,
}
"""Lights by the name that a world's condition ``light`` may have."""
