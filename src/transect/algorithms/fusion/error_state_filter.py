"""The filter at work: events in the order of time, each gated, weighted and applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from transect.base.arrays import Floats
from transect.base.clocks import NS
from transect.geometry import align, se3
from transect.geometry.robust import inflate
from transect.types import Imu, NavFix, Odometry, Pose, Record, WheelState

from . import error_state as ekf
from . import wheel_updates as wheels
from .context import FusionContext
from .gnss_noise import CORRELATION_S
from .initialisation import LEAST_WAY, Beginning, Priors, begin, begin_alone, first_state, recent
from .innovation_gate import FALSE_ALARMS, Sensor, limit
from .measurements import Event, FusionInputs, Inertial, Place, Step, Turning
from .quality import Tally, describe_unaligned
from .wheel_drift import Foresight, scale_noise

SENSORS = ("wheels", "odometry", "motion", "fix", "position")
"""That have innovations."""
WHEELS, MOTION = 0, 1
"""Slots of the state's clones."""
MOTION_STD = np.array([0.02, 0.02, 0.02, 2e-3, 2e-3, 2e-3])
"""m and rad: white noise of a visual or lidar odometry's poses, where it does not tell its own."""
STEP_LEAST, PLACE_LEAST = 0.05, 0.1
"""Bounds of the factors on variances: those of dead reckoning are guesses, those of places were told."""
WHITE_PART = 0.5
"""Of a fix's sigma is new in every fix, where errors last; the filter finds out how much it is."""
SOON = 10.0
"""Places within which their noise is first learnt; then it is followed at the rate `adapt`."""
COAST = 2.0, 0.5
"""m/s2 and rad/s that a body may have while an IMU is silent that is all that tells its motion."""
TRIED_NS = NS // 2
"""Between two looks for a first heading by accelerations."""
LEAST_SECONDS = 0.1
"""Over a shorter time two places do not tell a velocity."""
ANY_HEADING = np.pi**2 / 3
"""Variance of a heading that may be any, rad2."""
DEFAULT_NOISE, DEFAULT_PRIORS = ekf.ProcessNoise(), Priors()


class ErrorStateFilter:
    """An error-state Kalman filter of a body on the ground; `process` takes samples as they come.

    Parameters
    ----------
    gated : bool
        Whether what is outside of the gate is refused, or counts for less; else everything is believed.

    Attributes
    ----------
    state : State or None
        None until it has begun.
    frame : str
        Of its poses.
    sensors : dict of str to Sensor
    waiting_for : str
        Why it has not begun.
    unseen : float
        Metres since the last place.
    placed_ns : list of int
        Times of the places that were used.
    lasting : (3,) array
        Variance of an error that places have in common and that the state does not follow, m2.
    began : Beginning or None
        How it began.
    watch : callable or None
        Is shown the state after each event.
    """

    def __init__(
        self,
        inputs: FusionInputs,
        noise: ekf.ProcessNoise = DEFAULT_NOISE,
        priors: Priors = DEFAULT_PRIORS,
        *,
        wait: float = 3.0,
        adapt: float = 0.1,
        patience: int = 3,
        gated: bool = True,
    ) -> None:
        self.inputs, self.noise, self.priors = inputs, noise, priors
        self.wait_ns = round(wait * NS)
        self.adapt, self.patience, self.gated = adapt, patience, gated
        self.sensors: dict[str, Sensor] = {}
        self.gyro = wheels.Gyro()
        self.pace, self.shaking = wheels.Pace(), wheels.Shaking()
        self.foresight = Foresight(noise, learns=adapt > 0)
        self.set_offs = wheels.SetOffs(noise.unsteady)
        self.unseen = 0.0
        self.placed_ns: list[int] = []
        self.lasting = np.zeros(3)
        self.state: ekf.State | None = None
        self.frame, self.waiting_for = "odom", ""
        self.early: list[Event] = []
        self.inertial: list[Inertial] = []
        self.densities = np.zeros(2)
        self.pending: list[Place] = []
        self.anchor: Floats | None = None
        self.unanchored: list[tuple[Floats, Floats]] = []
        self.last_fix: tuple[int, Floats] | None = None
        self.twist = np.zeros(6)
        self.followed: tuple[int, Floats] | None = None
        self.began: Beginning | None = None
        self.tried_ns, self.doubts_course = -(2**62), False
        self.watch: Callable[[ekf.State], None] | None = None
        self.before: dict[str, Sensor] = {}

    def process(
        self,
        ctx: FusionContext,
        t_ns: int,
        *,
        wheels: Sequence[WheelState] | None = None,
        odometry: Sequence[Odometry] | None = None,
        motion: Sequence[Pose] | None = None,
        motion_covariance: Sequence[Floats] | None = None,
        imu: Sequence[Imu] | None = None,
        fix: Sequence[NavFix] | None = None,
        position: Sequence[Pose] | None = None,
    ) -> ekf.State | None:
        """Apply the samples since the last call; return the state at a time, None before the first one.

        Parameters
        ----------
        ctx : FusionContext
        t_ns : int
            Not before the samples.
        wheels, odometry, motion, motion_covariance, imu, fix, position : sequences of samples
            As of the node `PoseFusion`; None where there is no such sensor.
        """
        given = wheels, odometry, motion, motion_covariance, imu, fix, position
        return self.at(t_ns) if self.take(ctx, self.inputs.gather(ctx, *given)) else None

    # Beginning

    def take(self, ctx: FusionContext, events: Sequence[Event]) -> bool:
        """Take the events of a tick; tell whether there is a pose."""
        if self.state is None:
            self.early.extend(events)
            if not self._begin():
                return False
            assert self.state is not None
            since = self.state.t_ns
            events, self.early = [each for each in self.early if each.t_ns >= since], []
        elif self.doubts_course:
            events = self._look_again(events)
        for event in events:
            if event.t_ns < self.state.t_ns and not isinstance(event, Turning):
                ctx.skip(f"{type(event).__name__.lower()}: older than the state")
            else:
                self._apply(self.state, event)
                if self.watch is not None:
                    self.watch(self.state)
        return True

    def _begin(self) -> bool:
        if not self.early:
            self.waiting_for = "no samples yet"
            return False
        self.early = [self.inputs.restate(each) if isinstance(each, Place) else each for each in self.early]
        if self.inputs.alone:
            return self._begin_alone()
        by_places = any(isinstance(each, Place) for each in self.early)
        if not by_places and self.early[-1].t_ns - self.early[0].t_ns < self.wait_ns:
            self.waiting_for = "waiting for a first place"
            return False
        begun = begin(self.early, self.priors, by_places=by_places)
        if begun is None:
            self.waiting_for = "heading not known yet"
            return False
        self._begin_at(begun, by_places=by_places)
        return True

    def _begin_alone(self) -> bool:
        """Begin by an IMU and places, which are all that there is."""
        self.waiting_for = "waiting for accelerations or a way that tell the heading"
        if self.early[-1].t_ns - self.tried_ns < TRIED_NS:
            return False
        self.early, self.tried_ns = recent(self.early), self.early[-1].t_ns
        known = not self.inputs.assumes_mount
        begun = begin_alone(self.early, self.priors, self.noise.gravity, knows_forward=known)
        if begun is None:
            return False
        self._begin_at(begun, by_places=True)
        return True

    def _look_again(self, events: Sequence[Event]) -> Sequence[Event]:
        """Begin again once accelerations tell the heading, which was the way's; return what to take then."""
        self.early.extend(events)
        if not self.early or self.early[-1].t_ns - self.tried_ns < TRIED_NS:
            return events
        self.early, self.tried_ns = recent(self.early), self.early[-1].t_ns
        known = not self.inputs.assumes_mount
        begun = begin_alone(self.early, self.priors, self.noise.gravity, knows_forward=known)
        if begun is None or begun.aligned is None or begun.aligned.by_course:
            return events
        self._begin_at(begun, by_places=True)
        assert self.state is not None
        self.inertial, since = [], self.state.t_ns
        events, self.early = [each for each in self.early if each.t_ns >= since], []
        return events

    def _begin_at(self, begun: Beginning, *, by_places: bool) -> None:
        self.began = begun
        self.frame = self.inputs.frame if by_places else "odom"
        self.anchor = np.eye(4) if by_places else None
        self.state = first_state(begun, self.early, self.priors)
        self.doubts_course = begun.aligned is not None and begun.aligned.by_course

    # Events

    def _apply(self, x: ekf.State, event: Event) -> None:
        if isinstance(event, Inertial):
            self._take_inertial(x, event)
        elif isinstance(event, Turning):
            self.gyro.take(event)
        elif isinstance(event, Step):
            self._take_step(x, event)
        elif event.t_ns == x.t_ns or self._alive(event.t_ns) or self.inputs.alone:
            self._advance(x, event.t_ns) if self._alive(event.t_ns) else self._coast(x, event.t_ns)
            self._take_place(x, event)
        else:
            self.pending.append(event)

    def _alive(self, t_ns: int) -> bool:
        return bool(self.inertial) and t_ns - self.inertial[-1].t_ns <= wheels.SILENT_NS

    def _take_inertial(self, x: ekf.State, event: Inertial) -> None:
        if self._alive(event.t_ns):
            last = self.inertial[-1]
            force, rate = (last.force + event.force) / 2, (last.rate + event.rate) / 2
            mean = Inertial(event.t_ns, force, rate, event.trust)
            self._advance(x, event.t_ns, mean)
        else:
            if self.inputs.alone:
                self._coast(x, event.t_ns)
            x.t_ns = max(x.t_ns, event.t_ns)
            x.clones[:] = [None, None]
        self.inertial = [*self.inertial[-2:], event]
        self._follow_densities()

    def _follow_densities(self) -> None:
        """Follow the white noise of the IMU: what its second differences have, vibration included."""
        if len(self.inertial) < 3:
            return
        a, b, c = self.inertial
        seconds = (c.t_ns - a.t_ns) / 2 / NS
        found = np.array(
            [
                np.mean((u - 2 * v + w) ** 2)
                for u, v, w in ((a.force, b.force, c.force), (a.rate, b.rate, c.rate))
            ]
        )
        found *= seconds / wheels.DIFFERENCES
        weight = 1.0 if not self.densities.any() else min(seconds / 5.0, 1.0)
        self.densities = (1 - weight) * self.densities + weight * found

    def _advance(self, x: ekf.State, t_ns: int, by: Inertial | None = None) -> None:
        """Move on to a time by the IMU."""
        seconds = (t_ns - x.t_ns) / NS
        if seconds <= 0:
            return
        felt = by or self.inertial[-1]
        force_density, rate_density = np.sqrt(np.maximum(self.densities, [1e-8, 1e-12])).tolist()
        densities = force_density / felt.trust, rate_density / felt.trust
        ekf.move_inertially(x, seconds, felt.force, felt.rate, densities, self.noise)
        x.t_ns = t_ns

    def _coast(self, x: ekf.State, t_ns: int) -> None:
        """Move straight on to a time, of which nothing was felt."""
        seconds = (t_ns - x.t_ns) / NS
        if seconds <= 0:
            return
        densities = COAST[0] * np.sqrt(seconds), COAST[1] * np.sqrt(seconds)
        rest = x.rotation.T @ (self.noise.gravity * ekf.UP) + x.force_bias
        ekf.move_inertially(x, seconds, rest, x.gyro_bias, densities, self.noise)
        ekf.add_variance(x, ekf.POSITION, (COAST[0] * seconds**2 / 2) ** 2)
        x.t_ns = t_ns

    def _take_step(self, x: ekf.State, step: Step) -> None:
        seconds = (step.t_ns - step.since_ns) / NS
        self.twist = se3.log(step.transform) / seconds
        self.unseen += abs(float(step.transform[0, 3]))
        if step.sensor != "motion":
            self.pace.take(step)
            self.shaking.take(step)
        if not self._alive(step.t_ns):
            self._doubt_wheels(x)
            self._move_by(x, step)
            self.set_offs.move(float(step.transform[0, 3]), self.pace.stood > 0)
            return
        self._advance(x, step.t_ns)
        if step.sensor == "motion":
            self._take_motion(x, step)
            return
        kept = x.clones[WHEELS]
        if kept is not None and kept[0] == step.since_ns:
            wheels.age_wheels(x, abs(float(step.transform[0, 3])), self.noise)
            sensor = self.sensor(step.sensor)
            v = wheels.step_variances(step.transform, seconds, self.noise)
            spread = inflate(np.diag([v[0], v[1], v[2], 1.0, 1.0, v[3]]) * sensor.scale, step.trust)
            measured = wheels.step_residual(x, step.transform, WHEELS, spread, wheels=True)
            self._weigh(x, measured, sensor, step.trust)
        x.clone(WHEELS)

    def _doubt_wheels(self, x: ekf.State) -> None:
        """Doubt wheels that set off or leap; an IMU would show it."""
        unsteady = self.set_offs.unsteady(x.t_ns) if self.adapt else self.noise.unsteady
        if self.pace.sets_off or self.pace.leap:
            self.foresight.forget()
        if self.pace.sets_off:
            wheels.doubt_wheels(x, self.noise, unsteady)
            self.set_offs.begin(x)
        elif self.pace.leap:
            wheels.doubt_leap(x, self.pace.leap, unsteady)

    def _take_motion(self, x: ekf.State, step: Step) -> None:
        """Correct by a pose in the frame of a visual or lidar odometry, which drifts along the way."""
        if x.clones[MOTION] is None or self.followed is None or self.followed[0] != step.since_ns:
            x.clone(MOTION)
            self.followed = step.t_ns, np.eye(4)
            return
        pose = self.followed[1] @ step.transform
        self.followed = step.t_ns, pose
        ekf.age_motion(x, MOTION, float(np.linalg.norm(step.transform[:3, 3])), self.noise.motion_drift)
        sensor = self.sensor("motion")
        told = step.covariance
        spread = np.diag(MOTION_STD**2) if told is None or not np.isfinite(told).all() else told
        spread = inflate(spread * sensor.scale, step.trust)
        self._weigh(x, wheels.step_residual(x, pose, MOTION, spread, wheels=False), sensor, step.trust)

    def _weigh(self, x: ekf.State, measured: ekf.Residual, sensor: Sensor, trust: float) -> None:
        """Correct by a dead reckoning. One that disagrees too far (slip) counts for less, not for nothing.

        What is not trusted tells nothing of how noisy a sensor is when it is.
        """
        S = measured.spread(x)
        nis = float(measured.r @ np.linalg.solve(S, measured.r))
        if not sensor.judge(nis, S, self.adapt if trust == 1.0 else 0.0, slice(0, 3)) and self.gated:
            measured = replace(measured, R=measured.R * (nis / limit(1 - FALSE_ALARMS, len(S))) ** 2)
        ekf.correct(x, measured)

    def sensor(self, name: str) -> Sensor:
        """Return what is known of a sensor."""
        if name not in self.sensors:
            self.sensors[name] = Sensor(PLACE_LEAST if name in ("fix", "position") else STEP_LEAST)
        return self.sensors[name]

    def _move_by(self, x: ekf.State, step: Step) -> None:
        """Move on by a step itself, stopping at the places that were measured during it."""
        if step.sensor == "motion" and self.inputs.reckoned:
            return
        self._bridge(x, step)
        gyro = self.gyro.between(step.since_ns, step.t_ns)
        due = [each for each in self.pending if each.t_ns <= step.t_ns]
        self.pending = [each for each in self.pending if each.t_ns > step.t_ns]
        for place in due:
            self._move_on(x, place.t_ns, gyro, step)
            self._take_place(x, place)
        self._move_on(x, step.t_ns, gyro, step)
        if gyro is not None:
            self._compare_turns(x, step, gyro)

    def _move_on(self, x: ekf.State, t_ns: int, gyro: wheels.GyroTurn | None, step: Step) -> None:
        """Move on to a time by a part of a step."""
        seconds = (t_ns - x.t_ns) / NS
        if seconds <= 0:
            return
        part = (t_ns - x.t_ns) / (step.t_ns - step.since_ns)
        moved = se3.exp(self.twist * seconds)
        for state, usual in self.foresight.states(x):
            noise = usual if step.trust == 1.0 else scale_noise(usual, 1 / step.trust)
            wheels.age_wheels(state, abs(float(moved[0, 3])), noise)
            # Shadows learn what wheels err over seconds: shaking, which does not add up, is none of that.
            shaking = self.shaking.density if state is x else 0.0
            wheels.move_by_step(state, moved, seconds, noise, gyro and gyro.part(part), shaking)
            state.t_ns = t_ns

    def _compare_turns(self, x: ekf.State, step: Step, gyro: wheels.GyroTurn) -> None:
        """Hold the turn that wheels say against a gyroscope's."""
        sensor, seconds = self.sensor(step.sensor), (step.t_ns - step.since_ns) / NS
        variance = wheels.step_variances(step.transform, seconds, self.noise)[3] * sensor.scale
        variance /= step.trust**2
        self._weigh(x, wheels.turn_residual(x, step.transform, seconds, variance, gyro), sensor, step.trust)

    def _bridge(self, x: ekf.State, step: Step) -> None:
        """Let the position become uncertain over a time of which nothing is known."""
        gap = (step.since_ns - x.t_ns) / NS
        if gap > 0:
            x.covariance[ekf.POSITION, ekf.POSITION] += np.eye(3) * (0.5 * gap) ** 2
            x.t_ns = step.since_ns
            self.foresight.forget()

    # Places

    def _take_place(self, x: ekf.State, place: Place) -> None:
        position = self._in_frame(x, place)
        if position is None:
            return
        if place.height_doubt:
            ekf.doubt_height(x, place.height_doubt**2)
        sensor = self.sensor(place.sensor)
        variances = place.std**2
        if not place.has_height:
            ekf.correct(
                x, ekf.place_residual(x, position, variances, place.lever, with_error=False).part([2])
            )
            variances = variances * np.array([1.0, 1.0, 0.0])
        alike = not place.white or place.lasting is not None
        if place.lasting is not None:
            # Without an IMU nothing tells hills from an error of heights that lasts: that part is white, too.
            followed = np.array([1.0, 1.0, float(bool(self.inertial))]) * place.lasting**2 * (variances > 0)
            self.lasting = place.lasting**2 - followed
            variances = variances + self.lasting * (variances > 0)
            self._age_fixes(x, place, followed, CORRELATION_S)
        elif not place.white:
            self._age_fixes(x, place, variances, self.noise.fix_seconds)
            variances = variances * WHITE_PART**2
        if not self.inertial:
            variances = variances + (self.priors.tilt * place.lever[2]) ** 2 * np.array([1.0, 1.0, 0.0])
        measured = ekf.place_residual(x, position, variances * sensor.scale, place.lever, alike)
        measured = measured if place.has_height else measured.part([0, 1])
        S = measured.spread(x)
        nis = float(measured.r @ np.linalg.solve(S, measured.r))
        gain = 2 * self.adapt if place.trust == 1.0 else 0.0
        if gain and not self.inertial:  # what was told of tilt and places is rough, and the heading needs it
            gain = max(gain, min(1.0, SOON / (sensor.count + 1)))
        inside = sensor.judge(nis, S, gain, slice(0, 2)) or not self.gated
        if not inside and sensor.row <= self.patience:
            return
        if not inside:
            self._doubt(x, float(measured.r @ measured.r))
        if not self.inertial:
            self.foresight.compare(place.t_ns, position, variances * sensor.scale, place.lever, alike)
        ekf.correct(x, measured)
        if not self.inertial:
            self.foresight.leave(x)
            self.set_offs.compare(x)
        self.placed_ns.append(place.t_ns)
        self.unseen = 0.0

    def _doubt(self, x: ekf.State, squared: float) -> None:
        """Doubt a state that is off by so much (m2): so many places in a row are no outliers.

        Wheels slipped, or turned otherwise than they said: then the heading is wrong, too. What an IMU
        carries on is a velocity: if that is wrong, a right position is wrong again at the next place.
        """
        if self.inertial:
            seconds = (x.t_ns - self._last_placed_ns()) / NS
            ekf.doubt(x, squared, heading=0.0, velocity=squared / max(seconds, LEAST_SECONDS) ** 2)
        else:
            turned = min(squared / max(self.unseen, LEAST_WAY) ** 2, ANY_HEADING)
            ekf.doubt(x, squared, heading=turned, velocity=0.0)

    def _last_placed_ns(self) -> int:
        assert self.began is not None
        return self.placed_ns[-1] if self.placed_ns else self.began.t_ns

    def _age_fixes(self, x: ekf.State, place: Place, variances: Floats, correlation_s: float) -> None:
        if self.last_fix is None:
            x.covariance[ekf.FIX_ERROR, ekf.FIX_ERROR] = np.diag(variances)
        else:
            for state, _ in self.foresight.states(x):
                ekf.age_fixes(state, (place.t_ns - self.last_fix[0]) / NS, variances, correlation_s)
        self.last_fix = place.t_ns, variances

    def _in_frame(self, x: ekf.State, place: Place) -> Floats | None:
        """Return a place in the filter's frame; where it began without places, once the way tells how."""
        if self.anchor is None:
            self.unanchored.append((place.position, x.p + x.rotation @ place.lever))
            there, here = (np.stack(each) for each in zip(*self.unanchored, strict=True))
            if np.linalg.norm(there[:, :2] - there[0, :2], axis=1).max() < LEAST_WAY:
                return None
            found = align.yaw(there, here)
            self.anchor = se3.from_matrix(found.rotation, found.translation)
        return se3.apply(self.anchor, place.position)

    # What is known

    def at(self, t_ns: int) -> ekf.State:
        """Return the state at a time soon after the newest event, moved on as it moves."""
        assert self.state is not None
        x = self.state.copy()
        seconds = (t_ns - x.t_ns) / NS
        if seconds <= 0 or seconds * NS > wheels.SILENT_NS:
            return x
        if self._alive(t_ns):
            self._advance(x, t_ns)
        elif self.inputs.alone:
            self._coast(x, t_ns)
        else:
            wheels.move_by_step(x, se3.exp(self.twist * seconds), seconds, self.foresight.noise)
        x.t_ns = t_ns
        return x

    def angular_velocity(self, x: ekf.State) -> tuple[Floats, Floats]:
        """Return the angular velocity (3,) in the map and its covariance (3, 3)."""
        if self.inertial:
            spread = np.eye(3) * self.densities[1] * 10 + x.covariance[ekf.GYRO_BIAS, ekf.GYRO_BIAS]
            return x.rotation @ (self.inertial[-1].rate - x.gyro_bias), x.rotation @ spread @ x.rotation.T
        return x.rotation @ self.twist[3:], np.eye(3) * self.noise.turn_floor**2

    def innovations(self, t_ns: int) -> Record:
        """Return, for every sensor, what its innovations since the last call were."""
        values: dict[str, float] = {}
        for name in SENSORS:
            sensor, before = self.sensors.get(name, Sensor()), self.before.get(name, Sensor())
            count = sensor.count - before.count
            values[f"{name}_count"] = float(count)
            values[f"{name}_below"] = float(sensor.below - before.below)
            values[f"{name}_refused"] = float(sensor.refused - before.refused)
            values[f"{name}_nis"] = (sensor.total - before.total) / count if count else float("nan")
            values[f"{name}_scale"] = sensor.scale
            values[f"{name}_detectable"] = sensor.detectable if count else float("nan")
        self.before = {name: replace(sensor) for name, sensor in self.sensors.items()}
        return Record(values, t_ns=t_ns)

    @property
    def biases(self) -> Floats | None:
        """Biases (6,) of the IMU: m/s2, then rad/s; None without one whose mount is known."""
        x = self.state
        return np.concatenate([x.force_bias, x.gyro_bias]) if x and self.inertial else None

    def conclude_stuck(self, ctx: FusionContext) -> bool:
        """Tell whether an IMU and places never told the heading; if so, say why in the judgement."""
        if self.state is not None or not self.inputs.alone:
            return False
        for sentence in self.inputs.describe_noise():
            ctx.report_noise(sentence)
        for note in self.notes:
            ctx.conclude(note)
        inertial = [each for each in self.early if isinstance(each, Inertial)]
        places = [each for each in self.early if isinstance(each, Place)]
        ctx.conclude(describe_unaligned(inertial, places, self.noise.gravity), bad=True)
        return True

    @property
    def notes(self) -> list[str]:
        """What was assumed, and how the heading was found: a sentence each."""
        aligned = self.began.aligned if self.began else None
        return [*self.inputs.notes, *([str(aligned)] if aligned else [])]

    @property
    def tallies(self) -> dict[str, Tally]:
        """What came of each sensor's measurements."""
        return {
            name: Tally(each.count, each.below, each.refused, each.total / max(each.count, 1))
            for name, each in self.sensors.items()
        }

    def report(self) -> Iterator[str]:
        """Yield a line for each sensor that had innovations."""
        for name, sensor in self.sensors.items():
            if sensor.count:
                yield f"{name}: {sensor}"
