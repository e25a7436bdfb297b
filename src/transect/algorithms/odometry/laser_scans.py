"""Planar laser scans: walls between returns, field of view, and the local map of the last scans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints, Mask
from transect.types import LaserScan

from ..registration.scan_matching import LikelihoodField, relative_pose, transform_points


@dataclass(frozen=True)
class LaserWallSettings:
    """Settings of the interpolation of walls between returns."""

    spacing_m: float = 0.05  # between interpolated points
    cell_m: float = 0.1  # one point of a scan per cell of this size is matched
    # Neighbouring returns are on one wall if they are closer than a distance plus a number of beam gaps.
    max_gap_m: float = 0.1
    max_gap_beams: float = 3.0
    # At grazing incidence the gap may be larger if the wall is straight: cosine between steps, and offset of
    # three returns from a line.
    min_step_cosine: float = 0.99
    max_line_offset_m: float = 0.02


@dataclass(frozen=True)
class FieldOfViewSettings:
    """Settings of the comparison of a scan with known walls."""

    bearing_bin_rad: float = float(np.radians(2.0))
    # Largest difference of a measured range from that of a known wall
    range_tolerance_m: float = 0.3
    range_tolerance_ratio: float = 0.02
    expected_range_ratio: float = 0.95  # of a scan's longest range, up to which walls should be visible


@dataclass(frozen=True)
class LaserMapSettings:
    """Settings of the local map."""

    # Motion after which a scan joins the map
    keyframe_distance_m: float = 0.5
    keyframe_angle_rad: float = 0.3
    max_keyframes: int = 12


WALLS = LaserWallSettings()
FIELD_OF_VIEW = FieldOfViewSettings()
LASER_MAP = LaserMapSettings()


def scan_points(scan: LaserScan, T_body_laser: Floats, max_range_m: float) -> Floats:
    """Return the returns (n, 2) of a scan in the body's plane, in the order of the beams."""
    returned = scan.returned(farthest=max_range_m)
    ranges, angles = scan.ranges[returned], scan.angles[returned]
    flat = np.stack([ranges * np.cos(angles), ranges * np.sin(angles)], axis=-1)
    return flat @ T_body_laser[:2, :2].T + T_body_laser[:2, 3]


def interpolate_walls(points: Floats, beam_spacing: float, settings: LaserWallSettings = WALLS) -> Floats:
    """Interpolate points (m, 2) on walls between neighbouring returns (n, 2).

    Distant walls are sampled sparsely by the beams; without interpolation a scan is attracted to the points
    that the beams of another scan happened to hit.

    Parameters
    ----------
    points : (n, 2)
        Returns in the order of their beams, in the frame of a body near the laser, m.
    beam_spacing : float
        Angle between neighbouring beams, rad.
    """
    if len(points) < 2:
        return points
    steps = np.diff(points, axis=0)
    lengths = np.linalg.norm(steps, axis=1)
    connected = _are_connected(points, steps, lengths, beam_spacing, settings)
    count = np.where(connected, np.maximum(np.ceil(lengths / settings.spacing_m), 1), 1).astype(np.int64)
    start = np.repeat(np.arange(len(steps)), count)
    fraction = (np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)) / count[start]
    return np.concatenate(
        [points[start] + fraction[:, None] * steps[start] * connected[start, None], points[-1:]]
    )


def _are_connected(
    points: Floats, steps: Floats, lengths: Floats, beam_spacing: float, settings: LaserWallSettings
) -> Mask:
    """Return which neighbouring returns are on one wall; at grazing incidence they may be further apart."""
    ranges = np.linalg.norm(points[:-1], axis=1)
    beam_gap = settings.max_gap_beams * beam_spacing * ranges
    direction = steps / np.maximum(lengths, 1e-9)[:, None]
    chord = np.linalg.norm(points[2:] - points[:-2], axis=1)
    offset = np.abs(steps[:-1, 0] * steps[1:, 1] - steps[:-1, 1] * steps[1:, 0]) / np.maximum(chord, 1e-9)
    straight = (np.sum(direction[1:] * direction[:-1], axis=1) > settings.min_step_cosine) & (
        offset < settings.max_line_offset_m
    )
    continues = np.concatenate([[False], straight]) | np.concatenate([straight, [False]])
    incidence = np.abs(points[:-1, 0] * direction[:, 1] - points[:-1, 1] * direction[:, 0]) / np.maximum(
        ranges, 1e-9
    )
    max_gap = settings.max_gap_m + beam_gap / np.maximum(incidence, 1e-2)
    return (lengths <= settings.max_gap_m + beam_gap) | (continues & (lengths <= max_gap))


def downsample(points: Floats, cell_m: float) -> Floats:
    """Return at most one point (m, 2) per cell, so that near walls weigh as much as distant ones."""
    cells = np.floor(points / cell_m).astype(np.int64)
    _, start = np.unique(cells, axis=0, return_index=True)
    return points[np.sort(start)]


def weakest_direction_support(points: Floats, neighbours: int = 7) -> float:
    """Return the number of points (n, 2) that constrain the least constrained direction of a scan.

    A point constrains the position along the normal of its wall: the information matrix is the sum of n n^T
    over the normals, each weighted by how linear its `neighbours` are. The result is its smaller eigenvalue.
    """
    from scipy.spatial import KDTree

    if len(points) <= neighbours:
        return 0.0
    near = points[KDTree(points).query(points, neighbours)[1]]
    x, y = np.moveaxis(near - near.mean(axis=1, keepdims=True), -1, 0)
    scatter = np.maximum(np.sum(x**2 + y**2, axis=1), 1e-12)
    double_angle = (np.sum(x**2 - y**2, axis=1) + 2j * np.sum(x * y, axis=1)) / scatter  # of the wall
    return float(np.abs(double_angle).sum() - np.abs(double_angle.sum())) / 2


@dataclass(frozen=True, eq=False)
class LaserFieldOfView:
    """Position of a laser on its body, and the sector that it measures."""

    position: Floats  # (2,) m, in the body's plane
    centre_rad: float  # direction of the middle of the view, in the body's plane
    half_angle_rad: float  # to each side
    settings: FieldOfViewSettings = FIELD_OF_VIEW

    @staticmethod
    def from_calibration(calibration: Mapping[str, Any]) -> LaserFieldOfView:
        """Return the field of view stored in a map's calibration; by default 180 degrees."""
        T_body_laser = np.array(calibration.get("T_body_laser", np.eye(4).tolist()), np.float64)
        first, last = calibration.get("view", (-np.pi / 2, np.pi / 2))
        middle = T_body_laser[:2, :2] @ np.array([np.cos((first + last) / 2), np.sin((first + last) / 2)])
        return LaserFieldOfView(
            T_body_laser[:2, 3], float(np.arctan2(middle[1], middle[0])), abs(last - first) / 2
        )

    def visible_wall_ratio(self, points: Floats, walls: Floats, pose: Floats) -> float:
        """Return the ratio of walls in view from a pose that a scan measured.

        A scan that fits is only half of the evidence: few, distant walls fit in many places where nearer
        walls should have been measured as well.

        Parameters
        ----------
        points : (n, 2)
            Returns of the scan, in the body frame.
        walls : (m, 2)
            Known walls, densely sampled.
        pose : (3,)
            Pose of the body in the frame of the walls.
        """
        from scipy.ndimage import maximum_filter1d, minimum_filter1d

        c, s = np.cos(pose[2]), np.sin(pose[2])
        wall_ranges, _ = self._ranges((walls - pose[:2]) @ np.array([[c, -s], [s, c]]))
        nearest, farthest = self._ranges(points)
        # Neighbouring bins count too, for walls at grazing incidence.
        nearest, farthest = minimum_filter1d(nearest, 3), maximum_filter1d(farthest, 3)
        expected = wall_ranges < self.settings.expected_range_ratio * farthest.max()
        tolerance = self.settings.range_tolerance_m + self.settings.range_tolerance_ratio * np.where(
            expected, wall_ranges, 0.0
        )
        visible = expected & (wall_ranges >= nearest - tolerance) & (wall_ranges <= farthest + tolerance)
        missed = expected & (wall_ranges < nearest - tolerance)
        return float(visible.sum() / max((visible | missed).sum(), 1))

    def coverage(self, points: Floats) -> ScanCoverage:
        """Return the area covered by a scan with these returns (n, 2)."""
        _, farthest = self._ranges(points)
        return ScanCoverage(self, farthest, float(farthest.max(initial=0.0)))

    def _ranges(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the nearest and farthest range of points (n, 2) per bearing bin; inf and -inf if empty."""
        bearing, ranges = self.polar(points)
        inside = np.abs(bearing) <= self.half_angle_rad
        bins, ranges = self.bearing_bins(bearing[inside]), ranges[inside]
        count = int(2 * self.half_angle_rad / self.settings.bearing_bin_rad) + 1
        nearest, farthest = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(nearest, bins, ranges)
        np.maximum.at(farthest, bins, ranges)
        return nearest, farthest

    def polar(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the bearing of points (n, 2) from the centre of the view, rad, and their range."""
        x, y = (points - self.position).T
        return (np.arctan2(y, x) - self.centre_rad + np.pi) % (2 * np.pi) - np.pi, np.hypot(x, y)

    def bearing_bins(self, bearing: Floats) -> Ints:
        """Return the bin numbers of bearings (n,)."""
        return ((bearing + self.half_angle_rad) / self.settings.bearing_bin_rad).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ScanCoverage:
    """Area that a scan covered."""

    field_of_view: LaserFieldOfView
    farthest: Floats  # (n,) range of the farthest return per bearing bin, m; -inf without one
    max_range_m: float  # of all returns

    def covers(self, points: Floats, position_error_m: float) -> Mask:
        """Return which points (n, 2) in the body frame a scan would have measured if they were there.

        Beyond the measured ranges the absence of a wall is not observed.

        Parameters
        ----------
        position_error_m : float
            Largest error of the points.
        """
        bearing, ranges = self.field_of_view.polar(points)
        inside = np.abs(bearing) <= self.field_of_view.half_angle_rad - position_error_m / np.maximum(
            ranges, position_error_m
        )
        farthest = self.farthest[self.field_of_view.bearing_bins(np.where(inside, bearing, 0.0))]
        settings = self.field_of_view.settings
        limit = farthest * (1 + settings.range_tolerance_ratio) + settings.range_tolerance_m
        limit = np.where(farthest >= 0.0, limit, np.inf)
        return inside & (ranges <= np.minimum(limit, self.max_range_m - position_error_m))


@dataclass(frozen=True, eq=False)
class LaserKeyframe:
    """A scan of the local map."""

    pose: Floats  # (3,)
    walls: Floats  # (n, 2) m, in the body frame
    coverage: ScanCoverage
    odometry_pose: Floats | None  # (3,) pose of the external odometry at that time


class LaserLocalMap:
    """The last scans as a likelihood field. It is immutable, so that copies share it."""

    def __init__(self, keyframes: Iterable[LaserKeyframe], settings: LaserMapSettings = LASER_MAP) -> None:
        self.settings = settings
        self.keyframes = tuple(keyframes)[-settings.max_keyframes :]
        self.field = LikelihoodField(
            merge_walls((keyframe.pose, keyframe.walls) for keyframe in self.keyframes)
        )

    def __deepcopy__(self, memo: object) -> LaserLocalMap:
        return self

    @property
    def last(self) -> LaserKeyframe:
        """The newest keyframe."""
        return self.keyframes[-1]

    def needs_keyframe(self, pose: Floats) -> bool:
        """Return whether a pose (3,) is so far from the newest keyframe that its scan becomes one."""
        motion = relative_pose(self.last.pose, pose)
        return bool(
            np.hypot(*motion[:2]) >= self.settings.keyframe_distance_m
            or abs(motion[2]) >= self.settings.keyframe_angle_rad
        )

    def covers(self, points: Floats, pose: Floats, position_error_m: float) -> Mask:
        """Return which points (n, 2) of a body at a pose (3,) are in the area covered by the map.

        Points outside would pull a scan towards the ends of walls that were only partly measured.

        Parameters
        ----------
        position_error_m : float
            Largest error of the pose.
        """
        covered = np.zeros(len(points), bool)
        for keyframe in self.keyframes:
            covered |= keyframe.coverage.covers(
                transform_points(points, relative_pose(keyframe.pose, pose)), position_error_m
            )
        return covered


def merge_walls(scans: Iterable[tuple[Floats, Floats]]) -> Floats:
    """Return the walls (n, 2) of scans, each given by its pose (3,) and its walls (m, 2), in one frame."""
    return np.concatenate([transform_points(walls, pose) for pose, walls in scans])
