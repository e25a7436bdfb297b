"""One trajectory spliced from several odometries (`orchestrator`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transect.base.arrays import Floats
from transect.base.timelines import NameTimeline
from transect.engine import Batch, Node, outputs, param
from transect.engine.wiring import WiringError
from transect.errors import UsageError
from transect.geometry import se3
from transect.geometry.splicing import PoseTrack, SplicedTrack, TrackSwitch, splice
from transect.types import Pose, Trajectory

TICK_PERIOD_S = 0.1
INPUTS = ("first", "second", "third")


@outputs
class Switched:
    """The trajectory, when the inputs end.

    Attributes
    ----------
    pose : Trajectory
        Each odometry from the time at which the previous one became suspect.
    given : Trajectory
        As known at the time: each odometry from the time of the switch, so that it jumps there.
    source : (n,) int64 array
        Input of each pose of `pose`: 0, 1 or 2.
    """

    pose: Trajectory | None = None
    given: Trajectory | None = None
    source: np.ndarray | None = None


class PoseSwitch(Node, every=TICK_PERIOD_S):
    """Splices odometries: a new one continues from the last pose that was not suspect.

    All of them run all the time, so that biases and map of a new one are estimated when it is needed. Its
    motion is used, its frame is not.
    """

    use: str = param("first", doc="timeline of the inputs: `first; TIME_NS second; ...`")
    since: str = param("", doc="the same, with the times from which on the previous inputs were suspect")
    mounted: str = param(
        "",
        doc="poses of the bodies of `second` and `third` on that of `first`: `x y z qx qy qz qw; ...`",
    )

    def reset(self) -> None:
        self.poses: dict[str, list[Pose]] = {name: [] for name in INPUTS}

    def ready(self) -> None:
        """Refuse a timeline with inputs that nothing feeds."""
        for name in NameTimeline.parse(self.use, INPUTS).names:
            if not self.ctx.is_fed(name):
                raise WiringError(
                    f"{name} is to be used, and nothing feeds it",
                    hint=" or ".join(self.ctx.wires_of(name)) or "no stream of the recording has poses",
                )

    def process(
        self, first: Batch[Pose] = (), second: Batch[Pose] = (), third: Batch[Pose] = ()
    ) -> Switched | None:
        for name, batch in zip(INPUTS, (first, second, third), strict=True):
            self.poses[name] += batch

    def finish(self) -> Switched | None:
        """Return the trajectories."""
        poses = next((each for each in self.poses.values() if each), None)
        if poses is None:
            return self.ctx.skip("there is no pose")
        use = NameTimeline.parse(self.use, INPUTS)
        since = NameTimeline.parse(self.since or self.use, INPUTS)
        if [name for _, name in since.changes] != [name for _, name in use.changes]:
            raise UsageError("`since` and `use` name other inputs", why=f"{since}, {use}")
        mounts = [np.eye(4), *_read_poses(self.mounted), np.eye(4), np.eye(4)]
        tracks = [_track(self.poses[name], mounts[k]) for k, name in enumerate(INPUTS)]
        pairs = list(zip(use.changes, since.changes, strict=True))
        revised = [TrackSwitch(anchor, anchor, INPUTS.index(name)) for _, (anchor, name) in pairs]
        causal = [TrackSwitch(t, anchor, INPUTS.index(name)) for (t, name), (anchor, _) in pairs]
        first = INPUTS.index(use.first)
        spliced = splice(tracks, first, revised)
        pose = _trajectory(spliced, poses[0])
        return Switched(pose, _trajectory(splice(tracks, first, causal), poses[0]), spliced.source)


def _read_poses(text: str) -> list[Floats]:
    """Return poses (4, 4) from seven numbers each."""
    try:
        rows = [[float(word) for word in part.split()] for part in text.split(";") if part.strip()]
        return [se3.from_quaternion(row[3:], row[:3]) for row in rows]
    except ValueError as error:
        raise UsageError(f"{text!r} are no poses", why=str(error), hint="x y z qx qy qz qw; ...") from error


def _track(poses: Sequence[Pose], T_first_body: Floats) -> PoseTrack:
    """Return the poses of the first odometry's body by those of another body."""
    increasing = [pose for k, pose in enumerate(poses) if k == 0 or pose.t_ns > poses[k - 1].t_ns]
    if not increasing:
        return PoseTrack(np.empty(0, np.int64), np.empty((0, 4, 4)))
    orientations, positions = (
        np.stack([getattr(pose, name) for pose in increasing]) for name in ("orientation", "position")
    )
    bodies = se3.from_quaternion(orientations, positions) @ se3.invert(T_first_body)
    return PoseTrack(np.array([pose.t_ns for pose in increasing], np.int64), bodies)


def _trajectory(spliced: SplicedTrack, like: Pose) -> Trajectory:
    orientations, positions = se3.to_quaternion(spliced.poses)
    return Trajectory(spliced.t_ns, positions, orientations, frame=like.frame, child=like.child)
