"""Small recordings, and pages of them, that several tests look at."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from tests.integrity.recordings import START_NS, drive

from transect.base.clocks import NS
from transect.recording import FrameTree, Recording, stream_of_values
from transect.types import Imu, Record
from transect.view.report import ReportOptions, gather, write_page
from transect.view.report.facts import ReportFacts

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&<b>\u202e"


def gather_one(recording: Recording, **wanted: object) -> ReportFacts:
    """Return the report on a recording that is in memory."""
    chosen = ReportOptions(**{"pictures": 0, **wanted})  # type: ignore[arg-type]
    report, _ = gather(["there"], lambda *_: recording, chosen, command="transect report there")
    return report


def page_of(recording: Recording, **wanted: object) -> str:
    """Return the page of a recording that is in memory."""
    return write_page(gather_one(recording, **wanted))


def broken_drive() -> Recording:
    """Return a drive whose fixes jump by 40 m for a while, and whose odometry has a gap of 4 s."""
    whole = drive(30)
    gps, odom = whole["gps"], whole["odom"]
    lat = np.array(gps["lat"])
    lat[90:115:3] += 40 / 6.37e6
    fixes = {name: gps[name] if name != "lat" else lat for name in gps.columns}
    seconds = (odom.t_ns - START_NS) / NS
    kept = odom.take((seconds < 20) | (seconds >= 24))
    jumping = stream_of_values("gps", gps.t_ns, fixes, type=gps.type)
    return whole.replace(streams=tuple({"gps": jumping, "odom": kept}.get(s.name, s) for s in whole))


@cache
def broken_report() -> ReportFacts:
    """Return the report on that drive."""
    return gather_one(broken_drive())


def hostile_recording() -> Recording:
    """Return a recording in which every text that comes out of a log is an attack."""
    times = START_NS + NS * np.arange(20)
    column = {f"v{HOSTILE}": np.arange(20.0), "acc_x": np.sin(np.arange(20.0))}
    frames = FrameTree()
    frames.add_static(HOSTILE, f"child {HOSTILE}", np.eye(4), source=HOSTILE)
    return Recording(
        f"name {HOSTILE}",
        (
            stream_of_values(
                f"stream {HOSTILE}", times, column, type=Record, tag=HOSTILE, units={"acc_x": HOSTILE}
            ),
            stream_of_values(HOSTILE, times, {"acc_x": np.ones(20)}, type=Imu, frame=HOSTILE),
            stream_of_values("empty", times[:0], {"x": np.zeros(0)}, type=Record),
            stream_of_values("timeless", np.arange(9), {"x": np.arange(9.0)}, type=Record, clock="index"),
        ),
        frames=frames,
        conditions={HOSTILE: HOSTILE},
        notes=(HOSTILE,),
        format=HOSTILE,
    )  # fmt: skip


def write(page: str, folder: Path, name: str = "report.html") -> str:
    """Write a page and return its address."""
    path = folder / name
    path.write_text(page, "utf-8")
    return path.as_uri()
