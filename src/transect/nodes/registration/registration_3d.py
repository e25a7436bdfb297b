"""How one cloud lies in another: registration, with what there is to know about its result."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from transect.base.arrays import Floats
from transect.engine import Latest, Node, outputs, param
from transect.engine.ports import Shape, Unit
from transect.geometry import se3
from transect.types import PointCloud, Pose

from ..cloud._clouds import find_measured
from ._refinement import Quality, Refined, Scales, quality_of, refine, scales_of
from ._small_gicp import Method

LEAST_POINTS = 50
"""Fewer do not make two surfaces that could be held against each other."""


@outputs
class Registered:
    """Where the source lies in the sink, whether that is believed, and why.

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

    method: ClassVar[Method]
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

    def process(
        self,
        sourceCloud: PointCloud,
        sinkCloud: PointCloud,
        transformGuess: Latest[Pose] | None = None,
        useGuess: Latest[bool] = True,
    ) -> Registered | None:
        return self.register((sourceCloud, sinkCloud), transformGuess if useGuess else None)

    def scales(self, sink: Floats) -> Scales:
        """Return how the clouds are thinned."""
        found = scales_of(sink, self.coarse_points, self.fine_points)
        return Scales(self.coarse_voxel or found.coarse, self.fine_voxel or found.fine)

    def judge(self, refined: Refined, frames: tuple[str, str]) -> Registered:
        """Return what a registration came to; `frames` are those of sink and source."""
        quality, found = quality_of(refined), refined.aligned
        if reason := self._doubt(found.converged, quality):
            self.ctx.skip(reason)
        turned, moved = se3.to_quaternion(found.T_target_source)
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

    def refuse(self, reason: str) -> Registered:
        """Return that nothing was found, and count why."""
        self.ctx.skip(reason)
        return Registered(success=False)

    def _doubt(self, converged: bool, quality: Quality) -> str:
        """Return why a registration is not believed; "" if it is."""
        if not converged:
            return "did not converge"
        if quality.fitness < self.least_fitness:
            return "too little overlap"
        if quality.degeneracy < self.least_degeneracy:
            return "degenerate: a motion along the surfaces is free"
        return ""

    def register(self, clouds: tuple[PointCloud, PointCloud], guess: Pose | None) -> Registered:
        """Register the first cloud on the second by iteration, from the guess on or from where they are."""
        source, sink = (np.asarray(each.points[find_measured(each)], dtype=np.float64) for each in clouds)
        if min(len(source), len(sink)) < LEAST_POINTS:
            return self.refuse("too few points")
        begin = np.eye(4) if guess is None else se3.from_quaternion(guess.orientation, guess.position)
        found = refine(source, sink, begin, self.method, self.scales(sink), self.iterations)
        return self.judge(found, (clouds[1].frame, clouds[0].frame))


class Gicp(Registration3D):
    """Plane to plane: generalised ICP (Segal 2009, small_gicp)."""

    method = "GICP"


class PointToPlane(Registration3D):
    """Distances along the normals of the sink (Chen and Medioni 1992, small_gicp)."""

    method = "PLANE_ICP"


class PointToPoint(Registration3D):
    """Distances between nearest points (Besl and McKay 1992, small_gicp)."""

    method = "ICP"
