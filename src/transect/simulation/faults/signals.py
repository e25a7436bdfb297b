"""Numbers that are off: more noise, a bias that comes at once, a bias that grows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats
from transect.recording import Stream
from transect.types import Image

from ._columns import EARTH, SIGNALS, change_of, flat_values, signals, with_flat
from ._model import Change, Event, Fault
from ._payloads import wrapped
from .haze import as_stored, white

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

    return wrapped(stream, event, event.inside(stream), np.ones(len(stream)), altered)


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
