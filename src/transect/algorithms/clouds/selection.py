"""Selection, concatenation and transformation of the points of clouds with their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.geometry import rotations, se3
from transect.types import PointCloud

Rows = NDArray[np.int64] | NDArray[np.bool_]


def find_measured(cloud: PointCloud) -> NDArray[np.bool_]:
    """Return which points (n,) have finite coordinates."""
    return np.asarray(np.isfinite(cloud.points).all(axis=1))


def select(cloud: PointCloud, rows: Rows) -> PointCloud:
    """Return the cloud with the rows of a mask (n,) or of indices (k,)."""
    fields = {name: values[rows] for name, values in cloud.fields.items()}
    return replace(cloud, points=cloud.points[rows], fields=fields)


def drop_nan_points(cloud: PointCloud) -> PointCloud:
    """Return the cloud without points with NaN; itself if it has none."""
    known = find_measured(cloud)
    return cloud if known.all() else select(cloud, known)


def find_viewpoint(cloud: PointCloud) -> Floats:
    """Return the position (3,) of the sensor in the cloud's frame; by default the origin."""
    return np.zeros(3) if cloud.viewpoint is None else np.asarray(cloud.viewpoint[:3], dtype=np.float64)


def join_fields(first: PointCloud, *others: PointCloud) -> Mapping[str, NDArray[Any]]:
    """Return the concatenated fields that all clouds have with equal shapes."""
    return {
        name: np.concatenate([values, *(cloud.fields[name] for cloud in others)])
        for name, values in first.fields.items()
        if all(name in c.fields and c.fields[name].shape[1:] == values.shape[1:] for c in others)
    }


def transform_cloud(cloud: PointCloud, T_frame_cloud: Floats, frame: str) -> PointCloud:
    """Transform a cloud with its viewpoint and its fields `normal` and `covariance` (n, 9)."""
    turn, fields = T_frame_cloud[:3, :3], dict(cloud.fields)
    if "normal" in fields:
        fields["normal"] = fields["normal"] @ turn.T
    if "covariance" in fields:
        covariance = np.einsum("ij,njk,lk->nil", turn, fields["covariance"].reshape(-1, 3, 3), turn)
        fields["covariance"] = covariance.reshape(fields["covariance"].shape)
    before = np.array([0.0, 0, 0, 0, 0, 0, 1]) if cloud.viewpoint is None else cloud.viewpoint
    attitude = rotations.multiply(rotations.quaternion_from_matrix(turn), before[3:])
    viewpoint = np.concatenate([se3.apply(T_frame_cloud, before[:3]), attitude])
    points = se3.apply(T_frame_cloud, cloud.points)
    return replace(cloud, points=points, fields=fields, frame=frame, viewpoint=viewpoint)
