"""A recording as a film: its arm as it moved, or its rover as it drove over a map."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from transect.base.arrays import Floats, Ints
from transect.base.clocks import NS, text_from_ns
from transect.draw.replay.stage import Pixels, SignalCurve, VerdictInterval
from transect.draw.robots import RobotScene
from transect.errors import TransectError, UsageError
from transect.evaluation.inputs import map_of, open_ground
from transect.evaluation.positions.common_frame import MapLayout, lay_out
from transect.evaluation.positions.paths import RecordedPath, guides_of, path_of
from transect.evaluation.positions.streams import best_stream
from transect.recording import Recording, Robot, Stream
from transect.robots.pictures import scene_of
from transect.robots.urdf import Arm, arms_of
from transect.types import GridMap, JointState

if TYPE_CHECKING:
    from transect.integrity.table import VerdictTable

RATE = 25
"""Frames a second."""
LONGEST = 40.0
"""Seconds that a film lasts if nobody says how much faster than life it is."""
SPEEDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
SMOOTHED = 1.0
"""Seconds over which positions are averaged for way, speed and heading: receivers jitter."""
SLOW = 0.03
"""Metres a second below which a robot stands, and keeps the heading that it had."""
MOST_POINTS = 4000
"""Of a track that is drawn."""
WORST = ("BAD", "SUSPECT", "OK", "UNKNOWN")


@dataclass(frozen=True, eq=False)
class Replay:
    """A film to be drawn."""

    # takes seconds after the start, going up, and yields a picture (h, w, 3) for each
    frames: Callable[[Iterable[float]], Iterator[Pixels]]
    duration: float  # seconds that it shows
    speed: float  # how much faster than life
    notes: tuple[str, ...] = ()  # what a person should know of it

    @property
    def seconds(self) -> list[float]:
        """Which moment each frame shows, the last one too."""
        count = max(int(self.duration / self.speed * RATE), 1)
        return np.linspace(0.0, self.duration, count + 1).tolist()

    def write(self, path: Path, seconds: Iterable[float]) -> None:
        """Write the film (H.264 in MP4) of some moments: `seconds`."""
        from transect.formats.video import encode_film

        pictures = enumerate(self.frames(seconds))
        encode_film(((k * 1_000_000 // RATE, pixels, "rgb24") for k, pixels in pictures), path)


def replay(
    recording: Recording,
    *,
    over: str | None = None,
    verdicts: VerdictTable | None = None,
    speed: float | None = None,
) -> Replay:
    """Return the film of a recording: of its arm if it has joints and goes nowhere, else of its drive.

    Parameters
    ----------
    over : str, optional
        What lies below a drive: a map, as for `transect draw track`; else one of the recording's own.
    verdicts : VerdictTable, optional
        How far sensors could be trusted.
    speed : float, optional
        How much faster than life; by default so that the film lasts 40 s at most.
    """
    try:
        stream = best_stream(recording)
    except TransectError as error:
        moved = _find_arm(recording)
        if moved is None:
            raise UsageError(
                f"{recording.name} has nothing to replay",
                why="no stream says where the robot was, and none has the joints of an arm that is described",
                hint=f"transect info {recording.typed} lists the streams",
            ) from error
        if over is not None:
            raise UsageError(
                f"{over} lies below nothing", why="it is an arm that moves, not a rover"
            ) from error
        return _replay_arm(recording, *moved, verdicts, speed)
    return _replay_drive(recording, stream, over, verdicts, speed)


def _choose_speed(duration: float, speed: float | None) -> float:
    if speed is not None:
        return speed
    return float(next((s for s in SPEEDS if duration / s <= LONGEST), SPEEDS[-1]))


def _subtitle(recording: Recording, what: str, speed: float) -> str:
    title = recording.robot.title if recording.robot else ""
    pace = "as fast as it was" if speed == 1 else f"{speed:g} times as fast as it was"
    return "  \N{MIDDLE DOT}  ".join(part for part in (title, what, pace) if part)


def _judge(
    verdicts: VerdictTable | None, clock: str, start_ns: int, end_ns: int, recording: Recording
) -> list[VerdictInterval]:
    """Return stretches of the worst state of all streams on a clock, s after a start."""
    if verdicts is None:
        return []
    windows = [
        window
        for name, each in verdicts.by_stream.items()
        if name in recording and recording[name].clock == clock
        for window in each
    ]
    edges = sorted(
        {start_ns, end_ns, *(t for w in windows for t in (w.t0_ns, w.t1_ns) if start_ns < t < end_ns)}
    )
    rank = {state: k for k, state in enumerate(WORST)}
    found: list[VerdictInterval] = []
    firsts = np.searchsorted(edges, [w.t0_ns for w in windows])
    lasts = np.searchsorted(edges, [w.t1_ns for w in windows])
    present = np.zeros((len(WORST), len(edges) + 1), np.int64)  # windows of a state that begin less end
    ranks = np.array([rank[w.state] for w in windows], np.int64)
    np.add.at(present, (ranks, firsts), 1)
    np.add.at(present, (ranks, lasts), -1)
    there = np.cumsum(present, axis=1) > 0
    for k, (begin, end) in enumerate(pairwise(edges)):
        state = WORST[int(np.argmax(there[:, k]))] if there[:, k].any() else "UNKNOWN"
        if found and found[-1].state == state:
            found[-1] = VerdictInterval(found[-1].start, (end - start_ns) / NS, state)
        else:
            found.append(VerdictInterval((begin - start_ns) / NS, (end - start_ns) / NS, state))
    return found


# A drive


def _replay_drive(
    recording: Recording, stream: Stream, over: str | None, verdicts: VerdictTable | None, speed: float | None
) -> Replay:
    from transect.draw.replay.rover import DriveFilm, drive_frames
    from transect.draw.tracks import PlottedTrack, TrackStyle

    path = _thin(path_of(stream, stream.name))
    truth = recording.truth
    also = [] if truth is None or truth.name == stream.name or truth.clock != stream.clock else [truth]
    layout = _lay_out(recording, [path, *(_thin(path_of(s, s.name)) for s in also)], over)
    start, end = int(path.t_ns[0]), int(path.t_ns[-1])
    seconds = (path.t_ns - start) / NS
    if path.clock == "index" or end == start:
        raise UsageError(f"{stream.name} has no times", hint="a film needs to know when the robot was where")
    points = layout.tracks[0].points
    pace = _choose_speed((end - start) / NS, speed)
    drive = DriveFilm(
        recording.name,
        _subtitle(recording, stream.name, pace),
        PlottedTrack(stream.name, points, seconds),
        _headings(points, seconds),
        layout.tracks[1:],
        layout.ground,
        TrackStyle("", layout.caption, layout.view.names, layout.is_north_up),
        _drive_curves(path, points, seconds),
        _judge(verdicts, path.clock, start, end, recording),
        (end - start) / NS,
        partial(_clock_text, path.clock, start),
    )
    return Replay(partial(drive_frames, drive), drive.duration, pace, tuple(layout.notes))


def _thin(path: RecordedPath) -> RecordedPath:
    """Return a path with no more points than are drawn, each at a time of its own."""
    rows = np.unique(np.linspace(0, len(path.t_ns) - 1, min(len(path.t_ns), MOST_POINTS)).astype(int))
    _, first = np.unique(path.t_ns[rows], return_index=True)
    rows = rows[first]
    turned = None if path.orientations is None else path.orientations[rows]
    return RecordedPath(path.name, path.t_ns[rows], path.places[rows], turned, path.frame, path.clock)


def _lay_out(recording: Recording, paths: Sequence[RecordedPath], over: str | None) -> MapLayout:
    """Lay tracks on a map: the one that was named, else the recording's own, else none."""
    maps = sorted((s for s in recording if s.type is GridMap and len(s)), key=lambda s: s.role == "truth")
    own = [partial(_own_map, recording, stream.name) for stream in maps]
    grounds = [partial(open_ground, over)] if over else [*own, lambda: (None, [], [])]
    for ground in grounds[:-1]:
        try:
            return _lay_on(recording, paths, *ground())
        except TransectError:
            continue  # this map does not lie below: the next one, or none
    return _lay_on(recording, paths, *grounds[-1]())


def _own_map(recording: Recording, name: str) -> tuple[object, list[RecordedPath], list[str]]:
    return map_of(recording, name), [], [f"the ground is {name}"]


def _lay_on(
    recording: Recording,
    paths: Sequence[RecordedPath],
    below: object,
    guides: list[RecordedPath],
    notes: list[str],
) -> MapLayout:
    frame = "" if below is None or getattr(below, "crs", "") else str(getattr(below, "frame", ""))
    more = list(guides_of(recording, frame)) if frame else []
    layout = lay_out(paths, below, [*guides, *more])  # pyright: ignore[reportArgumentType]
    layout.notes[:0] = notes
    return layout


def _headings(points: Floats, seconds: Floats) -> Floats:
    """Return the direction of travel (n,), rad; where it stands, the one that it had before."""
    speed = np.gradient(_smooth(points, seconds), seconds, axis=0)
    moving = np.linalg.norm(speed, axis=1) > SLOW
    if not moving.any():
        return np.zeros(len(points))
    last: Ints = np.maximum.accumulate(np.where(moving, np.arange(len(points)), int(np.argmax(moving))))
    return np.arctan2(speed[last, 1], speed[last, 0])


def _smooth(points: Floats, seconds: Floats) -> Floats:
    """Return points (n, 2) averaged over a second."""
    width = int(np.clip(SMOOTHED / max(float(np.median(np.diff(seconds))), 1e-6), 1, len(points) // 4)) | 1
    padded = np.pad(points, ((width // 2, width // 2), (0, 0)), mode="reflect", reflect_type="odd")
    return np.column_stack([np.convolve(column, np.ones(width) / width, "valid") for column in padded.T])


def _drive_curves(path: RecordedPath, points: Floats, seconds: Floats) -> list[SignalCurve]:
    smooth = _smooth(points, seconds)
    steps = np.linalg.norm(np.diff(smooth, axis=0), axis=1)
    speed = np.linalg.norm(np.gradient(smooth, seconds, axis=0), axis=1)
    way = np.concatenate([[0.0], np.cumsum(steps)])
    return [
        SignalCurve("way", "m", seconds, way),
        SignalCurve("speed", "m/s", seconds, speed),
        SignalCurve("height", "m", seconds, path.places[:, 2]),
    ]


def _clock_text(clock: str, start_ns: int, second: float) -> str:
    text = text_from_ns(start_ns + round(second * NS), clock)
    return f"{text.replace('T', '  ')[:24]} {'' if clock == 'device' else clock.upper()}".rstrip()


# An arm


def _find_arm(recording: Recording) -> tuple[Arm, Stream] | None:
    """Return the arm that joints were recorded of, and the stream of them that lasts longest."""
    if recording.robot is None:
        return None
    for arm in arms_of(recording.robot):
        fitting = [s for s in recording if s.type is JointState and len(s) > 1 and _fits(s, arm)]
        if fitting:
            return arm, max(
                fitting, key=lambda s: (s.tag != "potentiometer", int(s.t_ns.max() - s.t_ns.min()))
            )
    return None


def _fits(stream: Stream, arm: Arm) -> bool:
    known = "position" in stream.columns and stream.role != "truth"
    return known and stream["position"].shape[1:] == (arm.chain.joints,)


def _replay_arm(
    recording: Recording, arm: Arm, stream: Stream, verdicts: VerdictTable | None, speed: float | None
) -> Replay:
    from transect.draw.replay.arm import ArmFilm, move_frames

    robot = _with_fixed_frames(recording)
    known = np.flatnonzero(np.isfinite(stream["position"]).all(axis=1))
    _, first = np.unique(stream.t_ns[known], return_index=True)
    rows = known[first]
    t_ns, joints = stream.t_ns[rows], stream["position"][rows]
    start, end = int(t_ns[0]), int(t_ns[-1])
    seconds = (t_ns - start) / NS
    pace = _choose_speed((end - start) / NS, speed)
    degrees = np.degrees(joints)
    move = ArmFilm(
        recording.name,
        _subtitle(recording, f"joints of {stream.name}", pace),
        partial(_scene_at, robot, arm, seconds, joints),
        _tools(robot, arm),
        [SignalCurve(name, "\N{DEGREE SIGN}", seconds, degrees[:, k]) for k, name in enumerate(arm.joints)],
        _judge(verdicts, stream.clock, start, end, recording),
        (end - start) / NS,
        partial(_clock_text, stream.clock, start),
    )
    return Replay(partial(move_frames, move), move.duration, pace)


def _with_fixed_frames(recording: Recording) -> Robot:
    """Return the robot with the frames that only the recording's own parameters place, such as tools."""
    robot = recording.robot
    if robot is None:
        raise UsageError(f"{recording.name} names no robot")
    tree = robot.frames.copy()
    for edge in recording.frames.edges:
        if edge.matrix is not None and edge.child not in tree:
            tree.add_static(edge.parent, edge.child, edge.matrix, source=edge.source)
    return dataclasses.replace(robot, frames=tree)


def _scene_at(robot: Robot, arm: Arm, seconds: Floats, joints: Floats, second: float) -> RobotScene:
    """Return the robot with its joints between two samples; links are straight: no sag."""
    q = [float(np.interp(second, seconds, column)) for column in joints.T]
    return scene_of(robot, {arm.frames[0]: q})


def _tools(robot: Robot, arm: Arm) -> list[str]:
    """Return the frames fixed to the arm's end, the scoop or the one farthest out first."""
    fixed = [edge for edge in robot.frames.edges if edge.parent == arm.frames[-1] and edge.matrix is not None]
    far = {edge.child: float(np.linalg.norm(edge.matrix[:3, 3])) for edge in fixed if edge.matrix is not None}
    return sorted(far, key=lambda name: (name.lower() != "scoop", -far[name]))
