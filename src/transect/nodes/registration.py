"""Registration of two point clouds, by iteration from a guess or by feature matches without one."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.clouds.selection import find_measured
from transect.algorithms.registration.cloud_alignment import (
    LEVEL_POINTS,
    CloudAlignment,
    RegistrationQuality,
    align_clouds,
    choose_scales,
    evaluate_alignment,
)
from transect.algorithms.registration.feature_matching import mutual_matches, ransac_consensus
from transect.algorithms.registration.gicp import Method
from transect.algorithms.registration.icp import (
    AMBIGUITY,
    SmallImprovement,
    SmallMeanStep,
    SmallStep,
    point_to_plane,
    point_to_point,
    run_icp,
    sample_points,
    sample_surface,
    select_near_pairs,
    select_nearest_pairs,
)
from transect.base.arrays import Floats
from transect.engine import Latest, Node, outputs, param
from transect.engine.ports import Shape, Unit
from transect.errors import MissingExtraError
from transect.geometry import se3
from transect.types import Features3D, PointCloud, Pose

AMBIGUOUS = "ambiguous: another pose fits as well or better"
UNMOVED = "ambiguous: the pose stayed at the initial guess, on a sink with an ambiguous registration before"


@outputs
class RegistrationOutput:
    """Pose of the source in the sink, and its quality; observability if the method has normals."""

    transform: Pose | None = None  # of the source's frame in the sink's; none if it failed
    success: bool | None = None
    converged: bool | None = None
    iterations: int | None = None  # of all levels
    fitness: float | None = None  # ratio of source points with a sink point nearby
    rmse: Annotated[float | None, Unit("m")] = None  # of those distances
    degeneracy: float | None = None  # 1: all motions equally constrained, 0: one is free, as along a corridor
    # Least constrained motion in the sink's frame: translation, then rotation, as lengths.
    weakest: Annotated[NDArray[np.float64] | None, Shape(6)] = None
    # Of the transform, in the sink's frame: m^2, then rad^2.
    covariance: Annotated[NDArray[np.float64] | None, Shape(6, 6)] = None


class Registration3D(Node, interface=True):
    """Estimates the pose of the source cloud in the frame of the sink cloud, from a guess if there is one."""

    iterations: int = param(100, ge=1, doc="largest number of iterations per level")
    min_fitness: float = param(
        0.5, ge=0, le=1, doc="smallest ratio of source points with a sink point nearby"
    )
    min_degeneracy: float = param(
        0.01,
        ge=0,
        le=1,
        doc="smallest degeneracy value of a successful registration: 0 free to slide, 1 well constrained",
    )
    min_points: int = param(50, ge=1, doc="smallest number of points of each cloud")
    min_alternative_ratio: float = param(
        1.1,
        ge=0,
        doc="smallest RMS distance of the best alternative pose over that of the result; below it the result"
        " is ambiguous",
    )

    def reset(self) -> None:
        self.ambiguous_sink: Floats | None = None

    def process(
        self,
        sourceCloud: PointCloud,
        sinkCloud: PointCloud,
        transformGuess: Latest[Pose] | None = None,
        useGuess: Latest[bool] = True,
    ) -> RegistrationOutput | None:
        return self.register((sourceCloud, sinkCloud), transformGuess if useGuess else None)

    def align(self, source: Floats, sink: Floats, initial: Floats) -> CloudAlignment:
        """Align points (n, 3) to others (m, 3), starting from ``T_sink_source`` (4, 4)."""
        raise NotImplementedError

    def register(self, clouds: tuple[PointCloud, PointCloud], guess: Pose | None) -> RegistrationOutput:
        """Register the first cloud to the second by iteration, starting from the guess or the identity."""
        source, sink = (np.asarray(each.points[find_measured(each)], dtype=np.float64) for each in clouds)
        if min(len(source), len(sink)) < self.min_points:
            self.ctx.skip("too few points")
            return RegistrationOutput(success=False)
        initial = np.eye(4) if guess is None else se3.from_quaternion(guess.orientation, guess.position)
        found = self.align(source, sink, initial)
        reason = self._find_defect(found.converged, found.quality) or self._check_ambiguous_sink(
            found, initial, sink
        )
        if reason == AMBIGUOUS:
            self.ambiguous_sink = sink
        elif not reason:
            self.ambiguous_sink = None
        return self._output(found, reason, (clouds[1].frame, clouds[0].frame))

    def _output(self, found: CloudAlignment, reason: str, frames: tuple[str, str]) -> RegistrationOutput:
        """Return the outputs of a registration, skipped for a reason; `frames` are of sink and source."""
        quality = found.quality
        if reason:
            self.ctx.skip(reason)
        orientation, position = se3.to_quaternion(found.matrix)
        return RegistrationOutput(
            transform=None if reason else Pose(position, orientation, self.ctx.time, *frames),
            success=not reason,
            converged=found.converged,
            iterations=found.iterations,
            fitness=quality.fitness,
            rmse=quality.rmse,
            degeneracy=quality.degeneracy,
            weakest=quality.weakest,
            covariance=quality.covariance,
        )

    def _find_defect(self, converged: bool, quality: RegistrationQuality) -> str:
        """Return why a registration is rejected; an empty string if it is accepted."""
        if not converged:
            return "did not converge"
        if quality.fitness < self.min_fitness:
            return "too little overlap"
        if quality.degeneracy is not None and quality.degeneracy < self.min_degeneracy:
            return "degenerate: a motion along the surfaces is free"
        if quality.alternative is not None and quality.alternative.ratio < self.min_alternative_ratio:
            return AMBIGUOUS
        return ""

    def _check_ambiguous_sink(self, found: CloudAlignment, initial: Floats, sink: Floats) -> str:
        """Return why a registration is rejected on a sink (m, 3) that was ambiguous for the last cloud.

        A moving robot gets further from the ambiguous pose than alternatives are searched. A view from
        another position then fits best at the initial guess, where edges and gaps of both clouds coincide.
        """
        if self.ambiguous_sink is None or not np.array_equal(self.ambiguous_sink, sink):
            return ""
        position = float(np.linalg.norm(found.matrix[:3, 3] - initial[:3, 3]))
        radius = AMBIGUITY.restart_voxels * choose_scales(sink, *LEVEL_POINTS).coarse
        return UNMOVED if position < radius else ""


class _CoarseToFine:
    """Parameters of registration from coarse to fine."""

    coarse_voxel: float = param(
        0.0, ge=0, unit="m", doc="voxel edge length at the coarse level; 0: chosen from `coarse_points`"
    )
    fine_voxel: float = param(
        0.0, ge=0, unit="m", doc="voxel edge length at the fine level; 0: chosen from `fine_points`"
    )
    coarse_points: int = param(
        5000, ge=100, doc="approximate number of points of the sink at the coarse level"
    )
    fine_points: int = param(20000, ge=100, doc="approximate number of points of the sink at the fine level")


class Gicp(_CoarseToFine, Registration3D):
    """Plane to plane: generalised ICP (Segal 2009, small_gicp)."""

    def align(self, source: Floats, sink: Floats, initial: Floats) -> CloudAlignment:
        return _align_by(self, "GICP", source, sink, initial)


class PointToPlane(_CoarseToFine, Registration3D):
    """Distances along the normals of the sink (Chen and Medioni 1992, small_gicp)."""

    def align(self, source: Floats, sink: Floats, initial: Floats) -> CloudAlignment:
        return _align_by(self, "PLANE_ICP", source, sink, initial)


class PointToPoint(_CoarseToFine, Registration3D):
    """Distances between nearest points (Besl and McKay 1992, small_gicp)."""

    def align(self, source: Floats, sink: Floats, initial: Floats) -> CloudAlignment:
        return _align_by(self, "ICP", source, sink, initial)


class Icp3D(Registration3D):
    """ICP as in PCL: nearest points within a distance, least squares, on one scale (Besl and McKay 1992)."""

    iterations: int = param(200, ge=1, doc="largest number of iterations")
    max_distance: float = param(0.3, gt=0, unit="m", doc="largest distance of a correspondence")
    step: float = param(
        1e-8,
        gt=0,
        doc="iteration ends at smaller steps: square of the translation in m, 1 - cos of the angle",
    )
    change: float = param(
        1e-6, gt=0, doc="iteration ends at smaller relative changes of the mean square distance"
    )

    def align(self, source: Floats, sink: Floats, initial: Floats) -> CloudAlignment:
        has_converged = SmallStep(self.step, self.change)
        select_pairs = select_near_pairs(self.max_distance)
        return evaluate_alignment(
            source,
            sink,
            run_icp(
                source, sink, initial, select_pairs, point_to_point(sink), has_converged, self.iterations
            ),
        )


class IcpCC(Registration3D):
    """ICP as in CloudCompare: random points, least squares of all or of the nearest pairs."""

    iterations: int = param(200, ge=1, doc="largest number of iterations")
    points: int = param(50000, ge=100, doc="largest number of points of each cloud")
    overlap: float = param(1.0, gt=0, le=1, doc="ratio of pairs that are used, the nearest ones")
    gain: float = param(
        1e-5, gt=0, unit="m", doc="iteration ends when the root mean square distance falls by less"
    )

    def align(self, source: Floats, sink: Floats, initial: Floats) -> CloudAlignment:
        source_sample, sink_sample = (
            sample_points(each, self.points, self.ctx.rng) for each in (source, sink)
        )
        select_pairs, has_converged = select_nearest_pairs(self.overlap), SmallImprovement(self.gain)
        return evaluate_alignment(
            source_sample,
            sink_sample,
            run_icp(
                source_sample,
                sink_sample,
                initial,
                select_pairs,
                point_to_point(sink_sample),
                has_converged,
                self.iterations,
            ),
        )


class IcpMatcher(Registration3D):
    """ICP as in libpointmatcher: random samples, nearest pairs, point to plane (Pomerleau 2013)."""

    iterations: int = param(40, ge=1, doc="largest number of iterations")
    sampling: float = param(0.75, gt=0, le=1, doc="ratio of source points that are sampled")
    box: int = param(7, ge=3, doc="largest number of points of the sink that share a normal")
    surface: float = param(0.5, gt=0, le=1, doc="ratio of sink points that are sampled")
    trim: float = param(0.85, gt=0, le=1, doc="ratio of pairs that are used, the nearest ones")
    translation: float = param(0.001, gt=0, unit="m", doc="iteration ends at smaller mean steps")
    rotation: float = param(0.01, gt=0, unit="rad", doc="iteration ends at smaller mean angles")
    smoothing: int = param(4, ge=1, doc="number of steps in the mean")

    def align(self, source: Floats, sink: Floats, initial: Floats) -> CloudAlignment:
        source_sample = sample_points(source, round(self.sampling * len(source)), self.ctx.rng)
        sink_sample, normals = sample_surface(sink, self.box, self.surface, self.ctx.rng)
        select_pairs = select_nearest_pairs(self.trim)
        has_converged = SmallMeanStep(self.translation, self.rotation, self.smoothing)
        found = run_icp(
            source_sample,
            sink_sample,
            initial,
            select_pairs,
            point_to_plane(sink_sample, normals),
            has_converged,
            self.iterations,
        )
        return evaluate_alignment(source_sample, sink_sample, found, normals)


def _align_by(
    node: Gicp | PointToPlane | PointToPoint, method: Method, source: Floats, sink: Floats, initial: Floats
) -> CloudAlignment:
    """Align from coarse to fine."""
    points, voxels = (node.coarse_points, node.fine_points), (node.coarse_voxel, node.fine_voxel)
    return align_clouds(source, sink, initial, method, node.iterations, points=points, voxels=voxels)


@outputs
class FeatureMatchOutput:
    """Pose of the source in the sink, from matches of features."""

    transform: Pose | None = None  # of the source's frame in the sink's; none if it failed
    success: bool | None = None
    inliers: int | None = None
    matches: int | None = None


class FeaturesMatching3D(Node, interface=True):
    """Matches keypoints by mutual nearest descriptors, and estimates the transform."""

    noise: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="largest position error of a correct match; 0: a twentieth of the sink's radius",
    )
    min_inliers: int = param(10, ge=4, doc="smallest number of inliers")

    def process(self, sourceFeatures: Features3D, sinkFeatures: Features3D) -> FeatureMatchOutput | None:
        first, second = mutual_matches(sourceFeatures, sinkFeatures)
        matrix, inliers = None, 0
        if len(first) >= 3:  # determine a transform
            sink = sinkFeatures.points
            radius = float(np.median(np.linalg.norm(sink - np.median(sink, axis=0), axis=1)))
            noise = self.noise or radius / 20
            matrix, inliers = self.find_consensus(
                sourceFeatures.points[first], sinkFeatures.points[second], noise
            )
        if matrix is None or inliers < self.min_inliers:
            self.ctx.skip("too few inliers")
            return FeatureMatchOutput(success=False, inliers=inliers, matches=len(first))
        orientation, position = se3.to_quaternion(matrix)
        pose = Pose(position, orientation, self.ctx.time, sinkFeatures.frame, sourceFeatures.frame)
        return FeatureMatchOutput(pose, True, inliers, len(first))

    def find_consensus(self, source: Floats, sink: Floats, noise: float) -> tuple[Floats | None, int]:
        """Estimate the transform of matches: row i of source (n, 3) was matched with row i of sink (n, 3).

        Parameters
        ----------
        noise : float
            Largest position error of a correct match, m.

        Returns
        -------
        ``T_sink_source`` (4, 4), None if it is rejected, and the number of inliers.
        """
        raise NotImplementedError


class Ransac3D(FeaturesMatching3D):
    """By random samples of three matches (RANSAC, Fischler and Bolles 1981)."""

    samples: int = param(20000, ge=100, doc="number of random samples of three matches")

    def find_consensus(self, source: Floats, sink: Floats, noise: float) -> tuple[Floats | None, int]:
        found = ransac_consensus(source, sink, noise, self.samples, self.ctx.rng)
        return (None, 0) if found is None else (found.matrix, int(found.inliers.sum()))


class KissMatcher(FeaturesMatching3D):
    """By a graph of matches with consistent distances, and graduated non-convexity (Lim, ICRA 2025)."""

    def find_consensus(self, source: Floats, sink: Floats, noise: float) -> tuple[Floats | None, int]:
        matcher = _kiss_matcher(noise)
        found = matcher.prune_and_solve(*(list(each.astype(np.float32)) for each in (source, sink)))
        matrix = se3.from_matrix(np.array(found.rotation), np.array(found.translation).reshape(3))
        valid = found.valid and np.isfinite(matrix).all()
        return matrix if valid else None, int(matcher.get_num_final_inliers())


def _kiss_matcher(noise: float, solver_gain: float = 0.75) -> Any:
    """Return the library's solver for a noise bound, m.

    The bound of its solver is smaller by a gain (the library's default). Bounds are less than 1 m, since the
    library warns about larger ones on the terminal.
    """
    try:
        library = import_module("kiss_matcher")
    except ModuleNotFoundError as error:
        raise MissingExtraError("kiss_matcher", "fusion") from error
    max_gain = 0.999 / noise
    settings = library.KISSMatcherConfig(
        voxel_size=noise,
        use_voxel_sampling=False,
        robin_noise_bound_gain=min(1.0, max_gain),
        solver_noise_bound_gain=min(solver_gain, max_gain),
    )
    return library.KISSMatcher(settings)
