"""The horizontal plane of a trajectory: which coordinates are drawn to the right and up on a map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from transect.base.arrays import Floats
from transect.geometry import rotations

CAMERA_AXES, Z_UP_AXES = (0, 2), (0, 1)
"""Coordinates right and up on a map, for a camera (x right, y down, z forward) and for a vertical z axis."""


@dataclass(frozen=True)
class GroundAxisSettings:
    """Thresholds for finding the vertical axis of a trajectory."""

    # Length of the mean of unit vectors in body axes; 1 if all have the same direction.
    min_forward_consistency: float = 0.9
    min_vertical_consistency: float = 0.7  # lower, because the vehicle tilts on slopes
    segments: int = 50  # the trajectory is split into, so that noise of single poses averages out
    max_rise_ratio: float = 0.3  # maximum rise of a trajectory on the ground, fraction of its length
    max_line_width_ratio: float = 0.1  # maximum width of a straight trajectory, fraction of its length
    min_plane_ratio: float = 3.0  # second to third extent from which a trajectory is planar


@dataclass(frozen=True)
class MapView:
    """Coordinates drawn on a map."""

    right: int = 0  # index of the coordinate drawn to the right
    up: int = 1
    names: tuple[str, str] = ("x", "y")
    mirrored: bool = False  # whether the coordinate to the right increases to the left (north, west, up)

    def project(self, points: Floats) -> Floats:
        """Project points (n, 3) to the map: right and up, (n, 2)."""
        return points[:, [self.right, self.up]] * ((-1.0 if self.mirrored else 1.0), 1.0)


FROM_ABOVE = MapView()
"""View for axes with z vertical and otherwise unknown orientation."""
NORTH_UP = MapView(0, 1, ("east", "north"))
VIEWS = {
    "ENU": NORTH_UP,
    "NED": MapView(1, 0, ("east", "north")),
    "NWU": MapView(1, 0, ("east", "north"), mirrored=True),
}
"""Views for frames with named axes."""


def map_view(positions: Floats, orientations: Floats | None = None, frame: str = "") -> MapView:
    """Return the view from above for a trajectory (n, 3), m, with attitudes (n, 4) in `frame`."""
    if frame in VIEWS:
        return VIEWS[frame]
    right, up = ground_axes(positions, orientations)
    names = ("x, right", "z, forward") if (right, up) == CAMERA_AXES else ("xyz"[right], "xyz"[up])
    return MapView(right, up, names)


def ground_axes(positions: Floats, orientations: Floats | None = None) -> tuple[int, int]:
    """Return the coordinates drawn right and up on a map: (0, 1), or (0, 2) in a camera's axes.

    With attitudes, a body that moves along its own z axis is a camera, whose y axis points down; one that
    moves along its x or y axis has z vertical. The vertical coordinate is the one along which this body axis
    points. Without attitudes z is vertical, unless the trajectory rises too steeply along z: it is then a
    line along a camera's z axis, or is planar with another normal.

    Parameters
    ----------
    positions : (n, 3)
        Metres, in a fixed frame; rows with NaN are left out.
    orientations : (n, 4), optional
        Quaternions x, y, z, w that take vectors of the body to that frame.
    """
    known = np.isfinite(positions).all(axis=1)
    if orientations is not None:
        known &= np.isfinite(orientations).all(axis=1)
        vertical = _vertical_of_body(positions[known], orientations[known])
        if vertical is not None:
            return _horizontal_axes(vertical)
    if not known.any():
        return Z_UP_AXES
    return _horizontal_axes(_vertical_from_extent(np.ptp(positions[known], axis=0)))


def forward_axis(
    positions: Floats, orientations: Floats, settings: GroundAxisSettings = GroundAxisSettings()
) -> int | None:
    """Return the axis of a body, 0 to 2, along which it moves, or None if it moves along none of them.

    Parameters
    ----------
    positions : (n, 3)
        Metres, in a fixed frame.
    orientations : (n, 4)
        Quaternions x, y, z, w that take vectors of the body to that frame.
    """
    count = min(settings.segments + 1, len(positions))  # no pose is chosen twice
    chosen = np.linspace(0, len(positions) - 1, count).round().astype(int)
    steps = np.diff(positions[chosen], axis=0)
    length = np.linalg.norm(steps, axis=1)
    if len(steps) < 2 or not (length > 0).any():
        return None
    moving = length > 0.2 * length.max()
    middle = orientations[(chosen[:-1] + chosen[1:]) // 2][moving]
    ahead = rotations.rotate(rotations.conjugate(middle), steps[moving] / length[moving, None])
    mean = np.abs(ahead.mean(axis=0))
    axis = int(np.argmax(mean))
    return axis if mean[axis] >= settings.min_forward_consistency else None


def _vertical_of_body(
    positions: Floats, orientations: Floats, settings: GroundAxisSettings = GroundAxisSettings()
) -> int | None:
    """Return the coordinate along which the vertical axis of the body points, or None."""
    if len(positions) < 3:
        return None
    forward = forward_axis(positions, orientations)
    if forward is None:
        return None
    up = np.eye(3)[1 if forward == 2 else 2]
    mean = np.abs(rotations.rotate(orientations, np.broadcast_to(up, positions.shape)).mean(axis=0))
    vertical = int(np.argmax(mean))
    return vertical if mean[vertical] >= settings.min_vertical_consistency else None


def _vertical_from_extent(extent: Floats, settings: GroundAxisSettings = GroundAxisSettings()) -> int:
    """Return the vertical coordinate, from the extents (3,) of a trajectory."""
    shortest, second, longest = np.sort(extent)
    if extent[2] <= settings.max_rise_ratio * longest:
        return 2
    if second <= settings.max_line_width_ratio * longest:
        return 1
    if second >= settings.min_plane_ratio * shortest:
        return int(np.argmin(extent))
    return 1 if extent[2] == longest and second < settings.max_rise_ratio * longest else 2


def _horizontal_axes(vertical: int) -> tuple[int, int]:
    return {0: (1, 2), 1: CAMERA_AXES, 2: Z_UP_AXES}[vertical]
