"""A scanning FMCW radar at 94 GHz: spectra from the echoes within its beam (SDI, 2.2.2 and 3.2.3).

The beat frequency of an echo is proportional to its range; the spectrum is the FFT, with Hann's window, of
all beats and of thermal noise. The beam is sampled by rays; each illuminates a patch of a surface.
The power of a patch decreases with the square of the range, as the patch grows, while the power of a point
decreases with the fourth power. Corner reflectors are points. Vibration changes the phases of all echoes from
line to line.

SDI states the frequencies, the bins, 1 kHz and about 8 revolutions a second. Beam width, power and the scale
of reflectivity are invented: the beam is 3 degrees wide, and 0 dB is `noise_floor_dB` below the noise.
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
"""Function from times (n,) in ns to ``T_world_sensor`` (n, 4, 4)."""


@dataclass(frozen=True)
class Fmcw:
    """Parameters of the radar."""

    sample_frequency: float  # Hz (eq. 1)
    hertz_per_metre: float
    range_offset: float  # m
    bins: int
    maximum: float  # largest range of the peak search of the vehicle's software, m
    minimum: float = 1.0  # smallest range of that search, m; nearer peaks are leakage
    line_rate: float = 1000.0  # spectra per second
    turn_rate: float = 8000 / 1001  # Hz; 8 revolutions in 1001 lines of different bearings
    beam_width: float = float(np.radians(3.0))  # one-way half-power width, rad
    unit_range: float = 100.0  # range at which 1 m2 on the axis has the power of the noise, m
    noise_floor_dB: float = 20.0  # mean thermal noise
    leakage_dB: float = 45.0  # leakage from the transmitter at range 0, over the noise
    rays: int = 48  # that sample the beam, ...
    edge: float = 0.8  # ... up to this number of beam widths from the axis: two-way -15 dB

    @classmethod
    def of(cls, robot: Robot) -> Fmcw:
        """Return the radar of a robot's constants."""
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
        """Range resolution, m."""
        return self.sample_frequency / (2 * self.bins * self.hertz_per_metre)

    def bins_of(self, distance: Floats) -> Floats:
        """Return the positions of echoes at distances, m, in the spectrum, in bins counted from 1."""
        return self.hertz_per_metre * (distance - self.range_offset) * 2 * self.bins / self.sample_frequency

    def times(self, number: Ints, start_ns: int) -> Ints:
        """Return the times (n,) of lines by their number (n,), ns."""
        return start_ns + np.rint(number * (1e6 / self.line_rate)).astype(np.int64) * 1000

    def bearings(self, number: Ints) -> Floats:
        """Return the bearings (n,) of lines: rad from the sensor's x towards its y, from 0 to 2 pi."""
        degrees = np.round(number * (360.0 * self.turn_rate / self.line_rate) % 360.0, 3)
        return np.radians(degrees % 360.0)

    def gain(self, off_axis: Floats) -> Floats:
        """Return the two-way gain at angles from the axis, rad, of a Gaussian beam; 1 on the axis."""
        return np.exp2(-8.0 * (off_axis / self.beam_width) ** 2)


@dataclass(frozen=True, eq=False)
class Echoes:
    """Echoes (m,) of several lines."""

    line: Ints  # (m,) number of the line, from 0
    range: Floats  # (m,) m
    power: Floats  # (m,) mean, in units of the noise


def beam_rays(radar: Fmcw) -> tuple[Floats, Floats]:
    """Return the rays of a beam: offsets (rays, 2) from its axis, rad, on a spiral, and their gain."""
    k = np.arange(radar.rays) + 0.5
    off_axis = radar.edge * radar.beam_width * np.sqrt(k / radar.rays)
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
        Poses of the head for each line, with x along the beam.
    t : (n,) array
        Seconds since the start of the day.
    """
    offsets, gain = beam_rays(radar)
    ray = np.column_stack([np.ones(radar.rays), np.tan(offsets)])
    ray /= np.linalg.norm(ray, axis=1, keepdims=True)
    along = (ray @ T_world_head[:, :3, :3].mT).reshape(-1, 3)
    origin = np.repeat(T_world_head[:, :3, 3], radar.rays, axis=0)
    hits = cast(scene, origin, along, radar.bins * radar.bin_width, np.repeat(t, radar.rays))
    gamma = np.concatenate([[0.0, ground], solids.backscatter])[hits.kind + 1]
    patch = np.pi * (radar.edge * radar.beam_width) ** 2 / radar.rays
    hit = np.flatnonzero(hits.kind >= 0)
    # sigma0 = gamma cos(i) and the patch is R^2 dOmega / cos(i), so that the power is proportional to R^-2.
    power = radar.unit_range**4 * np.tile(gain, len(t))[hit] * gamma[hit] * patch / hits.range[hit] ** 2
    return Echoes(hit // radar.rays, hits.range[hit], power)


def point_echoes(radar: Fmcw, scene: Scene, solids: Solids, T_world_head: Floats, t: Floats) -> Echoes:
    """Return the echoes of visible corner reflectors; parameters as for `surface_echoes`."""
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
    line = np.flatnonzero(off_axis < 2 * radar.edge * radar.beam_width)
    hits = cast(scene, T_world_head[line, :3, 3], along[line], radar.bins * radar.bin_width, t[line])
    free = (hits.kind == solid + 1) | (hits.range >= distance[line])
    line = line[free]
    power = radar.unit_range**4 * radar.gain(off_axis[line]) * solids.rcs[solid] / distance[line] ** 4
    return Echoes(line, distance[line], power)


def head_poses(T_world_radar: Floats, bearing: Floats) -> Floats:
    """Return ``T_world_head`` (n, 4, 4): the radar rotated about its z axis by bearings (n,), rad."""
    c, s = np.cos(bearing), np.sin(bearing)
    rotated = T_world_radar.copy()
    rotated[:, :3, 0] = T_world_radar[:, :3, 0] * c[:, None] + T_world_radar[:, :3, 1] * s[:, None]
    rotated[:, :3, 1] = T_world_radar[:, :3, 1] * c[:, None] - T_world_radar[:, :3, 0] * s[:, None]
    return rotated


def spectra(radar: Fmcw, lines: int, echoes: tuple[Echoes, ...], rng: np.random.Generator) -> Floats:
    """Return spectra (lines, bins) of echoes and noise, dB, rounded to 0.1 dB."""
    loops, tones = load_compiled(__name__, "radar"), np.zeros((lines, radar.bins), np.complex64)
    leak = Echoes(np.arange(lines), np.zeros(lines), np.full(lines, 10 ** (radar.leakage_dB / 10)))
    for part in (leak, *echoes):
        phase = rng.uniform(0.0, 2 * np.pi, len(part.line))
        loops.add_tones(tones, part.line, radar.bins_of(part.range), np.sqrt(part.power), phase)
    white = rng.standard_normal((lines, radar.bins + 2, 2), dtype=np.float32)
    power = np.maximum(loops.powers(tones, white), np.float32(1e-6))
    return np.rint(10 * (radar.noise_floor_dB + 10 * np.log10(power))).astype(np.float64) / 10


def find_strongest(radar: Fmcw, decibels: Floats) -> tuple[Floats, Floats]:
    """Return range (n,), m, and reflectivity (n,), dB, of the highest peak of each line (3.2.4).

    The peak is the vertex of the parabola through the highest bin between `minimum` and `maximum` and its
    neighbours; without an echo it is a peak of the noise.
    """
    low, high = (int(b) for b in np.floor(radar.bins_of(np.array([radar.minimum, radar.maximum]))))
    k = low + decibels[:, low:high].argmax(axis=1)
    row = np.arange(len(decibels))
    left, top, right = (decibels[row, k + step] for step in (-1, 0, 1))
    curve = left - 2 * top + right
    shift = np.where(curve < 0, np.clip((left - right) / np.where(curve < 0, 2 * curve, 1), -0.5, 0.5), 0.0)
    distance = (k + 1 + shift) * radar.bin_width + radar.range_offset
    return distance, top - (left - right) * shift / 4
