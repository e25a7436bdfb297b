"""Common part of the SLAM nodes: mapping or localisation, satellite fixes, and the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from transect.algorithms.slam.localiser import Localiser
from transect.algorithms.slam.mapper import Mapper, MapStep
from transect.algorithms.slam.place_maps import format_loop_count
from transect.algorithms.slam.place_recognition import MappingSettings, Recogniser
from transect.algorithms.slam.pose_graph import REJECTED
from transect.base.arrays import Floats
from transect.engine import outputs
from transect.engine.context import Context
from transect.errors import UsageError
from transect.geometry import geodesy, rotations, se3
from transect.types import NavFix, PlaceMap, Pose, Trajectory
from transect.types.places import Anchor, Observation

MIN_FIX_SIGMA_M = 1e-3  # a declared sigma of zero would make the covariance singular


@outputs
class SlamOutput:
    """Result of SLAM: a pose for each pose of the odometry; trajectory and map only at the end."""

    pose: Pose | None = None  # of the body in the map, current estimate; None while the robot is lost
    located: bool | None = None  # whether the pose in the map is known
    loops: int | None = None  # number of accepted loops, when it changes and at the end
    trajectory: Trajectory | None = None  # at the end: all poses, corrected, with covariances
    map: PlaceMap | None = None  # at the end; None after localisation in a given map


def check_map(ctx: Context, kind: str) -> None:
    """Raise an error if the given map was made by another kind of SLAM; for `ready` of a node."""
    if ctx.map is not None and ctx.map.places.kind != kind:
        map_kind = ctx.map.places.kind
        raise UsageError(
            f"the map is of {map_kind}, not of {kind}", where=ctx.map.path,
            why="each kind recognises places by data of its own sensor",
            hint=f"transect run {map_kind} ... --map {ctx.map.path}",
        )  # fmt: skip


class SlamSession:
    """One run of SLAM: a `Mapper`, or a `Localiser` if a map is given that is not to be extended.

    Parameters
    ----------
    kind : str
        Name of the compound.
    recogniser : Recogniser
        A recogniser without places.
    calibration : mapping
        Sensor parameters (JSON values) to store in the map.
    child : str
        Name of the body.
    fix_sigma_m : float
        Sigma of a satellite fix without a standard deviation.
    """

    def __init__(
        self,
        ctx: Context,
        kind: str,
        recogniser: Recogniser,
        settings: MappingSettings,
        calibration: Mapping[str, Any] | None = None,
        child: str = "",
        fix_sigma_m: float = 3.0,
    ) -> None:
        self.child, self._origin, self.fix_sigma_m = child, None, fix_sigma_m
        self._noise: dict[str, None] = {}
        self._pending: list[tuple[Floats, Floats]] = []
        stored = ctx.map
        self.estimator: Mapper | Localiser
        if stored is not None and not stored.extend:
            self.estimator = Localiser(stored.places, recogniser, settings)
            return
        self.estimator = Mapper(kind, recogniser, settings, calibration or {})
        self.estimator.child = child
        if stored is not None:
            self.estimator.extend(stored.places)

    def step(
        self,
        t_ns: int,
        T_odom_body: Floats,
        covariance: Floats | None,
        observe: Callable[[], Observation],
        *,
        connected: bool | None = None,
        success: Sequence[bool] = (),
    ) -> SlamOutput:
        """Process the next pose of the odometry; see `Mapper.step`.

        Parameters
        ----------
        success : sequence of bool
            Success of the odometry for all samples since the last pose, if it reports that.
        """
        if connected is None and self._is_stationary(T_odom_body, success):
            connected = True
        if covariance is None:
            path_ratio, turn_ratio = self.estimator.odometry.settings.odometry_drift
            drift = f"a drift of {100 * path_ratio:g} % and {turn_ratio:g} rad per rad"
            self._noise[f"odometry: no covariance is given; {drift} is assumed"] = None
        step = self.estimator.step(t_ns, T_odom_body, covariance, observe, connected=connected)
        if isinstance(self.estimator, Mapper) and step.keyframe is not None:
            for position, position_covariance in self._pending:
                self.estimator.graph.add_position(step.keyframe, position, position_covariance)
            self._pending = []
        return SlamOutput(
            pose=self._pose(t_ns, step),
            located=step.located,
            loops=self.estimator.loops if isinstance(self.estimator, Mapper) and step.loops else None,
        )

    def _is_stationary(self, T_odom_body: Floats, success: Sequence[bool]) -> bool:
        """Return whether odometry measured all motions since the last pose, and they need no keyframe.

        A pause then starts no session, however long it was. After a longer path the odometry may have matched
        a similar place elsewhere.
        """
        odometry = self.estimator.odometry
        if odometry.last_pose is None or not len(success) or not all(success):
            return False
        moved = se3.invert(odometry.last_pose) @ T_odom_body
        angle = float(np.linalg.norm(rotations.rotation_vector_from_matrix(moved[:3, :3])))
        settings = odometry.settings
        return (
            float(np.linalg.norm(moved[:3, 3])) < settings.keyframe_distance_m
            and angle < settings.keyframe_angle_rad
        )

    def _pose(self, t_ns: int, step: MapStep) -> Pose | None:
        if step.pose is None:
            return None
        attitude, position = se3.to_quaternion(step.pose)
        frame = self.estimator.frame if isinstance(self.estimator, Mapper) else self.estimator.place_map.frame
        return Pose(position, attitude, t_ns, frame, self.child)

    def add_fix(self, fix: NavFix) -> None:
        """Add a satellite fix, which constrains the next keyframe and anchors the map."""
        position = np.array([fix.latitude, fix.longitude, fix.altitude])
        if fix.fix == "none" or not np.isfinite(position).all():
            return
        self._origin = position if self._origin is None else self._origin
        is_declared = fix.std is not None and bool(np.isfinite(fix.std).all())
        std = fix.std if is_declared and fix.std is not None else np.full(3, self.fix_sigma_m)
        assumed = f"no standard deviation is stated: {self.fix_sigma_m:g} m is assumed"
        self._noise[f"fix: {'standard deviations as declared' if is_declared else assumed}"] = None
        east_north_up = np.maximum(np.abs(std[[1, 0, 2]]), MIN_FIX_SIGMA_M)
        self._pending = [(geodesy.local_from_geodetic(position, self._origin), np.diag(east_north_up**2))]

    def finish(self, ctx: Context) -> SlamOutput | None:
        """Return trajectory and map, and report the result."""
        for sentence in self._noise:
            ctx.report_noise(sentence)
        if isinstance(self.estimator, Localiser):
            path = self.estimator.finish(self.child)
            ctx.conclude(self.estimator.describe(), bad=path is None)
            return None if path is None else SlamOutput(trajectory=path)
        mapper = self.estimator
        if self._origin is not None and mapper.graph.is_georeferenced:
            mapper.anchor = utm_anchor(self._origin)
        result = mapper.finish()
        if result is None:
            return None
        ctx.conclude(summarise_map(mapper, result[1]))
        return SlamOutput(loops=mapper.loops, trajectory=result[0], map=result[1])


def utm_anchor(origin: Floats) -> Anchor:
    """Return the anchor of a map, x east and y north, whose origin (3,) is latitude, longitude and height."""
    [position], zone = geodesy.utm_from_geodetic(origin[None])
    convergence = float(geodesy.grid_convergence(origin[None], zone)[0])
    rotation = rotations.matrix_from_euler("z", [convergence])
    return Anchor(f"EPSG:32{6 if zone.north else 7}{zone.number:02d}", se3.from_matrix(rotation, position))


def summarise_map(mapper: Mapper, place_map: PlaceMap) -> str:
    """Return a sentence on the contents of a map."""
    rejected = sum(what == REJECTED for what in place_map.edges.what)
    pending = len(mapper.loop_selector.pending)
    components, sessions = len(mapper.graph.roots()), len(set(place_map.session.tolist()))
    count = len(place_map)
    facts = [
        f"{count} keyframe{'s' if count != 1 else ''} along {place_map.length:.0f} m",
        format_loop_count(mapper.loops),
    ]
    facts += [f"{rejected} rejected at the end"] if rejected else []
    facts += [f"{pending} unconfirmed"] if pending else []
    if sessions > 1:
        facts.append(f"{sessions} sessions in {components} component{'s' if components > 1 else ''}")
    return "map: " + ", ".join(facts)
