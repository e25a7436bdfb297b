"""Loop closure for a planar laser: candidate retrieval and scan-to-submap verification.

Candidates are the keyframes nearest by the pose graph and those with the most similar shape descriptor: the
distribution of distances between pairs of points, which does not depend on the pose (D2 of Osada et al.,
"Shape distributions", ACM TOG 2002).

A candidate is verified by correlative matching of the scan with a submap of the keyframe (`LikelihoodField`).
The match is accepted if it passes three tests:

1. It is unambiguous: its score is high, and no other pose in the search window scores nearly as well.
2. It explains the submap: the walls that should be visible from the matched pose were measured. A scan of
   few, distant walls fits in many places where it should have measured nearer walls as well.
3. It is well constrained: the inliers determine the position in both directions. A single wall leaves the
   position along it free.

A robot is lost if the search radius that its covariance calls for exceeds `max_search_radius_m`. It is then
searched for around each candidate, and test 2 is stricter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.types.places import Observation, PlaceMap

from ..odometry.laser_scans import (
    LASER_MAP,
    WALLS,
    LaserFieldOfView,
    LaserWallSettings,
    downsample,
    interpolate_walls,
    merge_walls,
    weakest_direction_support,
)
from ..registration.scan_matching import (
    LikelihoodField,
    ScanMatch,
    SearchWindow,
    flatten_pose,
    lift_covariance,
    lift_pose,
    relative_pose,
)
from .place_recognition import Loop, LoopSettings, MappingSettings, PosePrior


@dataclass(frozen=True)
class RecognitionSettings:
    """Settings of laser loop closure."""

    # Submaps: keyframes within the radius, at most `submap_half_size` before and after the reference.
    submap_radius_m: float = 4.0
    submap_half_size: int = 8
    max_cached_submaps: int = 24

    # Candidates. Keyframes closer than the spacing share most of their submap; only one of them is tried.
    candidate_spacing_m: float = 2.0
    candidate_spacing_rad: float = 1.0
    nearest_candidates: int = 2
    similar_candidates: int = 12
    descriptor_points: int = 90
    descriptor_bins: int = 40
    descriptor_bin_m: float = 0.5

    # Search window: this many standard deviations of the predicted pose, plus a margin.
    window_sigmas: float = 3.0
    window_margin_m: float = 0.3
    window_margin_rad: float = 0.06
    max_search_radius_m: float = 8.0
    lost_search_radius_m: float = 4.0

    # Test 1: ambiguity.
    min_points: int = 20
    min_score: float = 0.6
    max_second_best_ratio: float = 0.9

    # Test 2: ratio of the walls in view that were measured.
    min_visible_ratio: float = 0.4
    min_visible_ratio_lost: float = 0.75

    # Test 3: observability. From a new viewpoint, occlusion hides other wall ends. A match displaced by more
    # than this needs `min_cross_points` points on walls in a second direction.
    max_position_sigma_m: float = 0.15
    same_viewpoint_m: float = 1.0
    same_viewpoint_rad: float = 0.5
    min_cross_points: float = 5.0

    min_sigma: tuple[float, float, float] = (0.02, 0.02, 0.005)  # m, m, rad: deformation of a submap by drift
    walls: LaserWallSettings = WALLS


RECOGNITION = RecognitionSettings()
LASER_MAPPING = MappingSettings(
    LASER_MAP.keyframe_distance_m,
    LASER_MAP.keyframe_angle_rad,
    search_radius_m=6.0,
    min_loop_path_m=8.0,
    max_candidates=RECOGNITION.nearest_candidates,
    max_candidates_lost=RECOGNITION.nearest_candidates + RECOGNITION.similar_candidates,
    max_sure_radius_m=RECOGNITION.submap_radius_m,
    loops=LoopSettings(
        max_lone_sigma_m=3.0,
        accept_contradictions=False,
        max_second_best_ratio=RECOGNITION.max_second_best_ratio,
    ),
)


@dataclass(frozen=True, eq=False)
class KeyframeScan:
    """The scan of a keyframe."""

    points: Floats  # (n, 2) m, in the body's plane
    pose: Floats  # (3,) by laser odometry
    segment: float  # poses of different odometry segments have no common frame
    descriptor: Floats


class LaserRecogniser:
    """Stores the scans of all keyframes, and builds submaps from them on demand.

    Parameters
    ----------
    beam_spacing : float
        Angle between neighbouring beams, rad.
    """

    def __init__(
        self,
        beam_spacing: float,
        field_of_view: LaserFieldOfView,
        settings: RecognitionSettings = RECOGNITION,
    ) -> None:
        self.beam_spacing, self.field_of_view, self.settings = beam_spacing, field_of_view, settings
        self.keyframes: dict[int, KeyframeScan] = {}
        self._fields: dict[int, LikelihoodField] = {}

    @staticmethod
    def from_calibration(calibration: Mapping[str, Any]) -> LaserRecogniser:
        """Return a new recogniser for the laser whose calibration is stored in a map."""
        return LaserRecogniser(float(calibration["beam"]), LaserFieldOfView.from_calibration(calibration))

    def __deepcopy__(self, memo: object) -> LaserRecogniser:
        other = LaserRecogniser(self.beam_spacing, self.field_of_view, self.settings)
        other.keyframes = dict(self.keyframes)
        return other

    def add(self, k: int, observation: Observation) -> None:
        """Store the scan of keyframe `k`, and discard the cached submaps that it belongs to."""
        points = np.asarray(observation["points"], np.float64)
        front = np.asarray(observation["front"], np.float64)[0]
        added = KeyframeScan(points, front[:3], float(front[3]), self._descriptor(points))
        self.keyframes[k] = added
        self._fields = {
            old: field for old, field in self._fields.items() if added not in self._submap_keyframes(old)
        }

    def candidates(self, observation: Observation, allowed: Ints) -> Sequence[int]:
        """Return the nearest candidates in the order of `allowed`, then the most similar ones."""
        spaced: list[int] = []
        for k in allowed.tolist():
            if not any(self._are_close(k, other) for other in spaced):
                spaced.append(k)
        count = self.settings.nearest_candidates
        descriptor = self._descriptor(np.asarray(observation["points"], np.float64))
        similar = sorted(spaced[count:], key=lambda k: -float(self.keyframes[k].descriptor @ descriptor))
        return [*spaced[:count], *similar[: self.settings.similar_candidates]]

    def verify(self, old: int, observation: Observation, prior: PosePrior | None) -> Loop | None:
        """Match a scan with the submap of keyframe `old`; return None if the match fails a test.

        For a lost robot, a match that is poorly constrained or explains too little of the submap is returned
        with `sure=False`: it is no loop closure, but a competing hypothesis to other candidates.
        """
        limits = self.settings
        points = np.asarray(observation["points"], np.float64)
        if len(points) < limits.min_points:
            return None
        window = self._search_window(prior)
        scan = downsample(interpolate_walls(points, self.beam_spacing, limits.walls), limits.walls.cell_m)
        field = self._likelihood_field(old)
        match = field.search(scan, window, limits.min_score, limits.max_second_best_ratio)
        # The search scores whole cells; the refined, interpolated score may be lower.
        if match is None or match.score < limits.min_score:
            return None
        if match.second_best_ratio >= limits.max_second_best_ratio:
            return None
        visible = self.field_of_view.visible_wall_ratio(points, self._submap_walls(old), match.pose)
        lost = self._is_lost(prior)
        outside = float(np.hypot(*match.pose[:2])) > limits.submap_radius_m
        weak = outside or self._is_underconstrained(match, scan[field.inliers(scan, match.pose)])
        if visible < limits.min_visible_ratio or (weak and not lost):
            return None
        sure = not (lost and (weak or visible < limits.min_visible_ratio_lost))
        return replace(loop_from_match(match, limits.min_sigma), sure=sure)

    def _are_close(self, a: int, b: int) -> bool:
        first, second = self.keyframes[a], self.keyframes[b]
        x, y, heading = relative_pose(first.pose, second.pose)
        return (
            first.segment == second.segment
            and float(np.hypot(x, y)) < self.settings.candidate_spacing_m
            and abs(heading) < self.settings.candidate_spacing_rad
        )

    def _likelihood_field(self, old: int) -> LikelihoodField:
        """Return the likelihood field of a keyframe's submap, from the cache if possible."""
        if old not in self._fields:
            while len(self._fields) >= self.settings.max_cached_submaps:
                self._fields.pop(next(iter(self._fields)))
            self._fields[old] = LikelihoodField(self._submap_walls(old))
        return self._fields[old]

    def _submap_walls(self, old: int) -> Floats:
        """Return points (n, 2) on the walls of a keyframe's submap, in the frame of the keyframe."""
        reference = self.keyframes[old].pose
        return merge_walls(
            (
                relative_pose(reference, each.pose),
                interpolate_walls(each.points, self.beam_spacing, self.settings.walls),
            )
            for each in self._submap_keyframes(old)
        )

    def _submap_keyframes(self, old: int) -> list[KeyframeScan]:
        """Return the keyframes whose scans make the submap of a keyframe."""
        reference, numbers, half = self.keyframes[old], list(self.keyframes), self.settings.submap_half_size
        at = numbers.index(old)
        neighbours = [self.keyframes[k] for k in numbers[max(at - half, 0) : at + half + 1]]
        return [
            each
            for each in neighbours
            if each.segment == reference.segment
            and np.hypot(*(each.pose - reference.pose)[:2]) <= self.settings.submap_radius_m
        ]

    def _search_window(self, prior: PosePrior | None) -> SearchWindow:
        """Return the confidence region of the predicted pose, or one around the keyframe for a lost robot."""
        limits = self.settings
        if prior is None:
            return SearchWindow(np.zeros(3), limits.lost_search_radius_m, np.pi)
        covariance, pose = prior.covariance, flatten_pose(prior.T_old_new)
        heading_sigma = np.sqrt(covariance[5, 5])
        half_angle = min(limits.window_margin_rad + limits.window_sigmas * heading_sigma, np.pi)
        if self._is_lost(prior):
            return SearchWindow(np.array([0.0, 0.0, pose[2]]), limits.lost_search_radius_m, half_angle)
        sigma = np.sqrt(np.linalg.eigvalsh(covariance[:2, :2])[-1])
        return SearchWindow(pose, limits.window_margin_m + limits.window_sigmas * sigma, half_angle)

    def _is_lost(self, prior: PosePrior | None) -> bool:
        if prior is None:
            return True
        sigma = np.sqrt(np.linalg.eigvalsh(prior.covariance[:3, :3])[-1])
        return bool(self.settings.window_sigmas * sigma > self.settings.max_search_radius_m)

    def _is_underconstrained(self, match: ScanMatch, inliers: Floats) -> bool:
        """Return whether the scan could slide along a wall; `inliers` (n, 2) are its points on walls."""
        limits = self.settings
        if np.linalg.eigvalsh(match.covariance[:2, :2])[-1] > limits.max_position_sigma_m**2:
            return True
        x, y, heading = match.pose
        displaced = np.hypot(x, y) > limits.same_viewpoint_m
        rotated = np.cos(heading) < np.cos(limits.same_viewpoint_rad)
        return bool((displaced or rotated) and weakest_direction_support(inliers) < limits.min_cross_points)

    def _descriptor(self, points: Floats) -> Floats:
        """Return the square root of the histogram of distances between pairs of points (n, 2).

        The dot product of two such roots is the Bhattacharyya coefficient of the histograms.
        """
        bins, bin_m = self.settings.descriptor_bins, self.settings.descriptor_bin_m
        sample = points[:: max(len(points) // self.settings.descriptor_points, 1)]
        pairs = np.triu_indices(len(sample), 1)
        distances = np.linalg.norm(sample[:, None] - sample[None], axis=-1)[pairs]
        counts = np.histogram(distances, bins, (0.0, bins * bin_m))[0].astype(np.float64)
        return np.sqrt(counts / max(counts.sum(), 1.0))


def max_segment(observations: Sequence[Observation]) -> float:
    """Return the largest odometry segment number in a map."""
    return max((float(each["front"][0, 3]) for each in observations if len(each["front"])), default=0.0)


def renumber_segments(first: PlaceMap, second: PlaceMap) -> list[Observation]:
    """Return the observations of a second map, with segment numbers that continue those of the first."""
    after = np.array([0.0, 0.0, 0.0, max_segment(first.observations)])
    return [{**seen, "front": seen["front"] + after} for seen in second.observations]


def loop_from_match(match: ScanMatch, min_sigma: tuple[float, float, float]) -> Loop:
    """Return a match in the frame of an old keyframe as a loop, with a smallest sigma: m, m and rad."""
    covariance = match.covariance + np.diag(np.square(min_sigma))
    return Loop(lift_pose(match.pose), lift_covariance(covariance, float(match.pose[2])), match.score)
