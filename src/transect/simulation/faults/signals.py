"""Faults of measured values: noise, constant and growing biases, saturation, missing values, spikes.

Specific faults are GNSS spikes and loss of fixed ambiguities, wheel slip, and drift of a joint sensor.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Mask
from transect.geometry.robust import SIGMA_PER_MAD
from transect.recording import Recording, Stream
from transect.types import (
    FIX_TYPES,
    Image,
    Imu,
    JointState,
    LaserScan,
    NavFix,
    Odometry,
    RadarRange,
    RadarSpectrum,
    WheelState,
    Wrench,
)

from .model import Change, Event, Fault, leave_unchanged
from .pictures import as_stored, white
from .samples import (
    EARTH_RADIUS_M,
    SIGNALS,
    change_of,
    flat_values,
    signals,
    with_flat,
    with_texts,
    wrap,
)

NOISE = {"m/s2": 0.05, "rad/s": 0.01, "m": 0.03, "m/s": 0.02, "rad": 0.002, "N": 0.5, "N m": 0.05}
"""Standard deviation by unit, for sensors whose noise cannot be estimated from their samples."""
BIAS = {"m/s2": 0.5, "rad/s": 0.05, "m": 0.5, "m/s": 0.2, "rad": 0.05, "N": 5.0, "N m": 0.5}
"""A large bias, by unit."""
PIXEL_NOISE = 0.01
"""Noise of an image relative to white."""
MAX_SPIKE_BIASES = 20.0
"""Largest spike in units of the large bias."""


def estimate_noise(table: pa.Table, name: str) -> float:
    """Estimate the standard deviation of the noise of a column.

    It is that of second differences, which do not contain the motion; for columns of lists it is `NOISE`.
    """
    values, _ = flat_values(table, name)
    if len(values) == table.num_rows and len(values) > 10:
        second = np.abs(np.diff(values[np.isfinite(values)], n=2))
        sigma = SIGMA_PER_MAD * float(np.median(second)) / np.sqrt(6.0) if len(second) else 0.0
        if sigma > 0:
            return sigma
    if name in ("lat", "lon"):
        return NOISE["m"] / EARTH_RADIUS_M
    unit = (table.schema.field(name).metadata or {}).get(b"unit", b"").decode()
    return NOISE.get(unit, 0.0)


def has_signals(stream: Stream, recording: Recording) -> bool:
    """Whether a stream has images or measured columns."""
    return stream.type is Image or bool(signals(stream))


MEASURED = "samples with measured values"


def noisy(stream: Stream, event: Event) -> Change:
    """Add noise: at severity 1 up to `factor` times the original noise."""
    if stream.type is Image:
        return _noisy_images(stream, event)
    ratio = 1.0 + event.severity * (event.parameters["factor"] - 1.0)
    table, names = stream.table, signals(stream)
    for name in names:
        values, row = flat_values(table, name)
        added = estimate_noise(stream.table, name) * np.sqrt(ratio**2 - 1.0)
        draw = event.generator(stream.name, name).normal(size=len(values))
        table = with_flat(table, name, values + np.where(event.inside(stream)[row], added * draw, 0.0))
    return change_of(stream, table, names)


def _noisy_images(stream: Stream, event: Event) -> Change:
    ratio = 1.0 + event.severity * (event.parameters["factor"] - 1.0)
    added = PIXEL_NOISE * np.sqrt(ratio**2 - 1.0)

    def altered(index: int, image: Image) -> Image:
        draw = event.generator(stream.name, "pixels", index).normal(size=image.data.shape)
        pixels = as_stored(image.data + added * white(image) * draw, image)
        return Image(pixels, image.mode, image.t_ns, image.frame, image.camera, image.valid)

    return wrap(stream, event, event.inside(stream), np.ones(len(stream)), altered)


_TRIADS: dict[type, tuple[tuple[str, ...], ...]] = {
    Imu: (("acc_x", "acc_y", "acc_z"), ("gyro_x", "gyro_y", "gyro_z")),
    Wrench: (("fx", "fy", "fz"), ("tx", "ty", "tz")),
    LaserScan: (("ranges",),),
    RadarSpectrum: (("reflectivity",),),
    WheelState: (("wheel_velocity",),),
}
"""Columns that share a full scale."""


def clip(stream: Stream, event: Event) -> Change:
    """Clip values at a full scale below the largest of them."""
    inside, table, names = event.inside(stream), stream.table, list[str]()
    for group in _TRIADS[stream.type]:
        known = [name for name in group if name in stream.columns]
        columns = {name: flat_values(table, name) for name in known}
        sizes = [np.abs(values[inside[row] & np.isfinite(values)]) for values, row in columns.values()]
        peak = max((float(size.max()) for size in sizes if len(size)), default=0.0)
        full_scale = peak * (1.0 - event.severity * event.parameters["cut"])
        for name, (values, row) in columns.items():
            clipped = np.clip(values, -full_scale, full_scale)
            table = with_flat(table, name, np.where(inside[row], clipped, values))
        names += known
    return change_of(stream, table, names)


def measure_nothing(stream: Stream, event: Event) -> Change:
    """Replace all measured values of some samples by NaN."""
    rows = np.flatnonzero(event.inside(stream))
    absent = np.zeros(len(stream), dtype=bool)
    absent[rows[event.choose(len(rows), event.severity, stream.name)]] = True
    table, names = stream.table, signals(stream)
    for name in names:
        values, row = flat_values(table, name)
        table = with_flat(table, name, np.where(absent[row], np.nan, values))
    return change_of(stream, table, names)


def stepping(stream: Stream, event: Event) -> Change:
    """Add a constant bias in the window."""
    return _add_bias(stream, event, event.inside(stream).astype(np.float64))


def ramping(stream: Stream, event: Event) -> Change:
    """Add a bias that grows linearly in the window."""
    fraction = event.seconds(stream) / max(event.length(stream), 1e-9)
    return _add_bias(stream, event, np.where(event.inside(stream), fraction, 0.0))


def _add_bias(stream: Stream, event: Event, fraction: Floats) -> Change:
    """Add a fraction (n,) of a large bias to each measured column, with a sign by the seed."""
    table, names = stream.table, signals(stream)
    for name in names:
        values, row = flat_values(table, name)
        sign = event.generator(stream.name, name, "sign").choice([-1.0, 1.0])
        size = event.severity * event.parameters["size"] * bias_of(stream, name)
        table = with_flat(table, name, values + sign * size * fraction[row])
    return change_of(stream, table, names, fraction)


def bias_of(stream: Stream, name: str) -> float:
    """Return a large bias of a column."""
    return 1.0 / EARTH_RADIUS_M if name in ("lat", "lon") else BIAS.get(stream.units[name], 0.0)


FAULTS = (
    Fault(
        "noise",
        "measured values are noisier",
        "three times the original noise",
        (*SIGNALS, Image),
        noisy,
        parameters={"factor": 3.0},
        unit="factor on the noise",
        reasons=("NOISE",),
        able=has_signals,
        needs=MEASURED,
    ),
    Fault(
        "bias_step",
        "measured values are off by a constant",
        "by 0.5 m/s2, 0.05 rad/s, 0.5 m, 0.2 m/s, 0.05 rad, 5 N (1 m of latitude and longitude)",
        tuple(SIGNALS),
        stepping,
        parameters={"size": 1.0},
        unit="that of the column",
        reasons=("BIAS", "DISAGREE", "NIS", "POSITION_JUMP"),
        able=has_signals,
        needs=MEASURED,
    ),
    Fault(
        "bias_ramp",
        "measured values are off by more and more",
        "in the end by as much as a bias_step",
        tuple(SIGNALS),
        ramping,
        parameters={"size": 1.0},
        unit="that of the column",
        reasons=("BIAS",),
        able=has_signals,
        needs=MEASURED,
    ),
    Fault(
        "saturation",
        "values saturate at a full scale",
        "at one tenth of the largest value",
        tuple(_TRIADS),
        clip,
        parameters={"cut": 0.9},
        unit="fraction of the largest value",
        reasons=("SATURATED",),
    ),
    Fault(
        "nan",
        "all values of some samples are NaN: not measured",
        "all samples of the window",
        tuple(kind for kind in SIGNALS if kind is not LaserScan),  # where NaN is a beam without a return
        measure_nothing,
        unit="fraction of the samples",
        reasons=("NAN",),
        able=has_signals,
        needs=MEASURED,
    ),
)


_STD = ("std_north", "std_east", "std_down")
_FLOAT = FIX_TYPES.index("rtk float")


def shift_positions(stream: Stream, table: pa.Table, north: Floats, east: Floats, up: Floats) -> pa.Table:
    """Shift positions by (n,) metres."""
    latitude = np.asarray(stream["lat"], dtype=np.float64)
    offsets = {"lat": north / EARTH_RADIUS_M, "lon": east / (EARTH_RADIUS_M * np.cos(latitude)), "alt": up}
    for name, offset in offsets.items():
        if name in stream.columns:
            values, _ = flat_values(table, name)
            table = with_flat(table, name, np.where(offset != 0.0, values + offset, values))
    return table


def spiking(stream: Stream, event: Event) -> Change:
    """Add large errors to single positions; the standard deviations of the receiver are unchanged."""
    draw = event.generator(stream.name, "spikes")
    draws, heading, size = (
        draw.random(len(stream)),
        draw.uniform(-np.pi, np.pi, len(stream)),
        draw.random(len(stream)),
    )
    inside = event.inside(stream)
    probability = event.severity * event.parameters["ratio"]
    hit = inside & (draws <= max(probability, draws[inside].min(initial=1.0)))  # at least one
    far = np.where(hit, event.severity * event.parameters["metres"] * (0.5 + 0.5 * size), 0.0)
    table = shift_positions(stream, stream.table, far * np.cos(heading), far * np.sin(heading), 0.5 * far)
    return change_of(stream, table, ["lat", "lon", "alt"])


def floating(stream: Stream, event: Event) -> Change:
    """Lose the fixed ambiguities: positions drift, standard deviations increase, RTK fixed becomes float."""
    inside = event.inside(stream)
    size = event.severity * event.parameters["metres"]
    draw = event.generator("wander")
    phase, period = draw.uniform(0, 2 * np.pi, (3, 3)), draw.uniform(15.0, 60.0, (3, 3))
    seconds = event.seconds(stream)[:, None, None]
    drift = np.cos(2 * np.pi * seconds / period + phase).mean(axis=2) * np.where(inside, size, 0.0)[:, None]
    table = shift_positions(stream, stream.table, *drift.T)
    sigmas = [name for name in _STD if name in stream.columns]
    for name in sigmas:
        values, _ = flat_values(table, name)
        table = with_flat(table, name, np.where(inside, np.fmax(values, size), values))
    names = ["lat", "lon", "alt", *sigmas]
    if "fix" in stream.columns and isinstance(texts := stream["fix"], list):
        table = with_texts(table, "fix", [_float(t) if i else t for t, i in zip(texts, inside, strict=True)])
        names.append("fix")
    return change_of(stream, table, names)


def _float(fix: str) -> str:
    return FIX_TYPES[_FLOAT] if fix in FIX_TYPES and FIX_TYPES.index(fix) > _FLOAT else fix


GNSS_FAULTS = (
    Fault(
        "gnss_spike",
        "single positions have large errors, with unchanged standard deviations",
        "one in ten has an error of up to 50 m",
        (NavFix,),
        spiking,
        parameters={"ratio": 0.1, "metres": 50.0},
        unit="fraction of the positions, and their error",
        reasons=("NIS", "POSITION_JUMP", "SPIKES"),
    ),
    Fault(
        "gnss_float",
        "RTK loses its fix: positions drift, standard deviations increase, fixed becomes float",
        "by about 1 m",
        (NavFix,),
        floating,
        parameters={"metres": 1.0},
        unit="m",
        reasons=("FIX_LOST", "NIS", "POSITION_JUMP"),
    ),
)


_SPEEDS = ("wheel_velocity", "vx")
_SUMS = ("drive_ticks", "x", "y", "z")
"""Cumulative columns, which keep the error of the slip."""


def slipping(stream: Stream, event: Event) -> Change:
    """Let wheels turn faster than the ground speed: ``slip = 1 - v_ground / v_wheel``."""
    slip = event.severity * event.parameters["slip"]
    inside = event.inside(stream)
    scale = np.where(inside, 1.0 / (1.0 - slip), 1.0)
    table = stream.table
    speeds = [name for name in _SPEEDS if name in stream.columns]
    sums = [name for name in _SUMS if name in stream.columns]
    for name in speeds:
        values, row = flat_values(table, name)
        table = with_flat(table, name, values * scale[row])
    for name in sums:
        values, _ = flat_values(table, name)
        table = with_flat(table, name, _stretch(values.reshape(len(stream), -1), scale, inside).reshape(-1))
    return change_of(stream, table, [*speeds, *sums], np.where(inside, slip, 0.0))


def _stretch(sums: Floats, scale: Floats, inside: Mask) -> Floats:
    """Scale the increments of sums (n, k) in the window; values before it are bit-identical."""
    extra = np.diff(sums, axis=0, prepend=sums[:1]) * (scale - 1.0)[:, None]
    gained = np.cumsum(np.nan_to_num(extra), axis=0)
    return np.where((np.cumsum(inside) > 0)[:, None], sums + gained, sums)


WHEEL_FAULTS = (
    Fault(
        "wheel_slip",
        "wheels turn more than the vehicle moves: speeds, ticks and odometry are too large",
        "a slip ratio of 0.8",
        (WheelState, Odometry),
        slipping,
        parameters={"slip": 0.8},
        unit="slip",
        reasons=("SLIP",),
    ),
)


_JOINT_SENSORS = ("encoder", "potentiometer")


def _kind_of_sensor(stream: Stream) -> str:
    """Return `encoder` or `potentiometer` for a stream of joints from one of them, else ""."""
    words = f"{stream.tag} {stream.name}".lower()
    return next((kind for kind in _JOINT_SENSORS if kind in words), "")


def _find_other_sensor(stream: Stream, recording: Recording) -> Stream | None:
    """Return the potentiometers of joints for their encoders, and vice versa; None if there are none."""
    kind, device = _kind_of_sensor(stream), stream.name.rpartition("/")[0]
    others = [s for s in recording if s.type is JointState and s.name.rpartition("/")[0] == device]
    wanted = [k for k in _JOINT_SENSORS if kind and k != kind]
    return next((s for s in others if _kind_of_sensor(s) in wanted), None)


def _has_drifting(kind: str) -> Callable[[Stream, Recording], bool]:
    def able(stream: Stream, recording: Recording) -> bool:
        return _kind_of_sensor(stream) == kind and _find_other_sensor(stream, recording) is not None

    return able


def drift_off(stream: Stream, event: Event) -> Change:
    """Let the error of one joint's angle grow in the window, with a sign by the seed."""
    values = flat_values(stream.table, "position")[0].reshape(len(stream), -1)
    inside = event.inside(stream)
    known = np.flatnonzero(np.isfinite(values[inside]).any(axis=0))
    if not len(known):
        return leave_unchanged(stream)
    draw = event.generator(stream.name, "joint")
    joint, sign = int(draw.choice(known)), draw.choice([-1.0, 1.0])
    fraction = np.where(inside, event.seconds(stream) / max(event.length(stream), 1e-9), 0.0)
    drifted = values.copy()
    drifted[:, joint] += sign * event.severity * event.parameters["radians"] * fraction
    table = with_flat(stream.table, "position", drifted.reshape(-1))
    return change_of(stream, table, ["position"], fraction)


JOINT_FAULTS = tuple(
    Fault(
        f"{kind}_drift",
        f"the {kind} of one joint drifts relative to the other sensor of the joint",
        "by 0.2 rad at the end",
        (JointState,),
        drift_off,
        parameters={"radians": 0.2},
        unit="rad",
        reasons=("DISAGREE",),
        able=_has_drifting(kind),
        needs=f"{kind}s of joints that also have {other}s",
    )
    for kind, other in (_JOINT_SENSORS, _JOINT_SENSORS[::-1])
)


def throw_off(stream: Stream, event: Event) -> Change:
    """Add errors of random size and sign to all measured values of some samples."""
    rows = np.flatnonzero(event.inside(stream))
    hit = np.zeros(len(stream), dtype=bool)
    hit[rows[event.choose(len(rows), event.severity * event.parameters["ratio"], stream.name)]] = True
    table, names = stream.table, signals(stream)
    for name in names:
        values, row = flat_values(table, name)
        draw = event.generator(stream.name, name, "spikes")
        largest = event.severity * MAX_SPIKE_BIASES * bias_of(stream, name)
        error = largest * draw.uniform(0.5, 1.0, len(values)) * draw.choice([-1.0, 1.0], len(values))
        table = with_flat(table, name, np.where(hit[row], values + error, values))
    return change_of(stream, table, names)


SPIKE_FAULTS = (
    Fault(
        "spikes",
        "single samples have large errors",
        "one sample in ten, by up to 10 m/s2, 1 rad/s, 10 m, 4 m/s, 1 rad, 100 N",
        tuple(kind for kind in SIGNALS if kind not in (LaserScan, RadarRange, NavFix)),
        throw_off,
        parameters={"ratio": 0.1},
        unit="fraction of the samples, and their error",
        reasons=("SPIKES",),
        able=has_signals,
        needs=MEASURED,
    ),
)
