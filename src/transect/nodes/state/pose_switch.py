"""One trajectory of several odometries of which each is used for a while (`orchestrator`)."""

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

PERIOD = 0.1
"""Seconds between two looks at what has come."""
RIVALS = ("first", "second", "third")


@outputs
class Switched:
    """The trajectory, when the inputs end.

    Attributes
    ----------
    pose : Trajectory
        Each odometry from where the one before it began to be doubted.
    given : Trajectory
        As a robot had it at the time: each from when it was chosen, so that it jumps where doubts came first.
    source : (n,) int64 array
        Which input each pose of `pose` is from: 0, 1 or 2.
    """

    pose: Trajectory | None = None
    given: Trajectory | None = None
    source: np.ndarray | None = None


class PoseSwitch(Node, every=PERIOD):
    """Lays odometries end to end: a new one goes on from the last pose that nobody doubted.

    All of them run all the time, so that a new one knows its biases and its map when it is needed. Only its
    motion counts, not its frame.
    """

    use: str = param("first", doc="which input counts from when on: `first; TIME_NS second; ...`")
    since: str = param("", doc="the same, with the times from which on the others were doubted")
    mounted: str = param(
        "",
        doc="poses of the bodies of `second` and `third` on that of `first`: `x y z qx qy qz qw; ...`",
    )

    def reset(self) -> None:
        self.poses: dict[str, list[Pose]] = {name: [] for name in RIVALS}

    def ready(self) -> None:
        """Refuse a timeline that uses what is not there."""
        for name in NameTimeline.parse(self.use, RIVALS).names:
            if not self.ctx.is_fed(name):
                raise WiringError(
                    f"{name} is to be used, and nothing feeds it",
                    hint=" or ".join(self.ctx.wires_of(name)) or "no stream of the recording has poses",
                )

    def process(
        self, first: Batch[Pose] = (), second: Batch[Pose] = (), third: Batch[Pose] = ()
    ) -> Switched | None:
        for name, came in zip(RIVALS, (first, second, third), strict=True):
            self.poses[name] += came

    def finish(self) -> Switched | None:
        """Return the trajectories."""
        poses = next((came for came in self.poses.values() if came), None)
        if poses is None:
            return self.ctx.skip("there is no pose")
        use = NameTimeline.parse(self.use, RIVALS)
        since = NameTimeline.parse(self.since or self.use, RIVALS)
        if [name for _, name in since.changes] != [name for _, name in use.changes]:
            raise UsageError("`since` and `use` name other inputs", why=f"{since}, {use}")
        mounted = [np.eye(4), *_read_poses(self.mounted), np.eye(4), np.eye(4)]
        tracks = [_track(self.poses[name], mounted[k]) for k, name in enumerate(RIVALS)]
        pairs = list(zip(use.changes, since.changes, strict=True))
        revised = [TrackSwitch(doubted, doubted, RIVALS.index(name)) for _, (doubted, name) in pairs]
        given = [TrackSwitch(t, doubted, RIVALS.index(name)) for (t, name), (doubted, _) in pairs]
        first = RIVALS.index(use.first)
        best = splice(tracks, first, revised)
        pose = _trajectory(best, poses[0])
        return Switched(pose, _trajectory(splice(tracks, first, given), poses[0]), best.source)


def _read_poses(text: str) -> list[Floats]:
    """Return poses (4, 4) that are written as seven numbers each."""
    try:
        rows = [[float(word) for word in part.split()] for part in text.split(";") if part.strip()]
        return [se3.from_quaternion(row[3:], row[:3]) for row in rows]
    except ValueError as error:
        raise UsageError(f"{text!r} are no poses", why=str(error), hint="x y z qx qy qz qw; ...") from error


def _track(poses: Sequence[Pose], T_first_body: Floats) -> PoseTrack:
    """Return the poses of the first odometry's body, by those of another one's."""
    newest = [pose for k, pose in enumerate(poses) if k == 0 or pose.t_ns > poses[k - 1].t_ns]
    if not newest:
        return PoseTrack(np.empty(0, np.int64), np.empty((0, 4, 4)))
    quaternions, places = (np.stack([getattr(p, n) for p in newest]) for n in ("orientation", "position"))
    bodies = se3.from_quaternion(quaternions, places) @ se3.invert(T_first_body)
    return PoseTrack(np.array([pose.t_ns for pose in newest], np.int64), bodies)


def _trajectory(spliced: SplicedTrack, like: Pose) -> Trajectory:
    turned, places = se3.to_quaternion(spliced.poses)
    return Trajectory(spliced.t_ns, places, turned, frame=like.frame, child=like.child)
