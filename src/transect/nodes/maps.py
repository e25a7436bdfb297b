"""Alignment, localisation and georeferencing of height maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from transect.algorithms.coregistration.alignment import GridAlignment, align_maps, resample_aligned
from transect.algorithms.coregistration.localisation import Hypothesis, locate_map
from transect.algorithms.fusion.gnss_sigma import deviation_of
from transect.algorithms.fusion.measurements import ANTENNAS
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import Batch, Latest, Node, outputs, param
from transect.engine.ports import Shape, Unit
from transect.errors import FrameError, GeometryError
from transect.geometry import rotations, se3
from transect.geometry.georeferencing import EarthFrame, find_earth_frame
from transect.geometry.interpolation import Limits, interpolate_poses
from transect.types import GridMap, NavFix, Pose


@outputs
class MapAligned:
    """Where the moved map lies.

    Attributes
    ----------
    transform : Pose
        Of the moved map's frame in the reference's; of maps with a reference system, in metres from the
        middle of the reference. Without its scale.
    success : bool
        Whether that is believed.
    covariance : (6, 6)
        Of that pose: m^2, then rad^2, in the reference's axes.
    scale : float
        By which lengths of the moved map are multiplied.
    overlap : float
        Share of the moved map's known cells that lie on known ground.
    residual : float
        Standard deviation of the height differences that are left.
    aligned : GridMap
        The moved map on cells of the reference: `elevation` and `difference`.
    """

    transform: Pose | None = None
    success: bool | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    scale: float | None = None
    overlap: float | None = None
    residual: Annotated[float | None, Unit("m")] = None
    aligned: GridMap | None = None


class MapAlignment(Node):
    """Lays a height map on another: shift, turn, tilt, and scale if asked, with covariance.

    Refused where the maps do not overlap, are not alike, or where the ground is too flat to tell.
    """

    reach: float = param(0.0, ge=0, unit="m", doc="how far the map may be off; 0: a quarter of its size")
    turn: float = param(15.0, ge=0, le=180, unit="deg", doc="how far it may be turned about the vertical")
    scaled: bool = param(False, doc="whether lengths of the map may be wrong by a factor")
    tilted: bool = param(True, doc="whether the map may lean")
    least_overlap: float = param(
        0.3, gt=0, le=1, doc="smallest share of the map's cells that must lie on known ground"
    )

    def process(self, reference: GridMap, moved: GridMap) -> MapAligned | None:
        try:
            found = align_maps(
                reference,
                moved,
                reach=self.reach or None,
                turn=float(np.radians(self.turn)),
                scale=self.scaled,
                tilt=self.tilted,
                overlap=self.least_overlap,
            )
        except GeometryError as error:
            self.ctx.skip(error.what)
            return MapAligned(success=False)
        return MapAligned(
            transform=pose_of(found, self.ctx.time, reference.frame, moved.frame),
            success=True,
            covariance=found.covariance_at(np.zeros(3))[:6, :6],
            scale=found.placement.scale,
            overlap=found.overlap,
            residual=found.fit.residual_rms,
            aligned=resample_aligned(reference, moved, found),
        )


def pose_of(found: GridAlignment, t_ns: int, frame: str, child: str) -> Pose:
    """Return where the frame of a map lies in the reference's, without its scale."""
    matrix = found.T_reference_map.copy()
    matrix[:3, :3] = found.placement.rotation
    turned, place = se3.to_quaternion(matrix)
    return Pose(place, turned, t_ns, frame, child)


@outputs
class MapLocated:
    """Where the map may lie.

    Attributes
    ----------
    transform : Pose
        Of the moved map's frame in the reference's, at the most probable place; of maps with a reference
        system, in metres from the middle of the reference.
    probability : float
        Of that place.
    success : bool
        Whether it is surely there: nearly all of the probability is at one place.
    covariance : (6, 6)
        Of the pose, if that place is the right one: m^2, then rad^2, in the reference's axes.
    hypotheses : (n, 8)
        All places: probability, x, y, z of the map's middle in m, heading in rad, standard deviations of x
        and y in m and of the heading in rad.
    """

    transform: Pose | None = None
    probability: float | None = None
    success: bool | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    hypotheses: Annotated[np.ndarray, Shape("n", 8)] | None = None


class MapLocalisation(Node):
    """Finds where a rover's own map fits into that of an orbiter or a drone: every shift and turn is tried.

    Refused where the map fits nowhere, or where the ground is too flat to tell.
    """

    east: float = param(0.0, doc="where the map's middle is believed to be, x in the reference's coordinates")
    north: float = param(0.0, doc="the same, y")
    within: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="how far that may be wrong; 0: anywhere on the reference, `east` and `north` unused",
    )
    turn: float = param(180.0, ge=0, le=180, unit="deg", doc="how far the map's heading may be wrong")
    tilted: bool = param(True, doc="whether the map may lean")
    least_overlap: float = param(
        0.6, gt=0, le=1, doc="smallest share of the map's cells that must lie on known ground"
    )

    def process(self, reference: GridMap, moved: GridMap) -> MapLocated | None:
        try:
            found = locate_map(
                reference,
                moved,
                at=(self.east, self.north) if self.within else None,
                within=self.within or np.inf,
                turn=float(np.radians(self.turn)),
                tilt=self.tilted,
                overlap=self.least_overlap,
            )
        except GeometryError as error:
            self.ctx.skip(error.what)
            return MapLocated(success=False)
        best = found.hypotheses[0]
        return MapLocated(
            transform=pose_of(best.alignment, self.ctx.time, reference.frame, moved.frame),
            probability=best.probability,
            success=found.is_sure,
            covariance=best.alignment.covariance_at(np.zeros(3)),
            hypotheses=np.array([list_numbers(each) for each in found.hypotheses]),
        )


def list_numbers(hypothesis: Hypothesis) -> list[float]:
    """Return probability, place of the middle (m), heading (rad), and their deviations: x, y, heading."""
    found = hypothesis.alignment
    place = found.placement.middle + found.placement.shift
    sigma = found.sigmas
    return [hypothesis.probability, *place.tolist(), found.placement.heading, *sigma[[0, 1, 5]].tolist()]


class MapGeoreferencing(Node):
    """Adds a coordinate reference system (CRS) to a map in the frame of poses, from satellite fixes.

    The antenna's track in the frame of the poses is aligned with the fixes by a rotation about the vertical
    and a translation. Cells and frame of the map stay as they are: the CRS is a projection centred at the
    origin of the frame, with its grid rotated as the frame is. Heights stay those of the frame. A map in
    another frame than the poses, or without fixes that determine the alignment, is passed on unchanged.

    Inputs
    ------
    levelling
        Of the frame of the poses in that of the map, where these differ.
    """

    out_name = "map"
    antenna: str = param("", doc="frame of the antenna; if empty, that of the fixes, or gps")
    max_gap: float = param(1.0, gt=0, unit="s", doc="largest time between two poses that are interpolated")

    def process(
        self,
        map: GridMap,
        pose: Batch[Pose] = (),
        fix: Batch[NavFix] = (),
        levelling: Latest[Pose] | None = None,
    ) -> GridMap:
        if map.crs:
            return map
        if not self.ctx.is_fed("fix"):
            self.ctx.conclude("the map has no coordinate reference system: there are no satellite fixes")
            return map
        if levelling is not None:
            pose = [_change_frame(each, levelling) for each in pose]
        frame = pose[0].frame if pose else map.frame
        if frame != map.frame:
            why = f"it is in the frame {map.frame}, the poses are in {frame}"
            self.ctx.conclude(f"the map has no coordinate reference system: {why}")
            return map
        found = self._find_frame(pose, [each for each in fix if each.fix != "none"])
        if found is None:
            why = "the satellite fixes do not determine where the path is"
            self.ctx.conclude(f"the map has no coordinate reference system: {why}")
            return map
        self.ctx.conclude(
            f"the map has a coordinate reference system, from {found.fixes} fixes: their RMS residual is "
            f"{found.residual:.2g} m; one sigma {found.sigma:.2g} m, {math.degrees(found.sigma_turn):.2g} deg"
        )
        return replace(map, crs=found.crs(f"frame {map.frame or 'of the map'}"))

    def _find_frame(self, poses: Sequence[Pose], fixes: Sequence[NavFix]) -> EarthFrame | None:
        poses = [pose for pose in poses if np.isfinite([*pose.position, *pose.orientation]).all()]
        if not poses or not fixes:
            return None
        places, turns = interpolate_poses(
            np.array([pose.t_ns for pose in poses]),
            np.array([pose.position for pose in poses]),
            np.array([pose.orientation for pose in poses]),
            np.array([fix.t_ns for fix in fixes]),
            Limits(gap_ns=round(self.max_gap * NS)),
        )
        known = np.isfinite(places).all(axis=1) & np.isfinite(turns).all(axis=1)
        if not known.any():
            return None
        chosen = [fixes[index] for index in np.flatnonzero(known).tolist()]
        track = places[known] + rotations.rotate(turns[known], self._lever(poses[0].child, chosen[0].frame))
        points = np.array([(fix.latitude, fix.longitude, fix.altitude) for fix in chosen])
        sigmas = np.array([math.sqrt(float(np.mean(deviation_of(fix, 0.0).std[:2] ** 2))) for fix in chosen])
        return find_earth_frame(track, points, sigmas)

    def _lever(self, body: str, frame: str) -> Floats:
        """Return the position of the antenna in the body (3,); 0 if no frames say it, which is logged."""
        for name in (self.antenna, frame, *ANTENNAS):
            if name and name == body:
                return np.zeros(3)
            try:
                if name and body:
                    return self.ctx.frames.lookup(body, name)[:3, 3]
            except FrameError:
                continue
        self.ctx.log(f"where the antenna is in {body or 'the body'} is not known: taken at its origin")
        return np.zeros(3)


def _change_frame(pose: Pose, T_map_odom: Pose) -> Pose:
    """Return a pose in the frame of the map."""
    position = rotations.rotate(T_map_odom.orientation, pose.position) + T_map_odom.position
    turned = rotations.multiply(T_map_odom.orientation, pose.orientation)
    return Pose(position, turned, pose.t_ns, T_map_odom.frame, pose.child)
