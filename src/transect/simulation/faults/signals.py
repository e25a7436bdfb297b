"""Numbers that are off: more noise, a bias that comes at once or grows, wrong fixes, wheels that slip.

Satellite positions can be far off one by one, or float for a while; slipping wheels turn without getting
ahead.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Mask
from transect.recording import Stream
from transect.types import FIX_TYPES, Image, NavFix, Odometry, WheelState

from ._columns import EARTH, SIGNALS, change_of, flat_values, signals, with_flat, with_texts
from ._model import Change, Event, Fault
from ._payloads import wrap
from .pictures import as_stored, white

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
        size = event.severity * event.parameters["size"] * _bias(stream, name)
        table = with_flat(table, name, values + sign * size * part[row])
    return change_of(stream, table, names, part)


def _bias(stream: Stream, name: str) -> float:
    return 1.0 / EARTH if name in ("lat", "lon") else BIAS.get(stream.units[name], 0.0)


FAULTS = (
    Fault(
        "noise",
        "measured values are noisier",
        "three times the noise that they have",
        (*SIGNALS, Image),
        noisy,
        parameters={"factor": 3.0},
    ),
    Fault(
        "bias_step",
        "measured values are off by a constant",
        "by 0.5 m/s2, 0.05 rad/s, 0.5 m, 0.2 m/s, 0.05 rad, 5 N (1 m of latitude and longitude)",
        tuple(SIGNALS),
        stepping,
        parameters={"size": 1.0},
    ),
    Fault(
        "bias_ramp",
        "measured values are off by more and more",
        "in the end by as much as a bias_step",
        tuple(SIGNALS),
        ramping,
        parameters={"size": 1.0},
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
    ),
    Fault(
        "gnss_float",
        "RTK loses its fix: positions wander, deviations grow, fixed becomes float",
        "by about 1 m",
        (NavFix,),
        floating,
        parameters={"metres": 1.0},
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
    ),
)
