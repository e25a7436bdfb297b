"""Pose fusion by smoothing a whole recording."""

from __future__ import annotations

import re
from bisect import bisect

import numpy as np

from transect.algorithms.fusion.events import MOTION_SENSORS, MeasuredPosition
from transect.algorithms.fusion.measurements import UNMOUNTED_IMU, SampleBatches
from transect.algorithms.fusion.quality import conclude, describe_contradiction
from transect.algorithms.smoothing.batch import SmoothedPath, smooth
from transect.algorithms.smoothing.factor_graph import ConvergenceError, make_noise
from transect.algorithms.smoothing.filter_odometry import FilterOdometry
from transect.algorithms.smoothing.initial_values import HeadingUnobservableError
from transect.algorithms.smoothing.observations import Observations, SuspectInterval
from transect.algorithms.smoothing.position_factors import record_innovations, tally_positions
from transect.algorithms.smoothing.variance_components import describe_factors
from transect.base.clocks import NS
from transect.engine import param
from transect.errors import UsageError
from transect.types import Pose, Trajectory

from .error_state_filter import new_default_filter
from .pose_fusion import FusedPose, PoseFusion, require_observable

TICK_PERIOD_S = 0.05
"""Time between poses. Maps are built along them, and a body on soil pitches within 0.1 s."""
_IS_NUMBER = re.compile(r"-?\d{1,19}", re.ASCII).fullmatch


class BatchSmoother(PoseFusion, passes=2, every=TICK_PERIOD_S):
    """Most likely path given all measurements, from the first to the last, by a factor graph (GTSAM).

    It reads the recording twice: once to collect measurements, once to return the pose at every tick.
    Measurements after a gap constrain the path in the gap, so it is much more accurate there than a filter.
    `docs/fusion.md` has the factors. `state` is not set.
    """

    spacing: float = param(0.5, gt=0, unit="s", doc="time between keyframes")
    wheel_noise: float = param(1.0, gt=0, doc="factor on the default noise of the wheels")
    learn: bool = param(
        True, doc="whether noise is estimated: from withheld positions, or from the agreement of sources"
    )
    start_slip: float = param(1.0, ge=0, doc="sigma of the relative error of wheels after a start")
    tilt: float = param(0.05, gt=0, unit="rad", doc="sigma of roll and pitch if nothing measures them")

    map_radius: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="radius of the own map of `motion`, in which its error is bounded; 0: no map, it drifts",
    )
    suspect: str = param(
        "",
        doc="steps weighted by their agreement with other sources: `wheels FROM_NS TO_NS; ...`",
    )

    def reset(self) -> None:
        self.fusion_inputs = self.new_inputs()
        self.observations = Observations(suspect=parse_suspect(self.suspect))
        self.filter_odometry: FilterOdometry | None = None
        self.failed = False
        self.smoothed: SmoothedPath | None = None
        self.path: Trajectory | None = None
        self.ticks: list[int] = []

    def fuse(self, samples: SampleBatches) -> FusedPose | None:
        if self.fusion_inputs.imu.is_ignored:  # statistics are those of the last pass
            for _ in samples[4] or ():
                self.ctx.leave_out("imu", UNMOUNTED_IMU)
        if self.smoothed is not None and self.path is not None:
            return self._current_pose(self.smoothed, self.path)
        if self.failed:
            self.ctx.skip("the smoother has no solution: see the judgement")
            return FusedPose(success=False)
        events = self.fusion_inputs.gather(self.ctx, *samples)
        self.observations.add(events)
        if self.fusion_inputs.imu_only:
            if self.filter_odometry is None:
                self.filter_odometry = FilterOdometry(new_default_filter(self.fusion_inputs, self.gravity))
            self.observations.filter_path += self.filter_odometry.process_events(self.ctx, events)
        self.ticks.append(self.ctx.time)
        return None

    def finish(self) -> FusedPose | None:
        """Smooth after the first pass; after the second, return the whole trajectory."""
        if self.path is not None:
            self._conclude(self.path)
            return FusedPose(trajectory=self.path)
        if self.failed:
            return None
        inputs = self.fusion_inputs
        lacks_track = inputs.odometry.lacks_track
        require_observable(self.ctx, self.observations.kinds, "inputs with samples", lacks_track=lacks_track)
        inputs.positions.noise.update(last=True)
        self.observations.update_noise(inputs.with_estimated_noise)
        self.observations.limit_heights(inputs.positions.heights.std)
        smoothed = self.smoothed = self._smooth()
        if smoothed is None:
            return None
        self.ctx.log(str(smoothed.statistics))
        ticks = np.array(self.ticks, np.int64)
        inside = ticks[(ticks >= smoothed.times[0]) & (ticks <= smoothed.times[-1])]
        self.path = smoothed.trajectory(inside, self._frame(), inputs.body)
        return None

    def _smooth(self) -> SmoothedPath | None:
        """Smooth; without positions if they do not determine the heading. None if no path fits."""
        noise = make_noise(self.wheel_noise, self.start_slip, self.tilt, self.gravity, self.map_radius)
        start = self.filter_odometry.start if self.filter_odometry else None
        if self.filter_odometry and self.filter_odometry.filter.report_unaligned(self.ctx):
            self.failed = True
            return None
        try:
            return smooth(self.observations, noise, self.spacing, learn=self.learn, start=start)
        except HeadingUnobservableError as error:
            self.ctx.conclude(
                f"{error.what} ({error.why}): they were left out, and poses are in odom, with the start as "
                "origin. Do not trust this result",
                bad=True,
            )
            self.observations.positions = []
            return smooth(self.observations, noise, self.spacing)
        except ConvergenceError as error:
            text = describe_contradiction(error, self.observations.inertial, self.gravity)
            self.ctx.conclude(text, bad=True)
            self.failed = True
            return None

    def _current_pose(self, smoothed: SmoothedPath, path: Trajectory) -> FusedPose:
        """Return the pose at this tick: the ticks of both passes are the same."""
        now, i = self.ctx.time, int(np.searchsorted(path.t_ns, self.ctx.time))
        known = i < len(path) and path.t_ns[i] == now
        if not known or path.orientations is None or path.covariances is None:
            self.ctx.skip("outside the dead reckoning")
            return FusedPose(success=False)
        start = bisect(smoothed.positions, now - round(TICK_PERIOD_S * NS), key=_time)
        part = slice(start, bisect(smoothed.positions, now, key=_time))
        return FusedPose(
            pose=Pose(path.positions[i], path.orientations[i], now, path.frame, path.child),
            covariance=path.covariances[i],
            success=True,
            innovations=record_innovations(smoothed.positions[part], smoothed.statistics.part(part), now),
        )

    def _conclude(self, path: Trajectory) -> None:
        if self.smoothed is None:
            return
        positions, statistics = self.smoothed.positions, self.smoothed.statistics
        used_ns = [each.t_ns for each, used in zip(positions, statistics.used, strict=True) if used]
        notes = self.filter_odometry.filter.notes if self.filter_odometry else self.fusion_inputs.notes
        noise = self.fusion_inputs.describe_noise()
        tallies = tally_positions(positions, statistics)
        conclude(self.ctx, tallies, used_ns, path, self.smoothed.biases, notes, noise)
        for sentence in describe_factors(self.smoothed.factors):
            self.ctx.conclude(sentence)

    def _frame(self) -> str:
        return self.fusion_inputs.frame if self.observations.positions else "odom"


def _time(position: MeasuredPosition) -> int:
    return position.t_ns


def parse_suspect(text: str) -> list[SuspectInterval]:
    """Return the suspect intervals of a text such as `wheels FROM_NS TO_NS; motion ...`."""
    intervals: list[SuspectInterval] = []
    for words in (part.split() for part in text.split(";") if part.strip()):
        if (
            len(words) != 3
            or words[0] not in MOTION_SENSORS
            or not all(_IS_NUMBER(word) for word in words[1:])
        ):
            hint = f"INPUT FROM_NS TO_NS; ... with inputs {', '.join(MOTION_SENSORS)}"
            raise UsageError(f"{' '.join(words)!r} is no suspect interval", hint=hint)
        intervals.append(SuspectInterval(words[0], int(words[1]), int(words[2])))
    return intervals
