"""Marulan, where the ACFR recorded its Sensor Data Integrity datasets: the Argo in clear air (document 004).

Conditions: `scene` static (Table 1), open, houses or dam; `light` day, low_sun, night or night_lights;
`human` none or walking; `reflectors` none or standing, in the static scene.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transect import robots
from transect.base.arrays import Floats, Ints
from transect.errors import UsageError, did_you_mean
from transect.formats.sdi import LASERS, NAV
from transect.geometry import rotations
from transect.recording import FrameTree, Recording, Robot, Stream, arrow

from ...day import Day, Options, Truth
from ...driving import Chassis, along, course, drive, heading, stop, truth
from ...motion import Motion
from ...raycast import Scene
from ...solids import Solids, walker
from .areas import dam, houses, open_area
from .argo import Argo, hit_kinds, hits, slip, streams
from .cameras import CLIP, LIGHTS, camera_streams
from .places import SENSOR_FRAME, Place, spot, static

CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "scene": ("static", "open", "houses", "dam"),
    "light": tuple(LIGHTS),
    "human": ("none", "walking"),
    "reflectors": ("none", "standing"),
}
"""What may be asked for; the first of each is taken unasked."""
START_NS = {
    "day": 1_224_476_280_000_000_000,
    "low_sun": 1_224_489_300_000_000_000,
    "night": 1_224_504_000_000_000_000,
    "night_lights": 1_224_504_000_000_000_000,
}
"""20 October 2008, when no dataset of the report was recorded: 04:18, 07:55 and 12:00 UTC."""
SPEED, CORNER = 1.5, 4.0
"""m/s and radius of turns in m; the report does not say."""
RATE_NS = 10_000_000
"""Between two samples of the true motion: 100 Hz."""
TYRE = 0.3
"""m: the soft, large tyres feel the ground blurred by so much. There is no other suspension (2.1)."""
AFTER = 0.1
"""Seconds of motion after the end of the day: the last scan takes a while."""


def day(options: Options) -> Day:
    """Return a day at Marulan."""
    asked = conditions(options.conditions)
    robot = robots.load("argo")
    place = _place(asked, options.seed)
    walking = walker(_on_ground(place, place.walk)) if asked["human"] == "walking" else []
    solids = Solids.of([*place.solids, *walking])
    start_ns = START_NS[asked["light"]]
    argo = Argo(
        robot=robot,
        scene=Scene(place.terrain, solids),
        solids=solids,
        motion=_motion(place, robot, start_ns, options),
        start_ns=start_ns,
        seconds=options.seconds,
        seed=options.seed,
        stands=place.route is None,
        still=place.route is None and not walking,
    )
    made = [*streams(argo), *camera_streams(argo, asked["light"], options.scale, place.car)]
    return Day(_recording(argo, made, asked, options), _truth(argo, options))


def conditions(given: Mapping[str, str]) -> dict[str, str]:
    """Return what was asked for, and the usual for the rest.

    Raises
    ------
    UsageError
        If a condition, or its value, is not known.
    """
    for name, value in given.items():
        if name not in CONDITIONS:
            raise UsageError(f"marulan has no condition {name!r}", hint=did_you_mean(name, tuple(CONDITIONS)))
        if value not in CONDITIONS[name]:
            raise UsageError(f"{name} cannot be {value!r}", hint=did_you_mean(value, CONDITIONS[name]))
    return {name: given.get(name, values[0]) for name, values in CONDITIONS.items()}


def _place(asked: Mapping[str, str], seed: int) -> Place:
    if asked["scene"] == "static":
        return static(seed, reflectors=asked["reflectors"] == "standing")
    areas: dict[str, Callable[[int], Place]] = {"open": open_area, "houses": houses, "dam": dam}
    return areas[asked["scene"]](seed)


def _on_ground(place: Place, corners: Floats) -> Floats:
    return np.column_stack([corners, place.terrain.smoothed(0.25).at(corners)])


# Where the vehicle is


def _frame_centre(robot: Robot) -> Floats:
    """Return the centre of the sensor frame in the body (z up): between its two central lasers (2.2.1)."""
    two = [robot.frames.lookup("Body", name)[:3, 3] for name in ("LaserHorizontal", "LaserVertical")]
    return np.mean(two, axis=0) * np.array([1.0, -1.0, -1.0])


def _height(robot: Robot) -> float:
    """Return the body's height over the ground in m: Table 1 has that of the sensor frame."""
    return SENSOR_FRAME[2] / 100 - float(_frame_centre(robot)[2])


def _motion(place: Place, robot: Robot, start_ns: int, options: Options) -> Motion:
    if place.route is None:
        return _standing(place, robot, start_ns, options.seconds + AFTER)
    return _driving(place, place.route, robot, start_ns, options)


def _standing(place: Place, robot: Robot, start_ns: int, seconds: float) -> Motion:
    """Return the vehicle of the static tests: facing south, its sensor frame where Table 1 has it."""
    facing = rotations.quaternion_from_euler("rpy", [0.0, 0.0, -np.pi / 2])
    xy = (spot(*SENSOR_FRAME) - rotations.rotate(facing, _frame_centre(robot)))[:2]
    ground = float(place.terrain.smoothed(0.5).at(xy))
    n = int(np.ceil(seconds * 100)) + 1
    never = np.broadcast_to(np.zeros(3), (n, 3))
    return Motion(
        t_ns=start_ns + RATE_NS * np.arange(n),
        position=np.broadcast_to(np.array([*xy, ground + _height(robot)]), (n, 3)),
        quaternion=np.broadcast_to(facing, (n, 4)),
        velocity=never,
        acceleration=never,
        angular_velocity=never,
    )


def _driving(place: Place, route: Floats, robot: Robot, start_ns: int, options: Options) -> Motion:
    """Return the vehicle on its rounds, after two seconds of standing."""
    half = float(robot.constants["drive"]["wheel_separation"]) / 2
    ahead = _frame_centre(robot)[0] + 0.91 - 0.61 * np.arange(4)  # Table 1: the front wheels are 91 cm ahead
    contacts = np.array([(x, side * half) for x in ahead for side in (-1, 1)])
    chassis = Chassis(contacts, _height(robot), suspension=0.3, shaking=0.001)
    length = float(np.linalg.norm(np.diff([*route, route[0]], axis=0), axis=1).sum())
    rounds = int(options.seconds * SPEED / (0.8 * length)) + 1
    way = np.vstack([*[route] * rounds, route[:2]])
    start = (*way[0], heading(way))
    legs = [stop(2.0), *along(way, CORNER, SPEED)]
    planned = course(legs, options.seconds + AFTER, start_ns, start)
    ground = place.terrain.smoothed(TYRE).at
    return truth(drive(planned, chassis, ground, seed=options.seed))


# What is handed over


def _recording(argo: Argo, made: list[Stream], asked: Mapping[str, str], options: Options) -> Recording:
    kept = [stream for stream in made if _is_wanted(stream.name, options)]
    if not kept:
        raise UsageError(
            f"no stream of marulan matches {' or '.join(options.streams)}",
            hint=did_you_mean(options.streams[0], [stream.name for stream in made]),
        )
    return Recording(
        name=f"marulan-{asked['scene']}-{asked['light']}",
        streams=tuple(kept),
        frames=_frames(argo.robot, kept),
        cameras=dict(argo.robot.cameras) if options.scale == 1.0 else {},
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


def _is_wanted(name: str, options: Options) -> bool:
    return not options.streams or any(fnmatch.fnmatchcase(name.lower(), p.lower()) for p in options.streams)


def _frames(robot: Robot, made: list[Stream]) -> FrameTree:
    """Return the robot's frames, and the body as Nav has it."""
    frames = robot.frames.copy()
    for nav in (stream for stream in made if stream.name == NAV):
        frames.add_lazy("Navigation", "Body", lambda nav=nav: _poses(nav), source=NAV)
    return frames


def _poses(nav: Stream) -> tuple[Ints, Floats, Floats]:
    return nav.t_ns, nav.array("x", "y", "z"), nav.array("qx", "qy", "qz", "qw")


def _truth(argo: Argo, options: Options) -> Truth:
    tables: dict[str, Callable[[], pa.Table]] = {"objects": lambda: objects(argo)}
    if any(_is_wanted(laser, options) for laser in LASERS):
        tables |= {"hits": lambda: hits(argo), "hit_kinds": lambda: hit_kinds(argo)}
    if not argo.stands:
        tables["slip"] = lambda: slip(argo)
    return Truth(
        motion=argo.motion, tables=Tables(tables), maps={"dem": argo.scene.terrain.as_grid()}, body="Body"
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


def objects(argo: Argo) -> pa.Table:
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
