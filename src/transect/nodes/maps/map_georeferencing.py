"""The coordinate reference system of a local map, from satellite fixes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from transect.algorithms.fusion.gnss_sigma import deviation_of
from transect.algorithms.fusion.measurements import ANTENNAS
from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.engine import Batch, Latest, Node, param
from transect.errors import FrameError
from transect.geometry import rotations
from transect.geometry.georeferencing import EarthFrame, find_earth_frame
from transect.geometry.interpolation import Limits, interpolate_poses
from transect.types import GridMap, NavFix, Pose


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
