"""Trajectories from whatever holds one: a file, a recording, a stream, RTK fixes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transect import formats
from transect.errors import UsageError
from transect.geometry import geodesy
from transect.recording import Recording, Stream
from transect.types import NavFix, Odometry, Pose, RigidBodyState, Trajectory

POSES = (Pose, RigidBodyState, Odometry)
POSITION, ATTITUDE = ("x", "y", "z"), ("qx", "qy", "qz", "qw")
SIGMAS = ("std_east", "std_north", "std_down")


def load_trajectory(
    source: Path | str | Recording | Stream | Trajectory, *, truth: bool = False
) -> Trajectory:
    """Return the trajectory that something holds.

    Parameters
    ----------
    source : path, Recording, Stream or Trajectory
        A path may name a stream after a colon: ``run.bag:/odom``.
    truth : bool
        Of a recording, take what to judge by; else the one estimate, or the one stream of poses.
    """
    if isinstance(source, Trajectory):
        return source
    if isinstance(source, Stream):
        return trajectory_of(source)
    if isinstance(source, Recording):
        return trajectory_of(chosen_stream(source, truth))
    path, _, name = str(source).rpartition(":") if not Path(source).exists() else (str(source), "", "")
    recording = formats.open(path or str(source))
    return trajectory_of(recording[name] if name else chosen_stream(recording, truth))


def trajectory_of(stream: Stream) -> Trajectory:
    """Return the poses of a stream; of satellite fixes the positions, east, north, up of the first.

    Rows without a position are left out. What has no heights at all lies in the plane z = 0.
    """
    if stream.type is NavFix:
        geodetic = stream.array("lat", "lon", "alt")
        known = np.isfinite(geodetic).all(axis=1)
        if not known.any():
            raise UsageError(f"{stream.name} has no fix with a position")
        positions = geodesy.local_from_geodetic(geodetic[known], geodetic[known][0])
        spread = covariances_of(stream)
        spread = None if spread is None else spread[known]
        body = stream.child or stream.frame  # ROS names the antenna as the frame, others a world and a body
        return Trajectory(stream.t_ns[known], positions, None, spread, "ENU", body, stream.clock)
    if not issubclass(stream.type, POSES) or not set(POSITION) <= set(stream.columns):
        raise UsageError(
            f"{stream.name} is no trajectory",
            why=f"its samples are {stream.type.__name__}",
            hint="name a stream of poses, odometry or satellite fixes: PATH:STREAM",
        )
    positions = stream.array(*POSITION)
    if is_flat(stream):
        positions[:, 2] = 0.0
    known = np.isfinite(positions).all(axis=1)
    turned = stream.array(*ATTITUDE)[known] if set(ATTITUDE) <= set(stream.columns) else None
    if turned is not None and np.isnan(turned).all():
        turned = None
    spread = covariances_of(stream)
    return Trajectory(
        stream.t_ns[known],
        positions[known],
        turned,
        None if spread is None else spread[known],
        stream.frame,
        stream.child,
        stream.clock,
    )


def is_flat(stream: Stream) -> bool:
    """Tell whether a stream has positions in the plane and no height at all, as wheel odometry has."""
    if not set(POSITION) <= set(stream.columns) or not len(stream):
        return False
    return bool(np.isnan(stream["z"]).all() and np.isfinite(stream["x"]).any())


def covariances_of(stream: Stream) -> NDArray[np.float64] | None:
    """Return what a stream says of its own errors as (n, 6, 6): translation (m), then rotation (rad).

    Of satellite fixes only the translation (east, north, up) is known, the rest is NaN; other orders than
    ROS's 36 numbers belong to their formats.
    """
    if stream.type is NavFix and set(SIGMAS) <= set(stream.columns):
        spread = np.full((len(stream), 6, 6), np.nan)
        spread[:, :3, :3] = np.square(stream.array(*SIGMAS))[:, :, None] * np.eye(3)
        return spread
    if "covariance" in stream.columns and stream["covariance"].shape[1:] == (36,):
        return stream["covariance"].reshape(-1, 6, 6)
    return None


def chosen_stream(recording: Recording, truth: bool) -> Stream:
    """Return the stream of a recording that is meant."""
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
                f"{recording.name} has several trajectories", why=names, hint="name one: PATH:STREAM"
            )
    raise UsageError(
        f"{recording.name} has no trajectory", why="no stream of poses, odometry or satellite fixes"
    )
