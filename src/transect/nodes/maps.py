"""Alignment, localisation and georeferencing of height maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from transect.algorithms.coregistration.alignment import GridAlignment, align_maps, resample_aligned
from transect.algorithms.coregistration.localisation import Hypothesis, locate_map
from transect.algorithms.fusion.gnss_sigma import sigma_of_fix
from transect.algorithms.fusion.mounts import ANTENNA_FRAMES
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
    """Alignment of the moved map with the reference."""

    # Of the moved map's frame in the reference's, without its scale; for maps with a reference system, in
    # metres from the centre of the reference.
    transform: Pose | None = None
    success: bool | None = None
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None  # m^2, then rad^2, in the reference's axes
    scale: float | None = None  # factor of the moved map's lengths
    overlap: float | None = None  # ratio of the moved map's known cells that are on known ground
    residual: Annotated[float | None, Unit("m")] = None  # standard deviation of the height differences
    aligned: GridMap | None = None  # the moved map on cells of the reference: `elevation` and `difference`


class MapAlignment(Node):
    """Aligns a height map with another: translation, rotation, and optionally scale, with covariance.

    It fails if the maps do not overlap or are not similar, or if the ground is too flat.
    """

    search_radius: float = param(
        0.0, ge=0, unit="m", doc="largest position error of the map; 0: a quarter of its size"
    )
    max_turn: float = param(15.0, ge=0, le=180, unit="deg", doc="largest heading error of the map")
    estimate_scale: bool = param(False, doc="whether the scale of the map is estimated")
    estimate_tilt: bool = param(True, doc="whether roll and pitch of the map are estimated")
    min_overlap: float = param(
        0.3, gt=0, le=1, doc="smallest ratio of the map's cells that must be on known ground"
    )

    def process(self, reference: GridMap, moved: GridMap) -> MapAligned | None:
        try:
            found = align_maps(
                reference,
                moved,
                search_radius=self.search_radius or None,
                turn=float(np.radians(self.max_turn)),
                scale=self.estimate_scale,
                tilt=self.estimate_tilt,
                overlap=self.min_overlap,
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
    """Return the pose of a map's frame in the reference's, without its scale."""
    matrix = found.T_reference_map.copy()
    matrix[:3, :3] = found.placement.rotation
    orientation, position = se3.to_quaternion(matrix)
    return Pose(position, orientation, t_ns, frame, child)


@outputs
class MapLocated:
    """Pose hypotheses of the moved map in the reference."""

    # Most probable pose of the moved map's frame in the reference's; for maps with a reference system, in
    # metres from the centre of the reference.
    transform: Pose | None = None
    probability: float | None = None  # of that pose
    success: bool | None = None  # whether one hypothesis has nearly all of the probability
    # Of the pose, given that hypothesis: m^2, then rad^2, in the reference's axes.
    covariance: Annotated[np.ndarray, Shape(6, 6)] | None = None
    # All hypotheses: probability, x, y, z of the map's centre in m, heading in rad, standard deviations of x
    # and y in m and of the heading in rad.
    hypotheses: Annotated[np.ndarray, Shape("n", 8)] | None = None


class MapLocalisation(Node):
    """Localises a rover's map in that of an orbiter or a drone, by exhaustive search of position and heading.

    It fails if the map matches nowhere, or if the ground is too flat.
    """

    east: float = param(0.0, doc="approximate position of the map's centre, x in the reference's coordinates")
    north: float = param(0.0, doc="approximate position of the map's centre, y")
    search_radius: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="largest error of that position; 0: search the whole reference, without `east` and `north`",
    )
    max_turn: float = param(180.0, ge=0, le=180, unit="deg", doc="largest heading error of the map")
    estimate_tilt: bool = param(True, doc="whether roll and pitch of the map are estimated")
    min_overlap: float = param(
        0.6, gt=0, le=1, doc="smallest ratio of the map's cells that must be on known ground"
    )

    def process(self, reference: GridMap, moved: GridMap) -> MapLocated | None:
        try:
            found = locate_map(
                reference,
                moved,
                at=(self.east, self.north) if self.search_radius else None,
                within=self.search_radius or np.inf,
                turn=float(np.radians(self.max_turn)),
                tilt=self.estimate_tilt,
                overlap=self.min_overlap,
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
    """Return probability, position of the centre (m), heading (rad), and sigmas of x, y and heading."""
    found = hypothesis.alignment
    position = found.placement.middle + found.placement.shift
    sigma = found.sigmas
    return [hypothesis.probability, *position.tolist(), found.placement.heading, *sigma[[0, 1, 5]].tolist()]


class MapGeoreferencing(Node):
    """Adds a coordinate reference system (CRS) to a map in the frame of poses, from satellite fixes.

    The antenna's track in the frame of the poses is aligned with the fixes by a rotation about the vertical
    and a translation. Cells and frame of the map are unchanged: the CRS is a projection centred at the origin
    of the frame, whose grid has the orientation of the frame. Heights are those of the frame. A map in
    another frame than the poses, or without fixes that determine the alignment, is passed on unchanged.

    Inputs
    ------
    levelling
        Pose of the frame of the poses in that of the map, if these differ.
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
        positions, orientations = interpolate_poses(
            np.array([pose.t_ns for pose in poses]),
            np.array([pose.position for pose in poses]),
            np.array([pose.orientation for pose in poses]),
            np.array([fix.t_ns for fix in fixes]),
            Limits(gap_ns=round(self.max_gap * NS)),
        )
        known = np.isfinite(positions).all(axis=1) & np.isfinite(orientations).all(axis=1)
        if not known.any():
            return None
        chosen = [fixes[index] for index in np.flatnonzero(known).tolist()]
        lever = self._lever_arm(poses[0].child, chosen[0].frame)
        track = positions[known] + rotations.rotate(orientations[known], lever)
        points = np.array([(fix.latitude, fix.longitude, fix.altitude) for fix in chosen])
        sigmas = np.array([math.sqrt(float(np.mean(sigma_of_fix(fix, 0.0).std[:2] ** 2))) for fix in chosen])
        return find_earth_frame(track, points, sigmas)

    def _lever_arm(self, body: str, frame: str) -> Floats:
        """Return the position of the antenna in the body (3,); 0, with a log message, if it is not known."""
        for name in (self.antenna, frame, *ANTENNA_FRAMES):
            if name and name == body:
                return np.zeros(3)
            try:
                if name and body:
                    return self.ctx.frames.lookup(body, name)[:3, 3]
            except FrameError:
                continue
        self.ctx.log(
            f"the position of the antenna in {body or 'the body'} is not known: assumed at its origin"
        )
        return np.zeros(3)


def _change_frame(pose: Pose, T_map_odom: Pose) -> Pose:
    """Return a pose in the frame of the map."""
    position = rotations.rotate(T_map_odom.orientation, pose.position) + T_map_odom.position
    orientation = rotations.multiply(T_map_odom.orientation, pose.orientation)
    return Pose(position, orientation, pose.t_ns, T_map_odom.frame, pose.child)
