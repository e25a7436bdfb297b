"""Times for an odometry that was echoed without any: even ones, where its speed fits that of RTK best."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect import robots
from transect.base.clocks import NS
from transect.errors import GeometryError
from transect.recording import Stream

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
