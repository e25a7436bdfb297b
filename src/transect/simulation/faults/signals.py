"""Numbers that are off: noise, a bias that comes at once or grows, a full scale, nothing measured.

Satellite positions can be far off one by one, or float for a while; slipping wheels turn without getting
ahead; of the two sensors of an arm's joint one drifts off.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Mask
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

from .model import Change, Event, Fault, leave_alone
from .pictures import as_stored, white
from .samples import (
    EARTH,
    SIGNALS,
    change_of,
    flat_values,
    signals,
    with_flat,
    with_texts,
    wrap,
)

NOISE = {"m/s2": 0.05, "rad/s": 0.01, "m": 0.03, "m/s": 0.02, "rad": 0.002, "N": 0.5, "N m": 0.05}
"""Standard deviation of a sensor of ours, by its unit, where its own cannot be told from its samples."""
BIAS = {"m/s2": 0.5, "rad/s": 0.05, "m": 0.5, "m/s": 0.2, "rad": 0.05, "N": 5.0, "N m": 0.5}
"""A large bias, by the unit of what has it."""
PIXELS = 0.01
"""Noise of an image against the brightest pixel."""
_MAD = 1.4826
"""Standard deviation over median absolute deviation of a normal distribution."""


def own_noise(table: pa.Table, name: str) -> float:
    """Return the standard deviation of what changes from sample to sample in no direction.

    Second differences of a column of numbers leave the motion out; of lists it is taken from `NOISE`.
    """
    values, _ = flat_values(table, name)
    if len(values) == table.num_rows and len(values) > 10:
        second = np.abs(np.diff(values[np.isfinite(values)], n=2))
        own = _MAD * float(np.median(second)) / np.sqrt(6.0) if len(second) else 0.0
        if own > 0:
            return own
    if name in ("lat", "lon"):
        return NOISE["m"] / EARTH
    unit = (table.schema.field(name).metadata or {}).get(b"unit", b"").decode()
    return NOISE.get(unit, 0.0)


def has_signals(stream: Stream, recording: Recording) -> bool:
    """Tell whether a stream has pictures, or columns that are measured."""
    return stream.type is Image or bool(signals(stream))


MEASURED = "samples with measured values"


def noisy(stream: Stream, event: Event) -> Change:
    """Add noise: at severity 1 there is three times as much as before."""
    if stream.type is Image:
        return _noisy_images(stream, event)
    ratio = 1.0 + event.severity * (event.parameters["factor"] - 1.0)
    table, names = stream.table, signals(stream)
    for name in names:
        values, row = flat_values(table, name)
        added = own_noise(stream.table, name) * np.sqrt(ratio**2 - 1.0)
        draw = event.generator(stream.name, name).normal(size=len(values))
        table = with_flat(table, name, values + np.where(event.inside(stream)[row], added * draw, 0.0))
    return change_of(stream, table, names)


def _noisy_images(stream: Stream, event: Event) -> Change:
    ratio = 1.0 + event.severity * (event.parameters["factor"] - 1.0)
    added = PIXELS * np.sqrt(ratio**2 - 1.0)

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
    """Cut values off at a full scale that is below the largest of them."""
    inside, table, names = event.inside(stream), stream.table, list[str]()
    for group in _TRIADS[stream.type]:
        there = [name for name in group if name in stream.columns]
        columns = {name: flat_values(table, name) for name in there}
        sizes = [np.abs(values[inside[row] & np.isfinite(values)]) for values, row in columns.values()]
        peak = max((float(size.max()) for size in sizes if len(size)), default=0.0)
        full_scale = peak * (1.0 - event.severity * event.parameters["cut"])
        for name, (values, row) in columns.items():
            clipped = np.clip(values, -full_scale, full_scale)
            table = with_flat(table, name, np.where(inside[row], clipped, values))
        names += there
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
    """Add a bias for as long as the window lasts."""
    return _add_bias(stream, event, event.inside(stream).astype(np.float64))


def ramping(stream: Stream, event: Event) -> Change:
    """Add a bias that grows while the window lasts."""
    part = event.seconds(stream) / max(event.length(stream), 1e-9)
    return _add_bias(stream, event, np.where(event.inside(stream), part, 0.0))


def _add_bias(stream: Stream, event: Event, part: Floats) -> Change:
    """Add to each measured column a part (n,) of what is a large bias in its unit, up or down by the seed."""
    table, names = stream.table, signals(stream)
    for name in names:
        values, row = flat_values(table, name)
        sign = event.generator(stream.name, name, "sign").choice([-1.0, 1.0])
        size = event.severity * event.parameters["size"] * bias_of(stream, name)
        table = with_flat(table, name, values + sign * size * part[row])
    return change_of(stream, table, names, part)


def bias_of(stream: Stream, name: str) -> float:
    """Return a large bias of a column."""
    return 1.0 / EARTH if name in ("lat", "lon") else BIAS.get(stream.units[name], 0.0)


FAULTS = (
    Fault(
        "noise",
        "measured values are noisier",
        "three times the noise that they have",
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
        "values are cut off at a full scale",
        "nine tenths of the largest value are cut off",
        tuple(_TRIADS),
        clip,
        parameters={"cut": 0.9},
        unit="share of the largest value",
        reasons=("SATURATED",),
    ),
    Fault(
        "nan",
        "all values of some samples are NaN: not measured",
        "all samples of the window",
        tuple(kind for kind in SIGNALS if kind is not LaserScan),  # there NaN is a beam without a return
        measure_nothing,
        unit="share of the samples",
        reasons=("NAN",),
        able=has_signals,
        needs=MEASURED,
    ),
)


_STD = ("std_north", "std_east", "std_down")
_FLOAT = FIX_TYPES.index("rtk float")


def shift_positions(stream: Stream, table: pa.Table, north: Floats, east: Floats, up: Floats) -> pa.Table:
    """Return positions that are off by (n,) metres."""
    latitude = np.asarray(stream["lat"], dtype=np.float64)
    offsets = {"lat": north / EARTH, "lon": east / (EARTH * np.cos(latitude)), "alt": up}
    for name, offset in offsets.items():
        if name in stream.columns:
            values, _ = flat_values(table, name)
            table = with_flat(table, name, np.where(offset != 0.0, values + offset, values))
    return table


def spiking(stream: Stream, event: Event) -> Change:
    """Throw single positions far off; the receiver does not notice, so its deviations stay."""
    draw = event.generator(stream.name, "spikes")
    luck, heading, size = (
        draw.random(len(stream)),
        draw.uniform(-np.pi, np.pi, len(stream)),
        draw.random(len(stream)),
    )
    inside = event.inside(stream)
    chance = event.severity * event.parameters["share"]
    hit = inside & (luck <= max(chance, luck[inside].min(initial=1.0)))  # one at the least
    far = np.where(hit, event.severity * event.parameters["metres"] * (0.5 + 0.5 * size), 0.0)
    table = shift_positions(stream, stream.table, far * np.cos(heading), far * np.sin(heading), 0.5 * far)
    return change_of(stream, table, ["lat", "lon", "alt"])


def floating(stream: Stream, event: Event) -> Change:
    """Lose the fixed ambiguities: positions wander, deviations grow, RTK fixed becomes float."""
    inside = event.inside(stream)
    size = event.severity * event.parameters["metres"]
    draw = event.generator("wander")
    phase, period = draw.uniform(0, 2 * np.pi, (3, 3)), draw.uniform(15.0, 60.0, (3, 3))
    seconds = event.seconds(stream)[:, None, None]
    wander = np.cos(2 * np.pi * seconds / period + phase).mean(axis=2) * np.where(inside, size, 0.0)[:, None]
    table = shift_positions(stream, stream.table, *wander.T)
    deviations = [name for name in _STD if name in stream.columns]
    for name in deviations:
        values, _ = flat_values(table, name)
        table = with_flat(table, name, np.where(inside, np.fmax(values, size), values))
    names = ["lat", "lon", "alt", *deviations]
    if "fix" in stream.columns and isinstance(texts := stream["fix"], list):
        table = with_texts(table, "fix", [_float(t) if i else t for t, i in zip(texts, inside, strict=True)])
        names.append("fix")
    return change_of(stream, table, names)


def _float(fix: str) -> str:
    return FIX_TYPES[_FLOAT] if fix in FIX_TYPES and FIX_TYPES.index(fix) > _FLOAT else fix


GNSS_FAULTS = (
    Fault(
        "gnss_spike",
        "single positions are far off, and their deviations do not say so",
        "one in ten is up to 50 m off",
        (NavFix,),
        spiking,
        parameters={"share": 0.1, "metres": 50.0},
        unit="share of the positions, and their metres",
        reasons=("NIS", "POSITION_JUMP", "SPIKES"),
    ),
    Fault(
        "gnss_float",
        "RTK loses its fix: positions wander, deviations grow, fixed becomes float",
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
"""Columns that add up: what they gained too much while the wheels slipped, they keep."""


def slipping(stream: Stream, event: Event) -> Change:
    """Let wheels turn faster than the ground goes by: ``slip = 1 - v_ground / v_wheel``."""
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
    """Return sums (n, k) whose steps are longer inside the window; before it they stay to the bit."""
    extra = np.diff(sums, axis=0, prepend=sums[:1]) * (scale - 1.0)[:, None]
    gained = np.cumsum(np.nan_to_num(extra), axis=0)
    return np.where((np.cumsum(inside) > 0)[:, None], sums + gained, sums)


WHEEL_FAULTS = (
    Fault(
        "wheel_slip",
        "wheels turn more than the vehicle moves: speeds, ticks and odometry run ahead",
        "four fifths of the turning is slip",
        (WheelState, Odometry),
        slipping,
        parameters={"slip": 0.8},
        unit="slip",
        reasons=("SLIP",),
    ),
)


_JOINT_SENSORS = ("encoder", "potentiometer")


def _kind_of_sensor(stream: Stream) -> str:
    """Return `encoder` or `potentiometer` where a stream of joints is from one of them, else ""."""
    words = f"{stream.tag} {stream.name}".lower()
    return next((kind for kind in _JOINT_SENSORS if kind in words), "")


def _find_other_sensor(stream: Stream, recording: Recording) -> Stream | None:
    """Return the potentiometers of the joints whose encoders are given, and the reverse; None for none."""
    kind, device = _kind_of_sensor(stream), stream.name.rpartition("/")[0]
    others = [s for s in recording if s.type is JointState and s.name.rpartition("/")[0] == device]
    wanted = [k for k in _JOINT_SENSORS if kind and k != kind]
    return next((s for s in others if _kind_of_sensor(s) in wanted), None)


def _has_drifting(kind: str) -> Callable[[Stream, Recording], bool]:
    def able(stream: Stream, recording: Recording) -> bool:
        return _kind_of_sensor(stream) == kind and _find_other_sensor(stream, recording) is not None

    return able


def drift_off(stream: Stream, event: Event) -> Change:
    """Let one joint's angle move away from the true one while the window lasts, up or down by the seed."""
    values = flat_values(stream.table, "position")[0].reshape(len(stream), -1)
    inside = event.inside(stream)
    known = np.flatnonzero(np.isfinite(values[inside]).any(axis=0))
    if not len(known):
        return leave_alone(stream)
    draw = event.generator(stream.name, "joint")
    joint, sign = int(draw.choice(known)), draw.choice([-1.0, 1.0])
    part = np.where(inside, event.seconds(stream) / max(event.length(stream), 1e-9), 0.0)
    moved = values.copy()
    moved[:, joint] += sign * event.severity * event.parameters["radians"] * part
    return change_of(stream, with_flat(stream.table, "position", moved.reshape(-1)), ["position"], part)


JOINT_FAULTS = tuple(
    Fault(
        f"{kind}_drift",
        f"the {kind} of one joint drifts away from the other sensor of the joint",
        "in the end by 0.2 rad",
        (JointState,),
        drift_off,
        parameters={"radians": 0.2},
        unit="rad",
        reasons=("DISAGREE",),
        able=_has_drifting(kind),
        needs=f"{kind}s of joints that have {other}s as well",
    )
    for kind, other in (_JOINT_SENSORS, _JOINT_SENSORS[::-1])
)


FAR = 20.0
"""Large biases of its unit by which a value is off at most."""


def throw_off(stream: Stream, event: Event) -> Change:
    """Throw all measured values of some samples off, up or down, each by its own luck."""
    rows = np.flatnonzero(event.inside(stream))
    hit = np.zeros(len(stream), dtype=bool)
    hit[rows[event.choose(len(rows), event.severity * event.parameters["share"], stream.name)]] = True
    table, names = stream.table, signals(stream)
    for name in names:
        values, row = flat_values(table, name)
        draw = event.generator(stream.name, name, "spikes")
        size = event.severity * FAR * bias_of(stream, name) * draw.uniform(0.5, 1.0, len(values))
        off = size * draw.choice([-1.0, 1.0], len(values))
        table = with_flat(table, name, np.where(hit[row], values + off, values))
    return change_of(stream, table, names)


SPIKE_FAULTS = (
    Fault(
        "spikes",
        "single samples are far off",
        "one sample in ten, by up to 10 m/s2, 1 rad/s, 10 m, 4 m/s, 1 rad, 100 N",
        tuple(kind for kind in SIGNALS if kind not in (LaserScan, RadarRange, NavFix)),
        throw_off,
        parameters={"share": 0.1},
        unit="share of the samples, and how far",
        reasons=("SPIKES",),
        able=has_signals,
        needs=MEASURED,
    ),
)
