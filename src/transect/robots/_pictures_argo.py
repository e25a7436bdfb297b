"""What the pictures of the Argo show: the sensors' fields, where the cameras are, ranges from peaks."""

from __future__ import annotations

from functools import partial
from typing import get_args

import numpy as np

from transect.base.arrays import Floats
from transect.draw._robots_argo import CameraPlaces, Field, PeakFits, draw_cameras, draw_peaks, draw_sensors
from transect.draw.robots import Picture
from transect.geometry import se3
from transect.geometry.planar import points_from_polar
from transect.recording import Robot

from .argo.calibration import BODY, TABLES, cameras_in_body, pitch_and_yaw
from .argo.radar import Radar, Scale, find_peaks

LASERS = ("LaserHorizontal", "LaserVertical", "LaserPort", "LaserStarboard")
REACH = {"LaserHorizontal": 1.1, "LaserVertical": 0.8, "LaserPort": 0.6, "LaserStarboard": 0.6, "Radar": 0.35}
"""How far the fans are drawn, m; the cameras' as `VIEW`."""
VIEW = 0.9


def pictures(robot: Robot) -> list[Picture]:
    """Return the pictures of the Argo, or of a user's copy of it."""
    fields = [*(_fan(robot, name) for name in (*LASERS, "Radar")), *(_view(robot, name) for name in TABLES)]
    cameras = [CameraPlaces(name, cameras_in_body(robot, name)) for name in TABLES]
    return [
        Picture("sensors", 4.6, partial(draw_sensors, fields=fields)),
        Picture("cameras", 3.4, partial(draw_cameras, cameras=cameras)),
        Picture("radar", 3.6, partial(draw_peaks, peaks=_peaks(Radar.of(robot)))),
    ]


def _fan(robot: Robot, name: str) -> Field:
    """A scan's plane: a laser sees half a turn, the radar a whole one."""
    T = robot.frames.lookup(BODY, name)
    half = robot.constants["laser"]["field_of_view"] / 2 if name in LASERS else np.pi
    rim = se3.apply(T, points_from_polar(REACH[name], np.linspace(-half, half, 121)))
    ahead = se3.apply(T, np.array([1.25 * REACH[name], 0.0, 0.0]))
    below = float(np.arcsin(T[2, 0]))
    return Field(name, "laser" if name in LASERS else "radar", T[:3, 3], rim, ahead, below)


def _view(robot: Robot, name: str) -> Field:
    T, camera = robot.frames.lookup(BODY, name), robot.cameras[name]
    corners = np.array([[0, 0], [camera.width, 0], [camera.width, camera.height], [0, camera.height]])
    rays = np.concatenate([(corners - camera.K[:2, 2]) / camera.K.diagonal()[:2], np.ones((4, 1))], axis=1)
    ahead = se3.apply(T, np.array([0.0, 0.0, 1.1 * VIEW]))
    below = -float(pitch_and_yaw(T)[0])
    return Field(name, "camera", T[:3, 3], se3.apply(T, VIEW * rays), ahead, below)


SCALES: tuple[Scale, ...] = get_args(Scale)
TARGET = 60.3
"""Where the drawn target is, in bins; far from the middle of one."""


def _spectra(radar: Radar, bins: Floats) -> Floats:
    """Amplitudes (n, bins) of the beat tones of targets at `bins` (n,), in a Hann window."""
    samples = np.arange(2 * radar.bins) / (2 * radar.bins)
    tones = np.cos(2 * np.pi * np.asarray(bins)[:, None] * samples) * np.hanning(2 * radar.bins)
    return np.abs(np.fft.rfft(tones))[:, 1:]


def _peaks(radar: Radar) -> PeakFits:
    line = 20 * np.log10(_spectra(radar, np.array([TARGET]))[0])
    line -= line.max()
    number = int(line.argmax()) + 1
    near = np.arange(number - 1, number + 2)
    between = np.linspace(-0.5, 0.5, 41)
    at = round(TARGET) + between
    errors: dict[str, Floats] = {"bin": -radar.bin_width * between}
    found, curves = dict[str, float](), dict[str, tuple[Floats, Floats]]()
    for fit in SCALES:
        peaks = find_peaks(_spectra(radar, at), scale="amplitude", fit=fit)
        errors[fit] = radar.bin_width * (peaks.bin[:, 0] - at)
        vertex = find_peaks(line[None], scale="dB", fit=fit).bin[0, 0]
        found[fit] = float(radar.range_from_bin(vertex))
        curves[fit] = _parabola(radar, line, number, fit)
    return PeakFits(
        ranges=radar.range_from_bin(near),
        spectrum=line[near - 1],
        true=float(radar.range_from_bin(TARGET)),
        curves=curves,
        found=found,
        between=between,
        errors=errors,
        bin_width=radar.bin_width,
    )


def _parabola(radar: Radar, line: Floats, number: int, fit: Scale) -> tuple[Floats, Floats]:
    """The parabola through bins number - 1 to number + 1 of a line in dB, itself in dB over m."""
    three = np.arange(number - 1, number + 2)
    values = line[three - 1] if fit == "dB" else 10 ** (line[three - 1] / 20)
    x = np.linspace(number - 1.05, number + 1.05, 101)
    y = np.asarray(np.polyval(np.polyfit(three - number, values, 2), x - number), dtype=np.float64)
    return radar.range_from_bin(x), y if fit == "dB" else 20 * np.log10(y)
