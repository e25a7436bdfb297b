"""Pose fusion by smoothing a whole recording at once."""

from __future__ import annotations

from bisect import bisect

import numpy as np

from transect.base.clocks import NS
from transect.engine import param
from transect.types import Pose, Trajectory

from .fusion import Batches, Place, conclude
from .pose_fusion import PERIOD, FusedPose, PoseFusion, refuse_too_little
from .smoothing import Evidence, Smoothed, innovations, noise_of, smooth, tallies


class BatchSmoother(PoseFusion, passes=2):
    """The motion that fits all measurements best, from the first to the last, by a factor graph (GTSAM).

    It sees the recording twice: once to measure, once to tell at every tick where the body was. What comes
    after a gap is used in the gap, so that it is far better there than a filter. `docs/fusion.md` has the
    factors. `state` is not told.
    """

    spacing: float = param(0.5, gt=0, unit="s", doc="time between keyframes")
    wheel_noise: float = param(1.0, gt=0, doc="factor on the default noise of the wheels")
    learn: bool = param(True, doc="whether the noise of the wheels is learnt from positions held out")
    unsteady: float = param(1.0, ge=0, doc="sigma of the relative error of wheels that set off")
    tilt: float = param(0.05, gt=0, unit="rad", doc="sigma of roll and pitch where nothing measures them")

    def reset(self) -> None:
        self.gathered = self.new_inputs()
        self.evidence = Evidence()
        self.smoothed: Smoothed | None = None
        self.path: Trajectory | None = None
        self.ticks: list[int] = []

    def fuse(self, given: Batches) -> FusedPose | None:
        if self.smoothed is not None and self.path is not None:
            return self._pose_now(self.smoothed, self.path)
        self.evidence.add(self.gathered.gather(self.ctx, *given))
        self.ticks.append(self.ctx.time)
        return None

    def finish(self) -> FusedPose | None:
        """Smooth after the first pass; after the second, return the whole trajectory."""
        if self.path is not None:
            self._conclude(self.path)
            return FusedPose(trajectory=self.path)
        refuse_too_little(self.evidence.kinds, "samples came from")
        noise = noise_of(self.wheel_noise, self.unsteady, self.tilt, self.gravity)
        found = self.smoothed = smooth(self.evidence, noise, self.spacing, learn=self.learn)
        self.ctx.log(str(found.judged))
        ticks = np.array(self.ticks, np.int64)
        inside = ticks[(ticks >= found.times[0]) & (ticks <= found.times[-1])]
        self.path = found.trajectory(inside, self._frame(), self.gathered.body)
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
            conclude(self.ctx, tallies(places, judged), used, path, self.smoothed.biases)

    def _frame(self) -> str:
        return self.gathered.frame if self.evidence.places else "odom"


def _time(place: Place) -> int:
    return place.t_ns
