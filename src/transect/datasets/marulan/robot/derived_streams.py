"""Streams derived from recordings of the Argo: odometry, radar ranges, and clouds in the Navigation frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.errors import StreamError
from transect.geometry import planar, rotations
from transect.recording import Parsed, Recording, Robot, Stream, arrow, stream_of_values
from transect.robots import load
from transect.robots.beams import SCANS_PER_SWEEP, BeamSamples, Gate, beams_from_scans, transform_beams
from transect.robots.fmcw_radar import Peaks, Scale, find_peaks
from transect.types import LaserScan, Odometry, PointCloud, RadarRange, RadarSpectrum
from transect.types.returns import find_returns

from . import odometry as model
from .odometry import DriveFit, SkidSteerDrive

BODY, NAVIGATION, ODOMETRY = "Body", "Navigation", "Odometry"
WHEELS = ("Payload/WheelLeft", "Payload/WheelRight")
NAV, RANGES, SPECTRUM = "Nav", "RadarRangeBearing", "RadarSpectrum"


def wheels(recording: Recording, *, max_gap: float = 1.0) -> tuple[Ints, Floats, Floats]:
    """Return times (n,) and angular velocities (n,) in rad/s of the left and the right wheels.

    The sides are logged alternately: the right ones are interpolated to the times of the left ones, unless
    their samples are more than `max_gap` seconds apart.
    """
    left, right = (recording[name] for name in WHEELS)
    order = np.argsort(left.t_ns, kind="stable")
    t_ns, left_rate = left.t_ns[order], left["angular_velocity"][order]
    right_rate = right.interpolate(t_ns, ["angular_velocity"], max_gap=max_gap)["angular_velocity"]
    known = np.isfinite(left_rate) & np.isfinite(right_rate)
    return t_ns[known], left_rate[known], right_rate[known]


def fit_drive(recording: Recording, *, nav: str = NAV, max_gap: float = 1.0) -> DriveFit:
    """Fit the wheels' effective radius and track width to the localisation of the same recording.

    Odometry with that drive is then not independent of the localisation.
    """
    t_ns, left, right = wheels(recording, max_gap=max_gap)
    names = ("qx", "qy", "qz", "qw", "vx", "vy", "vz", "wx", "wy", "wz")
    state = recording[nav].interpolate(t_ns, names, max_gap=max_gap)
    q, v, w = (np.column_stack([state[n] for n in part]) for part in (names[:4], names[4:7], names[7:]))
    q_body_nav = rotations.conjugate(q)
    return model.fit_drive(
        left, right, rotations.rotate(q_body_nav, v)[:, 0], rotations.rotate(q_body_nav, w)[:, 2]
    )


def odometry(
    recording: Recording,
    drive: SkidSteerDrive | None = None,
    *,
    start: tuple[float, float, float] = (0.0, 0.0, 0.0),
    max_gap: float = 1.0,
) -> Stream:
    """Return planar wheel odometry.

    Parameters
    ----------
    recording : Recording
        With the streams `Payload/WheelLeft` and `Payload/WheelRight`.
    drive : SkidSteerDrive, optional
        Default that of the robot; SDI prints none, so pass one of `fit_drive`.
    start : (float, float, float)
        x, y (m) and yaw (rad) in the frame `Odometry`, whose z points down as Body's does.
    max_gap : float
        Seconds; longer intervals are integrated with their mean speed, and counted in a note.

    Returns
    -------
    Stream of Odometry
        `Payload/Odometry`, role estimate: Body in `Odometry`, and its speed and turn rate in Body.
    """
    drive = drive or SkidSteerDrive.of(_robot(recording))
    t_ns, left, right = wheels(recording, max_gap=max_gap)
    speed, turn_rate = model.motion_from_wheels(left, right, drive)
    rates = np.column_stack([speed, np.zeros(len(t_ns)), turn_rate])
    path = planar.integrate(planar.motions_from_rates(t_ns, rates), start)[: len(t_ns)]
    q = rotations.quaternion_from_euler("z", path[:, 2:])
    level, unknown = np.zeros(len(t_ns)), np.full(len(t_ns), np.nan)
    columns = {
        **dict(zip(("x", "y", "z"), (path[:, 0], path[:, 1], level), strict=True)),
        **dict(zip(("qx", "qy", "qz", "qw"), q.T, strict=True)),
        **dict(zip(("vx", "vy", "vz"), (speed, unknown, unknown), strict=True)),
        **dict(zip(("wx", "wy", "wz"), (unknown, unknown, turn_rate), strict=True)),
    }
    gaps = int((np.diff(t_ns) > max_gap * 1e9).sum())
    notes = (f"{gaps} steps of the wheels are longer than {max_gap:g} s",) if gaps else ()
    table = arrow.table(t_ns, columns, units=Odometry.units())
    return Stream(
        "Payload/Odometry", Odometry, Parsed(table, (), notes), role="estimate", frame=ODOMETRY, child=BODY
    )


def radar_ranges(
    recording: Recording, *, scale: Scale = "dB", fit: Scale = "dB", gate: Gate | None = None
) -> Stream:
    """Return the range of the strongest peak of each radar spectrum (section 3.2.4).

    Parameters
    ----------
    recording : Recording
        With the stream `RadarSpectrum`.
    scale, fit : {"amplitude", "dB"}
        Scale of the spectra, and of the parabola through the peak; see `fmcw_radar.find_peaks`.
    gate : Gate, optional
        Ranges that are searched; default the robot's.

    Returns
    -------
    Stream of RadarRange
        `RadarSpectrum/Peaks`, role derived; NaN for a spectrum without a peak in the gate. The column
        `interpolated` marks ranges with sub-bin resolution.
    """
    spectra = recording[SPECTRUM]
    gate = gate or Gate.of(_robot(recording), "radar")
    width, offset = spectra["bin_width"], spectra["range_offset"]
    peaks = _peaks(spectra, gate, scale, fit)
    columns = {
        "range": peaks.bin[:, 0] * width + offset,
        "angle": spectra["angle"],
        "reflectivity": peaks.reflectivity[:, 0],
        "interpolated": peaks.interpolated[:, 0],
    }
    return stream_of_values(
        f"{SPECTRUM}/Peaks",
        spectra.t_ns,
        columns,
        type=RadarRange,
        role="derived",
        frame=spectra.frame,
        clock=spectra.clock,
    )


def _peaks(spectra: Stream, gate: Gate, scale: Scale, fit: Scale) -> Peaks:
    """Return the strongest peak of each row; rows of one length and bin width are searched together."""
    flat, offsets = arrow.lists_of(spectra.table, "reflectivity")
    kinds = np.column_stack([np.diff(offsets), spectra["bin_width"], spectra["range_offset"]])
    result = Peaks(*(np.full((len(spectra), 1), fill) for fill in (np.nan, np.nan, False)))
    for kind in np.unique(kinds, axis=0):
        rows, (bins, width, offset) = (kinds == kind).all(axis=1), kind
        # Usually all rows have the same layout, and nothing is copied.
        cells = slice(None) if rows.all() else offsets[:-1][rows][:, None] + np.arange(int(bins))
        values = flat[cells].reshape(-1, int(bins))
        found = find_peaks(values, bins=_gated_bins(gate, width, offset, int(bins)), scale=scale, fit=fit)
        for name in ("bin", "reflectivity", "interpolated"):
            getattr(result, name)[rows] = getattr(found, name)
    return result


def _gated_bins(gate: Gate, width: float, offset: float, bins: int) -> tuple[int, int]:
    """Return the first and last bin, counted from 1, whose ranges are in the gate."""
    inside = np.flatnonzero(gate.passes(np.arange(1, bins + 1) * width + offset)) + 1
    return (int(inside[0]), int(inside[-1])) if len(inside) else (1, 0)


def range_differences(recording: Recording, ranges: Stream, *, tolerance: float = 0.5e-3) -> Floats:
    """Return computed minus logged ranges, m, which show the `fit` that the radar itself used.

    Parameters
    ----------
    recording : Recording
        With the stream `RadarRangeBearing`.
    ranges : Stream of RadarRange
        n samples of `radar_ranges`.
    tolerance : float
        Largest time between two matched samples, s; the difference is NaN without a match.
    """
    logged = recording[RANGES]
    match = logged.nearest(ranges.t_ns)
    is_unmatched = np.abs(logged.t_ns[match] - ranges.t_ns) > tolerance * 1e9
    return np.where(is_unmatched, np.nan, ranges["range"] - logged["range"][match])


def cloud(
    recording: Recording,
    streams: Sequence[str | Stream] = (),
    *,
    frame: str = NAVIGATION,
    gate: Gate | None = None,
    tolerance: float = 0.0,
) -> PointCloud:
    """Return all returns of lasers and radar as one cloud; slice the recording for a shorter time.

    Parameters
    ----------
    recording : Recording
        Its frames transform each beam to `frame` at the time of the beam.
    streams : sequence of str or Stream
        Streams of LaserScan (scans or sweeps) and RadarRange, or their names; default all lasers.
    frame : str
        Navigation (UTM north, east, down) or Body.
    gate : Gate, optional
        Ranges to keep; default the robot's, one for lasers and one for the radar.
    tolerance : float
        Seconds by which the first and the last pose of the vehicle are extrapolated.

    Returns
    -------
    PointCloud
        With `t_offset_ns` after the cloud's time, `sensor` (index of the stream) and `intensity`; without
        points at times without a pose.
    """
    chosen = [recording[s] if isinstance(s, str) else s for s in streams]
    chosen = chosen or [s for s in recording.streams if s.type is LaserScan]
    parts = [_transform_returns(recording, stream, frame, gate, tolerance) for stream in chosen]
    if not sum(len(beams) for beams, _ in parts):
        raise StreamError(
            f"no point of {', '.join(s.name for s in chosen) or 'any laser'} can be transformed to {frame}",
            why="there are no returns in the gate at times when the vehicle's pose is known",
        )
    t_ns = np.concatenate([beams.t_ns for beams, _ in parts])
    fields = {
        "t_offset_ns": t_ns - t_ns.min(),
        "sensor": np.repeat(np.arange(len(parts), dtype=np.uint8), [len(beams) for beams, _ in parts]),
        "intensity": np.concatenate([beams.intensity for beams, _ in parts]),
    }
    return PointCloud(np.concatenate([xyz for _, xyz in parts]), fields, t_ns=int(t_ns.min()), frame=frame)


def _transform_returns(
    recording: Recording, stream: Stream, frame: str, gate: Gate | None, tolerance: float
) -> tuple[BeamSamples, Floats]:
    """Return a stream's returns with a known pose, and their points (n, 3) in `frame`."""
    beams = _beams(_robot(recording), stream)
    gate = gate or Gate.of(_robot(recording), "laser" if stream.type is LaserScan else "radar")
    beams = beams.where(gate.passes(beams.range))
    xyz = transform_beams(beams, recording.frames, frame, stream.frame, tolerance=tolerance)
    known = np.asarray(np.isfinite(xyz).all(axis=1))
    return beams.where(known), xyz[known]


def _beams(robot: Robot, stream: Stream) -> BeamSamples:
    if stream.type is RadarRange:
        return BeamSamples(stream.t_ns, stream["angle"], stream["range"], stream["reflectivity"])
    if stream.type is not LaserScan:
        hint = "compute ranges of its spectra with radar_ranges" if stream.type is RadarSpectrum else ""
        raise StreamError(
            f"{stream.name} has no ranges", why=f"it is a stream of {stream.type.__name__}", hint=hint
        )
    is_sweep = "end_ns" in stream.columns
    return beams_from_scans(
        stream.t_ns,
        *_measured_ranges(stream),
        stream["start_angle"],
        stream["angle_increment"],
        end_ns=stream["end_ns"] if is_sweep else None,
        scans=SCANS_PER_SWEEP if is_sweep else 1,
        mirror_rate=float(robot.constants["laser"]["mirror_rate"]),
    )


def _measured_ranges(stream: Stream) -> tuple[Floats, Ints]:
    """Return the concatenated ranges of all scans, NaN outside their limits, and the offsets of the scans."""
    ranges, offsets = arrow.lists_of(stream.table, "ranges")
    limits = {"range_min": 0.0, "range_max": np.inf}
    low, high = (
        np.repeat(stream[name], np.diff(offsets)) if name in stream.columns else limit
        for name, limit in limits.items()
    )
    return np.where(find_returns(ranges, low, high), ranges, np.nan), offsets


def _robot(recording: Recording) -> Robot:
    return recording.robot or load("argo")
