"""What a fusion takes in, as events in the order of time and in the axes of the body.

The body's axes are x forward, y left, z up, whatever its frame's own are. Filter and smoother both work on
these events, so that mounts, lever arms, wheel models and geodesy are in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.errors import FrameError
from transect.geometry import geodesy, rotations, se3
from transect.types import Imu, NavFix, Odometry, Pose, WheelState

from ..odometry.wheel_odometer import MAX_GAP, ModelChoice, WheelReckoning, differential_model
from .context import FusionContext
from .gnss_sigma import HEIGHT_FACTOR, Deviation, deviation_of
from .height_noise import Heights
from .lever_arm import Swing
from .position_noise import PlaceNoise

BODIES = ("Platform", "base_link", "base_footprint", "Body")
"""Names of a body's frame, looked for in this order."""
UNNAMED = "body"
"""What a body is called that nobody names."""
Z_DOWN = np.diag([1.0, -1.0, -1.0, 1.0])
"""Takes points of x forward, y right, z down to x forward, y left, z up."""
TURNED_BODIES = {"Body": Z_DOWN}
"""T_flu_body of bodies whose own frame has other axes (the Argo's: document 004)."""
ANTENNAS = ("gps", "antenna", "gnss", "Origin")
"""Frames where an antenna may be; Interact's receiver is at Origin."""
WHITE_FIXES = ("rtk fixed",)
"""Fixes whose errors are nearly independent from one to the next."""
POSITION_STD = 0.02
"""m: horizontal sigma of RTK positions."""
FLAT_STD, FLAT_SECONDS = 10.0, 60.0
"""m and s: where fixes tell no height, it is 0 with this sigma, as if measured once in this time."""


@dataclass(frozen=True, eq=False)
class Step:
    """What a dead reckoning says that the body did between two times.

    Attributes
    ----------
    sensor : str
        wheels, odometry or motion.
    since_ns, t_ns : int
    transform : (4, 4) array
        T_then_now of the body.
    planar : bool
        Whether only x, y and heading were measured.
    covariance : (6, 6) array or None
        Of translation (m) and rotation vector (rad) in the axes of the later body, where the sensor told it.
    trust : float
        By which its sigmas are to be divided: see `Context.trust`.
    """

    sensor: str
    since_ns: int
    t_ns: int
    transform: Floats
    planar: bool
    covariance: Floats | None = None
    trust: float = 1.0


@dataclass(frozen=True, eq=False)
class Inertial:
    """Specific force (3,) in m/s2 and angular velocity (3,) in rad/s, in the axes of the body."""

    t_ns: int
    force: Floats
    rate: Floats
    trust: float = 1.0


@dataclass(frozen=True, eq=False)
class Turning:
    """Rate about the vertical in rad/s to the left, by an IMU whose mount only gravity tells."""

    t_ns: int
    rate: float


@dataclass(frozen=True, eq=False)
class Place:
    """A measured position.

    Attributes
    ----------
    sensor : str
        fix or position.
    position, std : (3,) array
        East, north, up from the first fix (or in the frame of the positions) and one sigma of each, m.
    lever : (3,) array
        Where that point is in the body, m.
    white : bool
        Whether errors of successive places are independent.
    attitude : (4,) array or None
        Of the body in that frame, where the receiver told it.
    has_height : bool
        Whether its height was measured; else that is 0, with a sigma that hardly holds it.
    height_doubt : float
        m: by how much all heights before are in doubt since this one; 0 if they are not.
    trust : float
        By which its sigmas were divided.
    kind : str
        Of its noise, if that is estimated; see `PlaceNoise`.
    factor : float
        By which it is noisier than others of that kind.
    lasting : (3,) array or None
        One sigma, m, of an error beside that, which stays alike for `CORRELATION_S`, where it was found.
    """

    sensor: str
    t_ns: int
    position: Floats
    std: Floats
    lever: Floats
    white: bool
    attitude: Floats | None = None
    has_height: bool = True
    height_doubt: float = 0.0
    trust: float = 1.0
    kind: str = ""
    factor: float = 1.0
    lasting: Floats | None = None


Event = Step | Inertial | Turning | Place

Batches = tuple[
    Sequence[WheelState] | None,
    Sequence[Odometry] | None,
    Sequence[Pose] | None,
    Sequence[Floats] | None,
    Sequence[Imu] | None,
    Sequence[NavFix] | None,
    Sequence[Pose] | None,
]
"""Samples of the ports of `PoseFusion`, in their order; None of a port that nothing feeds."""

UP_SECONDS = 5.0
"""Over which specific force is averaged to tell up in an IMU whose mount is not known."""
NO_TRACK = "not used (their track is not known: --set fusion.track=METRES)"
UNMOUNTED = "not used (no frame tells how it is mounted)"
STAND_INS = {
    "imu": ("wheels", "odometry", "motion"), "wheels": ("imu",), "odometry": ("imu",),
    "motion": ("wheels", "odometry", "imu"), "fix": ("position",), "position": ("fix",),
}  # fmt: skip
"""Inputs that can stand in for one that is BAD. Wheels and an odometry are the same encoders."""
S = TypeVar("S")


class FusionInputs:
    """Makes events of a node's batches.

    Parameters
    ----------
    body : str
        Frame of the body; "" for the first of `BODIES` that the recording has.
    antenna : str
        Frame of what `fix` measures; "" for the fix's own, or the first of `ANTENNAS`.
    track : float
        Metres between the wheels of a differential drive; 0 where there is none.
    position_std : float
        Sigma of `position`, m.
    fix_period : float
        Seconds; of places that come faster (by an inertial receiver, whose errors last) only some are used.
    fix_std : float
        Horizontal sigma of fixes that state none, m; 0 for what is usual for their type and HDOP.
    wheel_model : callable
        Chooses how wheels move the body.

    Attributes
    ----------
    body : str
        As it was found.
    origin : (3,) array or None
        Geodetic, of the map: the first fix.
    frame : str
        Of the places: `map`, or that of the positions.
    alone : bool
        Whether an IMU is all that tells how the body moves.
    assumes_mount : bool
        Whether the axes of that IMU were taken for those of the body.
    heights : Heights
        How far those of the places can be believed.
    inertial : bool
        Whether there is an IMU whose mount is known.
    turns : bool
        Whether an IMU whose mount is not known is used for the heading; else it is not used.
    ignores_imu : bool
        Whether it was not used for that reason.
    lacks_track : bool
        Whether wheels came that tell a motion only by the distance between left and right ones.
    noise : PlaceNoise
        Of places, estimated where it is not stated, or stated by a constant.
    said : dict
        What was assumed, a sentence each, in the order in which it was said.
    said_of_noise : dict
        The same of the noise of a sensor, or that it is not used; by sentence, its input.
    declared : list of float
        Horizontal sigmas of fixes that state their own, m.
    undeclared : dict
        Sensors beside those of positions that came without a covariance.
    """

    def __init__(
        self,
        body: str = "",
        antenna: str = "",
        track: float = 0.0,
        position_std: float = POSITION_STD,
        fix_period: float = 0.2,
        fix_std: float = 0.0,
        *,
        estimates: bool = False,
        turns: bool = True,
        wheel_model: ModelChoice = differential_model,
    ) -> None:
        self.wheel_model = wheel_model
        self.turns, self.ignores_imu, self.lacks_track = turns, False, False
        self.noise, self.estimates = PlaceNoise(), estimates
        self.fix_std = fix_std
        self.body, self.antenna, self.track, self.position_std = body, antenna, track, position_std
        self.fix_period_ns = round(fix_period * NS)
        self.last_place_ns: dict[str, int] = {}
        self.origin: Floats | None = None
        self.frame = "map"
        self.wheels, self.wheeled, self.reckoned = WheelReckoning(), False, False
        self.paths = {name: PathHeading() for name in ("odometry", "motion")}
        self.before: dict[str, tuple[int, Floats]] = {}
        self.twist: tuple[int, Floats] | None = None
        self.poses_unfilled = self.has_heights = False
        self.alone = self.assumes_mount = self.inertial = False
        self.mounts: dict[str, Floats | None] = {}
        self.up: tuple[int, Floats] | None = None
        self.swing, self.heights = Swing(), Heights()
        self.said: dict[str, None] = {}
        self.said_of_noise: dict[str, str] = {}
        self.declared: list[float] = []
        self.undeclared: dict[str, None] = {}
        self.said_of_heights = ""

    def gather(
        self,
        ctx: FusionContext,
        wheels: Sequence[WheelState] | None,
        odometry: Sequence[Odometry] | None,
        motion: Sequence[Pose] | None,
        motion_covariance: Sequence[Floats] | None,
        imu: Sequence[Imu] | None,
        fix: Sequence[NavFix] | None,
        position: Sequence[Pose] | None,
    ) -> list[Event]:
        """Return the events of one tick in the order of time; of equal times inertial ones come first."""
        wheels = self._usable_wheels(ctx, wheels)
        self.wheeled = self.wheeled or bool(wheels)
        if self.wheeled:
            odometry = None  # of the same encoders
        self.reckoned = self.reckoned or bool(wheels) or bool(odometry)
        reckonings = {"wheels": wheels, "odometry": odometry, "motion": motion}
        self.alone = not any(
            self.wheeled or (given is not None and ctx.is_fed(name)) for name, given in reckonings.items()
        )
        self._find_body(ctx, odometry or motion or ())
        if self.alone and imu and not self.body:
            self.body = imu[0].frame or UNNAMED
        covariances = _pair(motion, motion_covariance)
        moved = list(zip(motion or (), covariances, strict=True))
        events = [
            *self._weigh(ctx, "imu", imu, self._inertial),
            *self._weigh(ctx, "wheels", wheels, self._of_wheels),
            *self._weigh(ctx, "odometry", odometry, self._of_odometry),
            *self._weigh(ctx, "motion", moved, self._of_motion),
        ]
        for event in events:
            if isinstance(event, Inertial) or (isinstance(event, Step) and event.covariance is None):
                self.undeclared[event.sensor if isinstance(event, Step) else "imu"] = None
            if isinstance(event, Step):
                self.noise.move(event.sensor, event.since_ns, event.t_ns, event.transform)
                self.heights.move(event.sensor, float(np.linalg.norm(event.transform[:3, 3])))
        events += self._weigh(ctx, "fix", fix, self._of_fix)
        events += self._weigh(ctx, "position", position, self._of_position)
        events.sort(key=lambda each: each.t_ns)
        if self.estimates:
            for place in (each for each in events if isinstance(each, Place)):
                self.noise.add(place)
            self.noise.update()
            events = [self.restate(each) if isinstance(each, Place) else each for each in events]
        return events

    def restate(self, place: Place) -> Place:
        """Return a place with its sigmas as they are known now, if they are estimated."""
        found = self.noise.level_of(place)
        if found is None:
            return place
        std, lasting = found
        std[2] = max(std[2], self.heights.std) if place.has_height else place.std[2]
        return replace(place, std=std / place.trust, lasting=lasting, white=True)

    @property
    def notes(self) -> list[str]:
        """What was assumed but for the noise of sensors: a sentence each."""
        return [*self.said]

    def describe_noise(self) -> list[str]:
        """Return which noise of each sensor was used, a sentence each: declared, found, or assumed."""
        found = self.noise.describe()
        estimated = {each.partition(":")[0] for each in found}
        sentences = [text for text, port in self.said_of_noise.items() if port not in estimated]
        if self.declared and "fix" not in estimated:
            sigma = float(np.median(self.declared))
            sentences.append(f"fix: standard deviation {sigma:.2g} m horizontally (median), as declared")
        if self.undeclared:
            sentences.append(f"{', '.join(self.undeclared)}: not declared in the data; defaults are assumed")
        return [*found, *sentences]

    def _weigh(
        self,
        ctx: FusionContext,
        port: str,
        samples: Sequence[S] | None,
        make: Callable[[FusionContext, S], Event | None],
    ) -> Iterator[Event]:
        """Yield the events of samples, as far as their sensor is trusted, without those that are left out.

        A sample that is left out is looked at all the same: the step after it begins there. An IMU stands in
        for wheels only if its mount is known.
        """
        for event in (make(ctx, each) for each in samples or ()):
            if event is None:
                continue
            others = () if STAND_INS[port] == ("imu",) and not self.inertial else STAND_INS[port]
            trust = ctx.trust(port, event.t_ns, others)
            if trust:
                yield _divide_by_trust(event, trust)

    # Where things are mounted

    def _find_body(self, ctx: FusionContext, tracks: Sequence[Odometry | Pose]) -> None:
        if self.body:
            return
        known = [name for name in BODIES if name in ctx.frames]
        child = next((each.child for each in tracks if each.child), "")
        if child or known:
            self.body = child if child and child not in ctx.frames else (known or [child])[0]
        elif tracks:
            self.body = UNNAMED
            self._say(ctx, "no frame names the body: the axes of the odometry are taken for the body's")

    def _mount(self, ctx: FusionContext, frame: str) -> Floats | None:
        """Return T_body_sensor (4, 4) in the body's axes, None if no frame tells it."""
        if frame not in self.mounts:
            try:
                T_body_sensor = np.eye(4) if frame == self.body else ctx.frames.lookup(self.body, frame)
            except FrameError:
                self.mounts[frame] = None
            else:
                self.mounts[frame] = TURNED_BODIES.get(self.body, np.eye(4)) @ T_body_sensor
        return self.mounts[frame]

    def _lever(self, ctx: FusionContext, frames: Sequence[str]) -> Floats:
        """Return where an antenna is in the body (3,); 0 where no frame tells it, which is said once."""
        for frame in frames:
            if frame and (mount := self._mount(ctx, frame)) is not None:
                return mount[:3, 3]
        named = next((frame for frame in frames if frame), "the antenna")
        self._say(ctx, f"where {named} is in {self.body or 'the body'} is not known: taken at its origin")
        return np.zeros(3)

    def _say(self, ctx: FusionContext, text: str) -> None:
        if text not in self.said:
            self.said[text] = None
            ctx.log(text)

    def _say_of_noise(self, ctx: FusionContext, port: str, text: str) -> None:
        if text not in self.said_of_noise:
            self.said_of_noise[text] = port
            ctx.log(text)

    # Inertial

    def _inertial(self, ctx: FusionContext, imu: Imu) -> Inertial | Turning | None:
        if not (np.isfinite(imu.acceleration).all() and np.isfinite(imu.angular_velocity).all()):
            return ctx.skip("imu: not measured")
        if not self.body:
            return ctx.skip("imu: before it is known which frame is the body's")
        mount, named = self._mount(ctx, imu.frame), imu.frame or "the IMU"
        if self.alone and (mount is None or self.body == imu.frame):
            self._say(ctx, f"no frame tells how {named} is mounted: its axes are taken for those of the body")
            mount = self.mounts[imu.frame] = np.eye(4)
            self.assumes_mount = True
        if mount is None:
            if not self.turns:
                why = f"imu: not used, as no frame tells how {named} is mounted in {self.body}"
                self._say_of_noise(ctx, "imu", why)
                self.heights.lean(imu.t_ns, imu.acceleration, mounted=False)
                self.ignores_imu = True
                return ctx.leave_out("imu", UNMOUNTED)
            why = f"imu: used for the heading only, as no frame tells how {named} is mounted in {self.body}"
            self._say_of_noise(ctx, "imu", why)
            self.heights.lean(imu.t_ns, imu.acceleration, mounted=False)
            return Turning(imu.t_ns, float(imu.angular_velocity @ self._upwards(imu)))
        rate = mount[:3, :3] @ imu.angular_velocity
        self.inertial = True
        force = mount[:3, :3] @ imu.acceleration - self.swing.felt(imu.t_ns, rate, mount[:3, 3])
        self.heights.lean(imu.t_ns, force, mounted=True)
        return Inertial(imu.t_ns, force, rate)

    def _upwards(self, imu: Imu) -> Floats:
        """Return the unit vector (3,) that is up in an IMU, by its mean specific force."""
        before = self.up
        weight = 1.0 if before is None else min((imu.t_ns - before[0]) / NS / UP_SECONDS, 1.0)
        mean = weight * imu.acceleration + (0.0 if before is None else (1 - weight) * before[1])
        self.up = imu.t_ns, mean
        return mean / np.linalg.norm(mean)

    # Dead reckoning

    def _usable_wheels(
        self, ctx: FusionContext, wheels: Sequence[WheelState] | None
    ) -> Sequence[WheelState] | None:
        """Return the wheels, None if they tell a turn only by a track that is not known."""
        sides = [each for each in wheels or () if each.velocity is not None and not len(each.velocity) % 2]
        self.lacks_track = self.lacks_track or (
            bool(sides) and self.wheel_model(sides[0], self.track) is None
        )
        if not self.lacks_track:
            return wheels
        self._say(ctx, "how far left and right wheels are apart is not known: they are not used")
        for _ in wheels or ():
            ctx.leave_out("wheels", NO_TRACK)
        return None

    def _of_wheels(self, ctx: FusionContext, wheels: WheelState) -> Step | None:
        model = self.wheel_model(wheels, self.track)
        if model is None:
            return ctx.leave_out("wheels", "not used (no model for what they measure)")
        step = self.wheels.step(wheels.t_ns, wheels, model, MAX_GAP)
        return None if step is None else _planar_step("wheels", step[0], wheels.t_ns, step[1])

    def _of_odometry(self, ctx: FusionContext, odometry: Odometry) -> Step | None:
        rates, before = self._planar_rates(ctx, odometry), self.twist
        if rates is not None:
            self.twist = odometry.t_ns, rates
        place = odometry.position
        if place is not None and np.isfinite(place[:2]).all() and not self._is_unfilled(odometry, rates):
            return self._step_to("odometry", odometry.t_ns, np.nan_to_num(place), odometry.orientation, None)
        if rates is None:
            return ctx.skip("odometry: neither a position nor speed and turn rate")
        seconds = 0.0 if before is None else (odometry.t_ns - before[0]) / NS
        if before is None or not 0 < seconds <= MAX_GAP:
            return None
        return _planar_step("odometry", before[0], odometry.t_ns, (rates + before[1]) / 2 * seconds)

    def _planar_rates(self, ctx: FusionContext, odometry: Odometry) -> Floats | None:
        """Return speeds forward and to the left (m/s) and the turn rate (rad/s); None if not told."""
        if odometry.velocity is None or odometry.angular_velocity is None:
            return None
        forward, aside, turn = *odometry.velocity[:2], odometry.angular_velocity[2]
        if not np.isfinite([forward, turn]).all():
            return None
        if not np.isfinite(aside):
            self._say(ctx, "odometry tells no sideways speed: it is taken for 0")
            aside = 0.0
        return np.array([forward, aside, turn])

    def _is_unfilled(self, odometry: Odometry, rates: Floats | None) -> bool:
        """Tell whether nobody filled the pose in: it stays 0 while the twist says that the body moves."""
        vectors = odometry.position, None if odometry.orientation is None else odometry.orientation[:3]
        at_origin = not any(np.nan_to_num(each).any() for each in vectors if each is not None)
        moves = rates is not None and bool(rates.any())
        self.poses_unfilled = at_origin and (moves or self.poses_unfilled)
        return self.poses_unfilled

    def _of_motion(self, ctx: FusionContext, moved: tuple[Pose, Floats | None]) -> Step | None:
        pose, covariance = moved
        if not np.isfinite(pose.position).all():
            return ctx.skip("motion: no position")
        step = self._step_to("motion", pose.t_ns, pose.position, pose.orientation, covariance)
        mount = self._mount(ctx, pose.child) if pose.child else None
        if step is None or mount is None:
            return step
        inside = mount @ step.transform @ se3.invert(mount)
        spread = None if covariance is None else se3.transform_covariance(mount, covariance)
        return Step("motion", step.since_ns, step.t_ns, inside, step.planar, spread)

    def _step_to(
        self, sensor: str, t_ns: int, place: Floats, turned: Floats | None, covariance: Floats | None
    ) -> Step | None:
        """Return the step from the pose before; a track of positions only is followed along its way."""
        planar = turned is None or not np.isfinite(turned).all() or not turned.any()
        if turned is None or planar:
            turned = rotations.quaternion_from_euler("Z", [self.paths[sensor].follow(place)])
        now = se3.from_quaternion(turned, place)
        before = self.before.get(sensor)
        self.before[sensor] = t_ns, now
        if before is None or t_ns <= before[0]:
            return None
        moved = se3.invert(before[1]) @ now
        return Step(sensor, before[0], t_ns, moved, planar or sensor == "odometry", covariance)

    # Places

    def _of_fix(self, ctx: FusionContext, fix: NavFix) -> Place | None:
        if self._too_soon("fix", fix.t_ns):
            return None
        place = np.array([fix.latitude, fix.longitude, fix.altitude])
        if fix.fix == "none" or not np.isfinite(place[:2]).all():
            return ctx.skip("fix: none")
        deviation = deviation_of(fix, self.fix_std)
        if deviation.note:
            until = " until they show it" if deviation.kind and self.estimates else ""
            self._say_of_noise(ctx, "fix", deviation.note.replace("are assumed", f"are assumed{until}"))
        else:
            self.declared.append(float(deviation.std[:2].max()))
        std, has_height, doubt = self._height(ctx, "fix", fix.t_ns, place, deviation.std)
        place = self._over_origin(place)
        assert self.origin is not None
        lever = self._lever(ctx, (self.antenna, fix.frame, *ANTENNAS))
        white = fix.fix in WHITE_FIXES
        kind = self._kind("fix", deviation, white)
        attitude = self._attitude(ctx, fix.attitude)
        local = geodesy.local_from_geodetic(place, self.origin)
        local[2] = local[2] if has_height else 0.0
        return Place(
            "fix", fix.t_ns, local, std, lever, white, attitude, has_height, doubt,
            kind=kind, factor=deviation.factor,
        )  # fmt: skip

    def _kind(self, sensor: str, deviation: Deviation, white: bool) -> str:
        """Return of what kind the noise of a place is; "" if it is taken as it is stated."""
        if not self.estimates:
            return ""
        h, v = float(deviation.std[:2].max()) / deviation.factor, float(deviation.std[2]) / deviation.factor
        if deviation.kind:
            return self.noise.kind(sensor, deviation.kind, (h, v), white=white, stated=False)
        return "" if deviation.note else self.noise.kind(sensor, "", (h, v), white=white, stated=True)

    def _over_origin(self, place: Floats) -> Floats:
        """Return a geodetic place (3,) with a height; the first place and the first height are the origin."""
        if self.origin is None:
            self.origin = np.nan_to_num(place)
        if np.isfinite(place[2]) and not self.has_heights:
            self.origin[2], self.has_heights = place[2], True
        return np.where(np.isfinite(place), place, self.origin)

    def _height(
        self, ctx: FusionContext, sensor: str, t_ns: int, place: Floats, std: Floats
    ) -> tuple[Floats, bool, float]:
        """Return sigmas (3,) of a place, whether its height is known, and the doubt of those before (m).

        Takes note of its time.
        """
        last = self.last_place_ns.get(sensor, t_ns - self.fix_period_ns)
        self.last_place_ns[sensor] = t_ns
        if np.isfinite(place[2]):
            found = self.heights.judge(sensor, float(place[2]), float(std[2]))
            if found.note:
                self.said.pop(self.said_of_heights, None)
                self._say(ctx, found.note)
                self.said_of_heights = found.note
            return np.array([*std[:2], found.std]), True, found.doubt
        self._say(ctx, f"{sensor} tells no height: it is taken for 0, within {FLAT_STD:g} m")
        period = min(max((t_ns - last) / NS, 0.01), FLAT_SECONDS)
        return np.array([*std[:2], FLAT_STD * np.sqrt(FLAT_SECONDS / period)]), False, 0.0

    def _too_soon(self, sensor: str, t_ns: int) -> bool:
        """Tell whether a place follows the last used one in less than the period (and a little jitter)."""
        last = self.last_place_ns.get(sensor)
        return last is not None and t_ns - last < 0.95 * self.fix_period_ns

    def _attitude(self, ctx: FusionContext, angles: Floats | None) -> Floats | None:
        """Return the body's attitude (4,) in the map by that of the receiver, which is x forward, z down."""
        if angles is None or not np.isfinite(angles).all():
            return None
        enu_ned = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0])
        receiver = rotations.multiply(enu_ned, rotations.quaternion_from_euler("rpy", angles))
        mounts = [mount for name in ANTENNAS if (mount := self._mount(ctx, name)) is not None]
        turn = next((mount for mount in mounts if mount[2, 2] < 0), Z_DOWN)[:3, :3]
        return rotations.multiply(receiver, rotations.conjugate(rotations.quaternion_from_matrix(turn)))

    def _of_position(self, ctx: FusionContext, pose: Pose) -> Place | None:
        if not np.isfinite(pose.position[:2]).all():
            return ctx.skip("position: not measured")
        if self._too_soon("position", pose.t_ns):
            return None
        self.frame = pose.frame or self.frame
        lever = self._lever(ctx, (pose.child or self.antenna, *ANTENNAS[:1]))
        usual = (self.position_std or POSITION_STD) * np.array([1.0, 1.0, HEIGHT_FACTOR])
        kind = "" if self.position_std else self._kind("position", Deviation(usual), white=True)
        source = "by position_std" if self.position_std else "assumed; position_std sets another value"
        self._say_of_noise(ctx, "position", f"position: standard deviation {usual[0]:g} m ({source})")
        std, has_height, doubt = self._height(ctx, "position", pose.t_ns, pose.position, usual)
        place = np.nan_to_num(pose.position)
        return Place("position", pose.t_ns, place, std, lever, True, None, has_height, doubt, kind=kind)


def _divide_by_trust(event: Event, trust: float) -> Event:
    """Return an event whose sigmas are to be divided by a trust; those of a place are."""
    if trust == 1.0 or isinstance(event, Turning):
        return event
    if isinstance(event, Place):
        return replace(event, std=event.std / trust, trust=trust)
    return replace(event, trust=trust)


def _planar_step(sensor: str, since_ns: int, t_ns: int, motion: Floats) -> Step:
    """Return a step along an arc of a circle, of a motion (3,)."""
    twist = np.array([motion[0], motion[1], 0.0, 0.0, 0.0, motion[2]])
    return Step(sensor, since_ns, t_ns, se3.exp(twist), planar=True)


def _pair(motion: Sequence[Pose] | None, covariances: Sequence[Floats] | None) -> Sequence[Floats | None]:
    """Return one covariance, or None, with each motion: they come from one node, at equal times."""
    poses, given = motion or (), covariances or ()
    return given if len(given) == len(poses) else [None] * len(poses)


LEAST_STEP = 1e-6
"""Metres; shorter steps have no direction."""


class PathHeading:
    """Follows a dead-reckoned path, whose body moves along its own heading, forwards or backwards.

    Causal: the path's direction gives the heading up to half a turn. Between two steps a body cannot turn by
    90 degrees, so where the direction does, it has changed gear. While it stands the heading stays.
    """

    def __init__(self) -> None:
        self.place: Floats | None = None
        self.heading = 0.0

    def follow(self, place: Floats) -> float:
        """Return the heading in rad at a new place (2,) or (3,) of the path."""
        if self.place is None:
            self.place = np.array(place[:2])
        step = place[:2] - self.place
        if np.linalg.norm(step) > LEAST_STEP:
            self.place = np.array(place[:2])
            self._turn(float(np.arctan2(step[1], step[0])))
        return self.heading

    def _turn(self, direction: float) -> None:
        turn = direction - self.heading
        if np.cos(turn) < 0:
            turn += np.pi
        self.heading += (turn + np.pi) % (2 * np.pi) - np.pi
