"""Faults of extrinsic calibration, and invalid or excessive covariances."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from transect.base.arrays import Floats, Mask
from transect.geometry import rotations
from transect.recording import Recording, Stream
from transect.types import (
    Image,
    Imu,
    LaserScan,
    NavFix,
    Odometry,
    PointCloud,
    Pose,
    RadarRange,
    RadarSpectrum,
    RigidBodyState,
    Twist,
)

from .model import Change, Event, Fault, leave_unchanged
from .samples import change_of, flat_values, with_flat, wrap, wrap_clouds
from .timing import TO_THE_END

_VECTORS = (("acc_x", "acc_y", "acc_z"), ("gyro_x", "gyro_y", "gyro_z"), ("mag_x", "mag_y", "mag_z"))


def bump(stream: Stream, event: Event) -> Change:
    """Rotate the measurements of a sensor as if its mount had been rotated."""
    if not event.inside(stream).any():
        return leave_unchanged(stream)
    if stream.loader is not None:
        chosen = {Image: _image, PointCloud: _cloud}.get(stream.type)
    else:
        planar = {LaserScan: _scan, RadarRange: _radar, RadarSpectrum: _radar}
        chosen = planar.get(stream.type, _imu if stream.type is Imu else None)
    return chosen(stream, event) if chosen else leave_unchanged(stream)


def angle_of(event: Event) -> float:
    """Return the angle, rad: between `min_degrees` and `max_degrees`."""
    p = event.parameters
    low, high = p["min_degrees"], p["max_degrees"]
    return float(np.radians(low + event.severity * (high - low)))


def _rotation(stream: Stream, event: Event) -> Floats:
    """Return R_new_old (3, 3), which takes vectors of the original sensor frame to the rotated one."""
    axis = event.generator(stream.name, "axis").normal(size=3)
    return rotations.matrix_from_rotation_vector(angle_of(event) * axis / np.linalg.norm(axis))


def _about_z(stream: Stream, event: Event) -> float:
    """Return the angle of a rotation in the plane of a scan, to the left or right by the seed."""
    return angle_of(event) * float(event.generator(stream.name, "axis").choice([-1.0, 1.0]))


def _relative_angle(stream: Stream, event: Event) -> Floats:
    """Return (n,) the angle relative to the largest."""
    return np.full(len(stream), angle_of(event) / np.radians(event.parameters["max_degrees"]))


def _scan(stream: Stream, event: Event) -> Change:
    """Shift the ranges of a scan by the number of beams in the angle, at least one."""
    ranges, row = flat_values(stream.table, "ranges")
    step = np.asarray(stream["angle_increment"], dtype=np.float64)
    shift = np.rint(_about_z(stream, event) / step)
    shift = np.where(shift == 0, np.sign(_about_z(stream, event)), shift).astype(np.int64)
    first = np.searchsorted(row, np.arange(len(stream) + 1))
    source = np.arange(len(ranges)) + shift[row]
    exists = (source >= first[row]) & (source < first[row + 1])
    shifted = np.where(exists, ranges[np.clip(source, 0, max(len(ranges) - 1, 0))], np.nan)
    table = with_flat(stream.table, "ranges", np.where(event.inside(stream)[row], shifted, ranges))
    return change_of(stream, table, ["ranges"], _relative_angle(stream, event))


def _radar(stream: Stream, event: Event) -> Change:
    """Rotate the bearings of a radar."""
    angles, turn = np.asarray(stream["angle"], dtype=np.float64), _about_z(stream, event)
    table = with_flat(stream.table, "angle", angles - np.where(event.inside(stream), turn, 0.0))
    return change_of(stream, table, ["angle"], _relative_angle(stream, event))


def _imu(stream: Stream, event: Event) -> Change:
    R, table = _rotation(stream, event), stream.table
    names = [name for group in _VECTORS if set(group) <= set(stream.columns) for name in group]
    for group in (group for group in _VECTORS if group[0] in names):
        vectors = np.where(event.inside(stream)[:, None], stream.array(*group) @ R.T, stream.array(*group))
        for name, values in zip(group, vectors.T, strict=True):
            table = with_flat(table, name, values)
    return change_of(stream, table, names, _relative_angle(stream, event))


def _cloud(stream: Stream, event: Event) -> Change:
    R = _rotation(stream, event)

    def altered(index: int, cloud: PointCloud) -> tuple[PointCloud, Mask]:
        points = (cloud.points @ R.T).astype(cloud.points.dtype)
        fields = dict(cloud.fields)
        if "normal" in fields:
            fields["normal"] = (fields["normal"] @ R.T).astype(fields["normal"].dtype)
        moved: Mask = np.linalg.norm(cloud.points, axis=1) > 0
        return dataclasses.replace(cloud, points=points, fields=fields), moved

    change = wrap_clouds(stream, event, altered)
    return dataclasses.replace(change, fraction=np.where(change.touched, _relative_angle(stream, event), 0.0))


def _image(stream: Stream, event: Event) -> Change:
    """Warp the image by the homography of a rotation, ``K R inv(K)``, for a pinhole camera."""
    R = _rotation(stream, event)
    camera = event.recording.cameras.get(stream.camera)

    def altered(index: int, image: Image) -> Image:
        import cv2

        w, h = image.width, image.height
        K = np.array([[w, 0.0, w / 2], [0.0, w, h / 2], [0.0, 0.0, 1.0]]) if camera is None else camera.K
        H = K @ R @ np.linalg.inv(K)
        moved = cv2.warpPerspective(image.data, H, (w, h), borderMode=cv2.BORDER_REPLICATE)
        return dataclasses.replace(image, data=moved)

    return wrap(stream, event, event.inside(stream), _relative_angle(stream, event), altered)


EXTRINSIC_FAULTS = (
    Fault(
        "extrinsic_bump",
        "the orientation of a sensor changes; its calibration does not",
        "by 5 degrees; the smallest change is half a degree",
        (LaserScan, PointCloud, Image, RadarRange, RadarSpectrum, Imu),
        bump,
        parameters={"min_degrees": 0.5, "max_degrees": 5.0},
        lasts=TO_THE_END,
        unit="deg, from 0.5",
        reasons=("EXTRINSIC", "DISAGREE"),
    ),
)


DECLARING = (RigidBodyState, NavFix, Pose, Odometry, Twist, Imu)
DECLARES = "samples with a covariance or standard deviations"


def _matrices(stream: Stream) -> dict[str, int]:
    """Return the columns of covariances, and the numbers of rows of the matrices."""
    kinds = {f.name: f.type for f in stream.table.schema if f.name.endswith("covariance")}
    sizes = {name: kind.list_size for name, kind in kinds.items() if pa.types.is_fixed_size_list(kind)}
    return {name: math.isqrt(size) for name, size in sizes.items() if size == math.isqrt(size) ** 2}


def _sigmas(stream: Stream) -> list[str]:
    return [name for name in stream.columns if name.startswith("std_")]


def declares(stream: Stream, recording: Recording) -> bool:
    """Whether samples have covariances or standard deviations."""
    return bool(_matrices(stream)) or bool(_sigmas(stream))


def _alter(
    stream: Stream,
    inside: Mask,
    matrix: Callable[[Floats], Floats],
    deviation: Callable[[Floats], Floats],
    fraction: float,
) -> Change:
    """Return a stream with other covariances (n, k, k) and standard deviations (n,) in some samples."""
    table = stream.table
    for name, size in _matrices(stream).items():
        values = flat_values(table, name)[0].reshape(-1, size, size)
        changed = np.where(inside[:, None, None], matrix(values), values)
        table = with_flat(table, name, changed.reshape(-1))
    for name in _sigmas(stream):
        values, _ = flat_values(table, name)
        table = with_flat(table, name, np.where(inside, deviation(values), values))
    names = [*_matrices(stream), *_sigmas(stream)]
    return change_of(stream, table, names, np.full(len(stream), fraction))


def correlate_too_much(stream: Stream, event: Event) -> Change:
    """Set the correlation of two components above 1; standard deviations become negative."""
    excess = event.severity * event.parameters["excess"]
    pick = event.generator(stream.name, "components")

    def matrix(values: Floats) -> Floats:
        known = np.flatnonzero((np.diagonal(values, axis1=1, axis2=2) > 0).any(axis=0))
        if len(known) < 2:
            return values
        i, j = pick.choice(known, 2, replace=False)
        result = values.copy()
        result[:, i, j] = result[:, j, i] = (1.0 + excess) * np.sqrt(values[:, i, i] * values[:, j, j])
        return result

    return _alter(stream, event.inside(stream), matrix, lambda sigma: -event.severity * sigma, event.severity)


def deny_uncertainty(stream: Stream, event: Event) -> Change:
    """Set all uncertainties to zero."""
    return _alter(stream, event.first_part(stream), np.zeros_like, np.zeros_like, 1.0)


def exaggerate(stream: Stream, event: Event) -> Change:
    """Scale uncertainties to implausibly large values."""
    factor = 10.0 ** (event.severity * event.parameters["decades"])
    return _scale(stream, event, factor)


def widen_gate(stream: Stream, event: Event) -> Change:
    """Scale uncertainties so that a gate rejects nothing."""
    return _scale(stream, event, 1.0 + event.severity * (event.parameters["factor"] - 1.0))


def _scale(stream: Stream, event: Event, factor: float) -> Change:
    """Multiply standard deviations by a factor, and covariances by its square."""
    inside = event.inside(stream)
    return _alter(stream, inside, lambda C: C * factor**2, lambda sigma: sigma * factor, event.severity)


COVARIANCE_FAULTS = (
    Fault(
        "covariance_indefinite",
        "two components of a covariance are correlated by more than 1; standard deviations are negative",
        "the correlation is 2",
        DECLARING,
        correlate_too_much,
        parameters={"excess": 1.0},
        unit="correlation above 1",
        reasons=("COV_INVALID",),
        able=declares,
        needs=DECLARES,
    ),
    Fault(
        "covariance_zero",
        "covariances and standard deviations are zero",
        "for the whole window",
        DECLARING,
        deny_uncertainty,
        reasons=("COV_INVALID",),
        able=declares,
        needs=DECLARES,
    ),
    Fault(
        "covariance_huge",
        "covariances and standard deviations are far too large",
        "standard deviations are a million times as large",
        DECLARING,
        exaggerate,
        parameters={"decades": 6.0},
        unit="decades of the standard deviation",
        reasons=("COV_INVALID", "GATE_INERT", "NIS"),
        able=declares,
        needs=DECLARES,
    ),
    Fault(
        "inert_gate",
        "declared uncertainties are so large that a gate rejects nothing",
        "standard deviations are a hundred times as large",
        DECLARING,
        widen_gate,
        parameters={"factor": 100.0},
        unit="factor on the standard deviation",
        reasons=("GATE_INERT", "NIS"),
        able=declares,
        needs=DECLARES,
    ),
)
