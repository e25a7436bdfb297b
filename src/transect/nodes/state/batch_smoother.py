"""Pose fusion by smoothing a whole recording at once."""

from __future__ import annotations

import re
from bisect import bisect

import numpy as np

from transect.algorithms.fusion.measurements import UNMOUNTED, Batches, Place
from transect.algorithms.fusion.quality import conclude, contradiction
from transect.algorithms.smoothing.batch import Smoothed, smooth
from transect.algorithms.smoothing.factor_graph import UnsettledError, noise_of
from transect.algorithms.smoothing.filter_odometry import Follower
from transect.algorithms.smoothing.initial_values import HeadingUnknownError
from transect.algorithms.smoothing.observations import Doubt, Evidence
from transect.algorithms.smoothing.position_factors import innovations, tallies
from transect.algorithms.smoothing.variance_components import describe
from transect.base.clocks import NS
from transect.engine import param
from transect.errors import UsageError
from transect.types import Pose, Trajectory

from .error_state_filter import follow
from .pose_fusion import RECKONING, FusedPose, PoseFusion, refuse_too_little

PERIOD = 0.05
"""Seconds between poses: maps are made along them, and within 0.1 s a body on soil nods."""
_IS_NUMBER = re.compile(r"-?\d{1,19}", re.ASCII).fullmatch


class BatchSmoother(PoseFusion, passes=2, every=PERIOD):
    """The motion that fits all measurements best, from the first to the last, by a factor graph (GTSAM).

    It sees the recording twice: once to measure, once to tell at every tick where the body was. What comes
    after a gap is used in the gap, so that it is far better there than a filter. `docs/fusion.md` has the
    factors. `state` is not told.
    """

    spacing: float = param(0.5, gt=0, unit="s", doc="time between keyframes")
    wheel_noise: float = param(1.0, gt=0, doc="factor on the default noise of the wheels")
    learn: bool = param(True, doc="whether noise is learnt: from positions held out, or how sources agree")
    unsteady: float = param(1.0, ge=0, doc="sigma of the relative error of wheels that set off")
    tilt: float = param(0.05, gt=0, unit="rad", doc="sigma of roll and pitch where nothing measures them")

    reach: float = param(
        0.0,
        ge=0,
        unit="m",
        doc="how far the map reaches that `motion` is laid on: it wanders there; 0: on none, it drifts",
    )
    doubted: str = param(
        "",
        doc="steps that count as far as they agree with the rest, or not at all: `wheels FROM_NS TO_NS; ...`",
    )

    def reset(self) -> None:
        self.gathered = self.new_inputs()
        self.evidence = Evidence(doubted=parse_doubts(self.doubted))
        self.follower: Follower | None = None
        self.failed = False
        self.smoothed: Smoothed | None = None
        self.path: Trajectory | None = None
        self.ticks: list[int] = []

    def fuse(self, given: Batches) -> FusedPose | None:
        if self.gathered.ignores_imu:  # statistics are of the last pass
            for _ in given[4] or ():
                self.ctx.leave_out("imu", UNMOUNTED)
        if self.smoothed is not None and self.path is not None:
            return self._pose_now(self.smoothed, self.path)
        if self.failed:
            self.ctx.skip("the smoother has no solution: see the judgement")
            return FusedPose(success=False)
        events = self.gathered.gather(self.ctx, *given)
        self.evidence.add(events)
        if self.gathered.alone:
            self.follower = self.follower or Follower(follow(self.gathered, gravity=self.gravity))
            self.evidence.followed += self.follower.follow(self.ctx, events)
        self.ticks.append(self.ctx.time)
        return None

    def finish(self) -> FusedPose | None:
        """Smooth after the first pass; after the second, return the whole trajectory."""
        if self.path is not None:
            self._conclude(self.path)
            return FusedPose(trajectory=self.path)
        if self.failed:
            return None
        refuse_too_little(
            self.ctx, self.evidence.kinds, "samples came from", lacks_track=self.gathered.lacks_track
        )
        self.gathered.noise.update(last=True)
        self.evidence.restate(self.gathered.restate)
        self.evidence.doubt_heights(self.gathered.heights.std)
        found = self.smoothed = self._smooth()
        if found is None:
            return None
        self.ctx.log(str(found.judged))
        ticks = np.array(self.ticks, np.int64)
        inside = ticks[(ticks >= found.times[0]) & (ticks <= found.times[-1])]
        self.path = found.trajectory(inside, self._frame(), self.gathered.body)
        return None

    def _smooth(self) -> Smoothed | None:
        """Smooth; without the positions if they do not tell the heading. None if no motion fits."""
        noise = noise_of(self.wheel_noise, self.unsteady, self.tilt, self.gravity, self.reach)
        start = self.follower.start if self.follower else None
        if self.follower and self.follower.filter.conclude_stuck(self.ctx):
            self.failed = True
            return None
        try:
            return smooth(self.evidence, noise, self.spacing, learn=self.learn, start=start)
        except HeadingUnknownError as error:
            self.ctx.conclude(
                f"{error.what} ({error.why}): they were left out, and poses are in odom, which begins at the "
                "start. Do not trust this result",
                bad=True,
            )
            self.evidence.places = []
            return smooth(self.evidence, noise, self.spacing)
        except UnsettledError as error:
            self.ctx.conclude(contradiction(error, self.evidence.inertial, self.gravity), bad=True)
            self.failed = True
            return None

    def _pose_now(self, found: Smoothed, path: Trajectory) -> FusedPose:
        """Return where the body was at this tick: the ticks of both passes are the same."""
        now, i = self.ctx.time, int(np.searchsorted(path.t_ns, self.ctx.time))
        known = i < len(path) and path.t_ns[i] == now
        if not known or path.orientations is None or path.covariances is None:
            self.ctx.skip("outside of the dead reckoning")
            return FusedPose(success=False)
        since = bisect(found.places, now - round(PERIOD * NS), key=_time)
        part = slice(since, bisect(found.places, now, key=_time))
        return FusedPose(
            pose=Pose(path.positions[i], path.orientations[i], now, path.frame, path.child),
            covariance=path.covariances[i],
            success=True,
            innovations=innovations(found.places[part], found.judged.part(part), now),
        )

    def _conclude(self, path: Trajectory) -> None:
        if self.smoothed is not None:
            places, judged = self.smoothed.places, self.smoothed.judged
            used = [place.t_ns for place, used in zip(places, judged.used, strict=True) if used]
            notes = self.follower.filter.notes if self.follower else self.gathered.notes
            noise = self.gathered.describe_noise()
            conclude(self.ctx, tallies(places, judged), used, path, self.smoothed.biases, notes, noise)
            for sentence in describe(self.smoothed.factors):
                self.ctx.conclude(sentence)

    def _frame(self) -> str:
        return self.gathered.frame if self.evidence.places else "odom"


def _time(place: Place) -> int:
    return place.t_ns


def parse_doubts(text: str) -> list[Doubt]:
    """Return what a text such as `wheels FROM_NS TO_NS; motion ...` puts in doubt."""
    found: list[Doubt] = []
    for words in (part.split() for part in text.split(";") if part.strip()):
        if len(words) != 3 or words[0] not in RECKONING or not all(_IS_NUMBER(word) for word in words[1:]):
            hint = f"INPUT FROM_NS TO_NS; ... with inputs {', '.join(RECKONING)}"
            raise UsageError(f"{' '.join(words)!r} are no steps that can be doubted", hint=hint)
        found.append(Doubt(words[0], int(words[1]), int(words[2])))
    return found
