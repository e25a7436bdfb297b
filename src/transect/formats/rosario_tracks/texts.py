"""The texts of the published tracks: a ground truth whose times were floats, an echoed odometry."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect import robots
from transect.base.clocks import NS
from transect.errors import GeometryError
from transect.recording import Loss, Parsed, Stream, arrow
from transect.recording.source import Buffer
from transect.types import Odometry, Pose

from .._rows import exact_stamps, read_lines

ADDED = (1.96, -0.017, 1.02)
"""Metres: where the imu is in base_link; it was added to Rosario's ground truth."""
_BLOCK = re.compile(rb"(?m)^x: (\S+)\r?\n\s*y: (\S+)\r?\n\s*z: (\S+)\r?\n---\r?\n?")


def added_to(rosario: bool) -> tuple[float, float, float]:
    """Return what was added to the positions of a ground truth, as far as it is known, m."""
    return ADDED if rosario else (0.0, 0.0, 0.0)


def read_truth(buffer: Buffer, file: str, added: tuple[float, float, float]) -> Parsed:
    """Read nanoseconds (as a decimal, also with an exponent), x, y, z, and a quaternion that is left out."""
    tokens, lines, losses = read_lines(buffer, file, (8,))
    t_ns, lines, untimed = exact_stamps(tokens, 0, lines, file, unit_ns=1)
    position = tokens.block(1, 3, lines) - np.array(added)
    columns = {axis: position[:, i] for i, axis in enumerate("xyz")}
    return Parsed(arrow.table(t_ns, columns, units=Pose.units()), (*losses, *untimed))


def read_echo(buffer: Buffer, file: str) -> Parsed:
    """Read blocks of `x:`, `y:`, `z:`, `---`; sample i stands at i seconds of the index clock."""
    data = bytes(buffer)
    rows: list[list[float]] = []
    bad: list[int] = []
    at = 0
    for match in _BLOCK.finditer(data):
        if data[at : match.start()].strip():
            bad.append(at)
        row = _numbers(match)
        if row is None:
            bad.append(match.start())
        else:
            rows.append(row)
        at = match.end()
    if data[at:].strip():
        bad.append(at)
    position = np.array(rows, np.float64).reshape(-1, 3)
    columns = {axis: position[:, i] for i, axis in enumerate("xyz")}
    table = arrow.table(NS * np.arange(len(rows)), columns, units=Odometry.units())
    return Parsed(table, _echo_losses(data, bad, file))


def _numbers(match: re.Match[bytes]) -> list[float] | None:
    try:
        return [float(text) for text in match.groups()]
    except ValueError:
        return None


def _echo_losses(data: bytes, bad: list[int], file: str) -> tuple[Loss, ...]:
    if not bad:
        return ()
    line = 1 + data.count(b"\n", 0, bad[0])
    return (Loss(file, "not a block of x, y, z and ---", line=line, count=len(bad)),)


LEAST = 0.7
"""Correlation of speeds that is believed: of tracks that do not belong together it is 0.4 at most."""


class Stamps(NamedTuple):
    """Times (n,) on the clock of the truth, None where they cannot be told, and what to say of them."""

    t_ns: NDArray[np.int64] | None
    said: str


def stamps_by(truth: Stream, odometry: Stream) -> Stamps:
    """Return times for the samples of an odometry by a true track that was recorded at the same time."""
    from transect.robots.weeder.comparison import Track, associate

    rate = float(robots.load("weeder").constants["odometry_rate"])
    order = np.argsort(truth.t_ns, kind="stable")
    track = Track(truth.t_ns[order], truth.array("x", "y", "z")[order])
    if not len(track.t_ns):
        return Stamps(None, "there is nothing to compare its speed with")
    try:
        t_ns, found = associate(track, odometry.array("x", "y", "z"), rate)
    except GeometryError:
        return Stamps(None, "its speed cannot be compared with RTK's")
    if found.correlation < LEAST or not found.confidence:
        return Stamps(None, f"its speed does not fit RTK's (correlation {found.correlation:.2f})")
    return Stamps(
        t_ns,
        f"{rate:g} Hz are assumed (by the documentation), beginning {found.offset_ns / NS:+.2f} s after RTK, "
        f"where the speeds correlate best ({found.correlation:.2f}); --option stamps=none leaves it on the "
        "index clock",
    )
