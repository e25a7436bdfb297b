"""What every SLAM node does with its poses: make a map, or find itself in one, and say how it went."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from transect.algorithms.slam.localiser import Localiser
from transect.algorithms.slam.map_summary import count_loops
from transect.algorithms.slam.mapper import Mapper, MappingSettings, MapStep
from transect.algorithms.slam.place_recognition import Recogniser
from transect.base.arrays import Floats
from transect.engine import outputs
from transect.engine.context import Context
from transect.errors import UsageError
from transect.geometry import geodesy, rotations, se3
from transect.types import NavFix, PlaceMap, Pose, Trajectory
from transect.types.places import Anchor, Observation

FIX_SIGMA = 3.0
"""Metres: of a satellite fix that does not tell its own."""


@outputs
class Placed:
    """What a SLAM gives: at every pose of the odometry, and all at once when the inputs end.

    Attributes
    ----------
    pose : Pose
        Of the body in the map, by what is known so far; none while the robot is lost.
    located : bool
        Whether it is known where in the map the body is.
    loops : int
        Loops that are believed so far; given when there are more, and at the end.
    trajectory : Trajectory
        All poses, corrected by everything, with their covariances.
    map : PlaceMap
        When the inputs end; none where a robot was only looked for in a map that was given.
    """

    pose: Pose | None = None
    located: bool | None = None
    loops: int | None = None
    trajectory: Trajectory | None = None
    map: PlaceMap | None = None


def check_map(ctx: Context, kind: str) -> None:
    """Refuse a map that another kind of SLAM made; for `ready` of a node."""
    if ctx.map is not None and ctx.map.places.kind != kind:
        made = ctx.map.places.kind
        raise UsageError(
            f"the map is of {made}, not of {kind}", where=ctx.map.path,
            why="each kind knows places by what its own sensor saw",
            hint=f"transect run {made} ... --map {ctx.map.path}",
        )  # fmt: skip


class Session:
    """One run of a SLAM: a `Mapper`, or a `Localiser` where `ctx.map` is given and not to be extended.

    Parameters
    ----------
    ctx : Context
        Of the node.
    kind : str
        Name of the compound.
    recogniser : Recogniser
        A new one.
    calibration : mapping
        What the map is to say of the sensor: plain values.
    child : str
        Name of the body.
    """

    def __init__(
        self,
        ctx: Context,
        kind: str,
        recogniser: Recogniser,
        manner: MappingSettings,
        calibration: Mapping[str, Any] | None = None,
        child: str = "",
    ) -> None:
        self.child, self._origin = child, None
        self._noise: dict[str, None] = {}
        self._pending: list[tuple[Floats, Floats]] = []
        known = ctx.map
        self.worker: Mapper | Localiser
        if known is not None and not known.extend:
            self.worker = Localiser(known.places, recogniser, manner)
            return
        self.worker = Mapper(kind, recogniser, manner, calibration or {})
        self.worker.child = child
        if known is not None:
            self.worker.extend(known.places)

    def step(
        self,
        t_ns: int,
        T_odom_body: Floats,
        covariance: Floats | None,
        observe: Callable[[], Observation],
        *,
        joined: bool | None = None,
        success: Sequence[bool] = (),
    ) -> Placed:
        """Take the next pose of the odometry; see `Mapper.step`.

        Parameters
        ----------
        success : sequence of bool
            What the odometry said of all samples since the pose before, where it says so.
        """
        if joined is None and self._has_stood(T_odom_body, success):
            joined = True
        if covariance is None:
            metre, radian = self.worker.reckoning.manner.drift
            said = (
                f"odometry: no covariance is given; a drift of {100 * metre:g} % and {radian:g} rad per rad"
            )
            self._noise[f"{said} is assumed"] = None
        step = self.worker.step(t_ns, T_odom_body, covariance, observe, joined=joined)
        if isinstance(self.worker, Mapper) and step.keyframe is not None:
            self._hang_fixes(self.worker, step.keyframe)
        return Placed(
            pose=self._pose(t_ns, step),
            located=step.located,
            loops=self.worker.loops if isinstance(self.worker, Mapper) and step.loops else None,
        )

    def _has_stood(self, T_odom_body: Floats, success: Sequence[bool]) -> bool:
        """Tell whether odometry found all motions since the pose before, and these are hardly any.

        Then a pause begins no session, however long it was. After a longer way what odometry matched may be
        another place that looks the same.
        """
        reckoning = self.worker.reckoning
        if reckoning.last is None or not len(success) or not all(success):
            return False
        moved = se3.invert(reckoning.last) @ T_odom_body
        turned = float(np.linalg.norm(rotations.rotation_vector_from_matrix(moved[:3, :3])))
        manner = reckoning.manner
        return float(np.linalg.norm(moved[:3, 3])) < manner.distance and turned < manner.turn

    def _pose(self, t_ns: int, step: MapStep) -> Pose | None:
        if step.pose is None:
            return None
        attitude, position = se3.to_quaternion(step.pose)
        frame = self.worker.frame if isinstance(self.worker, Mapper) else self.worker.places.frame
        return Pose(position, attitude, t_ns, frame, self.child)

    def add_fix(self, fix: NavFix) -> None:
        """Take a satellite fix: it holds the next keyframe, and anchors the map."""
        place = np.array([fix.latitude, fix.longitude, fix.altitude])
        if fix.fix == "none" or not np.isfinite(place).all():
            return
        self._origin = place if self._origin is None else self._origin
        is_declared = fix.std is not None and bool(np.isfinite(fix.std).all())
        std = fix.std if is_declared and fix.std is not None else np.full(3, FIX_SIGMA)
        assumed = f"no standard deviation is stated: {FIX_SIGMA:g} m is assumed"
        self._noise[f"fix: {'standard deviations as declared' if is_declared else assumed}"] = None
        east_north_up = np.maximum(np.abs(std[[1, 0, 2]]), 1e-3)
        self._pending = [(geodesy.local_from_geodetic(place, self._origin), np.diag(east_north_up**2))]

    def _hang_fixes(self, mapper: Mapper, k: int) -> None:
        for place, covariance in self._pending:
            mapper.graph.add_position(k, place, covariance)
        self._pending = []

    def finish(self, ctx: Context) -> Placed | None:
        """Return trajectory and map, and say how it went."""
        for sentence in self._noise:
            ctx.report_noise(sentence)
        if isinstance(self.worker, Localiser):
            path = self.worker.finish(self.child)
            ctx.conclude(self.worker.describe(), bad=path is None)
            return None if path is None else Placed(trajectory=path)
        mapper = self.worker
        if self._origin is not None and mapper.graph.is_held:
            mapper.anchor = anchor_at(self._origin)
        found = mapper.finish()
        if found is None:
            return None
        ctx.conclude(describe_map(mapper, found[1]))
        return Placed(loops=mapper.loops, trajectory=found[0], map=found[1])


def anchor_at(origin: Floats) -> Anchor:
    """Return where a map is whose origin is at latitude, longitude (rad) and height (3,): x east, y north."""
    [place], zone = geodesy.utm_from_geodetic(origin[None])
    turn = float(geodesy.grid_convergence(origin[None], zone)[0])
    rotation = rotations.matrix_from_euler("z", [turn])
    return Anchor(f"EPSG:32{6 if zone.north else 7}{zone.number:02d}", se3.from_matrix(rotation, place))


def describe_map(mapper: Mapper, places: PlaceMap) -> str:
    """Return in words what a map is made of."""
    doubted = sum(what == "doubted" for what in places.edges.what)
    parts, sessions = len(mapper.graph.firsts()), len(set(places.session.tolist()))
    said = [f"{len(places)} places along {places.length:.0f} m", count_loops(mapper.loops)]
    said += [f"{doubted} doubted at the end"] if doubted else []
    said += [f"{count_loops(len(mapper.judge.waiting))} not believed"] if mapper.judge.waiting else []
    said += [f"{sessions} sessions in {parts} part{'s' if parts > 1 else ''}"] if sessions > 1 else []
    return "map: " + ", ".join(said)
