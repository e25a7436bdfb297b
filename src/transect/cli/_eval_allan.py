"""What `transect allan` computes, prints, writes and draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transect.errors import StreamError

if TYPE_CHECKING:
    from transect.evaluation.static import Axis
    from transect.recording import Recording, Stream

HEADINGS = ("axis", "N", "B", "K", "minimum at [s]", "unit")
UNITS = {"gyro": "rad/s", "acc": "m/s2"}


@dataclass(frozen=True)
class Found:
    """The noise of a stream; `rest` is its [first, last) samples."""

    stream: str
    rest: tuple[int, int]
    samples: int
    seconds: float
    rate: float
    axes: Mapping[str, Axis]
    notes: tuple[str, ...]


def imu_of(recording: Recording, name: str | None) -> Stream:
    """Return the IMU that is meant."""
    from transect.types import Imu

    if name is not None:
        chosen = recording[name]
        if not issubclass(chosen.type, Imu):
            raise StreamError(f"{chosen.name} is no IMU", why=f"its samples are {chosen.type.__name__}")
        return chosen
    found = [s for s in recording if issubclass(s.type, Imu) and len(s)]
    if len(found) != 1:
        what = "several IMUs" if found else "no IMU"
        names = ", ".join(s.name for s in found or recording)
        raise StreamError(f"{recording.name} has {what}", why=names, hint="--stream NAME")
    return found[0]


def analysed(stream: Stream, whole: bool) -> Found:
    """Find the rest and compute all axes; samples that were not measured are left out of a whole stream."""
    import numpy as np

    from transect.evaluation.static import AXES, imu_noise, longest_rest, rate_of

    t_ns, values = stream.t_ns, stream.array(*AXES)
    order = np.argsort(t_ns, kind="stable")
    known = order[np.isfinite(values[order]).all(axis=1)]
    notes = [f"{len(t_ns) - len(known)} samples not measured: left out"] if len(known) < len(t_ns) else []
    t_ns, values = t_ns[known], values[known]
    first, last = 0, len(t_ns)
    if not whole:
        rest = longest_rest(t_ns, values[:, :3], values[:, 3:])
        first, last = rest.first, rest.last
    t_ns, values = t_ns[first:last], values[first:last]
    axes = imu_noise(t_ns, values[:, :3], values[:, 3:])
    rate = rate_of(t_ns)
    seconds = len(t_ns) / rate
    return Found(stream.name, (first, last), len(known), seconds, rate, axes, tuple(notes))


def show(found: Found, as_json: bool) -> None:
    """Print the table, or the document with the curves."""
    from transect.evaluation.result import plain

    from ._tables import show_json, show_table

    if as_json:
        show_json(plain(_document(found)))
        return
    rows = [
        (name, *(_number(v) for v in (m.white, m.instability, m.walk, m.tau)), UNITS[name.split("_")[0]])
        for name, m in ((name, axis.model) for name, axis in found.axes.items())
    ]
    show_table(HEADINGS, rows, right=frozenset(range(1, 5)))
    first, last = found.rest
    click.echo(
        f"\n{found.stream}: samples {first} to {last - 1} of {found.samples}, {found.seconds:.1f} s at "
        f"{found.rate:.6g} Hz"
    )
    click.echo("N: unit / sqrt(Hz); B: unit; K: unit * sqrt(Hz); -: the curve has no such part")
    for note in found.notes:
        click.echo(note)


def _document(found: Found) -> dict[str, Any]:
    axes = {
        name: {
            "unit": UNITS[name.split("_")[0]],
            "N": axis.model.white,
            "B": axis.model.instability,
            "K": axis.model.walk,
            "K_limit": axis.walk_limit,
            "minimum_tau_s": axis.model.tau,
            "deviation": axis.allan.deviation,
            "low": axis.allan.low,
            "high": axis.allan.high,
        }
        for name, axis in found.axes.items()
    }
    tau = next(iter(found.axes.values())).allan.tau
    return {
        "stream": found.stream,
        "rest": {"first": found.rest[0], "last": found.rest[1], "seconds": found.seconds},
        "samples": found.samples,
        "rate_hz": found.rate,
        "tau_s": tau,
        "axes": axes,
        "notes": found.notes,
    }


def write_kalibr(found: Found, path: Path) -> None:
    """Write an IMU file for Kalibr."""
    from transect.base.files import write_text
    from transect.evaluation.static import kalibr_text

    topic = found.stream if found.stream.startswith("/") else f"/{found.stream.lower()}"
    write_text(path, kalibr_text(found.axes, found.rate, topic))


def draw(found: Found, path: Path, name: str) -> None:
    """Draw the curves of all axes with what was fitted."""
    from transect.draw.evaluation import AllanCurve, allan_figure
    from transect.draw.figures import save_figure

    panels: dict[str, dict[str, AllanCurve]] = {"gyroscope [rad/s]": {}, "accelerometer [m/s$^2$]": {}}
    for axis_name, axis in found.axes.items():
        sensor, axis_letter = axis_name.split("_")
        panel = next(label for label in panels if label.startswith(sensor))
        a, m = axis.allan, axis.model
        panels[panel][axis_letter] = AllanCurve(
            a.tau, a.deviation, a.low, a.high, m.white, m.instability, m.walk
        )
    title = f"{name}: {found.stream}, {found.seconds:.0f} s at {found.rate:.4g} Hz"
    save_figure(allan_figure(panels, title=title), path, dpi=200)


def _number(value: float) -> str:
    return f"{value:.4g}" if value == value else "-"
