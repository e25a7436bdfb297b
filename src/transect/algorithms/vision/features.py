"""Image features: selection, conversion from and to OpenCV, and tracks through several images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints, Singles
from transect.errors import UsageError
from transect.types import CameraModel, CorrespondenceMaps2D, Correspondences2D, Features2D, Image

from .triangulation import require_camera, undistort_points

COVERAGE_GRID = (6, 8)
"""Rows and columns of the cells in which points are counted for the coverage."""


def features_from_keypoints(
    keypoints: Sequence[Any], descriptors: NDArray[Any] | None, image: Image
) -> Features2D:
    """Return the features of an image from OpenCV keypoints."""
    rows = np.array([(*k.pt, k.response, k.size, k.angle) for k in keypoints], np.float32).reshape(-1, 5)
    angle = np.where(rows[:, 4] < 0, np.nan, np.deg2rad(rows[:, 4])).astype(np.float32)  # -1: unknown
    return Features2D(
        points=np.ascontiguousarray(rows[:, :2]),
        response=rows[:, 2].copy(),
        size=rows[:, 3].copy(),
        angle=angle,
        descriptors=descriptors,
        t_ns=image.t_ns,
        frame=image.frame,
        camera=image.camera,
    )


def keypoints_from_features(features: Features2D, diameter: float) -> list[Any]:
    """Return OpenCV keypoints of features, with their row as `class_id`; upright where no angle is known.

    `diameter` in pixels is used for features without a size.
    """
    import cv2

    n = len(features)
    size = features.size if features.size is not None else np.full(n, diameter, np.float32)
    angle = features.angle if features.angle is not None else np.zeros(n, np.float32)
    degrees = np.rad2deg(np.nan_to_num(angle)) % 360
    rows = zip(features.points.tolist(), size.tolist(), degrees.tolist(), strict=True)
    return [cv2.KeyPoint(x, y, d, a, 0.0, 0, i) for i, ((x, y), d, a) in enumerate(rows)]


def select_features(features: Features2D, rows: NDArray[Any]) -> Features2D:
    """Return some rows of features, in that order."""

    def of(values: Any) -> Any:
        return None if values is None else values[rows]

    return Features2D(
        features.points[rows],
        of(features.response),
        of(features.size),
        of(features.angle),
        of(features.descriptors),
        features.t_ns,
        features.frame,
        features.camera,
    )


def select_matches(matches: Correspondences2D, rows: NDArray[Any]) -> Correspondences2D:
    """Return some rows of correspondences, in that order."""

    def of(values: Any) -> Any:
        return None if values is None else values[rows]

    return Correspondences2D(
        matches.source[rows],
        matches.sink[rows],
        of(matches.probability),
        of(matches.source_index),
        of(matches.sink_index),
        matches.source_camera,
        matches.sink_camera,
        matches.t_ns,
    )


def order_by_cell(points: Singles, response: Singles, cell: int) -> Ints:
    """Return the order (n,) of points: the best of each cell, then the second best of each, and so on.

    Parameters
    ----------
    points : (n, 2)
        Pixels.
    response : (n,)
        Larger is better; equal ones are ordered by row and column.
    cell : int
        Side of a cell in pixels; 0 for one cell.
    """
    order = np.lexsort((points[:, 0], points[:, 1], -response))
    if not cell or not len(order):
        return order
    column, row = np.floor(points[order] / cell).astype(np.int64).T
    return order[np.argsort(_rank_in_group(row * (column.max() + 1) + column), kind="stable")]


def _rank_in_group(group: Ints) -> Ints:
    """Return for each row (n,) how many rows of its group come before it."""
    together = np.argsort(group, kind="stable")
    begins = np.flatnonzero(np.diff(group[together], prepend=group[together[0]] - 1))
    rank = np.empty_like(group)
    rank[together] = np.arange(len(group)) - np.repeat(begins, np.diff(begins, append=len(group)))
    return rank


def grid_coverage(points: Singles, image: Image) -> float:
    """Return the ratio of cells of an image, 6 rows by 8 columns, that contain points."""
    cells = np.array(COVERAGE_GRID)
    place = np.floor(points[:, ::-1] * cells / (image.height, image.width)).astype(np.int64)
    row, column = np.clip(place, 0, cells - 1).T
    return len(np.unique(row * COVERAGE_GRID[1] + column)) / (COVERAGE_GRID[0] * COVERAGE_GRID[1])


@dataclass(frozen=True, eq=False)
class MultiViewTracks:
    """The same points in several images."""

    pixels: Floats  # (n, m, 2), n points in m images without lens distortion; NaN where not observed
    cameras: list[CameraModel]  # m
    first_row: Ints  # (n,), row of the point in the first map of matches; -1 if it is not in it

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """(n, m): whether a point was observed in an image."""
        return np.asarray(~np.isnan(self.pixels).any(axis=2))

    @property
    def normalised(self) -> Floats:
        """Normalised coordinates (n, m, 2)."""
        K = np.array([camera.K for camera in self.cameras])
        y = (self.pixels[..., 1] - K[:, 1, 2]) / K[:, 1, 1]
        return np.stack([(self.pixels[..., 0] - K[:, 0, 2] - K[:, 0, 1] * y) / K[:, 0, 0], y], axis=-1)

    def take(self, rows: NDArray[np.bool_]) -> MultiViewTracks:
        """Return a subset of the points."""
        return MultiViewTracks(self.pixels[rows], self.cameras, self.first_row[rows])


def tracks_from_matches(matches: CorrespondenceMaps2D) -> MultiViewTracks:
    """Return the tracks that are the connected components of pairwise matches.

    A feature is identified by its image and pixel. Tracks with two features in one image are contradictory
    and left out.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = matches.pairs or _pairs_in_order(len(matches.maps))
    images = max((max(pair) for pair in pairs), default=-1) + 1
    cameras = _cameras(matches, pairs, images)
    ends, first_count = _list_endpoints(matches, pairs)
    features, feature_of_end = np.unique(ends, axis=0, return_inverse=True)
    source, sink = feature_of_end.reshape(2, -1)
    links = coo_array((np.ones(len(source)), (source, sink)), shape=(len(features), len(features)))
    point = connected_components(links, directed=False)[1].astype(np.int64)
    pixels, good = _tabulate(features, point, images)
    first_row = np.full(len(pixels), -1, np.int64)
    first_row[point[source[:first_count]]] = np.arange(first_count)
    tracks = MultiViewTracks(pixels[good], cameras, first_row[good])
    return _undistort(tracks)


def _pairs_in_order(count: int) -> tuple[tuple[int, int], ...]:
    """Return CDFF's order (0, 1), (0, 2), ..., (1, 2), ... of all pairs of images."""
    images = round((1 + np.sqrt(1 + 8 * count)) / 2)
    if images * (images - 1) // 2 != count:
        raise UsageError(
            f"{count} maps cannot be those of all pairs of images",
            why="n images have n (n - 1) / 2 pairs",
            hint="give the images of each map in `pairs`",
        )
    return tuple((one, other) for one in range(images) for other in range(one + 1, images))


def _list_endpoints(matches: CorrespondenceMaps2D, pairs: tuple[tuple[int, int], ...]) -> tuple[Floats, int]:
    """Return image, x, y of all sources, then of all sinks; and the number of matches in the first map."""
    sources, sinks = [np.zeros((0, 3))], [np.zeros((0, 3))]
    for (one, other), each in zip(pairs, matches.maps, strict=True):
        sources.append(np.column_stack([np.full(len(each), one), each.source]))
        sinks.append(np.column_stack([np.full(len(each), other), each.sink]))
    return np.concatenate(sources + sinks), len(matches.maps[0]) if matches.maps else 0


def _cameras(
    matches: CorrespondenceMaps2D, pairs: tuple[tuple[int, int], ...], images: int
) -> list[CameraModel]:
    known: dict[int, CameraModel | None] = {}
    for (one, other), each in zip(pairs, matches.maps, strict=True):
        known.setdefault(one, each.source_camera)
        known.setdefault(other, each.sink_camera)
    return [require_camera(known.get(image), f"image {image} of the matches") for image in range(images)]


def _tabulate(features: Floats, point: Ints, images: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the pixels (n, m, 2) of points, and which points occur at most once in every image."""
    image = features[:, 0].astype(np.int64)
    count = int(point.max(initial=-1)) + 1
    pixels, times = np.full((count, images, 2), np.nan), np.zeros((count, images), np.int64)
    pixels[point, image] = features[:, 1:]
    np.add.at(times, (point, image), 1)
    return pixels, np.asarray((times <= 1).all(axis=1))


def _undistort(tracks: MultiViewTracks) -> MultiViewTracks:
    flat = [undistort_points(tracks.pixels[:, i], camera) for i, camera in enumerate(tracks.cameras)]
    pixels = np.stack(flat, axis=1) if flat else tracks.pixels
    is_tracked = np.count_nonzero(~np.isnan(pixels).any(axis=2), axis=1) >= 2
    return MultiViewTracks(pixels, tracks.cameras, tracks.first_row).take(is_tracked)
