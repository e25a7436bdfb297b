"""Points followed through several images, put together from matches of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats, Ints
from transect.errors import UsageError
from transect.types import CameraModel, CorrespondenceMaps2D

from .triangulation import require_camera, straighten


@dataclass(frozen=True, eq=False)
class Tracks:
    """The same points in several images.

    Attributes
    ----------
    pixels : (n, m, 2)
        Of n points in m images, without lens distortion; NaN where a point was not seen.
    cameras : list of CameraModel
        That took the images.
    first_row : (n,) int64
        Row of the point in the first map; -1 if it is not there.
    """

    pixels: Floats
    cameras: list[CameraModel]
    first_row: Ints

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """(n, m): which point is in which image."""
        return np.asarray(~np.isnan(self.pixels).any(axis=2))

    @property
    def places(self) -> Floats:
        """(n, m, 2) on the plane z = 1."""
        K = np.array([camera.K for camera in self.cameras])
        y = (self.pixels[..., 1] - K[:, 1, 2]) / K[:, 1, 1]
        return np.stack([(self.pixels[..., 0] - K[:, 0, 2] - K[:, 0, 1] * y) / K[:, 0, 0], y], axis=-1)

    def take(self, rows: NDArray[np.bool_]) -> Tracks:
        """Return some of the points."""
        return Tracks(self.pixels[rows], self.cameras, self.first_row[rows])


def tracks_of(matches: CorrespondenceMaps2D) -> Tracks:
    """Return the points that matches of pairs of images mean together.

    A feature is known by its image and pixel. One that is matched, in whatever way, with two features of the
    same image is contradictory, and left out.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    pairs = matches.pairs or _pairs_in_order(len(matches.maps))
    images = max((max(pair) for pair in pairs), default=-1) + 1
    cameras = _cameras(matches, pairs, images)
    ends, first_count = _ends(matches, pairs)
    features, which = np.unique(ends, axis=0, return_inverse=True)
    source, sink = which.reshape(2, -1)
    links = coo_array((np.ones(len(source)), (source, sink)), shape=(len(features), len(features)))
    point = connected_components(links, directed=False)[1].astype(np.int64)
    pixels, good = _table(features, point, images)
    first_row = np.full(len(pixels), -1, np.int64)
    first_row[point[source[:first_count]]] = np.arange(first_count)
    kept = Tracks(pixels[good], cameras, first_row[good])
    return _straight(kept)


def _pairs_in_order(count: int) -> tuple[tuple[int, int], ...]:
    """Return CDFF's order (0, 1), (0, 2), ..., (1, 2), ... of all pairs of images."""
    images = round((1 + np.sqrt(1 + 8 * count)) / 2)
    if images * (images - 1) // 2 != count:
        raise UsageError(
            f"{count} maps cannot be those of all pairs of images",
            why="n images have n (n - 1) / 2 pairs",
            hint="say in `pairs` which images they are between",
        )
    return tuple((one, other) for one in range(images) for other in range(one + 1, images))


def _ends(matches: CorrespondenceMaps2D, pairs: tuple[tuple[int, int], ...]) -> tuple[Floats, int]:
    """Return image, x, y of both ends of all matches: sources, then sinks; and how many the first map has."""
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


def _table(features: Floats, point: Ints, images: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the pixels (n, m, 2) of points, and which are seen at most once in every image."""
    image = features[:, 0].astype(np.int64)
    count = int(point.max(initial=-1)) + 1
    pixels, times = np.full((count, images, 2), np.nan), np.zeros((count, images), np.int64)
    pixels[point, image] = features[:, 1:]
    np.add.at(times, (point, image), 1)
    return pixels, np.asarray((times <= 1).all(axis=1))


def _straight(tracks: Tracks) -> Tracks:
    flat = [straighten(tracks.pixels[:, i], camera) for i, camera in enumerate(tracks.cameras)]
    pixels = np.stack(flat, axis=1) if flat else tracks.pixels
    enough = np.count_nonzero(~np.isnan(pixels).any(axis=2), axis=1) >= 2
    return Tracks(pixels, tracks.cameras, tracks.first_row).take(enough)
