"""What the nodes on clouds share: rows of a cloud with all that belongs to them; where it was seen from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.types import PointCloud

Rows = NDArray[np.int64] | NDArray[np.bool_]


def find_measured(cloud: PointCloud) -> NDArray[np.bool_]:
    """Rows (n,) that are points: none of their coordinates is NaN."""
    return np.asarray(np.isfinite(cloud.points).all(axis=1))


def select(cloud: PointCloud, rows: Rows) -> PointCloud:
    """The cloud with these rows only, given as a mask (n,) or as indices (k,)."""
    fields = {name: values[rows] for name, values in cloud.fields.items()}
    return replace(cloud, points=cloud.points[rows], fields=fields)


def without_gaps(cloud: PointCloud) -> PointCloud:
    """The cloud without rows that have NaN; itself if it has none."""
    known = find_measured(cloud)
    return cloud if known.all() else select(cloud, known)


def find_viewpoint(cloud: PointCloud) -> Floats:
    """Where the sensor stood (3,), in the cloud's frame; its origin unless the cloud says otherwise."""
    return np.zeros(3) if cloud.viewpoint is None else np.asarray(cloud.viewpoint[:3], dtype=np.float64)


def join_fields(first: PointCloud, *others: PointCloud) -> Mapping[str, NDArray[Any]]:
    """The fields that all clouds have alike, one after the other."""
    return {
        name: np.concatenate([values, *(cloud.fields[name] for cloud in others)])
        for name, values in first.fields.items()
        if all(name in c.fields and c.fields[name].shape[1:] == values.shape[1:] for c in others)
    }
