"""How one cloud lies in another: registration, with what there is to know about its result."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from transect.algorithms.clouds.selection import find_measured
from transect.algorithms.registration.ambiguity import AWAY
from transect.algorithms.registration.cloud_alignment import (
    LEVEL_POINTS,
    CloudAlignment,
    align_clouds,
    judge_pairs,
)
from transect.algorithms.registration.coarse_to_fine import Quality, scales_of
from transect.algorithms.registration.gicp import Method
from transect.algorithms.registration.icp import (
    CalmSteps,
    LittleGain,
    SmallStep,
    fit_planes,
    fit_points,
    iterate,
    keep_near,
    keep_nearest,
    pick,
    sample_surface,
)
from transect.base.arrays import Floats
from transect.engine import Latest, Node, outputs, param
from transect.engine.ports import Shape, Unit
from transect.geometry import se3
from transect.types import PointCloud, Pose

LEAST_POINTS = 50
"""Fewer do not make two surfaces that could be held against each other."""
RIVAL = 1.1
"""Another place whose distances are less than this times as large fits as well."""
AMBIGUOUS = "ambiguous: another place fits as well or better"
STAYED = "ambiguous: it stayed where it began, on a sink that a cloud before was ambiguous on"


@outputs
class Registered:
    """Where the source lies in the sink, whether that is believed, and why.

    How well the surfaces hold it, and its covariance, are given where the method has normals or knows them.

    Attributes
    ----------
    transform : Pose
        Of the source's frame in the sink's; not given where it failed.
    converged : bool
        Whether the last steps were small; False when iterations ran out.
    iterations : int
        Of all levels together.
    fitness : float
        Share of the source's points that have a partner in the sink.
    rmse : float
        Root mean square distance of those.
    degeneracy : float
        1 where surfaces hold every motion alike, 0 where they leave one free, as along a corridor.
    weakest : (6,)
        The motion that they hold least, in the sink's frame: translation, then rotation, as lengths.
    covariance : (6, 6)
        Of the transform, in the sink's frame: m^2, then rad^2.
    """

    transform: Pose | None = None
    success: bool | None = None
    converged: bool | None = None
    iterations: int | None = None
    fitness: float | None = None
    rmse: Annotated[float | None, Unit("m")] = None
    degeneracy: float | None = None
    weakest: Annotated[NDArray[np.float64] | None, Shape(6)] = None
    covariance: Annotated[NDArray[np.float64] | None, Shape(6, 6)] = None


class Registration3D(Node, interface=True):
    """Finds the pose of the source cloud in the frame of the sink cloud, from a guess where there is one."""

    iterations: int = param(100, ge=1, doc="largest number of iterations per level")
    least_fitness: float = param(
        0.5, ge=0, le=1, doc="smallest share of the source that must lie on the sink"
    )
    least_degeneracy: float = param(
        0.01,
        ge=0,
        le=1,
        doc="smallest degeneracy value of a successful registration: 0 free to slide, 1 well held",
    )

    def reset(self) -> None:
        self.lost_on: Floats | None = None

    def process(
        self,
        sourceCloud: PointCloud,
        sinkCloud: PointCloud,
        transformGuess: Latest[Pose] | None = None,
        useGuess: Latest[bool] = True,
    ) -> Registered | None:
        return self.register((sourceCloud, sinkCloud), transformGuess if useGuess else None)

    def align(self, source: Floats, sink: Floats, begin: Floats) -> CloudAlignment:
        """Lay points (n, 3) on others (m, 3), from ``T_sink_source`` (4, 4) on."""
        raise NotImplementedError

    def register(self, clouds: tuple[PointCloud, PointCloud], guess: Pose | None) -> Registered:
        """Register the first cloud on the second by iteration, from the guess on or from where they are."""
        source, sink = (np.asarray(each.points[find_measured(each)], dtype=np.float64) for each in clouds)
        if min(len(source), len(sink)) < LEAST_POINTS:
            self.ctx.skip("too few points")
            return Registered(success=False)
        begin = np.eye(4) if guess is None else se3.from_quaternion(guess.orientation, guess.position)
        found = self.align(source, sink, begin)
        reason = self._doubt(found.converged, found.quality) or self._doubt_again(found, begin, sink)
        if reason == AMBIGUOUS:
            self.lost_on = sink
        elif not reason:
            self.lost_on = None
        return self._describe(found, reason, (clouds[1].frame, clouds[0].frame))

    def _describe(self, found: CloudAlignment, reason: str, frames: tuple[str, str]) -> Registered:
        """Return what a registration came to, and skip it for a reason; `frames`: of sink and source."""
        quality = found.quality
        if reason:
            self.ctx.skip(reason)
        turned, moved = se3.to_quaternion(found.matrix)
        return Registered(
            transform=None if reason else Pose(moved, turned, self.ctx.time, *frames),
            success=not reason,
            converged=found.converged,
            iterations=found.iterations,
            fitness=quality.fitness,
            rmse=quality.rmse,
            degeneracy=quality.degeneracy,
            weakest=quality.weakest,
            covariance=quality.covariance,
        )

    def _doubt(self, converged: bool, quality: Quality) -> str:
        """Return why a registration is not believed; "" if it is."""
        if not converged:
            return "did not converge"
        if quality.fitness < self.least_fitness:
            return "too little overlap"
        if quality.degeneracy is not None and quality.degeneracy < self.least_degeneracy:
            return "degenerate: a motion along the surfaces is free"
        if quality.rival is not None and quality.rival.ratio < RIVAL:
            return AMBIGUOUS
        return ""

    def _doubt_again(self, found: CloudAlignment, begin: Floats, sink: Floats) -> str:
        """Return why a registration is not believed on a sink (m, 3) that a cloud before was lost on.

        Who goes on is ever further away, and rivals are looked for only around. What a camera sees from
        elsewhere then fits best where it began, for there edges and gaps of both clouds meet.
        """
        if self.lost_on is None or not np.array_equal(self.lost_on, sink):
            return ""
        moved = float(np.linalg.norm(found.matrix[:3, 3] - begin[:3, 3]))
        return STAYED if moved < AWAY * scales_of(sink, *LEVEL_POINTS).coarse else ""


class _TwoScales:
    """What registrations from coarse to fine have in common."""

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


class Gicp(_TwoScales, Registration3D):
    """Plane to plane: generalised ICP (Segal 2009, small_gicp)."""

    def align(self, source: Floats, sink: Floats, begin: Floats) -> CloudAlignment:
        return _align_by(self, "GICP", source, sink, begin)


class PointToPlane(_TwoScales, Registration3D):
    """Distances along the normals of the sink (Chen and Medioni 1992, small_gicp)."""

    def align(self, source: Floats, sink: Floats, begin: Floats) -> CloudAlignment:
        return _align_by(self, "PLANE_ICP", source, sink, begin)


class PointToPoint(_TwoScales, Registration3D):
    """Distances between nearest points (Besl and McKay 1992, small_gicp)."""

    def align(self, source: Floats, sink: Floats, begin: Floats) -> CloudAlignment:
        return _align_by(self, "ICP", source, sink, begin)


class Icp3D(Registration3D):
    """ICP as in PCL: nearest points within a distance, least squares, on one scale (Besl and McKay 1992)."""

    iterations: int = param(200, ge=1, doc="largest number of iterations")
    max_distance: float = param(0.3, gt=0, unit="m", doc="largest distance between a point and its partner")
    step: float = param(
        1e-8, gt=0, doc="iteration ends at smaller steps: square of the translation in m, 1 - cos of the turn"
    )
    change: float = param(
        1e-6, gt=0, doc="iteration ends at smaller changes of the mean square distance, as a share of it"
    )

    def align(self, source: Floats, sink: Floats, begin: Floats) -> CloudAlignment:
        end = SmallStep(self.step, self.change)
        keep = keep_near(self.max_distance)
        return judge_pairs(
            source, sink, iterate(source, sink, begin, keep, fit_points(sink), end, self.iterations)
        )


class IcpCC(Registration3D):
    """ICP as in CloudCompare: a random part of the points, least squares of all or of the nearest pairs."""

    iterations: int = param(200, ge=1, doc="largest number of iterations")
    points: int = param(50000, ge=100, doc="largest number of points of each cloud that take part")
    overlap: float = param(1.0, gt=0, le=1, doc="share of the pairs that count, the nearest ones")
    gain: float = param(
        1e-5, gt=0, unit="m", doc="iteration ends when the root mean square distance falls by less"
    )

    def align(self, source: Floats, sink: Floats, begin: Floats) -> CloudAlignment:
        some, others = (pick(each, self.points, self.ctx.rng) for each in (source, sink))
        keep, end = keep_nearest(self.overlap), LittleGain(self.gain)
        return judge_pairs(
            some, others, iterate(some, others, begin, keep, fit_points(others), end, self.iterations)
        )


class IcpMatcher(Registration3D):
    """ICP as in libpointmatcher: random samples, the nearest pairs, distances to planes (Pomerleau 2013)."""

    iterations: int = param(40, ge=1, doc="largest number of iterations")
    sampling: float = param(0.75, gt=0, le=1, doc="share of the source's points that take part, at random")
    box: int = param(7, ge=3, doc="largest number of points of the sink that share a normal")
    surface: float = param(0.5, gt=0, le=1, doc="share of the sink's points that take part, at random")
    trim: float = param(0.85, gt=0, le=1, doc="share of the pairs that count, the nearest ones")
    translation: float = param(0.001, gt=0, unit="m", doc="iteration ends at smaller mean steps")
    rotation: float = param(0.01, gt=0, unit="rad", doc="iteration ends at smaller mean turns")
    smoothing: int = param(4, ge=1, doc="number of steps of which the mean is taken")

    def align(self, source: Floats, sink: Floats, begin: Floats) -> CloudAlignment:
        some = pick(source, round(self.sampling * len(source)), self.ctx.rng)
        others, normals = sample_surface(sink, self.box, self.surface, self.ctx.rng)
        keep, end = keep_nearest(self.trim), CalmSteps(self.translation, self.rotation, self.smoothing)
        found = iterate(some, others, begin, keep, fit_planes(others, normals), end, self.iterations)
        return judge_pairs(some, others, found, normals)


def _align_by(
    node: Gicp | PointToPlane | PointToPoint, method: Method, source: Floats, sink: Floats, begin: Floats
) -> CloudAlignment:
    """Align from coarse to fine."""
    points, voxels = (node.coarse_points, node.fine_points), (node.coarse_voxel, node.fine_voxel)
    return align_clouds(source, sink, begin, method, node.iterations, points=points, voxels=voxels)
