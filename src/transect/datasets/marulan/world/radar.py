"""A scanning FMCW radar at 94 GHz: spectra from the echoes within its beam (document 004, 2.2.2 and 3.2.3).

Every echo beats at a frequency that grows with its range; the spectrum is what Hann's window and an FFT make
of all beats and of thermal noise. Surfaces echo by the rays that the beam is made of, each of them a patch:
its power falls with the square of the range (the patch grows, the echo of a point falls with the fourth
power). Corner reflectors are points. Vibration changes the phases of all echoes from line to line.

The report has the frequencies, the bins, 1 kHz and about 8 turns a second. Beam width, power and the scale of
reflectivity are not in it: here the beam is 3 degrees wide and 0 dB is `FLOOR` below the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.cache_folder import load_compiled
from transect.recording import Robot
from transect.simulation.raycast import Scene, cast
from transect.simulation.solids import Solids

Poses = Callable[[Ints], Floats]
"""From times (n,) in ns to ``T_world_sensor`` (n, 4, 4)."""

FLOOR = 20.0
"""dB of the mean thermal noise."""
RAYS = 48
"""Of which a beam is made."""
EDGE = 0.8
"""Widths of the beam from its axis out to which rays are cast: 15 dB down, there and back."""
LEAKAGE = 45.0
"""dB over the noise of what the antenna lets through from the transmitter, at range 0."""


@dataclass(frozen=True)
class Fmcw:
    """How the radar measures.

    Attributes
    ----------
    sample_frequency, hertz_per_metre, range_offset, bins
        As in eq. 1: Hz, Hz/m, m.
    minimum, maximum : float
        m between which the vehicle's software looks for its one range a line; what is nearer is leakage.
    line_rate, turn_rate : float
        Spectra and turns of the head a second: 8 turns in 1001 lines, which look in 1001 directions.
    beam_width : float
        rad between the half-power directions, one way.
    reach : float
        m at which an echo of 1 m2 on the axis is as strong as the noise.
    """

    sample_frequency: float
    hertz_per_metre: float
    range_offset: float
    bins: int
    maximum: float
    minimum: float = 1.0
    line_rate: float = 1000.0
    turn_rate: float = 8000 / 1001
    beam_width: float = float(np.radians(3.0))
    reach: float = 100.0

    @classmethod
    def of(cls, robot: Robot) -> Fmcw:
        """Return the radar that a robot's constants describe."""
        radar = robot.constants["radar"]
        return cls(
            sample_frequency=float(radar["sample_frequency"]),
            hertz_per_metre=float(radar["hertz_per_metre"]),
            range_offset=float(radar["range_offset"]),
            bins=int(radar["bins"]),
            maximum=float(radar["maximum_range"]),
        )

    @property
    def bin_width(self) -> float:
        """Metres from one bin to the next."""
        return self.sample_frequency / (2 * self.bins * self.hertz_per_metre)

    def bins_of(self, distance: Floats) -> Floats:
        """Where the beats of echoes at distances in m lie in the spectrum, in bins counted from 1."""
        return self.hertz_per_metre * (distance - self.range_offset) * 2 * self.bins / self.sample_frequency

    def times(self, number: Ints, start_ns: int) -> Ints:
        """Times (n,) in ns of lines by their number (n,)."""
        return start_ns + np.rint(number * (1e6 / self.line_rate)).astype(np.int64) * 1000

    def bearings(self, number: Ints) -> Floats:
        """Where the head looks (n,): rad from the sensor's x towards its y, from 0 to 2 pi."""
        degrees = np.round(number * (360.0 * self.turn_rate / self.line_rate) % 360.0, 3)
        return np.radians(degrees % 360.0)

    def gain(self, off_axis: Floats) -> Floats:
        """Power there and back at angles in rad from the axis: a Gaussian beam, 1 on the axis."""
        return np.exp2(-8.0 * (off_axis / self.beam_width) ** 2)


@dataclass(frozen=True, eq=False)
class Echoes:
    """What comes back: m echoes of many lines.

    Attributes
    ----------
    line : (m,) int64 array
        Which line, from 0.
    range : (m,) array
        m.
    power : (m,) array
        Mean, in units of the noise.
    """

    line: Ints
    range: Floats
    power: Floats


def beam_rays(radar: Fmcw) -> tuple[Floats, Floats]:
    """Return the rays of a beam: offsets (RAYS, 2) from its axis in rad, on a spiral, and their gain."""
    k = np.arange(RAYS) + 0.5
    off_axis = EDGE * radar.beam_width * np.sqrt(k / RAYS)
    around = k * np.pi * (3.0 - np.sqrt(5.0))
    return off_axis[:, None] * np.column_stack([np.cos(around), np.sin(around)]), radar.gain(off_axis)


def surface_echoes(
    radar: Fmcw, scene: Scene, solids: Solids, ground: float, T_world_head: Floats, t: Floats
) -> Echoes:
    """Return the echoes of surfaces.

    Parameters
    ----------
    ground : float
        gamma of the ground, see `solids.Look.backscatter`.
    T_world_head : (n, 4, 4) array
        The head at each line, its x axis along the beam.
    t : (n,) array
        Seconds since the day began.
    """
    offsets, gain = beam_rays(radar)
    ray = np.column_stack([np.ones(RAYS), np.tan(offsets)])
    ray /= np.linalg.norm(ray, axis=1, keepdims=True)
    along = (ray @ T_world_head[:, :3, :3].mT).reshape(-1, 3)
    origin = np.repeat(T_world_head[:, :3, 3], RAYS, axis=0)
    furthest = radar.bins * radar.bin_width
    hits = cast(scene, origin, along, furthest, np.repeat(t, RAYS))
    gamma = np.concatenate([[0.0, ground], solids.backscatter])[hits.kind + 1]
    patch = np.pi * (EDGE * radar.beam_width) ** 2 / RAYS
    met = np.flatnonzero(hits.kind >= 0)
    # sigma0 = gamma cos(i) and the patch is R2 dOmega / cos(i): R2 of the four remain.
    power = radar.reach**4 * np.tile(gain, len(t))[met] * gamma[met] * patch / hits.range[met] ** 2
    return Echoes(met // RAYS, hits.range[met], power)


def point_echoes(radar: Fmcw, scene: Scene, solids: Solids, T_world_head: Floats, t: Floats) -> Echoes:
    """Return the echoes of corner reflectors that nothing hides; parameters as for `surface_echoes`."""
    parts = [_echoes_of(radar, scene, solids, int(k), T_world_head, t) for k in np.flatnonzero(solids.rcs)]
    return Echoes(
        np.concatenate([np.zeros(0, np.int64), *(p.line for p in parts)]),
        np.concatenate([np.zeros(0), *(p.range for p in parts)]),
        np.concatenate([np.zeros(0), *(p.power for p in parts)]),
    )


def _echoes_of(
    radar: Fmcw, scene: Scene, solids: Solids, solid: int, T_world_head: Floats, t: Floats
) -> Echoes:
    to = solids.arrays.centre[solid] - T_world_head[:, :3, 3]
    distance = np.linalg.norm(to, axis=1)
    along = to / distance[:, None]
    off_axis = np.arccos(np.clip(np.einsum("ij,ij->i", along, T_world_head[:, :3, 0]), -1.0, 1.0))
    line = np.flatnonzero(off_axis < 2 * EDGE * radar.beam_width)
    hits = cast(scene, T_world_head[line, :3, 3], along[line], radar.bins * radar.bin_width, t[line])
    free = (hits.kind == solid + 1) | (hits.range >= distance[line])
    line = line[free]
    power = radar.reach**4 * radar.gain(off_axis[line]) * solids.rcs[solid] / distance[line] ** 4
    return Echoes(line, distance[line], power)


def head_poses(T_world_radar: Floats, bearing: Floats) -> Floats:
    """Return the head (n, 4, 4) in the world: the radar turned about its z axis by bearings (n,) in rad."""
    c, s = np.cos(bearing), np.sin(bearing)
    turned = T_world_radar.copy()
    turned[:, :3, 0] = T_world_radar[:, :3, 0] * c[:, None] + T_world_radar[:, :3, 1] * s[:, None]
    turned[:, :3, 1] = T_world_radar[:, :3, 1] * c[:, None] - T_world_radar[:, :3, 0] * s[:, None]
    return turned


def spectra(radar: Fmcw, lines: int, echoes: tuple[Echoes, ...], rng: np.random.Generator) -> Floats:
    """Return spectra (lines, bins) in dB of echoes and noise, to a tenth of a dB."""
    loops, tones = load_compiled(__name__, "radar"), np.zeros((lines, radar.bins), np.complex64)
    leak = Echoes(np.arange(lines), np.zeros(lines), np.full(lines, 10 ** (LEAKAGE / 10)))
    for part in (leak, *echoes):
        phase = rng.uniform(0.0, 2 * np.pi, len(part.line))
        loops.add_tones(tones, part.line, radar.bins_of(part.range), np.sqrt(part.power), phase)
    white = rng.standard_normal((lines, radar.bins + 2, 2), dtype=np.float32)
    power = np.maximum(loops.powers(tones, white), np.float32(1e-6))
    return np.rint(10 * (FLOOR + 10 * np.log10(power))).astype(np.float64) / 10


def strongest(radar: Fmcw, decibels: Floats) -> tuple[Floats, Floats]:
    """Return range (n,) in m and reflectivity (n,) in dB of each line's highest peak (3.2.4).

    As the vehicle's software might do it: the highest bin of those between `minimum` and `maximum`, and the
    top of the parabola through it and its neighbours. There is always one, if only of the noise.
    """
    low, high = (int(b) for b in np.floor(radar.bins_of(np.array([radar.minimum, radar.maximum]))))
    k = low + decibels[:, low:high].argmax(axis=1)
    row = np.arange(len(decibels))
    left, top, right = (decibels[row, k + step] for step in (-1, 0, 1))
    curve = left - 2 * top + right
    shift = np.where(curve < 0, np.clip((left - right) / np.where(curve < 0, 2 * curve, 1), -0.5, 0.5), 0.0)
    distance = (k + 1 + shift) * radar.bin_width + radar.range_offset
    return distance, top - (left - right) * shift / 4
