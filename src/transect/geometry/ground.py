"""The plane in which something drove: which coordinates of its path go to the right and up on a map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import rotations

STEADY = 0.9
"""Mean of unit vectors that point the same way: 1 if all agree. A vehicle drives along one of its axes."""
LEVEL = 0.7
"""The same of the vehicle's upward axis: less, as it drives over slopes."""
STEEP = 0.3
"""Part of its length by which no path on the ground rises."""
THIN = 0.1
"""Part of its length that a path is wide at most, to be a line."""
FLAT = 3.0
"""Ratio of the second to the third extent from which on a path lies in a plane."""
STEPS = 50
"""Parts into which a path is cut to see which way it goes: noise of single poses does not count."""
CAMERA, LEVEL_BODY = (0, 2), (0, 1)
"""Right and up on a map: of a camera (x right, y down, z forward), and of axes whose z is vertical."""


@dataclass(frozen=True)
class MapView:
    """What is drawn of a path on a map.

    Attributes
    ----------
    right, up : int
        Coordinates, 0 to 2, that go to the right and up.
    names : (str, str)
        What they are called.
    mirrored : bool
        Whether the coordinate to the right grows to the left: of north, west, up.
    """

    right: int = 0
    up: int = 1
    names: tuple[str, str] = ("x", "y")
    mirrored: bool = False

    def project(self, points: Floats) -> Floats:
        """Return points (n, 3) right and up, (n, 2)."""
        return points[:, [self.right, self.up]] * ((-1.0 if self.mirrored else 1.0), 1.0)


FROM_ABOVE = MapView()
"""Of axes whose z is vertical, and of which no more is known."""
NORTH_UP = MapView(0, 1, ("east", "north"))
VIEWS = {
    "ENU": NORTH_UP,
    "NED": MapView(1, 0, ("east", "north")),
    "NWU": MapView(1, 0, ("east", "north"), mirrored=True),
}
"""Of frames whose names tell their axes."""


def map_view(positions: Floats, orientations: Floats | None = None, frame: str = "") -> MapView:
    """Return how a path (n, 3), in metres, with attitudes (n, 4) in `frame`, is seen from above."""
    if frame in VIEWS:
        return VIEWS[frame]
    right, up = ground_axes(positions, orientations)
    names = ("x, right", "z, forward") if (right, up) == CAMERA else ("xyz"[right], "xyz"[up])
    return MapView(right, up, names)


def ground_axes(positions: Floats, orientations: Floats | None = None) -> tuple[int, int]:
    """Return the coordinates of a path that go right and up on a map: (0, 1), or (0, 2) in a camera's axes.

    Attitudes decide where there are any: a body that drives along its own z is a camera, whose y points
    down; one that drives along its x or y has z up or down. The coordinate that is vertical is the one along
    which this axis of the body points. Without attitudes z is vertical, unless the path rises so much along
    z that it cannot be: it is then a line along a camera's z, or lies in another plane.

    Parameters
    ----------
    positions : (n, 3)
        Metres, in a frame that does not move; rows with NaN are left out.
    orientations : (n, 4), optional
        Quaternions x, y, z, w that take vectors of the body to that frame.
    """
    known = np.isfinite(positions).all(axis=1)
    if orientations is not None:
        known &= np.isfinite(orientations).all(axis=1)
        vertical = _vertical_of_body(positions[known], orientations[known])
        if vertical is not None:
            return _without(vertical)
    return _without(_vertical_of_extent(np.ptp(positions[known], axis=0))) if known.any() else LEVEL_BODY


def forward_axis(positions: Floats, orientations: Floats) -> int | None:
    """Return the axis of a body, 0 to 2, along which it drives, or None if it drives along none of them.

    Parameters
    ----------
    positions : (n, 3)
        Metres, in a frame that does not move.
    orientations : (n, 4)
        Quaternions x, y, z, w that take vectors of the body to that frame.
    """
    count = min(STEPS + 1, len(positions))  # so that none is chosen twice
    chosen = np.linspace(0, len(positions) - 1, count).round().astype(int)
    steps = np.diff(positions[chosen], axis=0)
    length = np.linalg.norm(steps, axis=1)
    if len(steps) < 2 or not (length > 0).any():
        return None
    there = length > 0.2 * length.max()
    middle = orientations[(chosen[:-1] + chosen[1:]) // 2][there]
    ahead = rotations.rotate(rotations.conjugate(middle), steps[there] / length[there, None])
    mean = np.abs(ahead.mean(axis=0))
    axis = int(np.argmax(mean))
    return axis if mean[axis] >= STEADY else None


def _vertical_of_body(positions: Floats, orientations: Floats) -> int | None:
    """Return the coordinate along which the vertical axis of the body points, or None."""
    if len(positions) < 3:
        return None
    forward = forward_axis(positions, orientations)
    if forward is None:
        return None
    up = np.eye(3)[1 if forward == 2 else 2]
    mean = np.abs(rotations.rotate(orientations, np.broadcast_to(up, positions.shape)).mean(axis=0))
    vertical = int(np.argmax(mean))
    return vertical if mean[vertical] >= LEVEL else None


def _vertical_of_extent(extent: Floats) -> int:
    """Return the vertical coordinate of a path that reaches so far (3,) along each of them."""
    least, second, longest = np.sort(extent)
    if extent[2] <= STEEP * longest:
        return 2
    if second <= THIN * longest:
        return 1
    if second >= FLAT * least:
        return int(np.argmin(extent))
    return 1 if extent[2] == longest and second < STEEP * longest else 2


def _without(vertical: int) -> tuple[int, int]:
    return {0: (1, 2), 1: CAMERA, 2: LEVEL_BODY}[vertical]
