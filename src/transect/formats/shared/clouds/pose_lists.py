"""libpointmatcher's lists of clouds (CSV) with the true pose of each."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from transect.geometry import se3
from transect.recording import Loss, Parsed, Source, Stream, arrow, cache
from transect.recording.source import Buffer
from transect.recording.text import whole_lines
from transect.types import Pose

from ..file_groups import group_files

_ELEMENTS = tuple(f"gT{row}{column}" for row in range(4) for column in range(4))
MAX_NON_ORTHONORMALITY = 1e-2  # of a printed rotation: largest element of |R R^T - 1|
_POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")


def is_cloud_list(head: bytes) -> bool:
    """Return whether a CSV is libpointmatcher's list of clouds with their ground truth."""
    first = [word.strip() for word in head.partition(b"\n")[0].decode("latin-1").split(",")]
    return "reading" in first and set(_ELEMENTS) <= set(first)


def truth_stream(source: Source, name: str) -> Stream:
    """Return the poses ``gT`` of a cloud list; each has the time of its cloud on the index clock."""
    return Stream(
        name.removesuffix(".csv"),
        Pose,
        lambda: cache.parse(source, name, f"pcd.list/1|{name}", partial(_poses, file=name)),
        clock="index",
        role="truth",
        frame="map",
        child="lidar",
    )


def _poses(buffer: Buffer, file: str) -> Parsed:
    size, cut = whole_lines(buffer, file)
    rows = [
        [w.strip() for w in line.split(",")] for line in bytes(buffer[:size]).decode("latin-1").splitlines()
    ]
    losses = [cut] if cut else []
    clouds: list[str] = []
    matrices: list[NDArray[np.float64]] = []
    for number, row in enumerate(rows[1:], 2):
        values = dict(zip(rows[0], row, strict=False))
        try:
            matrix = np.array([float(values[key]) for key in _ELEMENTS]).reshape(4, 4)
        except (KeyError, ValueError):
            matrix = np.full((4, 4), np.nan)
        if np.abs(matrix[:3, :3] @ matrix[:3, :3].T - np.eye(3)).max() < MAX_NON_ORTHONORMALITY:
            matrices.append(matrix)
            clouds.append(values["reading"])
        else:
            losses.append(Loss(file, "not a cloud and its rigid transform", line=number))
    at = {
        name: t for group in group_files(clouds, "") for name, t in zip(group.files, group.t_ns, strict=True)
    }
    rotations, positions = se3.to_quaternion(np.array(matrices).reshape(-1, 4, 4))
    values = np.column_stack([positions, rotations])
    table = arrow.table(
        [at[c] for c in clouds], {key: values[:, i] for i, key in enumerate(_POSE)}, units=Pose.units()
    )
    return Parsed(table, tuple(losses))
