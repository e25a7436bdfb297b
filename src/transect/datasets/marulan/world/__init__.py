"""Marulan, where the ACFR recorded its Sensor Data Integrity datasets with the Argo (document 004).

Conditions: `scene` static (Table 1), open, houses, yard (a short round of one of them), row (a street of
equal ones), terrace (a denser one, left and entered again), dam, or boards (4.4.1: lasers and visual camera
see a chessboard, held up at one place after the other); `light` day, low_sun, night or night_lights;
`human` none, walking or visitors (people and a car that come and go); `reflectors` none or standing, in the
static scene; `wind` calm or breeze (leaves and grass sway); `sensors` ideal or real (see `hour`);
`air` clear, dust, smoke, rain, light_rain or fog (see `weather`); `track` usual, or beside (the round 1 m
aside).
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
from transect.simulation.day import Day, Options, Truth
from transect.simulation.driving import Chassis, along, course, drive, heading, stop, truth
from transect.simulation.motion import Motion
from transect.simulation.raycast import Scene
from transect.simulation.solids import Solid, Solids, walker

from ..logs import LASERS, NAV
from . import hour
from .argo import Z_DOWN, Argo, list_hit_kinds, list_hits, list_slip, make_streams
from .boards import Shown, build_board, count_boards, list_boards, place_boards
from .cameras import CLIP, LIGHTS, make_camera_streams, scale_camera
from .places import (
    SENSOR_FRAME,
    Place,
    build_bare,
    build_dam,
    build_houses,
    build_open_area,
    build_row,
    build_static,
    build_terrace,
    build_yard,
    find_spot,
)
from .weather import AIR, SECONDS, Weather, forecast

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
"""What may be asked for; the first of each is taken unasked."""
BOARD_CAMERA, BOARD_LASER = "VideoVisual", "LaserHorizontal"
"""Whose calibration the boards are for."""
START_NS = {
    "day": 1_224_476_280_000_000_000,
    "low_sun": 1_224_489_300_000_000_000,
    "night": 1_224_504_000_000_000_000,
    "night_lights": 1_224_504_000_000_000_000,
}
"""20 October 2008, when no dataset of the report was recorded: 04:18, 07:55 and 12:00 UTC."""
BESIDE = np.array([0.7, 0.7])
"""m by which another track lies beside the usual one."""
SPEED, CORNER = 1.5, 4.0
"""m/s and radius of turns in m; the report does not say."""
RATE_NS = 10_000_000
"""Between two samples of the true motion: 100 Hz."""
TYRE = 0.3
"""m: the soft, large tyres feel the ground blurred by so much. There is no other suspension (2.1)."""
AFTER = 0.1
"""Seconds of motion after the end of the day: the last scan takes a while."""


def make_day(options: Options) -> Day:
    """Return a day at Marulan."""
    asked = options.choose("marulan", CONDITIONS)
    robot = robots.load("argo")
    place = _choose_place(asked, options.seed)
    if asked["track"] == "beside" and place.route is not None:
        place = replace(place, route=place.route + BESIDE)
    moving = _make_moving(place, asked, options)
    start_ns = START_NS[asked["light"]]
    motion = _make_motion(place, robot, start_ns, options)
    shown = _show_boards(robot, motion, options) if asked["scene"] == "boards" else None
    solids = Solids.of(moving) if shown is None else Shown.among(moving, [build_board(T) for T in shown])
    argo = Argo(
        robot=robot,
        scene=Scene(place.terrain, solids),
        solids=solids,
        motion=motion,
        start_ns=start_ns,
        seconds=options.seconds,
        seed=options.seed,
        stands=place.route is None,
        still=place.route is None and shown is None and all(solid.track is None for solid in moving),
        real=asked["sensors"] == "real",
    )
    made = [*make_streams(argo), *make_camera_streams(argo, asked["light"], options.scale, place.car)]
    if shown is not None:
        made = [stream for stream in made if stream.name in (*LASERS, BOARD_CAMERA)]
    clear = _make_recording(argo, made, asked, options)
    weather = forecast(asked["air"], clear, options.seconds, options.seed)
    seen = clear if weather is None else clear.replace(streams=tuple(weather.look(s) for s in clear))
    return Day(_choose_streams(seen, options), _make_truth(argo, options, shown, weather))


def usual_seconds(conditions: Mapping[str, str]) -> float:
    """Return how long a day under such conditions is if nobody says it: weather takes its time."""
    return SECONDS if conditions.get("air", "clear") != "clear" else Options.seconds


def _make_moving(place: Place, asked: Mapping[str, str], options: Options) -> list[Solid]:
    """Return what stands, sways, walks and drives."""
    steps, solids = hour.count_steps(options.seconds), list(place.solids)
    if asked["human"] == "walking":
        solids += walker(_put_on_ground(place, place.walk))
    if asked["human"] == "visitors":
        solids += hour.invite(place, options.seed, steps)
    if asked["wind"] == "breeze":
        solids = hour.sway([*solids, *hour.grow_grass(place, options.seed)], options.seed, steps)
        return hour.prolong(solids, steps)
    return solids


def _show_boards(robot: Robot, motion: Motion, options: Options) -> Floats:
    """Return where chessboards are held before the vehicle, which stands: ``T_world_board`` (n, 4, 4)."""
    camera, laser = (
        motion.in_axes(Z_DOWN).transforms[0] @ robot.frames.lookup("Body", name)
        for name in (BOARD_CAMERA, BOARD_LASER)
    )
    count = count_boards(options.seconds)
    return place_boards(camera, laser, robot.cameras[BOARD_CAMERA], count, options.seed)


def _choose_place(asked: Mapping[str, str], seed: int) -> Place:
    if asked["scene"] == "static":
        return build_static(seed, reflectors=asked["reflectors"] == "standing")
    areas: dict[str, Callable[[int], Place]] = {
        "boards": build_bare,
        "open": build_open_area,
        "houses": build_houses,
        "yard": build_yard,
        "row": build_row,
        "terrace": build_terrace,
        "dam": build_dam,
    }
    return areas[asked["scene"]](seed)


def _put_on_ground(place: Place, corners: Floats) -> Floats:
    return np.column_stack([corners, place.terrain.smooth(0.25).at(corners)])


# Where the vehicle is


def _find_frame_centre(robot: Robot) -> Floats:
    """Return the centre of the sensor frame in the body (z up): between its two central lasers (2.2.1)."""
    two = [robot.frames.lookup("Body", name)[:3, 3] for name in ("LaserHorizontal", "LaserVertical")]
    return np.mean(two, axis=0) * np.array([1.0, -1.0, -1.0])


def _find_height(robot: Robot) -> float:
    """Return the body's height over the ground in m: Table 1 has that of the sensor frame."""
    return SENSOR_FRAME[2] / 100 - float(_find_frame_centre(robot)[2])


def _make_motion(place: Place, robot: Robot, start_ns: int, options: Options) -> Motion:
    if place.route is None:
        return _stand(place, robot, start_ns, options.seconds + AFTER)
    return _drive(place, place.route, robot, start_ns, options)


def _stand(place: Place, robot: Robot, start_ns: int, seconds: float) -> Motion:
    """Return the vehicle of the static tests: facing south, its sensor frame where Table 1 has it."""
    facing = rotations.quaternion_from_euler("rpy", [0.0, 0.0, -np.pi / 2])
    xy = (find_spot(*SENSOR_FRAME) - rotations.rotate(facing, _find_frame_centre(robot)))[:2]
    ground = float(place.terrain.smooth(0.5).at(xy))
    n = int(np.ceil(seconds * 100)) + 1
    never = np.broadcast_to(np.zeros(3), (n, 3))
    return Motion(
        t_ns=start_ns + RATE_NS * np.arange(n),
        position=np.broadcast_to(np.array([*xy, ground + _find_height(robot)]), (n, 3)),
        quaternion=np.broadcast_to(facing, (n, 4)),
        velocity=never,
        acceleration=never,
        angular_velocity=never,
    )


def _drive(place: Place, route: Floats, robot: Robot, start_ns: int, options: Options) -> Motion:
    """Return the vehicle on its rounds, after two seconds of standing."""
    half = float(robot.constants["drive"]["wheel_separation"]) / 2
    ahead = _find_frame_centre(robot)[0] + 0.91 - 0.61 * np.arange(4)  # Table 1: front wheels 91 cm ahead
    contacts = np.array([(x, side * half) for x in ahead for side in (-1, 1)])
    chassis = Chassis(contacts, _find_height(robot), suspension=0.3, shaking=0.001)
    length = float(np.linalg.norm(np.diff([*route, route[0]], axis=0), axis=1).sum())
    rounds = int(options.seconds * SPEED / (0.8 * length)) + 1
    way = np.vstack([*[route] * rounds, route[:2]])
    start = (*way[0], heading(way))
    legs = [stop(2.0), *along(way, CORNER, SPEED)]
    planned = course(legs, options.seconds + AFTER, start_ns, start)
    ground = place.terrain.smooth(TYRE).at
    return truth(drive(planned, chassis, ground, seed=options.seed))


# What is handed over


def _make_recording(argo: Argo, made: list[Stream], asked: Mapping[str, str], options: Options) -> Recording:
    return Recording(
        name=f"marulan-{asked['scene']}-{asked['light']}",
        streams=tuple(made),
        frames=argo.robot.frames,
        cameras={name: scale_camera(c, options.scale) for name, c in argo.robot.cameras.items()},
        robot=argo.robot,
        conditions={
            "simulated": True,
            "world": "marulan",
            "seed": options.seed,
            **asked,
            "infrared_clip": CLIP,
        },
        format="sdi",
    )


def _choose_streams(day: Recording, options: Options) -> Recording:
    """Return a day with the streams that were asked for."""
    chosen = day.select(*options.streams) if options.streams else day
    return chosen.replace(frames=_make_frames(day.frames, list(chosen)))


def _make_frames(robot: FrameTree, made: list[Stream]) -> FrameTree:
    """Return the robot's frames, and the body as Nav has it."""
    frames = robot.copy()
    for nav in (stream for stream in made if stream.name == NAV):
        frames.add_lazy("Navigation", "Body", lambda nav=nav: _read_poses(nav), source=NAV)
    return frames


def _read_poses(nav: Stream) -> tuple[Ints, Floats, Floats]:
    return nav.t_ns, nav.array("x", "y", "z"), nav.array("qx", "qy", "qz", "qw")


def _make_truth(argo: Argo, options: Options, shown: Floats | None, weather: Weather | None) -> Truth:
    tables: dict[str, Callable[[], pa.Table]] = {"objects": lambda: list_objects(argo)}
    if any(options.wants(laser) for laser in LASERS):
        tables |= {"hits": lambda: list_hits(argo), "hit_kinds": lambda: list_hit_kinds(argo)}
    if shown is not None:
        tables["boards"] = lambda: list_boards(argo.start_ns, shown)
    if weather is not None:
        tables["faults"] = lambda: weather.list_touched(options.wants)
    if not argo.stands:
        tables["slip"] = lambda: list_slip(argo)
    return Truth(
        motion=argo.motion.in_axes(Z_DOWN),
        tables=Tables(tables),
        maps={"dem": argo.scene.terrain.as_grid()},
        body="Body",
    )


@dataclass(frozen=True, eq=False)
class Tables(Mapping[str, pa.Table]):
    """Tables that are made when they are asked for."""

    made_by: Mapping[str, Callable[[], pa.Table]]

    def __getitem__(self, name: str) -> pa.Table:
        return self.made_by[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self.made_by)

    def __len__(self) -> int:
        return len(self.made_by)


def list_objects(argo: Argo) -> pa.Table:
    """Return what stands in the scene as the day begins: kind, centre (m, world), size (half lengths, m)."""
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
