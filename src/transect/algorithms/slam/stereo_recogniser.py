"""Loop closure for a stereo pair, whose body is the left camera: binary descriptors, verified by 3D geometry.

A keyframe stores corners observed by both cameras, with depth and BEBLID descriptors of 256 bits (Suarez et
al., 2020). Corners have one size and no orientation: a wheeled robot revisits a place at a similar position
and roll angle.

Candidates are retrieved by exhaustive descriptor voting (faiss, of the extra `fusion`). A candidate is
verified by a motion on which most matches agree: three matches determine a motion, since both cameras
observed each point, and most wrong triples are rejected early because their triangles are not congruent. The
motion is then refined in both images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Array, Bytes, Floats, Ints
from transect.errors import MissingExtraError
from transect.geometry import robust, rotations, se3
from transect.types.places import Observation

from ..odometry.stereo_motion import CameraResection, refine_pose
from ..odometry.stereo_odometer import MAX_DEPTH_BASELINES
from ..odometry.stereo_rig import StereoRig
from ..odometry.stereo_tracking import coarse_disparities, match_right_image
from ..odometry.stereo_tracking_methods import MAX_DISPARITY_RATIO, GrayPair
from .place_recognition import Loop, LoopSettings, MappingSettings, PosePrior

DESCRIPTOR_BITS = 256  # of BEBLID


@dataclass(frozen=True)
class StereoKeyframeSettings:
    """Corners and spacing of keyframes."""

    min_corner_quality: float = 0.002  # response relative to that of the strongest corner
    min_corner_distance_px: int = 7
    corner_diameter_px: float = 7.0
    descriptor_scale: float = 5.0  # size of the described patch over that of the corner
    max_disparity_ratio: float = MAX_DISPARITY_RATIO  # of the image width
    max_depth_baselines: float = MAX_DEPTH_BASELINES
    spacing_depth_ratio: float = 0.1  # distance between keyframes over the median depth
    empty_scene_baselines: float = 40.0  # depth that is assumed for a scene without points
    angle_rad: float = 0.25  # rotation between keyframes


@dataclass(frozen=True)
class StereoCandidateSettings:
    """Retrieval of candidates by descriptor voting; Hamming distances are in bits of `DESCRIPTOR_BITS`."""

    max_candidates: int = 4
    search_radius_spacings: float = 4.0  # in distances between keyframes
    min_loop_spacings: float = 15.0
    max_voting_descriptors: int = 250  # of the strongest corners, which come first
    votes_per_descriptor: int = 8
    max_vote_bits: int = 64  # of one point's descriptors; those of two points differ by 100 and more
    min_common_descriptors: int = 6
    # In localisation, views of neighbouring keyframes of the map are combined.
    max_views: int = 5
    max_view_angle_rad: float = 0.3
    # A keyframe elsewhere with more than this ratio of the best inlier ratio makes the loop ambiguous.
    max_second_best_score_ratio: float = 0.5


@dataclass(frozen=True)
class StereoVerificationSettings:
    """Geometric verification of a candidate."""

    # Matches of descriptors
    max_match_bits: int = 80
    max_second_best_ratio: float = 0.9  # of the distances of the best and the second best match

    # Consensus of congruent triangles
    samples_per_view: int = 4000
    max_motions: int = 400  # motions that are evaluated, those of the most congruent triangles
    disparity_noise_px: float = 1.0
    min_sigma_ratio: float = 0.005  # sigma of a point over the median depth
    min_side_ratio: float = 0.1  # side of a triangle over the median depth
    min_triangle_sine: float = 0.1
    consensus_gate_px: float = 6.0
    sufficient_inlier_ratio: float = 0.5  # ends the search

    # Acceptance of the refined motion
    refinement_gate_px: float = 6.0
    chance_inliers: int = 6  # the most of 860 pairs of different places
    min_inliers: int = 12
    max_sigma_depth_ratio: float = 0.03  # position sigma over the median depth; larger for distant points

    # Covariance of a loop
    view_variance_factor: float = 2.0  # the old points are as noisy as the new pixels
    min_sigma_depth_ratio: float = 0.002  # calibration error, independent of the number of points
    min_sigma_rad: float = 0.001


KEYFRAMES, CANDIDATES = StereoKeyframeSettings(), StereoCandidateSettings()
VERIFICATION = StereoVerificationSettings()


def stereo_mapping_settings(
    distance_m: float,
    angle_rad: float = KEYFRAMES.angle_rad,
    settings: StereoCandidateSettings = CANDIDATES,
) -> MappingSettings:
    """Return the settings of a map, by the distance and angle between keyframes."""
    return MappingSettings(
        distance_m,
        angle_rad,
        settings.search_radius_spacings * distance_m,
        settings.min_loop_spacings * distance_m,
        settings.max_candidates,
        max_candidates_lost=settings.max_candidates,
        loops=LoopSettings(max_second_best_ratio=settings.max_second_best_score_ratio),
    )


def stereo_keyframe_distance(
    view: Observation, baseline: float, settings: StereoKeyframeSettings = KEYFRAMES
) -> float:
    """Return the distance between keyframes, m, by the depth of the first view, or the baseline if empty."""
    depth = median_depth(view)
    return settings.spacing_depth_ratio * (
        depth if np.isfinite(depth) else settings.empty_scene_baselines * baseline
    )


def observe_stereo(
    pair: GrayPair, rig: StereoRig, features: int, settings: StereoKeyframeSettings = KEYFRAMES
) -> Observation:
    """Return the observation of a rectified pair, with at most `features` corners.

    Returns
    -------
    mapping
        `points` (n, 3) float32: m in the left camera; `descriptors` (n, 32) uint8; `camera` (1, 5): fx, fy,
        cx, cy in pixels and the baseline in m.
    """
    corners = _find_corners(pair, features, settings)
    disparity = coarse_disparities(pair.left, pair.right, corners, settings.max_disparity_ratio * rig.width)
    median = robust.median(np.append(disparity, 0.1 * settings.max_disparity_ratio * rig.width))
    initial = np.where(np.isnan(disparity), median, disparity)
    column, found = match_right_image(pair.left, pair.right, corners, initial)
    found &= corners[:, 0] - column - rig.offset > rig.fx / settings.max_depth_baselines
    rows, descriptors = _describe(pair.left, corners[found], settings)
    points = rig.points(np.column_stack([corners, column])[found][rows])
    camera = np.array([[rig.fx, rig.fy, rig.cx, rig.cy, rig.baseline]])
    return {"points": points.astype(np.float32), "descriptors": descriptors, "camera": camera}


def stereo_camera(view: Observation) -> StereoRig:
    """Return the pair that took a view, whose image size is not stored."""
    fx, fy, cx, cy, baseline = view["camera"][0].tolist()
    return StereoRig(fx, fy, cx, cy, baseline, 0, 0)


def view_pixels(view: Observation) -> Floats:
    """Return left column, left row and right column (n, 3) of the points, for equal principal points."""
    return stereo_camera(view).pixels(view["points"].astype(np.float64))


def median_depth(view: Observation) -> float:
    """Return the median depth of the points, m; NaN without points."""
    depth = view["points"][:, 2]
    return float(np.median(depth)) if len(depth) else float("nan")


def _find_corners(pair: GrayPair, features: int, settings: StereoKeyframeSettings) -> Floats:
    """Return the strongest corners (n, 2) of the left image."""
    import cv2

    mask = None if pair.valid is None else pair.valid.astype(np.uint8)
    found: Any = cv2.goodFeaturesToTrack(
        pair.left, features, settings.min_corner_quality, settings.min_corner_distance_px, mask=mask
    )
    return np.zeros((0, 2)) if found is None else found.reshape(-1, 2).astype(np.float64)


def _describe(image: Bytes, corners: Floats, settings: StereoKeyframeSettings) -> tuple[Ints, Bytes]:
    """Return the rows of the corners (n, 2) that have a descriptor, and the descriptors."""
    import cv2

    library = cv2.xfeatures2d
    keypoints = [
        cv2.KeyPoint(x, y, settings.corner_diameter_px, 0.0, 0.0, 0, row)
        for row, (x, y) in enumerate(corners.tolist())
    ]
    extractor: Any = library.BEBLID.create(settings.descriptor_scale, library.BEBLID_SIZE_256_BITS)
    described, descriptors = extractor.compute(image, keypoints)
    rows = np.array([spot.class_id for spot in described], np.int64)
    return rows, np.zeros((0, DESCRIPTOR_BITS // 8), np.uint8) if descriptors is None else descriptors


@cache
def load_faiss() -> Any:
    """Return the module, or raise an error that names the extra."""
    try:
        import faiss as module
    except ImportError as error:
        raise MissingExtraError("faiss", "fusion") from error
    return module


def count_votes(
    descriptors: Bytes, views: Sequence[Array], settings: StereoCandidateSettings = CANDIDATES
) -> Ints:
    """Return how many descriptors (n, 32) each of m views contains, (m,).

    Parameters
    ----------
    views : sequence of m arrays
        Their descriptors, (k, 32) each.
    """
    votes = np.zeros(len(views), np.int64)
    owner = np.repeat(np.arange(len(views)), [len(each) for each in views])
    if not len(owner) or not len(descriptors):
        return votes
    index = load_faiss().IndexBinaryFlat(DESCRIPTOR_BITS)
    index.add(np.concatenate(views))
    distances, rows = index.search(
        np.ascontiguousarray(descriptors[: settings.max_voting_descriptors]), settings.votes_per_descriptor
    )
    similar = (distances <= settings.max_vote_bits) & (rows >= 0)
    # A descriptor votes once for each view.
    pairs = np.unique(np.column_stack([np.nonzero(similar)[0], owner[rows[similar]]]), axis=0)
    np.add.at(votes, pairs[:, 1], 1)
    return votes


class StereoRecogniser:
    """Stores the views of keyframes.

    Parameters
    ----------
    poses : (n, 4, 4) array, optional
        Fixed poses of the keyframes of a map: views of neighbouring keyframes are then combined.
    """

    def __init__(
        self,
        poses: Floats | None = None,
        settings: StereoCandidateSettings = CANDIDATES,
        verification: StereoVerificationSettings = VERIFICATION,
    ) -> None:
        self.settings, self.verification = settings, verification
        self._views: dict[int, Observation] = {}
        self._poses = poses
        self._neighbour_cache: dict[int, list[int]] = {}

    def add(self, k: int, observation: Observation) -> None:
        """Store the observation of keyframe `k`."""
        self._views[k] = observation
        self._neighbour_cache = {}

    def candidates(self, observation: Observation, allowed: Ints) -> Sequence[int]:
        """Return the keyframes with most common descriptors, the best first."""
        views = [self._views[k]["descriptors"] for k in allowed]
        counts = count_votes(observation["descriptors"], views, self.settings)
        votes_of = dict(zip(allowed.tolist(), counts.tolist(), strict=True))
        votes = np.array(
            [sum(votes_of.get(near, 0) for near in self._neighbours(k)) for k in votes_of], np.int64
        )
        chosen, covered = list[int](), set[int]()
        for n in np.argsort(-votes, kind="stable").tolist():
            k = int(allowed[n])
            if votes[n] >= self.settings.min_common_descriptors and covered.isdisjoint(self._neighbours(k)):
                chosen.append(k)
                covered.update(self._neighbours(k))
        return chosen

    def verify(self, old: int, observation: Observation, prior: PosePrior | None) -> Loop | None:
        """Return the motion from a keyframe to an observation; the prior is not used."""
        views: list[StereoView] = []
        for k in self._neighbours(old):
            T_old_k = np.eye(4) if self._poses is None else se3.invert(self._poses[old]) @ self._poses[k]
            views.append(StereoView(T_old_k, self._views[k]))
        return verify_motion(views, observation, self.verification)

    def _neighbours(self, k: int) -> list[int]:
        """Return the keyframes whose views are combined with that of a keyframe, including itself."""
        if self._poses is None:
            return [k]
        if k not in self._neighbour_cache:
            views = np.array(list(self._views))
            relative = se3.invert(self._poses[k]) @ self._poses[views]
            angle = np.linalg.norm(rotations.rotation_vector_from_matrix(relative[:, :3, :3]), axis=1)
            distance = np.where(
                angle < self.settings.max_view_angle_rad, np.linalg.norm(relative[:, :3, 3], axis=1), np.inf
            )
            nearest = np.argsort(distance, kind="stable")[: self.settings.max_views]
            self._neighbour_cache[k] = views[nearest[np.isfinite(distance[nearest])]].tolist()
        return self._neighbour_cache[k]


class StereoView(NamedTuple):
    """An observation near an old keyframe."""

    T_old_view: Floats  # (4, 4)
    observation: Observation

    @property
    def points(self) -> Floats:
        """Points (n, 3) in the left camera of the old keyframe, m."""
        return se3.apply(self.T_old_view, self.observation["points"].astype(np.float64))


def verify_motion(
    old: Sequence[StereoView], new: Observation, settings: StereoVerificationSettings = VERIFICATION
) -> Loop | None:
    """Return the motion of the left camera from old views to a new one; None if points do not confirm it.

    Parameters
    ----------
    old : sequence of StereoView
        Views near the old keyframe. In other light or from another side few corners match any single view;
        true matches agree over all views, chance matches do not.
    """
    matches = [
        match_descriptors(new["descriptors"], view.observation["descriptors"], settings) for view in old
    ]
    new_rows = np.concatenate([new_rows for new_rows, _ in matches])
    if len(new_rows) < settings.min_inliers:
        return None
    points = np.concatenate([view.points[old_rows] for view, (_, old_rows) in zip(old, matches, strict=True)])
    located = _estimate_pose(points, new, new_rows, settings.samples_per_view * len(old), settings)
    if located is None:
        return None
    inliers = len(np.unique(new_rows[located.inliers]))
    depth = float(np.median(points[located.inliers, 2])) if inliers else np.inf
    sigma = np.sqrt(np.linalg.eigvalsh(located.covariance[:3, :3])[-1])
    if inliers < settings.min_inliers or sigma > settings.max_sigma_depth_ratio * depth:
        return None
    repetitions = np.count_nonzero(located.inliers) / inliers  # views of the same corner
    covariance = _loop_covariance(repetitions * located.covariance, inliers, depth, settings)
    return Loop(se3.invert(located.T_camera_world), covariance, inliers / len(np.unique(new_rows)))


def _estimate_pose(
    points: Floats, new: Observation, new_rows: Ints, samples: int, settings: StereoVerificationSettings
) -> CameraResection | None:
    """Return the pose of the camera among points (n, 3), matched with its corners `new_rows` (n,)."""
    rig, seen = stereo_camera(new), view_pixels(new)[new_rows]
    initial = find_motion(points, new["points"][new_rows].astype(np.float64), rig, samples, settings)
    coarse = None if initial is None else refine_pose(points, seen, rig, initial, settings.refinement_gate_px)
    return None if coarse is None else refine_pose(points, seen, rig, coarse.T_camera_world)


def match_descriptors(
    first: NDArray[Any], second: NDArray[Any], settings: StereoVerificationSettings = VERIFICATION
) -> tuple[Ints, Ints]:
    """Return the rows of mutual nearest descriptors (n, 32) and (m, 32) that pass the ratio test."""
    if len(first) < 2 or len(second) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    distances = hamming_distances(first, second)
    best, reverse = distances.argmin(axis=1), distances.argmin(axis=0)
    nearest_two = np.partition(distances, 1, axis=1)[:, :2]
    accepted = (
        (reverse[best] == np.arange(len(first)))
        & (nearest_two[:, 0] <= settings.max_match_bits)
        & (nearest_two[:, 0] <= settings.max_second_best_ratio * nearest_two[:, 1])
    )
    rows = np.flatnonzero(accepted)
    return rows, best[rows]


def hamming_distances(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.uint16]:
    """Return the Hamming distances (n, m) of descriptors (n, 32) and (m, 32)."""
    a, b = (np.ascontiguousarray(each).view(np.uint64) for each in (first, second))
    distances = np.zeros((len(a), len(b)), np.uint16)
    for word in range(a.shape[1]):
        distances += np.bitwise_count(a[:, word, None] ^ b[None, :, word])
    return distances


def _loop_covariance(
    covariance: Floats, inliers: int, depth: float, settings: StereoVerificationSettings
) -> Floats:
    """Return the covariance (6, 6) of a loop, enlarged for inliers by chance and for calibration errors."""
    min_variance = np.repeat([settings.min_sigma_depth_ratio * depth, settings.min_sigma_rad], 3) ** 2
    return settings.view_variance_factor * (
        inliers / (inliers - settings.chance_inliers)
    ) ** 2 * covariance + np.diag(min_variance)


def find_motion(
    old: Floats,
    new: Floats,
    rig: StereoRig,
    samples: int,
    settings: StereoVerificationSettings = VERIFICATION,
) -> Floats | None:
    """Return T_new_old (4, 4) on which most matches agree; None if no three do.

    Parameters
    ----------
    old, new : (n, 3) array
        The same points in the left camera at two poses, m.
    samples : int
        Triangles that are drawn.
    """
    pixels, best, max_inliers = rig.pixels(new), None, 0
    for T in _triangle_motions(*_draw_triangles(old, new, rig, samples, settings), settings):
        residual = rig.pixels(old @ T[:3, :3].T + T[:3, 3]) - pixels
        inliers = np.count_nonzero(np.abs(residual).max(axis=1) < settings.consensus_gate_px)
        if inliers > max_inliers:
            best, max_inliers = T, inliers
        if max_inliers > settings.sufficient_inlier_ratio * len(old):
            break
    return best


def _draw_triangles(
    old: Floats, new: Floats, rig: StereoRig, samples: int, settings: StereoVerificationSettings
) -> tuple[Floats, Floats]:
    """Return triangles (m, 3, 3) of old and of new points, the most congruent first."""
    rows = np.random.default_rng(0).integers(0, len(old), (samples, 3))
    depth, mismatch = float(np.median(old[:, 2])), np.zeros(samples)
    sigma = (
        np.hypot(
            rig.depth_sigma(old, settings.disparity_noise_px),
            rig.depth_sigma(new, settings.disparity_noise_px),
        )
        + settings.min_sigma_ratio * depth
    )
    for a, b in ((0, 1), (1, 2), (2, 0)):
        old_side, new_side = (
            np.linalg.norm(points[rows[:, a]] - points[rows[:, b]], axis=1) for points in (old, new)
        )
        difference = np.abs(old_side - new_side) / np.hypot(sigma[rows[:, a]], sigma[rows[:, b]])
        congruent = (difference < 1.0) & (np.minimum(old_side, new_side) > settings.min_side_ratio * depth)
        rows, mismatch = rows[congruent], (mismatch + difference**2)[congruent]
    best = rows[np.argsort(mismatch, kind="stable")[: settings.max_motions]]
    return old[best], new[best]


def _triangle_motions(old: Floats, new: Floats, settings: StereoVerificationSettings) -> Floats:
    """Return the motions (m, 4, 4) that map triangles (m, 3, 3) to congruent ones."""
    old_axes, new_axes = _triangle_axes(old, settings), _triangle_axes(new, settings)
    motions = np.tile(np.eye(4), (len(old), 1, 1))
    motions[:, :3, :3] = new_axes @ old_axes.transpose(0, 2, 1)
    motions[:, :3, 3] = new.mean(axis=1) - np.einsum("mij,mj->mi", motions[:, :3, :3], old.mean(axis=1))
    return motions[np.isfinite(motions).all(axis=(1, 2))]


def _triangle_axes(triangles: Floats, settings: StereoVerificationSettings) -> Floats:
    """Return orthonormal axes (m, 3, 3) of triangles (m, 3, 3); NaN if degenerate."""
    first_side, second_side = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    normal = np.cross(first_side, second_side)
    first_length, second_length, normal_length = (
        np.linalg.norm(each, axis=1, keepdims=True) for each in (first_side, second_side, normal)
    )
    z = normal / np.where(
        normal_length > settings.min_triangle_sine * first_length * second_length, normal_length, np.nan
    )
    x = first_side / first_length
    return np.asarray(np.stack([x, np.cross(z, x), z], axis=-1), np.float64)
