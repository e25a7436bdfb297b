"""What other tools say of the same recordings.

- `rates`: rules by which teams check a data set before it is published (frequency within 10 %, at most 5 % of
  the samples dropped, no late start, no early end), given the true rates
- `dror`: the dynamic radius outlier filter on the scans of lasers: a window in which it removes more than 1 %
- `robot-triage`: the package of that name, if it is installed; it reads what we export as MCAP
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.integrity.results import Said, runs_of
from transect import formats
from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS
from transect.errors import TransectError
from transect.geometry.neighbours import dynamic_radius_inliers
from transect.integrity.rules import RULES
from transect.integrity.runner import checkable
from transect.recording import Recording, Stream, arrow
from transect.recording.sessions import robust_span
from transect.types import LaserScan, RadarSpectrum

TRIAGE = "robot-triage"
TRIAGE_REASONS: Mapping[str, str] = {"dropout": "GAP", "freeze": "STUCK", "jump": "NIS", "range": "NAN"}
"""What its detectors mean, in our words."""
_TRIAGE_SCRIPT = """
import json, sys
from robot_triage.cli import run
found = [[e.detector, e.t_start, e.t_end, e.details.get("topic", "")] for e in run(sys.argv[1], {})]
print(json.dumps(found))
"""
MAX_RATE_ERROR, MAX_DROP_RATIO, EDGE_S = 0.1, 0.05, 1.0
"""Limits of `rates`: relative error of a frequency, ratio of lost samples, ignored time at both ends."""
MAX_REMOVED_RATIO, MAX_SCANS = 0.01, 4
"""Limits of `dror`: ratio of removed returns of a window, and number of examined scans per window."""


def ask(recording: Recording, clear: Recording, seconds: float) -> dict[str, tuple[Said, ...]]:
    """Return by peer what it says of a recording.

    Parameters
    ----------
    clear : Recording
        Recording without the fault, for the true rates.
    seconds : float
        Length of the session, which is the latency of a tool that reads all of it first.
    """
    said = {
        "rates": tuple(_apply_rates(recording, clear, seconds)),
        "dror": tuple(_filter_lasers(recording)),
    }
    if (python := find_triage()) is not None:
        said[TRIAGE] = tuple(_ask_triage(recording, python, seconds))
    return said


def _begin(recording: Recording) -> dict[str, int]:
    """Return by clock when the first stream begins."""
    begins: dict[str, int] = {}
    for stream in filter(checkable, recording):
        first = robust_span(stream)[0]
        begins[stream.clock] = min(first, begins.get(stream.clock, first))
    return begins


def _apply_rates(recording: Recording, clear: Recording, seconds: float) -> Iterator[Said]:
    begins = _begin(recording)
    for stream in filter(checkable, recording):
        first, last = ((t - begins[stream.clock]) / NS for t in robust_span(stream))
        steps = np.diff(clear[stream.name].t_ns)
        usual = float(np.median(steps)) / NS if len(steps) else 0.0
        if usual <= 0 or last <= first:
            continue
        if abs((len(stream) - 1) * usual / (last - first) - 1) > MAX_RATE_ERROR:
            yield Said(stream.name, first, last, "RATE", seconds)
        if 1 - (len(stream) - 1) * usual / (last - first) > MAX_DROP_RATIO:
            yield Said(stream.name, first, last, "GAP", seconds)
        if first > EDGE_S + usual:
            yield Said(stream.name, 0.0, first, "LATE_START", seconds)
        if seconds - last > EDGE_S + usual:
            yield Said(stream.name, last, seconds, "EARLY_STOP", seconds)


def _filter_lasers(recording: Recording) -> Iterator[Said]:
    begins = _begin(recording)
    for stream in recording:
        if issubclass(stream.type, LaserScan) and checkable(stream):
            number = (stream.t_ns - begins[stream.clock]) // NS
            for first, last in runs_of(_find_filtered(stream, number), RULES.k_off):
                yield Said(stream.name, first, last + 1.0, "ISOLATED", first + 1.0)


def _find_filtered(stream: Stream, number: Ints) -> list[int]:
    """Return the windows in which the filter removes too much, given those (n,) of all scans."""
    found: list[int] = []
    for window in np.unique(number).tolist():
        rows = np.flatnonzero(number == window)
        rows = rows[:: max(1, len(rows) // MAX_SCANS)][:MAX_SCANS]
        if float(np.mean([_removed(stream, row) for row in rows.tolist()])) > MAX_REMOVED_RATIO:
            found.append(window)
    return found


def _removed(stream: Stream, row: int) -> float:
    """Return the part of the returns of a scan that the filter removes."""
    scan = stream.table.slice(row, 1)
    ranges: Floats = arrow.numbers(scan, "ranges")[0]
    start, step = (float(arrow.numbers(scan, name)[0]) for name in ("start_angle", "angle_increment"))
    angles = start + step * np.arange(len(ranges))
    points = np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles), 0 * ranges])
    points = points[np.isfinite(ranges)]
    return 1 - float(np.mean(dynamic_radius_inliers(points, abs(step)))) if len(points) else 0.0


def find_triage() -> str | None:
    """Return the Python that has robot-triage: this one, or that of the command; None without."""
    if find_spec("robot_triage") is not None:
        return sys.executable
    command = shutil.which(TRIAGE)
    python = Path(command).with_name("python3") if command else None
    return str(python) if python is not None and python.exists() else None


def _ask_triage(recording: Recording, python: str, seconds: float) -> Iterator[Said]:
    """Run robot-triage on an export; what cannot be exported is left out, and nothing is said of it."""
    begins = _begin(recording)
    chosen = [
        s for s in recording
        if s.name in {c.name for c in filter(checkable, recording)} and s.loader is None
        and not issubclass(s.type, RadarSpectrum)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording.mcap"
        try:
            formats.write(recording.replace(streams=tuple(chosen)), path, "mcap")
        except TransectError:
            return
        done = subprocess.run(
            [python, "-P", "-c", _TRIAGE_SCRIPT, str(path)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        return
    first = min(int((s.t_ns if s.log_ns is None else s.log_ns).min()) for s in chosen)
    shift = (first - begins[chosen[0].clock]) / NS
    names = {s.name.strip("/"): s.name for s in chosen}
    for detector, start, end, topic in json.loads(done.stdout):
        if stream := names.get(topic.strip("/")):
            reason = TRIAGE_REASONS.get(detector, detector.upper())
            yield Said(stream, start + shift, end + shift, reason, seconds)
