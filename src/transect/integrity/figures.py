"""Figures of verdicts: a strip of states for each sensor, and its data at the worst moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats, Mask
from transect.base.clocks import NS, decimal_from_ns
from transect.base.files import file_name
from transect.draw.figures import save_figure
from transect.draw.moment import RangePanel, moment_figure
from transect.draw.timelines import StateStrip, curves_figure, signal_figure, states_figure
from transect.errors import TransectError
from transect.geometry import geodesy
from transect.recording import Recording, Stream
from transect.robots.moment import KINDS, Moment, MomentOptions, draw_recordings, show_ranges
from transect.types import Image, LaserScan, NavFix, Odometry, RadarRange, Verdict, WheelState

from .motion import grid_of, mean_speed, speed_over_ground
from .report import SensorProblem, SensorReport, reason_of, time_text
from .windows import Grid, Window, WindowedStream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGIN_NS = 10 * NS
"""Time before and after the worst moment for which a signal is drawn."""


def draw_report(recording: Recording, reports: Sequence[SensorReport], folder: Path) -> list[Path]:
    """Draw a strip of states for each sensor, and its data at the worst moments; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    first = min((r.windows[0].t0_ns for r in reports if r.windows), default=0)
    paths = [folder / "sensors.png"]
    save_figure(states_figure([_strip_of(report, first) for report in reports], recording.name), paths[0])
    starts = {stream.name: first for stream in recording}
    for number, (problem, figure) in enumerate(picture_problems(recording, reports, starts), 1):
        name = file_name(f"{number:02d}_{problem.stream}_{problem.reason}".replace("/", "_"))
        paths.append(folder / f"{name}.png")
        save_figure(figure, paths[-1], dpi=90)
    return paths


def picture_problems(
    recording: Recording, reports: Sequence[SensorReport], starts: Mapping[str, int], most: int = 12
) -> Iterator[tuple[SensorProblem, Figure]]:
    """Yield figures of the worst moments of BAD sensors, for streams that can be drawn.

    Parameters
    ----------
    starts : mapping of str to int
        Origin of the time axis of each stream, ns.
    most : int
        Largest number of problems.
    """
    bad = [problem for report in reports for problem in report.problems if problem.state == "BAD"]
    # Several checks may find the same problem: it is drawn once.
    problems = {(problem.stream, problem.reason): problem for problem in reversed(bad)}
    for problem in list(reversed(problems.values()))[:most]:
        for figure in _figures_of(recording, problem, starts[problem.stream]):
            yield problem, figure


def _strip_of(report: SensorReport, first: int) -> StateStrip:
    edges = [verdict.t0_ns for verdict in report.windows] + [report.windows[-1].t1_ns]
    reason = report.problems[0].reason if report.problems else ""
    states = [verdict.state for verdict in report.windows]
    return StateStrip(report.sensor, (np.array(edges) - first) / NS, states, reason)


def _figures_of(recording: Recording, problem: SensorProblem, first: int) -> Iterator[Figure]:
    """Yield the figure of a problem, if its stream can be drawn."""
    stream = recording[problem.stream]
    t0, t1 = problem.worst.t0_ns, problem.worst.t1_ns
    at = (t0 + t1) // 2
    title = f"{stream.name} {reason_of(problem.reason).words}, {time_text(t0 - first)}"
    if stream.type not in KINDS:
        yield from _signals_of(recording, stream, problem, at, title)
        return
    moment = Moment(recording, stream.clock, at, window=(t0, t1))
    radar = _find_peer(recording, stream, problem.worst.peers, RadarRange)
    try:
        if stream.type is LaserScan and radar and moment.is_level(stream):
            panel = mask_returns(show_ranges(moment, stream, radar), moment.part(stream), [problem.worst])
            yield moment_figure([replace(panel, name="")], title)
            return
        other = _find_peer(recording, stream, problem.worst.peers, Image)
        names = tuple(escape(each.name) for each in (stream, other or radar) if each)
        choice = MomentOptions(streams=names, times=(decimal_from_ns(at),), title=title)
        yield draw_recordings([recording], choice)[0]
    except TransectError:
        return  # no data at that time; the strip of states shows it


def _find_peer(recording: Recording, stream: Stream, compared: Sequence[str], kind: type) -> Stream | None:
    """Return a sensor to draw beside a stream: a radar for a laser, a camera for a camera; None without one.

    The peers of the verdict are preferred.
    """
    if (kind is Image and stream.type is not Image) or (kind is RadarRange and stream.type is not LaserScan):
        return None
    others = [o for o in recording if o.type is kind and len(o) and o is not stream]
    return next(iter(sorted(others, key=lambda o: o.name not in compared)), None)


def _speeds_of(recording: Recording, problem: SensorProblem, at: int) -> dict[str, tuple[Floats, Floats]]:
    """Return times, s, and speeds, m/s, of the wheels and of their peers, by name, around a time."""
    edges = np.arange(at - MARGIN_NS, at + MARGIN_NS + NS, NS)
    found: dict[str, tuple[Floats, Floats]] = {}
    for name in (problem.stream, *problem.worst.peers):
        windowed = WindowedStream[object](recording[name], Grid(edges, NS))
        windows = [Window(windowed, k, max(0, k - 2)) for k in range(len(edges) - 1)]
        speeds = np.array([_speed_in(each) for each in windows])
        if np.isfinite(speeds).any():
            found[name] = (edges[1:] - NS - at) / NS, speeds
    return found


def _speed_in(window: Window[object]) -> float:
    """Return the speed in the last second of a window, m/s; NaN if unknown."""
    t_ns = grid_of(window.t1_ns, 1.0)
    if issubclass(window.stream.type, WheelState | Odometry):
        speed = mean_speed(window, t_ns[None]) if len(window) else None
    else:
        reference = speed_over_ground(window, t_ns) if len(window) else None
        speed = None if reference is None else reference.values
    return np.nan if speed is None or not len(speed) else float(np.median(speed))


def _signals_of(
    recording: Recording, stream: Stream, problem: SensorProblem, at: int, title: str, max_signals: int = 4
) -> Iterator[Figure]:
    if problem.reason == "SLIP" and len(speeds := _speeds_of(recording, problem, at)) > 1:
        marked = ((problem.worst.t0_ns - at) / NS, (problem.worst.t1_ns - at) / NS)
        yield curves_figure(speeds, "speed [m/s]", marked, title)
        return
    near = stream.between(at - MARGIN_NS, at + MARGIN_NS)
    names = [name for name in stream.columns if near.table.num_rows and _is_scalar(near, name)]
    if len(near) < 2:
        return
    steps = np.diff(near.t_ns, prepend=near.t_ns[:1]) / NS
    signals = dict(_signal(near, name) for name in names[:max_signals])
    signals = {label: values for label, values in signals.items() if np.nanmin(values) < np.nanmax(values)}
    window = problem.worst.t0_ns, problem.worst.t1_ns
    marked = ((window[0] - at) / NS, (window[1] - at) / NS)
    yield signal_figure((near.t_ns - at) / NS, {"step [s]": steps, **signals}, marked, title)


def _signal(stream: Stream, name: str) -> tuple[str, Floats]:
    """Return a column with its label; latitude and longitude as metres north and east of their median."""
    values = np.asarray(stream.column(name), np.float64)
    if stream.type is NavFix and name in ("lat", "lon"):
        latitude = float(np.nanmedian(np.asarray(stream.column("lat"), np.float64)))
        scale = geodesy.WGS84.semi_major * (np.cos(latitude) if name == "lon" else 1.0)
        return "east [m]" if name == "lon" else "north [m]", (values - np.nanmedian(values)) * scale
    unit = stream.units.get(name, "")
    return f"{name} [{unit}]" if unit else name, values


def _is_scalar(stream: Stream, name: str) -> bool:
    import pyarrow as pa

    return pa.types.is_floating(stream.table.schema.field(name).type)


def mask_returns(panel: RangePanel, scans: Stream, verdicts: Sequence[Verdict]) -> RangePanel:
    """Return a panel of a laser's scans in which the returns that verdicts mask are marked."""
    masked: list[Mask] = [np.zeros(len(scan), np.bool_) for scan in panel.scans]
    for verdict in verdicts:
        rows = np.flatnonzero((scans.t_ns >= verdict.t0_ns) & (scans.t_ns < verdict.t1_ns))
        if verdict.region is None or not len(rows):
            continue
        # The scans may start or end within a window: their rows are the last or the first ones of the mask.
        begin = len(verdict.region) - len(rows) if rows[0] == 0 else 0
        for row, drop in zip(rows.tolist(), verdict.region[max(begin, 0) :], strict=False):
            masked[row] |= drop[: len(masked[row])]
    return replace(panel, masked=masked)
