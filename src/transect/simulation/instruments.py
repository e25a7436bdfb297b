"""Simulated cameras with settings, IMUs, magnetometers and GNSS receivers, and the cost of writing a day."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from transect import formats
from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import UsageError, did_you_mean
from transect.geometry import geodesy, rotations, se3
from transect.recording import Recording, Stream
from transect.types import FIX_TYPES, Image

from .day import Day
from .motion import Motion, derivatives
from .randomness import generator


class SimulatedCamera:
    """A camera of a simulated day with variable rate and exposure time.

    The brightness of images is proportional to the exposure time, up to saturation. The rate is at most that
    of the stream, which is rendered image by image.

    Parameters
    ----------
    stream : Stream
        Images of the day.
    exposure : float
        Exposure time of the images of the stream, s.
    """

    def __init__(self, stream: Stream, exposure: float = 0.01) -> None:
        if stream.type is not Image or len(stream) < 2:
            raise UsageError(
                f"{stream.name} is not a stream of images", hint="give a stream of at least two images"
            )
        self.stream, self._exposure = stream, exposure
        self._times = np.asarray(stream.t_ns)
        self._fastest = NS / float(np.median(np.diff(self._times)))
        self._settings = {"rate": self._fastest, "exposure": exposure}
        self._next = 0
        self._due_ns = int(self._times[0])

    @property
    def settings(self) -> Mapping[str, float]:
        """`rate` in Hz and `exposure` in s."""
        return dict(self._settings)

    def change(self, setting: str, value: float) -> None:
        """Set the rate or the exposure, starting with the next image."""
        largest = {"rate": self._fastest, "exposure": 1.0 / self._settings["rate"]}
        if setting not in largest:
            raise UsageError(f"a camera has no {setting!r}", hint="rate, exposure")
        if not 0.0 < value <= largest[setting] * (1 + 1e-9):
            why = f"it must be above 0 and at most {largest[setting]:.4g}"
            raise UsageError(f"the {setting} of {self.stream.name} cannot be {value:g}", why=why)
        self._settings[setting] = value

    def images(self, until_ns: int) -> Iterator[tuple[int, Image]]:
        """Yield the images from the current time up to a time (ns), which is excluded."""
        while self._next < len(self._times) and self._times[self._next] < until_ns:
            t_ns = int(self._times[self._next])
            sample, self._next = self.stream[self._next], self._next + 1
            if t_ns < self._due_ns - NS / self._fastest / 2:  # stamps have jitter
                continue
            step = round(NS / self._settings["rate"])
            self._due_ns = max(self._due_ns, t_ns - step // 2) + step
            yield t_ns, self._expose(sample.payload)

    def _expose(self, image: Image) -> Image:
        gain = self._settings["exposure"] / self._exposure
        if gain == 1.0:
            return image
        white = np.iinfo(image.data.dtype).max
        return replace(image, data=np.clip(image.data * gain, 0, white).astype(image.data.dtype))


@dataclass(frozen=True)
class ImuErrorModel:
    """Error model of an IMU, equal for all axes."""

    # acc_density, gyro_density: white noise, m/s2/sqrt(Hz) and rad/s/sqrt(Hz)
    acc_density: float
    gyro_density: float
    # acc_walk, gyro_walk: random walk of the biases, m/s2/sqrt(s) and rad/s/sqrt(s)
    acc_walk: float = 0.0
    gyro_walk: float = 0.0
    # acc_bias, gyro_bias: standard deviation of the turn-on biases, m/s2 and rad/s
    acc_bias: float = 0.0
    gyro_bias: float = 0.0
    # acc_scale, gyro_scale: standard deviation of the scale factors
    acc_scale: float = 0.0
    gyro_scale: float = 0.0


QUIET = ImuErrorModel(0.0, 0.0)
"""An IMU without errors."""


@dataclass(frozen=True, eq=False)
class ImuSamples:
    """Readings (n, 3) in the sensor's axes, m/s2 and rad/s, and the biases and scales (3,) in them."""

    acc: Floats
    gyro: Floats
    acc_bias: Floats
    gyro_bias: Floats
    acc_scale: Floats
    gyro_scale: Floats


def mount(motion: Motion, T_body_sensor: ArrayLike) -> Motion:
    """Return the motion of a sensor mounted on a moving body.

    Parameters
    ----------
    motion : Motion
        Motion of the body, sampled evenly and densely: its angular acceleration is computed by
        differentiation.
    T_body_sensor : (4, 4)
    """
    rotation, lever = se3.to_quaternion(T_body_sensor)
    step = float(motion.t_ns[1] - motion.t_ns[0]) * 1e-9
    rate = motion.angular_velocity
    angular_acceleration, _ = derivatives(rate, step)
    lever_velocity = np.cross(rate, lever)
    lever_acceleration = np.cross(angular_acceleration, lever) + np.cross(rate, lever_velocity)
    return Motion(
        motion.t_ns,
        motion.position + rotations.rotate(motion.quaternion, lever),
        rotations.multiply(motion.quaternion, rotation),
        motion.velocity + rotations.rotate(motion.quaternion, lever_velocity),
        motion.acceleration + rotations.rotate(motion.quaternion, lever_acceleration),
        rotations.rotate(rotations.conjugate(rotation), rate),
    )


def in_sensor(motion: Motion, vectors: ArrayLike) -> Floats:
    """Vectors (n, 3) or (3,) of the world in the axes of a moving body (n, 3)."""
    return rotations.rotate(rotations.conjugate(motion.quaternion), vectors)


def specific_force(motion: Motion, gravity: float) -> Floats:
    """Specific force (n, 3), m/s2, of an ideal accelerometer: at rest, `gravity` upwards."""
    return in_sensor(motion, motion.acceleration + np.array([0.0, 0.0, gravity]))


def measure(motion: Motion, noise: ImuErrorModel, gravity: float, seed: int, name: str = "imu") -> ImuSamples:
    """Return the measurements of an IMU at the samples of its own motion, evenly spaced.

    Parameters
    ----------
    motion : Motion
        Motion of the sensor (`mount`) at the times of the samples (`Motion.at`).
    gravity : float
        m/s2.
    seed, name
        Seed and purpose of the random numbers.
    """
    step = float(motion.t_ns[1] - motion.t_ns[0]) * 1e-9

    def add_errors(ideal: Floats, kind: str, density: float, walk: float, bias: float, scale: float):
        rng = generator(seed, name, kind)
        start, gain = bias * rng.standard_normal(3), 1 + scale * rng.standard_normal(3)
        drift = start + random_walk(rng, len(ideal), walk, step)
        return gain * ideal + drift + density / np.sqrt(step) * rng.standard_normal(ideal.shape), drift, gain

    force, rate = specific_force(motion, gravity), motion.angular_velocity
    acc = add_errors(force, "acc", noise.acc_density, noise.acc_walk, noise.acc_bias, noise.acc_scale)
    gyro = add_errors(rate, "gyro", noise.gyro_density, noise.gyro_walk, noise.gyro_bias, noise.gyro_scale)
    return ImuSamples(acc[0], gyro[0], acc[1], gyro[1], acc[2], gyro[2])


def random_walk(rng: np.random.Generator, count: int, density: float, step: float) -> Floats:
    """Random walks (n, 3) from 0, whose variance increases by ``density**2`` per second."""
    steps = density * np.sqrt(step) * rng.standard_normal((count, 3))
    return np.cumsum(steps, axis=0) - steps[:1]


# Gravity, pressure, magnetic field


def normal_gravity(latitude: float, height: float) -> float:
    """Gravity of the WGS84 ellipsoid, m/s2, at a latitude in rad and a height in m (Somigliana)."""
    s = np.sin(latitude) ** 2
    level = 9.7803253359 * (1 + 0.00193185265241 * s) / np.sqrt(1 - 0.00669437999013 * s)
    return float(level - 3.086e-6 * height)


def air_pressure(height: ArrayLike) -> Floats:
    """Pressure in Pa of the standard atmosphere at heights in m."""
    return 101_325.0 * (1 - 2.25577e-5 * np.asarray(height, dtype=np.float64)) ** 5.25588


def magnetometer(motion: Motion, field: ArrayLike, noise: float, seed: int, name: str = "imu") -> Floats:
    """Readings (n, 3) in the sensor's axes, T, of a field (3,) in the world (east, north, up)."""
    ideal = in_sensor(motion, np.asarray(field, dtype=np.float64))
    return ideal + noise * generator(seed, name, "magnetometer").standard_normal(ideal.shape)


@dataclass(frozen=True)
class FixError:
    """Errors of fixes of one type."""

    std: tuple[float, float, float]  # north, east, down, m
    # correlation time of the errors (first-order Gauss-Markov process); 0 is white
    seconds: float = 0.0
    satellites: int = 0  # mean number of satellites used
    hdop: float = float("nan")


ERRORS: Mapping[str, FixError] = {
    "none": FixError((np.nan, np.nan, np.nan)),
    "2d": FixError((4.0, 4.0, 20.0), 60.0, 3, 4.0),
    "3d": FixError((1.2, 1.2, 2.0), 60.0, 9, 1.1),
    "sbas": FixError((0.7, 0.7, 1.2), 60.0, 10, 0.9),
    "differential": FixError((0.4, 0.4, 0.7), 60.0, 11, 0.9),
    "ppp": FixError((0.1, 0.1, 0.2), 120.0, 12, 0.8),
    "rtk float": FixError((0.15, 0.15, 0.30), 20.0, 12, 0.8),
    "rtk fixed": FixError((0.008, 0.008, 0.015), 0.0, 14, 0.7),
}
"""By type. RTK is that of the Spatial Dual (AMEDS, Table 1); the others are typical values, invented.

They are the truth of a simulation, and deliberately differ from `TYPICAL_FIX_ERRORS`, the assumption."""


@dataclass(frozen=True)
class FixSchedule:
    """The fix type of a receiver over time."""

    usual: str = "rtk fixed"  # one of `FIX_TYPES`
    # exceptions: start and end in seconds after the first fix, and type; later ones take precedence
    except_in: Sequence[tuple[float, float, str]] = ()
    errors: Mapping[str, FixError] = field(default_factory=lambda: ERRORS)

    def at(self, t_ns: Ints) -> Ints:
        """Index (n,) into `FIX_TYPES` at times (n,)."""
        elapsed = (t_ns - t_ns[:1]) * 1e-9
        kinds = np.full(len(t_ns), _index(self.usual))
        for begin, end, fix in self.except_in:
            kinds[(elapsed >= begin) & (elapsed < end)] = _index(fix)
        return kinds


def _index(fix: str) -> int:
    if fix not in FIX_TYPES:
        raise UsageError(f"there is no fix {fix!r}", hint=did_you_mean(fix, FIX_TYPES))
    return FIX_TYPES.index(fix)


def fixes(
    antenna: Motion, origin: ArrayLike, coverage: FixSchedule, seed: int, name: str = "gnss"
) -> dict[str, Any]:
    """Return the columns of a NavFix stream: lat, lon, alt, std_*, fix, satellites, hdop.

    Parameters
    ----------
    antenna : Motion
        Motion of the antenna (`mount`) at the times of the fixes, evenly spaced.
    origin : (3,)
        Geodetic origin of the world: rad, rad, m.
    seed, name
        Seed and purpose of the random numbers.

    Returns
    -------
    dict
        Position and std are NaN without a fix. `std_*` is the true standard deviation of the errors.
    """
    kinds = coverage.at(antenna.t_ns)
    present = {FIX_TYPES[k]: kinds == k for k in np.unique(kinds).tolist()}
    std = np.empty((len(kinds), 3))
    error, satellites, hdop = np.empty_like(std), np.empty(len(kinds)), np.empty(len(kinds))
    variation = np.rint(gauss_markov(generator(seed, name, "satellites"), antenna.t_ns, 1, 30.0)[:, 0])
    for fix, rows in present.items():
        kind, rng = coverage.errors[fix], generator(seed, name, "position", fix)
        std[rows] = kind.std
        error[rows] = (gauss_markov(rng, antenna.t_ns, 3, kind.seconds) * kind.std)[rows]
        satellites[rows] = np.maximum(kind.satellites + variation[rows], 0) if kind.satellites else 0
        hdop[rows] = kind.hdop
    enu = geodesy.change_axes(error, "NED", "ENU")
    lat, lon, alt = geodesy.geodetic_from_local(antenna.position + enu, origin).T
    position = {"lat": lat, "lon": lon, "alt": alt}
    sigmas = dict(zip(("std_north", "std_east", "std_down"), std.T, strict=True))
    names = [FIX_TYPES[k] for k in kinds.tolist()]
    return position | sigmas | {"fix": names, "satellites": satellites, "hdop": hdop}


def gauss_markov(rng: np.random.Generator, t_ns: Ints, columns: int, seconds: float) -> Floats:
    """Unit noise (n, columns) at evenly spaced times with correlation time `seconds`; white if 0."""
    white = rng.standard_normal((len(t_ns), columns))
    if not seconds or len(t_ns) < 2:
        return white
    kept = math.exp(-float(t_ns[1] - t_ns[0]) * 1e-9 / seconds)
    # The first sample has the stationary variance; each step adds the variance that the decay removes.
    white[1:] *= math.sqrt(1 - kept**2)
    walks = [list(accumulate(each, lambda before, new: kept * before + new)) for each in white.T.tolist()]
    return np.array(walks).T


@dataclass(frozen=True)
class Estimate:
    """Time and disk space for writing a day."""

    seconds: float  # on this machine
    size: float  # bytes on disk

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.seconds + other.seconds, self.size + other.size)


def estimate(day: Day) -> Estimate:
    """Estimate the cost of `write_day` by writing some samples of every stream to a temporary folder.

    Tables and trajectory of the truth are small, and not included.
    """
    rasters = (layer for grid in day.truth.maps.values() for layer in grid.layers.values())
    total = Estimate(0.0, float(sum(layer.nbytes for layer in rasters)))
    with tempfile.TemporaryDirectory(prefix="transect-estimate-") as folder:
        for stream in day.recording:
            try:
                total += _measure_stream(day.recording, stream, Path(folder))
            except UsageError:  # the format cannot represent this stream, which is not written
                continue
    return total + _measure_files(list(day.truth.files.values()))


def _measure_files(contents: Sequence[Callable[[], bytes]]) -> Estimate:
    def make(first: int, count: int) -> float:
        return float(sum(len(content()) for content in contents[first : first + count]))

    return _repeat(make, len(contents)) if contents else Estimate(0.0, 0.0)


def _measure_stream(recording: Recording, stream: Stream, folder: Path) -> Estimate:
    def write(first: int, count: int) -> float:
        """Write rows of the stream; return their size in bytes."""
        chosen = np.zeros(len(stream), np.bool_)
        chosen[first : first + count] = True
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            target = Path(temporary) / "part"
            formats.write(recording.replace(streams=(stream.take(chosen),)), target, recording.format)
            return float(sum(file.stat().st_size for file in target.rglob("*") if file.is_file()))

    if not len(stream):
        return Estimate(0.0, 0.0)
    if stream.loader is not None:
        return _repeat(write, len(stream))
    count = min(len(stream), 1000)
    single = write(0, 1)
    begin = time.perf_counter()
    size = write(0, count)
    seconds = time.perf_counter() - begin
    # The size of a file without rows does not scale with their number.
    return Estimate(seconds * len(stream) / count, single + (size - single) * len(stream) / count)


def _repeat(write: Callable[[int, int], float], count: int) -> Estimate:
    """Estimate the cost of `count` samples from some of them; `write(first, n)` returns the bytes of n."""
    begin = time.perf_counter()
    size, measured = write(count // 2, 1), 1
    seconds = time.perf_counter() - begin
    if count > 2:  # the first sample may include compilation
        measured = min(10 if seconds < 0.2 else 1, count // 2)
        begin = time.perf_counter()
        size = write(count // 3, measured)
        seconds = time.perf_counter() - begin
    return Estimate(count / measured * seconds, count / measured * size)
