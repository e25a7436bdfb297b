"""Simulated site of the ACFR Sensor Data Integrity data sets at Marulan, recorded with the Argo (SDI).

Conditions: `scene` static (Table 1), open, houses, yard (a short loop around one of them), row (a street of
equal houses), terrace (a denser street, left and entered again), dam, or boards (4.4.1: lasers and visual
camera see a chessboard in several poses); `light` day, low_sun, night or night_lights; `human` none, walking
or visitors (people and a car that come and go); `reflectors` none or standing, in the static scene; `wind`
calm or breeze (leaves and grass sway); `sensors` ideal or real (see `disturbances`); `air` clear, dust,
smoke, rain, light_rain or fog (see `weather`); `track` usual, or beside (the loop is shifted by 1 m).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.arrays import Floats, Ints
from transect.geometry import rotations
from transect.recording import FrameTree, Recording, Robot, Stream, arrow
from transect.simulation.day import Day, Truth, WorldOptions
from transect.simulation.driving import Chassis, along, course, drive, heading, stop, truth
from transect.simulation.motion import Motion
from transect.simulation.raycast import Scene
from transect.simulation.solids import Solid, Solids, walker

from ..logs import LASERS, NAV
from . import disturbances
from .argo import Z_DOWN, Argo, list_hit_kinds, list_hits, list_slip, make_streams
from .boards import BoardSequence, build_board, count_boards, list_boards, place_boards
from .cameras import INFRARED_CLIP_PX, LIGHTS, make_camera_streams, scale_camera
from .sites import (
    SENSOR_FRAME,
    Site,
    build_bare,
    build_dam,
    build_houses,
    build_open_area,
    build_row,
    build_static,
    build_terrace,
    build_yard,
    from_table_1,
)
from .weather import AIR, Weather, forecast
from .weather import SETTINGS as WEATHER

CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "scene": ("static", "open", "houses", "yard", "row", "terrace", "dam", "boards"),
    "light": tuple(LIGHTS),
    "human": ("none", "walking", "visitors"),
    "reflectors": ("none", "standing"),
    "wind": ("calm", "breeze"),
    "sensors": ("ideal", "real"),
    "air": ("clear", *AIR),
    "track": ("usual", "beside"),
}
"""Values of each condition; the first one is the default."""
BOARD_CAMERA, BOARD_LASER = "VideoVisual", "LaserHorizontal"
"""Camera and laser that are calibrated with the boards."""
START_NS = {
    "day": 1_224_476_280_000_000_000,
    "low_sun": 1_224_489_300_000_000_000,
    "night": 1_224_504_000_000_000_000,
    "night_lights": 1_224_504_000_000_000_000,
}
"""20 October 2008, when no dataset of the report was recorded: 04:18, 07:55 and 12:00 UTC."""


@dataclass(frozen=True)
class DriveSettings:
    """Motion of the vehicle; SDI does not state the speed."""

    speed_m_s: float = 1.5
    turn_radius_m: float = 4.0
    standing_s: float = 2.0  # Time at rest before the drive.
    track_offset_m: tuple[float, float] = (0.7, 0.7)  # Offset of the track `beside`, east and north.
    sample_interval_ns: int = 10_000_000  # Interval of the true motion: 100 Hz.
    tyre_blur_m: float = 0.3  # Large, soft tyres smooth the ground; there is no other suspension (2.1).
    margin_s: float = 0.1  # Motion after the end of the day, as the last scan takes time.


DRIVE = DriveSettings()


def make_day(options: WorldOptions) -> Day:
    """Simulate a day at Marulan."""
    conditions = options.choose("marulan", CONDITIONS)
    robot = robots.load("argo")
    site = _choose_site(conditions, options.seed)
    if conditions["track"] == "beside" and site.route is not None:
        site = replace(site, route=site.route + np.array(DRIVE.track_offset_m))
    solids_of_site = _make_solids(site, conditions, options)
    start_ns = START_NS[conditions["light"]]
    motion = _make_motion(site, robot, start_ns, options)
    board_poses = _show_boards(robot, motion, options) if conditions["scene"] == "boards" else None
    solids = (
        Solids.of(solids_of_site)
        if board_poses is None
        else BoardSequence.among(solids_of_site, [build_board(T) for T in board_poses])
    )
    argo = Argo(
        robot=robot,
        scene=Scene(site.terrain, solids),
        solids=solids,
        motion=motion,
        start_ns=start_ns,
        seconds=options.seconds,
        seed=options.seed,
        stands=site.route is None,
        still=site.route is None
        and board_poses is None
        and all(solid.track is None for solid in solids_of_site),
        real=conditions["sensors"] == "real",
    )
    streams = [*make_streams(argo), *make_camera_streams(argo, conditions["light"], options.scale, site.car)]
    if board_poses is not None:
        streams = [stream for stream in streams if stream.name in (*LASERS, BOARD_CAMERA)]
    clear = _make_recording(argo, streams, conditions, options)
    weather = forecast(conditions["air"], clear, options.seconds, options.seed)
    recording = clear if weather is None else clear.replace(streams=tuple(weather.obscure(s) for s in clear))
    return Day(_choose_streams(recording, options), _make_truth(argo, options, board_poses, weather))


def usual_seconds(conditions: Mapping[str, str]) -> float:
    """Return the default length of a day, which is longer with weather."""
    return WEATHER.day_s if conditions.get("air", "clear") != "clear" else WorldOptions.seconds


def _make_solids(site: Site, conditions: Mapping[str, str], options: WorldOptions) -> list[Solid]:
    """Return the solids of the site, with people, a car and wind."""
    steps, solids = disturbances.count_steps(options.seconds), list(site.solids)
    if conditions["human"] == "walking":
        solids += walker(_put_on_ground(site, site.walk))
    if conditions["human"] == "visitors":
        solids += disturbances.make_visitors(site, options.seed, steps)
    if conditions["wind"] == "breeze":
        grass = disturbances.grow_grass(site, options.seed)
        solids = disturbances.sway([*solids, *grass], options.seed, steps)
        return disturbances.repeat_tracks(solids, steps)
    return solids


def _show_boards(robot: Robot, motion: Motion, options: WorldOptions) -> Floats:
    """Return the poses ``T_world_board`` (n, 4, 4) of chessboards in front of the standing vehicle."""
    camera, laser = (
        motion.in_axes(Z_DOWN).transforms[0] @ robot.frames.lookup("Body", name)
        for name in (BOARD_CAMERA, BOARD_LASER)
    )
    count = count_boards(options.seconds)
    return place_boards(camera, laser, robot.cameras[BOARD_CAMERA], count, options.seed)


def _choose_site(conditions: Mapping[str, str], seed: int) -> Site:
    if conditions["scene"] == "static":
        return build_static(seed, reflectors=conditions["reflectors"] == "standing")
    areas: dict[str, Callable[[int], Site]] = {
        "boards": build_bare,
        "open": build_open_area,
        "houses": build_houses,
        "yard": build_yard,
        "row": build_row,
        "terrace": build_terrace,
        "dam": build_dam,
    }
    return areas[conditions["scene"]](seed)


def _put_on_ground(site: Site, corners: Floats) -> Floats:
    return np.column_stack([corners, site.terrain.smooth(0.25).at(corners)])


# Motion of the vehicle


def _find_frame_centre(robot: Robot) -> Floats:
    """Return the centre of the sensor frame in the body (z up): between its two central lasers (2.2.1)."""
    two = [robot.frames.lookup("Body", name)[:3, 3] for name in ("LaserHorizontal", "LaserVertical")]
    return np.mean(two, axis=0) * np.array([1.0, -1.0, -1.0])


def _find_height(robot: Robot) -> float:
    """Return the height of the body over the ground, m, from that of the sensor frame in Table 1."""
    return SENSOR_FRAME[2] / 100 - float(_find_frame_centre(robot)[2])


def _make_motion(site: Site, robot: Robot, start_ns: int, options: WorldOptions) -> Motion:
    if site.route is None:
        return _stand(site, robot, start_ns, options.seconds + DRIVE.margin_s)
    return _drive(site, site.route, robot, start_ns, options)


def _stand(site: Site, robot: Robot, start_ns: int, seconds: float) -> Motion:
    """Return the vehicle of the static tests: facing south, with its sensor frame as in Table 1."""
    facing = rotations.quaternion_from_euler("rpy", [0.0, 0.0, -np.pi / 2])
    xy = (from_table_1(*SENSOR_FRAME) - rotations.rotate(facing, _find_frame_centre(robot)))[:2]
    ground = float(site.terrain.smooth(0.5).at(xy))
    n = int(np.ceil(seconds * 100)) + 1
    zero = np.broadcast_to(np.zeros(3), (n, 3))
    return Motion(
        t_ns=start_ns + DRIVE.sample_interval_ns * np.arange(n),
        position=np.broadcast_to(np.array([*xy, ground + _find_height(robot)]), (n, 3)),
        quaternion=np.broadcast_to(facing, (n, 4)),
        velocity=zero,
        acceleration=zero,
        angular_velocity=zero,
    )


def _drive(site: Site, route: Floats, robot: Robot, start_ns: int, options: WorldOptions) -> Motion:
    """Return the vehicle on its loops, after a time at rest."""
    half = float(robot.constants["drive"]["wheel_separation"]) / 2
    ahead = _find_frame_centre(robot)[0] + 0.91 - 0.61 * np.arange(4)  # Table 1: front wheels 91 cm ahead
    contacts = np.array([(x, side * half) for x in ahead for side in (-1, 1)])
    chassis = Chassis(contacts, _find_height(robot), suspension=0.3, shaking=0.001)
    length = float(np.linalg.norm(np.diff([*route, route[0]], axis=0), axis=1).sum())
    loops = int(options.seconds * DRIVE.speed_m_s / (0.8 * length)) + 1
    path = np.vstack([*[route] * loops, route[:2]])
    start = (*path[0], heading(path))
    legs = [stop(DRIVE.standing_s), *along(path, DRIVE.turn_radius_m, DRIVE.speed_m_s)]
    planned = course(legs, options.seconds + DRIVE.margin_s, start_ns, start)
    ground = site.terrain.smooth(DRIVE.tyre_blur_m).at
    return truth(drive(planned, chassis, ground, seed=options.seed))


# Recording and truth


def _make_recording(
    argo: Argo, streams: list[Stream], conditions: Mapping[str, str], options: WorldOptions
) -> Recording:
    return Recording(
        name=f"marulan-{conditions['scene']}-{conditions['light']}",
        streams=tuple(streams),
        frames=argo.robot.frames,
        cameras={name: scale_camera(c, options.scale) for name, c in argo.robot.cameras.items()},
        robot=argo.robot,
        conditions={
            "simulated": True,
            "world": "marulan",
            "seed": options.seed,
            **conditions,
            "infrared_clip": INFRARED_CLIP_PX,
        },
        format="sdi",
    )


def _choose_streams(day: Recording, options: WorldOptions) -> Recording:
    """Return a day with the selected streams."""
    chosen = day.select(*options.streams) if options.streams else day
    return chosen.replace(frames=_make_frames(day.frames, list(chosen)))


def _make_frames(robot: FrameTree, streams: list[Stream]) -> FrameTree:
    """Return the robot's frames, with the pose of the body by Nav."""
    frames = robot.copy()
    for nav in (stream for stream in streams if stream.name == NAV):
        frames.add_lazy("Navigation", "Body", lambda nav=nav: _read_poses(nav), source=NAV)
    return frames


def _read_poses(nav: Stream) -> tuple[Ints, Floats, Floats]:
    return nav.t_ns, nav.array("x", "y", "z"), nav.array("qx", "qy", "qz", "qw")


def _make_truth(
    argo: Argo, options: WorldOptions, board_poses: Floats | None, weather: Weather | None
) -> Truth:
    tables: dict[str, Callable[[], pa.Table]] = {"objects": lambda: list_objects(argo)}
    if any(options.wants(laser) for laser in LASERS):
        tables |= {"hits": lambda: list_hits(argo), "hit_kinds": lambda: list_hit_kinds(argo)}
    if board_poses is not None:
        tables["boards"] = lambda: list_boards(argo.start_ns, board_poses)
    if weather is not None:
        tables["faults"] = lambda: weather.label_samples(options.wants)
    if not argo.stands:
        tables["slip"] = lambda: list_slip(argo)
    return Truth(
        motion=argo.motion.in_axes(Z_DOWN),
        tables=LazyTables(tables),
        maps={"dem": argo.scene.terrain.as_grid()},
        body="Body",
    )


@dataclass(frozen=True, eq=False)
class LazyTables(Mapping[str, pa.Table]):
    """Tables that are computed on access."""

    functions: Mapping[str, Callable[[], pa.Table]]

    def __getitem__(self, name: str) -> pa.Table:
        return self.functions[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)


def list_objects(argo: Argo) -> pa.Table:
    """Return the objects at the start of the day: kind, centre (m, world), size (half lengths, m)."""
    solids = argo.solids
    columns = {
        "number": np.arange(1, len(solids) + 1),
        "kind": arrow.strings(solids.kinds[k] for k in solids.kind),
        **dict(zip(("x", "y", "z"), solids.centres_at(0.0).T, strict=True)),
        "size": solids.arrays.size,
        "rcs": solids.rcs,
    }
    units = {"x": "m", "y": "m", "z": "m", "size": "m", "rcs": "m2"}
    return arrow.table(np.full(len(solids), argo.start_ns), columns, units=units)
