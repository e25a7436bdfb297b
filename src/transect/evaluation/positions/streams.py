"""Choice of the stream with the robot's positions, its trajectory, and the errors of its positions."""

from __future__ import annotations

from typing import cast, get_args

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import StreamError, TransectError, UsageError
from transect.geometry import geodesy, planar
from transect.geometry.array_checks import measured_rows
from transect.recording import Recording, Stream
from transect.types import TYPICAL_FIX_ERRORS, NavFix, Odometry, Pose, RigidBodyState, Trajectory, Twist

MAX_COORDINATE_M = 1e12  # larger coordinates were not measured, and their squares may overflow
MIN_RTK_RATIO = 0.5  # of a traverse that counts as covered by RTK; the paper prints only Yes and No
RTK = ("rtk float", "rtk fixed")
MAX_RTK_SIGMA_M = 0.05  # positions with a smaller standard deviation have no drifting error


def position_stream(recording: Recording) -> Stream:
    """Return the best measurement of the robot's position; never a stream of role truth.

    A satellite receiver, else a pose in a frame that is not on the robot (a camera's pose in the robot has no
    position of the robot), else odometry with positions, else odometry with speeds. A receiver without RTK
    and velocities comes after odometry with positions. Of equal streams, the one with most samples.
    """
    on_robot = set(recording.robot.frames.frames) if recording.robot else set[str]()
    candidates = [s for s in recording if s.role != "truth"]
    receivers = [s for s in candidates if s.type is NavFix]
    good = [s for s in receivers if velocity_stream(recording, s) or not _drifts(s)]
    kinds = (
        good,
        [s for s in candidates if s.type in (Pose, RigidBodyState) and s.frame not in on_robot],
        [s for s in candidates if s.type is Odometry and "x" in s.columns],
        receivers,
        [s for s in candidates if s.type is Odometry and {"vx", "wz"} <= set(s.columns)],
    )
    found = next((streams for streams in kinds if any(map(len, streams))), None)
    if found is not None:
        return max(found, key=len)
    truth = [s.name for s in recording if s.role == "truth" and s.type in (Pose, RigidBodyState, NavFix)]
    raise StreamError(
        f"{recording.name} has no measured positions",
        why="there is no NavFix, no pose of the robot, and no odometry among its streams"
        + (f"; {truth[0]} is truth" if truth else ""),
        hint=f"to use that: --stream {truth[0]}" if truth else "a stream can be named: --stream NAME",
    )


def velocity_stream(recording: Recording, source: Stream) -> Stream | None:
    """Return the stream of velocities in the axes of the world that belongs to positions, or None."""
    if source.type is RigidBodyState:
        return source if "vx" in source.columns else None
    if source.type is not NavFix:
        return None
    fits = [
        s
        for s in recording
        if s.type is Twist
        and s.role == "measurement"
        and s.clock == source.clock
        and s.frame in get_args(geodesy.Axes)
        and {"vx", "vy"} <= set(s.columns)
        and len(s) > 1
    ]
    device = source.name.split("/")[0]
    return max(fits, key=lambda s: (s.name.split("/")[0] == device, len(s)), default=None)


def velocities_of(stream: Stream, source: Stream) -> tuple[Ints, Floats, Floats]:
    """Return times (m,), velocities (m, 3) in m/s in the axes of `track_of`, and their sigmas (m, 3).

    Or NaN.
    """
    values, std = (_columns(stream, names) for names in (("vx", "vy", "vz"), ("std_vx", "std_vy", "std_vz")))
    if source.type is NavFix:
        axes = cast(geodesy.Axes, stream.frame)
        # The axes are permuted and reversed one by one, so that a NaN does not spread to all three.
        turn = geodesy.change_axes(np.eye(3), axes, "ENU").T
        order, sign = np.abs(turn).argmax(axis=1), turn.sum(axis=1)
        values, std = values[:, order] * sign, std[:, order]
    return stream.t_ns, values, std


def _columns(stream: Stream, names: tuple[str, ...]) -> Floats:
    nothing = np.full(len(stream), np.nan)
    return np.column_stack([stream.array(n)[:, 0] if n in stream.columns else nothing for n in names])


def drift_of(stream: Stream) -> Floats:
    """Return the drifting error of fixes without RTK (n, 4): sigmas in m, correlation time in s.

    The standard deviation is the receiver's own if it reports one. RTK fixes, and those with a reported
    standard deviation of centimetres, have no drifting error.
    """
    result = np.zeros((len(stream), 4))
    if stream.type is not NavFix:
        return result
    given = _columns(stream, ("std_east", "std_north", "std_down"))
    word = stream.column("fix") if "fix" in stream.columns else [None] * len(stream)
    kinds = np.array([kind or "" for kind in word], dtype=np.str_)
    typical = [TYPICAL_FIX_ERRORS.get(kind, TYPICAL_FIX_ERRORS["3d"]) for kind in kinds.tolist()]
    level = np.array([each.horizontal_std for each in typical])
    vertical = np.array([each.vertical_ratio * each.horizontal_std for each in typical])
    result[:, :3] = np.where(given > 0, given, np.column_stack([level, level, vertical]))
    result[:, 3] = [each.correlation_s for each in typical]
    result[(kinds == "rtk fixed") | (given[:, :2] <= MAX_RTK_SIGMA_M).all(axis=1)] = 0.0
    return result


def _drifts(stream: Stream) -> bool:
    """Return whether a receiver reports that most of its fixes are not RTK."""
    reported = {"fix", "std_north"} & set(stream.columns)
    return bool(reported and len(stream)) and float((drift_of(stream)[:, 0] > 0).mean()) > 1 - MIN_RTK_RATIO


def track_of(stream: Stream) -> Floats:
    """Return positions (n, 3) in m in a fixed frame, z up or down; NaN where not measured.

    Geodetic positions become east and north of the first of them, and keep their heights.
    """
    if stream.type is not NavFix:
        if stream.type is Odometry and "x" not in stream.columns and {"vx", "wz"} <= set(stream.columns):
            return _integrate(stream)
        if not {"x", "y"} <= set(stream.columns):
            raise StreamError(f"{stream.name} has no positions", why=f"it has {', '.join(stream.columns)}")
        return _measured(_columns(stream, ("x", "y", "z")))
    geodetic = geodetic_of(stream)
    heights = geodetic[:, 2].copy()
    if np.isnan(heights).all():
        geodetic[:, 2] = 0.0
    known = geodetic[measured_rows(geodetic)]
    local = geodesy.local_from_geodetic(geodetic, known[0], "ENU") if len(known) else geodetic
    return np.column_stack([local[:, :2], heights])


def geodetic_of(stream: Stream) -> Floats:
    """Return latitude, longitude (rad) and height (m) of fixes, (n, 3); NaN where there was none."""
    geodetic = _columns(stream, ("lat", "lon", "alt"))
    # Receivers without a fix report 0, 0; a latitude beyond the pole was written in degrees.
    invalid = (geodetic[:, :2] == 0).all(axis=1) | (np.abs(geodetic[:, 0]) > np.pi / 2)
    geodetic[invalid | ~np.isfinite(geodetic[:, :2]).all(axis=1)] = np.nan
    return _measured(geodetic)


def _measured(positions: Floats) -> Floats:
    """Return positions with NaN for coordinates that no sensor can have measured."""
    return np.where(np.abs(positions) < MAX_COORDINATE_M, positions, np.nan)


def _integrate(stream: Stream) -> Floats:
    """Return positions (n, 3) integrated from speeds and turn rates.

    The body rests where they are missing.
    """
    rates = np.nan_to_num(_measured(_columns(stream, ("vx", "vy", "wz"))))
    order = np.argsort(stream.t_ns, kind="stable")
    poses = np.zeros((len(stream), 3))
    if len(stream):
        poses[order] = planar.integrate(planar.motions_from_rates(stream.t_ns[order], rates[order]))
    return np.column_stack([poses[:, :2], np.full(len(stream), np.nan)])


def rtk_fraction(stream: Stream | None) -> float | None:
    """Return the fraction of RTK fixes of a receiver; None if it does not report the type of fix."""
    # sensor_msgs/NavSatFix has no value for RTK: its absence means nothing.
    if stream is None or "fix" not in stream.columns or "position_covariance_type" in stream.columns:
        return None
    reported = np.array([fix for fix in stream.column("fix") if isinstance(fix, str) and fix], dtype=np.str_)
    return float(np.isin(reported, RTK).mean()) if reported.size else None


def receiver_of(recording: Recording) -> Stream | None:
    """Return the first receiver of a recording that gave a fix, or None."""
    return next((s for s in recording if s.type is NavFix and len(s)), None)


POSES = (Pose, RigidBodyState, Odometry)
POSITION_TYPES = (NavFix, *POSES)
POSITION, ATTITUDE = ("x", "y", "z"), ("qx", "qy", "qz", "qw")
SIGMAS = ("std_east", "std_north", "std_down")
MIN_BENT_POSES = 4  # of a path that can be called bent
MIN_BEND_RATIO = 0.03  # of a bent path: second to first singular value of its positions


def best_stream(recording: Recording) -> Stream:
    """Return the receiver with most fixes, which has geodetic positions; else the best measurement.

    Else truth.
    """
    receivers = [s for s in recording if s.type is NavFix and s.role != "truth"]
    fixes = {s.name: int(measured_rows(geodetic_of(s)[:, :2]).sum()) for s in receivers}
    if any(fixes.values()):
        return recording[max(fixes, key=lambda name: fixes[name])]
    truth = recording.truth
    try:
        return position_stream(recording)
    except StreamError as error:
        if truth is not None and truth.type in POSITION_TYPES:
            return truth
        hint = f"transect info {recording.typed} lists the streams"
        raise StreamError(f"{recording.name} has no positions to draw", why=error.why, hint=hint) from error


def position_streams(recording: Recording) -> list[Stream]:
    """Return the best measurement of the position and the true position, as far as there are such streams."""
    try:
        best = best_stream(recording)
    except TransectError:
        return []
    truth = recording.truth
    return [best] if truth is None or truth.name == best.name else [best, truth]


def trajectory_of(stream: Stream) -> Trajectory:
    """Return the poses of a stream; of satellite fixes the positions, east, north, up of the first.

    Rows without a position are ignored. Without any heights z is 0. Placeholders of unknown attitudes, which
    some formats need, are ignored.
    """
    if stream.type is NavFix:
        geodetic = _geodetic(stream)
        known = np.isfinite(geodetic).all(axis=1)
        if not known.any():
            raise UsageError(f"{stream.name} has no fix with a position")
        from transect.geometry import geodesy

        positions = geodesy.local_from_geodetic(geodetic[known], geodetic[known][0])
        spread = covariances_of(stream)
        spread = None if spread is None else spread[known]
        body = stream.child or stream.frame  # ROS names the antenna as the frame, others a world and a body
        return Trajectory(stream.t_ns[known], positions, None, spread, "ENU", body, stream.clock)
    if not issubclass(stream.type, POSES) or not set(POSITION) <= set(stream.columns):
        raise UsageError(
            f"{stream.name} is not a trajectory",
            why=f"its samples are {stream.type.__name__}",
            hint="name a stream of poses, odometry or satellite fixes",
        )
    positions = stream.array(*POSITION)
    if is_flat(stream):
        positions[:, 2] = 0.0
    known = np.isfinite(positions).all(axis=1)
    orientations = stream.array(*ATTITUDE)[known] if set(ATTITUDE) <= set(stream.columns) else None
    if orientations is not None and (
        np.isnan(orientations).all() or _is_placeholder(orientations, positions[known])
    ):
        orientations = None
    spread = covariances_of(stream)
    return Trajectory(
        stream.t_ns[known],
        positions[known],
        orientations,
        None if spread is None else spread[known],
        stream.frame,
        stream.child,
        stream.clock,
    )


def _is_placeholder(attitudes: NDArray[np.float64], positions: NDArray[np.float64]) -> bool:
    """Return whether attitudes (n, 4) are the same to the last digit although the path (n, 3) bends.

    A file of positions only has the identity, or any constant, in every row, which is impossible for a body
    on a bent path. On a straight path it is possible, and the attitudes are kept.
    """
    if len(attitudes) < MIN_BENT_POSES or not (attitudes == attitudes[0]).all():
        return False
    extents = np.linalg.svd(positions - positions.mean(axis=0), compute_uv=False)
    return bool(extents[1] > MIN_BEND_RATIO * extents[0])


def _geodetic(stream: Stream) -> NDArray[np.float64]:
    """Return latitudes, longitudes and heights (n, 3) of fixes; heights are 0 where no fix has any."""
    if not is_flat(stream):
        return stream.array("lat", "lon", "alt")
    return np.column_stack([stream.array("lat", "lon"), np.zeros(len(stream))])


def is_flat(stream: Stream) -> bool:
    """Return whether a stream has positions in the plane and no heights, such as wheel odometry."""
    if not len(stream):
        return False
    if stream.type is NavFix:
        return "alt" not in stream.columns or bool(np.isnan(stream["alt"]).all())
    if not set(POSITION) <= set(stream.columns):
        return False
    return bool(np.isnan(stream["z"]).all() and np.isfinite(stream["x"]).any())


def covariances_of(stream: Stream) -> NDArray[np.float64] | None:
    """Return the reported covariances of a stream (n, 6, 6): translation (m), then rotation (rad).

    Satellite fixes have only the translation (east, north, up), the rest is NaN. Formats convert other orders
    to the 36 numbers of ROS.
    """
    if stream.type is NavFix and set(SIGMAS) <= set(stream.columns):
        spread = np.full((len(stream), 6, 6), np.nan)
        spread[:, :3, :3] = np.square(stream.array(*SIGMAS))[:, :, None] * np.eye(3)
        return spread
    if "covariance" in stream.columns and stream["covariance"].shape[1:] == (36,):
        return stream["covariance"].reshape(-1, 6, 6)
    return None


def choose_stream(recording: Recording, truth: bool) -> Stream:
    """Return the only trajectory of a recording with the first of the roles that has one, or its truth."""
    if truth and recording.truth is not None:
        return recording.truth
    fitting = [s for s in recording if issubclass(s.type, (*POSES, NavFix)) and len(s)]
    for role in ("estimate", "derived", "measurement", "truth"):
        of_role = [s for s in fitting if s.role == role]
        if len(of_role) == 1 or (len(fitting) == 1):
            return (of_role or fitting)[0]
        if of_role:
            names = ", ".join(s.name for s in of_role)
            raise UsageError(
                f"{recording.name} has several trajectories",
                why=names,
                hint=f"name one: {recording.typed_streams(s.name for s in of_role)}",
            )
    raise UsageError(
        f"{recording.name} has no trajectory", why="no stream of poses, odometry or satellite fixes"
    )
